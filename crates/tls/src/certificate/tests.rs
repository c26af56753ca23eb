//! Tests of the fields of certificates.
//! In: certificates of rcgen, bytes that are none → out: names and dates.
//! Uses rcgen; never a clock.
//! Changed here: expectations of `tls::certificate`.

use proptest::prelude::*;
use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

use super::*;

fn certificate(begin: (i32, u8, u8), end: (i32, u8, u8)) -> Vec<u8> {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    params.distinguished_name.push(DnType::CommonName, "a server");
    (params.not_before, params.not_after) =
        (date_time_ymd(begin.0, begin.1, begin.2), date_time_ymd(end.0, end.1, end.2));
    let key = KeyPair::generate().expect("random numbers");
    params.self_signed(&key).expect("a certificate").der().to_vec()
}

#[test]
fn dates_are_read_in_both_forms() {
    for (begin, end, seconds, text) in [
        ((1970, 1, 1), (1970, 1, 2), [0, 86_400], ["1970-01-01", "1970-01-02"]),
        (
            (2024, 2, 29),
            (2049, 12, 31),
            [1_709_164_800, 2_524_521_600],
            ["2024-02-29", "2049-12-31"],
        ),
        ((2000, 3, 1), (2100, 3, 1), [951_868_800, 4_107_542_400], ["2000-03-01", "2100-03-01"]),
        (
            (2038, 1, 19),
            (4096, 1, 1),
            [2_147_472_000, 67_090_118_400],
            ["2038-01-19", "4096-01-01"],
        ),
    ] {
        let der = certificate(begin, end);
        let fields = Fields::of(&der).expect("a certificate");
        assert_eq!([fields.begin.seconds, fields.end.seconds], seconds);
        assert_eq!([fields.begin.to_string(), fields.end.to_string()], text);
        assert_eq!(fields.issuer, fields.subject, "it signed itself");
        assert!(fields.subject.ends_with(b"a server"));
    }
}

#[test]
fn dates_before_1970_and_texts_that_are_none_are_not_read() {
    assert_eq!(Fields::of(&certificate((1960, 1, 1), (2030, 1, 1))), None);
    let read =
        |text: &str| date(&[&[UTC_TIME, text.len() as u8], text.as_bytes()].concat()).is_some();
    assert!(read("240229120000Z"));
    for wrong in
        ["240229120000", "24022912000Z", "2402291200001Z", "241329120000Z", "2402+9120000Z", "Z"]
    {
        assert!(!read(wrong), "{wrong}");
    }
}

proptest! {
    #[test]
    fn no_bytes_cause_a_panic(
        mut der in Just(certificate((2024, 1, 1), (2025, 1, 1))),
        changes in prop::collection::vec((0usize..200, any::<u8>()), 0..5),
        length in 0usize..400,
    ) {
        for (at, byte) in changes {
            der[at] = byte;
        }
        der.truncate(length);
        let _ = Fields::of(&der);
    }
}
