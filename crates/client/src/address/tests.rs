//! Tests of `address`: what is accepted, what is not, and any text.
//! Texts → parts of an address, or an error.
//! Uses only `address` and proptest.
//! Changed here: cases of addresses.

use proptest::prelude::*;

use super::*;

#[test]
fn an_address_has_a_host_and_maybe_a_port_and_a_path() {
    let local = "ws://localhost:8000/connection/websocket?format=protobuf";
    let path = "/connection/websocket?format=protobuf";
    check(local, Ok((false, "localhost", 8000, "localhost:8000", path)));
    check("wss://example.com", Ok((true, "example.com", 443, "example.com", "/")));
    check("ws://example.com?a=b#c", Ok((false, "example.com", 80, "example.com", "/?a=b")));
    check("ws://[::1]:8000/", Ok((false, "::1", 8000, "[::1]:8000", "/")));
}

#[test]
fn what_is_no_address_is_an_error_that_says_why() {
    check("http://localhost", Err(EXPECTED));
    check("localhost:8000", Err(EXPECTED));
    check("ws://", Err("the host is missing"));
    check("ws://:8000", Err("the host is missing"));
    check("ws://a:0", Err("the port is no number from 1 to 65535"));
    check("ws://a:b", Err("the port is no number from 1 to 65535"));
    check("ws://[::1", Err("a bracket is not closed"));
    check("ws://user:word@a", Err("a user name belongs into a token or a header"));
    check("ws://a/b\r\nc", Err("it has a space or a line end in it"));
}

proptest! {
    #[test]
    fn any_text_is_an_address_or_not(text in "(wss?://)?[a:\\[\\]/?#@0-9é ]{0,12}") {
        if let Ok(url) = parse(&text) {
            prop_assert!(url.path.starts_with('/') && !url.host.is_empty() && url.port > 0);
        }
    }
}

type Parts = (bool, &'static str, u16, &'static str, &'static str);

fn check(text: &str, expect: Result<Parts, &'static str>) {
    let url = parse(text);
    let parts = url.as_ref().map(|url| {
        (url.is_tls, url.host.as_str(), url.port, url.authority.as_str(), url.path.as_str())
    });
    assert_eq!(parts.map_err(|problem| *problem), expect, "{text}");
}
