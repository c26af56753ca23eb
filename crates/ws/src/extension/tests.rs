//! Tests of `extension`: which offers are agreed to, and what is answered (RFC 7692 §5, §7.1).
//! Header values → response, or nothing.
//! Uses only `extension`.
//! Changed here: cases of offers.

use super::*;

#[test]
fn a_plain_offer_is_answered_with_client_no_context_takeover() {
    // RFC 7692 §5a; §7.1.1.2: a server may ask for it unasked.
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
    // RFC 7692 §7.1.2.1a
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
    // RFC 7692 §5b, §7d
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
    // RFC 7692 §7c
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
    // RFC 7692 §7a
    check("permessage-deflate; unknown", None);
    check("permessage-deflate; unknown=1", None);
    check("permessage-deflate; Server_No_Context_Takeover", None);
    check("permessage-deflate;", None);
    check("permessage-deflate; ; client_max_window_bits", None);
}

#[test]
fn an_offer_with_a_bad_value_is_declined() {
    // RFC 7692 §7b; §7.1.2: a decimal integer from 8 to 15 without leading zeros.
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
    // RFC 6455 §4.3a, §9.1
    let answer = Some("permessage-deflate; client_no_context_takeover; server_max_window_bits=10");
    check("permessage-deflate; server_max_window_bits=\"10\"", answer);
    check("permessage-deflate; server_max_window_bits=\"1\\0\"", answer);
    check("permessage-deflate; server_max_window_bits = \"10\"", answer);
    check("x; y=\",permessage-deflate,\"", None);
}

#[test]
fn nothing_is_agreed_to_when_nothing_fits_or_it_is_turned_off() {
    // RFC 6455 §4.2.2h, §5.8a, §9a; RFC 7692 §5e
    check("", None);
    check(",,", None);
    check("permessage-deflat", None);
    check("permessage-deflate2", None);
    assert_eq!(negotiate([].into_iter(), ExtensionSettings::default()), None);
    let offers = ["permessage-deflate"].into_iter();
    let disabled = ExtensionSettings { enabled: false, ..ExtensionSettings::default() };
    assert_eq!(negotiate(offers, disabled), None);
}

#[test]
fn with_takeover_the_response_names_the_smaller_window_of_the_client() {
    // RFC 7692 §7.1.2.2b
    let twelve = Some("permessage-deflate; client_max_window_bits=12");
    check_with(TAKEOVER, "permessage-deflate; client_max_window_bits", twelve);
    check_with(TAKEOVER, "permessage-deflate; client_max_window_bits=15", twelve);
    check_with(TAKEOVER, "permessage-deflate; client_max_window_bits=12", twelve);
    for bits in 8..=11 {
        let both = format!("permessage-deflate; client_max_window_bits={bits}");
        check_with(TAKEOVER, &both, Some(&both));
        assert_eq!(agree_with(TAKEOVER, &both).map(|it| it.client_window_bits), Some(Some(bits)));
    }
}

#[test]
fn with_takeover_a_client_that_does_not_let_us_choose_has_the_largest_window() {
    // RFC 7692 §7.1.2.2a: the response must not name what was not offered.
    check_with(TAKEOVER, "permessage-deflate", Some("permessage-deflate"));
    let agreement = agree_with(TAKEOVER, "permessage-deflate");
    assert_eq!(agreement.map(|it| it.client_window_bits), Some(Some(15)));
}

#[test]
fn a_client_that_does_not_take_over_its_context_needs_no_window() {
    // RFC 7692 §7.1.1.2
    let answer = Some("permessage-deflate; client_no_context_takeover");
    for offer in ["", "; client_max_window_bits", "; client_max_window_bits=9"] {
        let offer = format!("permessage-deflate; client_no_context_takeover{offer}");
        check_with(TAKEOVER, &offer, answer);
        check_with(REQUIRED, &offer, answer);
    }
}

#[test]
fn a_required_choice_declines_offers_that_do_not_give_it() {
    check_with(REQUIRED, "permessage-deflate", None);
    check_with(REQUIRED, "permessage-deflate; server_no_context_takeover", None);
    let twelve = Some("permessage-deflate; client_max_window_bits=12");
    check_with(REQUIRED, "permessage-deflate; client_max_window_bits", twelve);
    let two = "permessage-deflate, permessage-deflate; client_max_window_bits=10";
    check_with(REQUIRED, two, Some("permessage-deflate; client_max_window_bits=10"));
}

#[test]
fn without_memory_for_its_window_the_client_does_not_take_over_its_context() {
    for offer in ["", "; client_max_window_bits", "; client_max_window_bits=9"] {
        let agreement = agree_with(TAKEOVER, &format!("permessage-deflate{offer}"));
        let response = agreement.map(|it| it.without_client_takeover().response());
        let expect = "permessage-deflate; client_no_context_takeover";
        assert_eq!(response.as_deref(), Some(expect));
    }
}

#[test]
fn all_parameters_of_the_response_stand_in_one_order() {
    // RFC 6455 §9b, §9.1b, §9.1c
    check_with(
        TAKEOVER,
        "permessage-deflate; client_max_window_bits; server_max_window_bits=10; \
         server_no_context_takeover",
        Some(
            "permessage-deflate; server_no_context_takeover; server_max_window_bits=10; \
             client_max_window_bits=12",
        ),
    );
}

#[test]
fn a_small_window_of_ours_is_named_unasked_and_a_smaller_one_of_the_client_counts() {
    // RFC 7692 §7.1.2.1
    let small = ExtensionSettings { server_window_bits: 11, ..ExtensionSettings::default() };
    let answer = |bits: u8| {
        format!("permessage-deflate; client_no_context_takeover; server_max_window_bits={bits}")
    };
    check_with(small, "permessage-deflate", Some(&answer(11)));
    check_with(small, "permessage-deflate; server_max_window_bits=15", Some(&answer(11)));
    check_with(small, "permessage-deflate; server_max_window_bits=9", Some(&answer(9)));
    check_with(small, "permessage-deflate; server_max_window_bits=8", None);
    assert_eq!(agree_with(small, "permessage-deflate").map(|it| it.server_window_bits), Some(11));
}

const TAKEOVER: ExtensionSettings = takeover(false);
const REQUIRED: ExtensionSettings = takeover(true);

const fn takeover(requires_choice: bool) -> ExtensionSettings {
    let client_takeover = Some(ClientTakeover { window_bits: 12, requires_choice });
    ExtensionSettings { enabled: true, server_window_bits: 15, client_takeover }
}

fn check_with(settings: ExtensionSettings, offers: &str, expect: Option<&str>) {
    let response = agree_with(settings, offers).map(|agreement| agreement.response());
    assert_eq!(response.as_deref(), expect, "{offers}");
}

fn agree_with(settings: ExtensionSettings, offers: &str) -> Option<Agreement> {
    negotiate([offers].into_iter(), settings)
}

fn check(offers: &str, expect: Option<&str>) {
    let response = agree(&[offers]).map(|agreement| agreement.response());
    assert_eq!(response.as_deref(), expect, "{offers}");
}

fn agree(offers: &[&str]) -> Option<Agreement> {
    negotiate(offers.iter().copied(), ExtensionSettings::default())
}
