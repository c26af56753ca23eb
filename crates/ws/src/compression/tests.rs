//! Tests of `compression`: which message may be compressed for which peer.
//! Offer and message size → yes or no.
//! Uses `extension` to make agreements.
//! Changed here: cases of message size against window.

use super::*;
use crate::extension::{ExtensionSettings, negotiate};

#[test]
fn without_an_agreement_nothing_is_compressed() {
    assert_eq!(Compression::of(None), Compression::Raw);
    assert!(!Compression::Raw.takes(0));
    assert!(!Compression::Raw.takes(1000));
}

#[test]
fn with_the_full_window_every_message_may_be_compressed() {
    check("permessage-deflate", 1 << 30, true);
}

#[test]
fn a_message_beyond_the_peers_window_goes_out_raw() {
    // RFC 7692 §7.2.1c
    check("permessage-deflate; server_max_window_bits=9", 512, true);
    check("permessage-deflate; server_max_window_bits=9", 513, false);
    check("permessage-deflate; server_max_window_bits=14", 16_384, true);
    check("permessage-deflate; server_max_window_bits=14", 16_385, false);
}

#[test]
fn context_is_used_unless_the_peer_or_the_server_declines_it() {
    // RFC 7692 §5f, §7.2.1b
    let of = |offer| Compression::of(negotiate([offer].into_iter(), ExtensionSettings::default()));
    let context = of("permessage-deflate; server_max_window_bits=12");
    assert_eq!(context, Compression::Context { window_bits: 12 });
    assert_eq!(context.without_context(), Compression::Standalone { window_bits: 12 });
    assert_eq!(context.dedicated(), Compression::Dedicated { window_bits: 12 });
    assert!(!context.dedicated().takes(1), "its window is its own");
    let standalone = of("permessage-deflate; server_no_context_takeover");
    assert_eq!(standalone, Compression::Standalone { window_bits: 15 });
    assert_eq!(standalone.dedicated(), standalone);
    assert_eq!(Compression::Raw.dedicated().without_context(), Compression::Raw);
}

#[test]
fn the_state_of_a_connection_is_two_bytes() {
    assert!(size_of::<Compression>() <= 2);
}

fn check(offer: &str, message_bytes: usize, expect: bool) {
    let agreement = negotiate([offer].into_iter(), ExtensionSettings::default());
    assert!(agreement.is_some());
    assert_eq!(Compression::of(agreement).takes(message_bytes), expect, "{offer}");
}
