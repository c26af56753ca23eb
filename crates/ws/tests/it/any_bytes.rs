//! The fuzz targets of this crate as property tests on stable.
//! Random bytes, and bytes that look like frames, offers or requests → no panic.
//! Uses `fanwire_ws::fuzzing`.
//! Changed here: a test per fuzz target; what they promise is written there.

use fanwire_ws::fuzzing;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::client::Sent;

proptest! {
    #[test]
    fn any_bytes_are_read_the_same_however_they_are_split(data in vec(any::<u8>(), 0..200)) {
        fuzzing::reader(&data);
    }

    #[test]
    fn any_frames_are_read_the_same_however_they_are_split(
        head: [u8; 5],
        frames in vec(any_frame(), 0..8),
        damage in proptest::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut data = head.to_vec();
        frames.iter().for_each(|frame| frame.encode(&mut data));
        if let Some((at, byte)) = damage {
            let at = at.index(data.len());
            data[at] = byte;
        }
        fuzzing::reader(&data);
    }

    #[test]
    fn any_offers_are_answered_with_what_they_may_be(
        text in "((permessage-deflate|[;,\"= \n]|server_max_window_bits|(server|client)_no_context_takeover|client_max_window_bits|1[0-5]|[89]|\\PC){0,3}){0,6}",
    ) {
        fuzzing::negotiation(text.as_bytes());
    }

    #[test]
    fn any_request_is_accepted_or_refused_with_a_status(
        text in "(GET|\\PC{0,4})\n(websocket|\\PC{0,200})\n((keep-alive, )?Upgrade|\\PC{0,9})\n([A-Za-z0-9+/]{22}==|\\PC{0,30})\n(13|\\PC{0,3})",
    ) {
        fuzzing::handshake(text.as_bytes());
    }
}

/// Frames with the right opcodes more often than not, so that streams get somewhere.
fn any_frame() -> impl Strategy<Value = Sent> {
    let opcode = prop_oneof![8 => 0..=2u8, 2 => 9..=10u8, 1 => 0..16u8];
    let payload = prop_oneof![
        3 => vec(any::<u8>(), 0..8),
        3 => ".{0,8}".prop_map(String::into_bytes),
        2 => Just(b"\xf2\x48\xcd\xc9\xc9\x07\x00".to_vec()), // "Hello" (RFC 7692 §7.2.3.1)
        1 => vec(any::<u8>(), 120..130),
    ];
    (any::<bool>(), prop::bool::weighted(0.2), opcode, any::<[u8; 4]>(), payload)
        .prop_map(|(fin, rsv1, opcode, key, payload)| Sent { fin, rsv1, opcode, key, payload })
}
