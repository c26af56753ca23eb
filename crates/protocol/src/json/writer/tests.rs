//! Tests of `writer`: how values are spelled, where line ends go, what is refused.
//! In: values of each kind. Out: texts, measured and written.
//! Uses serde's own types; messages are compared with serde_json in `tests/it`.
//! A new kind of value is a row here.

use std::collections::BTreeMap;

use serde::Serialize;

use super::*;

/// A payload by itself.
struct Payload(&'static [u8]);

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.serialize_bytes(self.0)
    }
}

#[test]
fn values_are_spelled_as_serde_json_spells_them() {
    check(&true, Some("true"));
    check(&false, Some("false"));
    check(&0_u32, Some("0"));
    check(&u64::MAX, Some("18446744073709551615"));
    check(&i64::MIN, Some("-9223372036854775808"));
    check(&-1_i32, Some("-1"));
    check("\u{2028}<é\"", Some(r#""\u2028\u003cé\"""#));
    check(&None::<u32>, Some("null"));
    check(&Some("x"), Some("\"x\""));
    check(&[1_u64, 20].as_slice(), Some("[1,20]"));
    check(&Vec::<u32>::new(), Some("[]"));
    check(&BTreeMap::from([("a", 1_u32), ("&", 2)]), Some(r#"{"\u0026":2,"a":1}"#));
    check(&BTreeMap::<String, u32>::new(), Some("{}"));
}

#[test]
fn a_payload_stays_as_it_is_but_for_line_ends() {
    check(&Payload(b" [1, \t{\"a\":\r\"\\n<\"}] "), Some(" [1, \t{\"a\":\"\\n<\"}] "));
    check(&[Payload(b"\n{\r}\r\n"), Payload(b"1")].as_slice(), Some("[{},1]"));
}

#[test]
fn a_payload_that_is_no_json_stops_the_message() {
    for payload in [&b""[..], b"{", b"\xff", b"\"\xff\"", b"1 2", b"\n", b"nul"] {
        check(&[Payload(b"1"), Payload(payload)].as_slice(), None);
    }
}

#[test]
fn kinds_that_no_message_has_are_refused() {
    check(&1.5_f64, None);
    check(&'c', None);
    check(&(1_u32, 2_u32), None);
}

/// The value is written as `text` in each way of writing, or in none.
fn check<T: Serialize + ?Sized>(value: &T, text: Option<&str>) {
    let (mut out, mut length) = (b"before".to_vec(), Length::default());
    let is_written = value.serialize(Writer(&mut out)).is_ok();
    let is_measured = value.serialize(Writer(&mut length)).is_ok();
    assert_eq!((is_written, is_measured), (text.is_some(), text.is_some()));
    if let Some(text) = text {
        assert_eq!(std::str::from_utf8(&out[6..]), Ok(text));
        assert_eq!(length.bytes, text.len());
        let mut exact = Exact::new(&length);
        assert_eq!(value.serialize(Writer(&mut exact)), Ok(()));
        assert_eq!(std::str::from_utf8(&exact.out), Ok(text));
    }
}
