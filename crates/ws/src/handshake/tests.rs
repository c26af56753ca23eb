//! Tests of `handshake`: every requirement of RFC 6455 §4.2.1 and the answer of §4.2.2.
//! A request with one thing changed → accept value, or status and text.
//! Uses only `handshake`.
//! Changed here: cases of upgrade requests.

use super::*;

#[test]
fn the_request_of_rfc_6455_section_1_3_is_accepted() {
    assert_eq!(check(&GOOD).as_deref(), Ok("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
}

#[test]
fn header_tokens_are_found_in_lists_whatever_their_case() {
    accepted(HandshakeRequest { connection: Some("keep-alive, Upgrade"), ..GOOD });
    accepted(HandshakeRequest { connection: Some("UPGRADE"), ..GOOD });
    accepted(HandshakeRequest { upgrade: Some("h2c,\tWebSocket"), ..GOOD });
    accepted(HandshakeRequest { version: Some(" 13 "), ..GOOD });
    accepted(HandshakeRequest { key: Some(" dGhlIHNhbXBsZSBub25jZQ==\t"), ..GOOD });
}

#[test]
fn another_method_than_get_is_answered_with_405() {
    // RFC 6455 §4.2.1a
    refused(
        HandshakeRequest { method: "POST", ..GOOD },
        405,
        "the method is \"POST\", a WebSocket handshake is a GET request",
    );
    refused(
        HandshakeRequest { method: "get", ..GOOD },
        405,
        "the method is \"get\", a WebSocket handshake is a GET request",
    );
}

#[test]
fn http_1_0_is_answered_with_400() {
    let request = HandshakeRequest { http_1_1_or_newer: false, ..GOOD };
    refused(request, 400, "a WebSocket handshake needs HTTP/1.1 or newer");
}

#[test]
fn a_request_with_a_body_is_answered_with_400() {
    let request = HandshakeRequest { has_body: true, ..GOOD };
    refused(request, 400, "a WebSocket handshake has no body");
}

#[test]
fn a_request_without_upgrade_is_answered_with_426() {
    let text = "the header Upgrade is missing, it must contain \"websocket\"";
    refused(HandshakeRequest { upgrade: None, ..GOOD }, 426, text);
    let text = "the header Upgrade is \"h2c\", it must contain \"websocket\"";
    refused(HandshakeRequest { upgrade: Some("h2c"), ..GOOD }, 426, text);
    let text = "the header Connection is missing, it must contain \"Upgrade\"";
    refused(HandshakeRequest { connection: None, ..GOOD }, 426, text);
    let text = "the header Connection is \"keep-alive\", it must contain \"Upgrade\"";
    refused(HandshakeRequest { connection: Some("keep-alive"), ..GOOD }, 426, text);
}

#[test]
fn another_version_than_13_is_answered_with_426_and_the_version() {
    // RFC 6455 §4.2.2c, §4.4a
    let text = "the header Sec-WebSocket-Version is \"8\", it must be \"13\"";
    refused(HandshakeRequest { version: Some("8"), ..GOOD }, 426, text);
    let text = "the header Sec-WebSocket-Version is missing, it must be \"13\"";
    refused(HandshakeRequest { version: None, ..GOOD }, 426, text);
    for version in ["013", "13, 8", "", "thirteen"] {
        let error =
            check(&HandshakeRequest { version: Some(version), ..GOOD }).expect_err("not 13");
        assert_eq!(error.status(), 426);
        assert!(error.headers().contains(&("sec-websocket-version", "13")));
        assert!(error.headers().contains(&("upgrade", "websocket"))); // RFC 9110 §15.5.22
    }
}

#[test]
fn a_key_that_is_not_16_bytes_in_base64_is_answered_with_400() {
    let text = "the header Sec-WebSocket-Key is missing, it must be 16 bytes in base64";
    refused(HandshakeRequest { key: None, ..GOOD }, 400, text);
    let text = "the header Sec-WebSocket-Key is \"AAAA\", it must be 16 bytes in base64";
    refused(HandshakeRequest { key: Some("AAAA"), ..GOOD }, 400, text);
    for key in [
        "",
        "dGhlIHNhbXBsZSBub25jZQ",                             // no padding
        "dGhlIHNhbXBsZSBub25jZTE=",                           // 17 bytes
        "dGhlIHNhbXBsZSBub25j",                               // 15 bytes
        "dGhlIHNhbXBsZSBub25jZTEy",                           // 18 bytes
        "dGhlIHNhbXBsZSBub25jZ?==",                           // not base64
        "dGhlIHNhbXBsZSBub25jZQ==, dGhlIHNhbXBsZSBub25jZQ==", // two keys
    ] {
        let error = check(&HandshakeRequest { key: Some(key), ..GOOD }).expect_err("not a key");
        assert_eq!(error.status(), 400, "{key}");
    }
}

#[test]
fn the_meaningless_bits_of_a_keys_last_character_do_not_matter() {
    accepted(HandshakeRequest { key: Some("dGhlIHNhbXBsZSBub25jZf=="), ..GOOD });
}

#[test]
fn an_error_repeats_no_more_than_the_beginning_of_a_value() {
    let long = "é".repeat(1000);
    let error =
        check(&HandshakeRequest { upgrade: Some(&long), ..GOOD }).expect_err("not websocket");
    assert!(error.to_string().len() < 200);
}

#[test]
fn the_first_known_subprotocol_of_the_clients_list_is_chosen() {
    // RFC 6455 §4.2.2e
    let known = ["centrifuge-json", "centrifuge-protobuf"];
    let choose = |offers: &[&'static str]| choose_subprotocol(offers.iter().copied(), &known);
    assert_eq!(choose(&["centrifuge-protobuf, centrifuge-json"]), Some("centrifuge-protobuf"));
    assert_eq!(choose(&["mqtt", "centrifuge-json"]), Some("centrifuge-json"));
    assert_eq!(choose(&["Centrifuge-Json"]), None);
    assert_eq!(choose(&["mqtt, "]), None);
    assert_eq!(choose(&[]), None);
}

const GOOD: HandshakeRequest<'_> = HandshakeRequest {
    method: "GET",
    http_1_1_or_newer: true,
    has_body: false,
    upgrade: Some("websocket"),
    connection: Some("Upgrade"),
    key: Some("dGhlIHNhbXBsZSBub25jZQ=="),
    version: Some("13"),
};

fn accepted(request: HandshakeRequest<'_>) {
    assert!(check(&request).is_ok(), "{request:?}: {:?}", check(&request));
}

fn refused(request: HandshakeRequest<'_>, status: u16, text: &str) {
    let error = check(&request).expect_err("one thing is wrong");
    assert_eq!((error.status(), error.to_string().as_str()), (status, text));
}
