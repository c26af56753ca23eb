//! Tests of what is read from a page of metrics.
//! In: pages → out: values.
//! Uses texts only; no network.
//! How a page is asked for is exercised by the scenarios.

use super::value;

#[test]
fn a_value_is_that_of_the_whole_name() {
    let page = "HTTP/1.1 200 OK\r\n\r\n# TYPE fanwire_a gauge\nfanwire_a_b 1\nfanwire_a 1.5e6\n";
    assert_eq!(value(page, "fanwire_a").ok(), Some(1.5e6));
    assert_eq!(value(page, "fanwire_a_b").ok(), Some(1.0));
    assert!(value(page, "fanwire_b").is_err());
}
