//! Tests of the small Protobuf reader.
//! In: bytes written by hand or by `push_*` → out: the fields.
//! Uses `protobuf` only.
//! Repeats of the wire format belong here; the client protocol's messages are tested in `messages`.

use super::*;

#[test]
fn fields_come_out_as_they_were_pushed() {
    let mut message = Vec::new();
    push_number(1, 300, &mut message);
    push_bytes(4, b"data", &mut message);
    assert_eq!(message, [0x08, 0xac, 0x02, 0x22, 0x04, b'd', b'a', b't', b'a']);
    let mut rest = &message[..];
    assert_eq!(next_field(&mut rest).expect("valid"), Some(Field::Varint(1, 300)));
    assert_eq!(next_field(&mut rest).expect("valid"), Some(Field::Bytes(4, b"data")));
    assert_eq!(next_field(&mut rest).expect("valid"), None);
    assert_eq!(bytes_of(&message, 4).expect("valid"), Some(&b"data"[..]));
    assert_eq!(bytes_of(&message, 5).expect("valid"), None);
}

#[test]
fn cut_and_foreign_fields_are_errors() {
    for bytes in [&[0x08][..], &[0x22, 0x05, b'x'], &[0x0d, 0, 0, 0, 0], &[0xff; 11]] {
        assert!(next_field(&mut &bytes[..]).is_err(), "{bytes:02x?}");
    }
}
