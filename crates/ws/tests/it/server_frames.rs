//! Property tests: what the server writes is what a client reads (RFC 6455 §5.2, §5.5.1).
//! Random frames in one buffer → the same frames, in the fewest bytes.
//! Uses `client` as the reader.
//! Changed here: properties of written frames.

use fanwire_ws::{Opcode, frame};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::client::{self, Received};

proptest! {
    #[test]
    fn frames_written_one_after_another_are_read_back(frames in vec(server_frame(), 0..5)) {
        let mut out = Vec::new();
        for (opcode, rsv1, payload) in &frames {
            frame::encode(*opcode, *rsv1, payload, &mut out);
        }
        let expect: Vec<_> = frames
            .into_iter()
            .map(|(opcode, rsv1, payload)| {
                Received { fin: true, rsv1, opcode: opcode as u8, payload }
            })
            .collect();
        prop_assert_eq!(client::decode(&out), Some(expect));
    }

    #[test]
    fn a_close_frame_is_read_back_with_a_reason_of_at_most_123_bytes(code in 1000..5000u16, reason: String) {
        let mut out = Vec::new();
        frame::encode_close(code, &reason, &mut out);
        let [close] = &client::decode(&out).expect("valid")[..] else { panic!("one frame") };
        prop_assert_eq!((close.fin, close.rsv1, close.opcode), (true, false, 8));
        if matches!(code, 1005 | 1006 | 1015) {
            prop_assert!(close.payload.is_empty());
            return Ok(());
        }
        let (code_read, reason_read) = close.payload.split_at(2);
        prop_assert_eq!(code_read, code.to_be_bytes());
        let reason_read = str::from_utf8(reason_read).expect("cut between characters");
        prop_assert!(reason.starts_with(reason_read));
        let missing = reason[reason_read.len()..].chars().next().map_or(0, char::len_utf8);
        prop_assert!(missing == 0 || reason_read.len() + missing > 123);
        prop_assert!(reason_read.len() <= 123);
    }
}

fn server_frame() -> impl Strategy<Value = (Opcode, bool, Vec<u8>)> {
    let data = (
        prop_oneof![Just(Opcode::Text), Just(Opcode::Binary)],
        any::<bool>(),
        prop_oneof![
            vec(any::<u8>(), 0..300),
            (65_530..65_540usize, any::<u8>()).prop_map(|(length, byte)| vec![byte; length]),
        ],
    );
    let control = (
        prop_oneof![Just(Opcode::Ping), Just(Opcode::Pong)],
        Just(false),
        vec(any::<u8>(), 0..=125),
    );
    prop_oneof![data, control]
}
