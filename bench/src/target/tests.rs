//! Tests of what is read from the log of a server.
//! In: a log as far as it was written → out: the address, once its line is whole.
//! Uses texts only; starts nothing.
//! How a server is started is exercised by every scenario.

use super::printed_address;

#[test]
fn an_address_counts_once_its_line_is_whole() {
    for early in ["", "{\"level\":\"WARN\"}\n", "Fanwire 0.1.0 listens on 127.0.0.1:80"] {
        assert_eq!(printed_address(early), None, "{early:?}");
    }
    let whole = "{\"level\":\"WARN\"}\nFanwire 0.1.0 listens on 127.0.0.1:8001\n\n  WebSocket\n";
    assert_eq!(printed_address(whole), "127.0.0.1:8001".parse().ok());
}
