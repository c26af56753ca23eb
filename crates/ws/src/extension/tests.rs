//! Tests of `extension`: which offers are agreed to, and what is answered (RFC 7692 §5, §7.1).
//! FrameHeader values → response, or nothing.
//! Uses only `extension`.
//! Change here: cases of offers.

use super::*;

#[test]
fn a_plain_offer_is_answered_with_client_no_context_takeover() {
    // RFC 7692 §7.1.1.2: a server may ask for it unasked.
    check("permessage-deflate", Some("permessage-deflate; client_no_context_takeover"));
}

#[test]
fn what_browsers_offer_is_agreed_to_without_naming_the_clients_window() {
    let answer = Some("permessage-deflate; client_no_context_takeover");
    check("permessage-deflate; client_max_window_bits", answer);
    check("permessage-deflate; client_max_window_bits=15", answer);
    check("permessage-deflate; client_max_window_bits=8", answer);
}

#[test]
fn both_no_context_takeovers_are_confirmed() {
    let answer = Some("permessage-deflate; client_no_context_takeover; server_no_context_takeover");
    check("permessage-deflate; server_no_context_takeover; client_no_context_takeover", answer);
    check("permessage-deflate;server_no_context_takeover", answer);
}

#[test]
fn the_servers_window_is_echoed_only_when_offered() {
    // RFC 7692 §7.1.2.1
    for bits in 9..=15 {
        check(
            &format!("permessage-deflate; server_max_window_bits={bits}"),
            Some(&format!(
                "permessage-deflate; client_no_context_takeover; server_max_window_bits={bits}"
            )),
        );
        let offer = format!("permessage-deflate; server_max_window_bits={bits}");
        assert_eq!(agree(&[&offer]).map(|it| it.server_window_bits), Some(bits));
    }
    assert_eq!(agree(&["permessage-deflate"]).map(|it| it.server_window_bits), Some(15));
}

#[test]
fn a_window_of_eight_bits_is_declined_and_the_next_offer_taken() {
    check("permessage-deflate; server_max_window_bits=8", None);
    check(
        "permessage-deflate; server_max_window_bits=8, permessage-deflate",
        Some("permessage-deflate; client_no_context_takeover"),
    );
}

#[test]
fn all_four_parameters_may_come_together_in_any_order() {
    check(
        "permessage-deflate; client_max_window_bits=10; server_max_window_bits=10; \
         client_no_context_takeover; server_no_context_takeover",
        Some(
            "permessage-deflate; client_no_context_takeover; server_no_context_takeover; \
             server_max_window_bits=10",
        ),
    );
}

#[test]
fn the_first_acceptable_offer_wins() {
    // RFC 7692 §5.1
    check(
        "permessage-deflate; server_max_window_bits=10, permessage-deflate",
        Some("permessage-deflate; client_no_context_takeover; server_max_window_bits=10"),
    );
    check(
        "x-webkit-deflate-frame, permessage-deflate; unknown, permessage-deflate",
        Some("permessage-deflate; client_no_context_takeover"),
    );
    let answer = agree(&["permessage-bzip2", "permessage-deflate; server_no_context_takeover"]);
    assert_eq!(answer.map(|it| it.server_no_context_takeover), Some(true));
}

#[test]
fn an_offer_with_a_repeated_parameter_is_declined() {
    // RFC 7692 §7
    for name in ["server_no_context_takeover", "client_no_context_takeover"] {
        check(&format!("permessage-deflate; {name}; {name}"), None);
    }
    for name in ["server_max_window_bits=10", "client_max_window_bits=10"] {
        check(&format!("permessage-deflate; {name}; {name}"), None);
    }
    check("permessage-deflate; client_max_window_bits; client_max_window_bits=9", None);
}

#[test]
fn an_offer_with_an_unknown_parameter_is_declined() {
    check("permessage-deflate; unknown", None);
    check("permessage-deflate; unknown=1", None);
    check("permessage-deflate; Server_No_Context_Takeover", None);
    check("permessage-deflate;", None);
    check("permessage-deflate; ; client_max_window_bits", None);
}

#[test]
fn an_offer_with_a_bad_value_is_declined() {
    // RFC 7692 §7.1.2: a decimal integer from 8 to 15 without leading zeros.
    for value in
        ["", "7", "16", "08", "010", "10.0", "+10", "-10", "1 0", "a", "\"\"", "10\"", "\"10"]
    {
        check(&format!("permessage-deflate; server_max_window_bits={value}"), None);
        check(&format!("permessage-deflate; client_max_window_bits={value}"), None);
    }
    check("permessage-deflate; server_max_window_bits", None);
    check("permessage-deflate; server_no_context_takeover=1", None);
    check("permessage-deflate; client_no_context_takeover=\"\"", None);
}

#[test]
fn a_value_may_be_a_quoted_string() {
    // RFC 6455 §9.1
    let answer = Some("permessage-deflate; client_no_context_takeover; server_max_window_bits=10");
    check("permessage-deflate; server_max_window_bits=\"10\"", answer);
    check("permessage-deflate; server_max_window_bits=\"1\\0\"", answer);
    check("permessage-deflate; server_max_window_bits = \"10\"", answer);
    check("x; y=\",permessage-deflate,\"", None);
}

#[test]
fn nothing_is_agreed_to_when_nothing_fits_or_it_is_turned_off() {
    check("", None);
    check(",,", None);
    check("permessage-deflat", None);
    check("permessage-deflate2", None);
    assert_eq!(negotiate([].into_iter(), ExtensionSettings { enabled: true }), None);
    let offers = ["permessage-deflate"].into_iter();
    assert_eq!(negotiate(offers, ExtensionSettings { enabled: false }), None);
}

fn check(offers: &str, expect: Option<&str>) {
    let response = agree(&[offers]).map(|agreement| agreement.response());
    assert_eq!(response.as_deref(), expect, "{offers}");
}

fn agree(offers: &[&str]) -> Option<Agreement> {
    negotiate(offers.iter().copied(), ExtensionSettings { enabled: true })
}
