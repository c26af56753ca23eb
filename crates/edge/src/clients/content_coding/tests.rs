//! Tests of which coding a client gets.
//! In: values of `Accept-Encoding` → out: the coding.
//! Uses the module alone.
//! Changed here: expectations of `content_coding`.

use super::*;

#[test]
fn clients_get_the_coding_that_they_prefer() {
    check(&["gzip, deflate, br, zstd"], Some(Coding::Gzip));
    check(&["deflate, gzip"], Some(Coding::Gzip));
    check(&["br", "deflate"], Some(Coding::Deflate));
    check(&["gzip;q=0.2, deflate;q=0.9"], Some(Coding::Deflate));
    check(&["GZIP ; Q=1.000"], Some(Coding::Gzip));
    check(&["x-gzip"], Some(Coding::Gzip));
    check(&["*"], Some(Coding::Gzip));
    check(&["gzip;q=0, *;q=0.5"], Some(Coding::Deflate));
    check(&["*;q=0.5, deflate"], Some(Coding::Deflate));
    check(&["identity;q=0.5, gzip;q=0.5"], Some(Coding::Gzip));
    check(&["identity;q=0, gzip;q=0.001"], Some(Coding::Gzip));
}

#[test]
fn clients_that_accept_or_prefer_none_get_none() {
    check(&[], None);
    for value in [
        "",
        "identity",
        "br, zstd",
        "identity;q=0",
        "*;q=0",
        "gzip;q=0",
        "gzip;q=0.000, deflate;q=0",
        "identity, gzip;q=0.5",
        "gzip;q=0.5, identity;q=0.501",
    ] {
        check(&[value], None);
    }
}

#[test]
fn what_is_no_weight_is_not_accepted() {
    for weight in ["2", "-1", "1.001", "0.0001", "0.1x", ".5", "", "NaN", "+1"] {
        check(&[&format!("gzip;q={weight}, br")], None);
    }
    check(&["gzip;level=9"], None);
    check(&["gzip;"], None);
    check(&[";q=1", "deflate"], Some(Coding::Deflate));
    check(&["gzip;q=2, deflate;q=1."], Some(Coding::Deflate));
}

#[test]
fn bytes_that_are_no_text_are_passed_over() {
    let mut headers = HeaderMap::new();
    headers.append("accept-encoding", header::HeaderValue::from_bytes(b"\xff").expect("obs-text"));
    assert_eq!(accepted(&headers), None);
    headers.append("accept-encoding", header::HeaderValue::from_static("gzip"));
    assert_eq!(accepted(&headers), Some(Coding::Gzip));
}

fn check(lines: &[&str], expected: Option<Coding>) {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(header::ACCEPT_ENCODING, line.parse().expect("a value"));
    }
    assert_eq!(accepted(&headers), expected, "{lines:?}");
}
