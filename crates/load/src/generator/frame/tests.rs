//! Tests of the client's view of WebSocket frames.
//! In: frames as hex or as written by `encode_*` → out: what `front` makes of them.
//! Uses `frame` only; never a socket.
//! Repeats of the header belong here; what a frame means is tested in `generator`.

use super::*;

fn check(bytes: &[u8], expect: Option<(u8, bool, usize, usize)>) {
    let found = front(bytes).expect("a frame the server may send");
    let found = found.map(|(frame, whole)| (frame.opcode, frame.rsv1, frame.payload.len(), whole));
    assert_eq!(found, expect, "{bytes:02x?}");
}

#[test]
fn whole_frames_are_handed_out_with_their_length() {
    check(&[0x81, 0x02, b'{', b'}'], Some((TEXT, false, 2, 4)));
    check(&[0xc1, 0x01, 0x00, 0x81], Some((TEXT, true, 1, 3)));
    check(&[0x88, 0x00], Some((CLOSE, false, 0, 2)));
}

#[test]
fn every_length_form_survives_every_cut() {
    for length in [0, 1, 125, 126, 65_535, 65_536] {
        let mut bytes = Vec::new();
        encode_text(&vec![b'x'; length], &mut bytes);
        check(&bytes, Some((TEXT, false, length, bytes.len())));
        for cut in [0, 1, 2, 3, 9, bytes.len() - 1] {
            check(&bytes[..cut.min(bytes.len() - 1)], None);
        }
    }
}

#[test]
fn fragments_masks_and_reserved_bits_are_refused() {
    for bytes in [[0x01, 0x00], [0x81, 0x80], [0xa1, 0x00], [0x91, 0x00]] {
        assert!(front(&bytes).is_err(), "{bytes:02x?}");
    }
}

#[test]
fn a_masked_frame_unmasks_to_its_payload() {
    let mut bytes = Vec::new();
    encode_masked(TEXT, b"hello", &mut bytes);
    assert_eq!(bytes[..6], [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d]);
    let payload: Vec<u8> = bytes[6..].iter().zip(MASK.iter().cycle()).map(|(a, b)| a ^ b).collect();
    assert_eq!(payload, b"hello");
}
