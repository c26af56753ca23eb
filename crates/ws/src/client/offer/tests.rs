//! Tests of `offer`: what a client offers, and which responses fit (RFC 7692 §5.1, §7.1).
//! Offers and responses → headers and agreements.
//! Uses only `offer`.
//! Changed here: cases of one offer. Both sides together are `tests/it/client_role.rs`.

use super::*;

#[test]
fn an_offer_names_only_what_differs_from_the_defaults() {
    let all = ExtensionOffer::default();
    assert_eq!(all.header(), "permessage-deflate; client_max_window_bits");
    let small = ExtensionOffer { server: NONE_IN_512, client: NONE_IN_512 };
    assert_eq!(
        small.header(),
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover; \
         server_max_window_bits=9; client_max_window_bits=9"
    );
}

#[test]
fn the_response_decides_within_the_offer() {
    let all = ExtensionOffer::default();
    check(all, "permessage-deflate", Some((Some(15), 15, true)));
    check(all, "permessage-deflate; server_no_context_takeover", Some((None, 15, true)));
    // RFC 7692 §7.1.1.2: the server may ask for it without an offer.
    check(all, "permessage-deflate; client_no_context_takeover", Some((Some(15), 15, false)));
    check(all, "permessage-deflate; server_max_window_bits=10", Some((Some(10), 15, true)));
    check(all, "permessage-deflate; client_max_window_bits=8", Some((Some(15), 8, true)));
    let small = ExtensionOffer { server: NONE_IN_512, client: NONE_IN_512 };
    let granted = "permessage-deflate; server_no_context_takeover; server_max_window_bits=9";
    check(small, granted, Some((None, 9, false)));
}

#[test]
fn a_response_that_does_not_fit_is_no_agreement() {
    let all = ExtensionOffer::default();
    for response in [
        "",
        "x-webkit-deflate-frame",
        "permessage-deflate, permessage-deflate",
        "permessage-deflate; client_max_window_bits",
        "permessage-deflate; server_max_window_bits",
        "permessage-deflate; server_max_window_bits=7",
        "permessage-deflate; server_max_window_bits=9; server_max_window_bits=9",
        "permessage-deflate; unknown",
    ] {
        check(all, response, None);
    }
    let small = ExtensionOffer { server: NONE_IN_512, client: NONE_IN_512 };
    check(small, "permessage-deflate; server_max_window_bits=9", None);
    check(small, "permessage-deflate; server_no_context_takeover", None);
    let larger = "permessage-deflate; server_no_context_takeover; server_max_window_bits=10";
    check(small, larger, None);
}

/// The window of a server with takeover, that of the client, and whether the client has takeover.
fn check(offer: ExtensionOffer, response: &str, expect: Option<(Option<u8>, u8, bool)>) {
    let agreement = offer
        .accept(response)
        .map(|it| (it.server_window_bits, it.client_window_bits, it.client_context_takeover));
    assert_eq!(agreement, expect, "{response:?}");
}

const NONE_IN_512: TakeoverOffer = TakeoverOffer { context_takeover: false, window_bits: 9 };
