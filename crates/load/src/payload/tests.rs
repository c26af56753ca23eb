//! Tests of the data of publications.
//! In: corpora and sizes → out: what a receiver finds in them.
//! Pure.
//! How wrong data is counted is tested in `check`.

use super::*;

#[test]
fn data_has_its_channel_and_number() {
    let json = Payloads::corpus(vec![b"{\"a\":1}".to_vec(), b"[]".to_vec()], false, "x".to_owned());
    let json = json.expect("two messages");
    assert_eq!(json.data(3, 0), b"{\"c\":3,\"n\":0,\"p\":{\"a\":1}}");
    assert_eq!(json.data(3, 3), b"{\"c\":3,\"n\":3,\"p\":[]}");
    let binary = Payloads::synthetic(10, 1.0, true).expect("a share");
    for payloads in [json, binary] {
        for (channel, number) in [(0, 0), (7, 1_000_000_007)] {
            assert_eq!(payloads.number(&payloads.data(channel, number)), Some((channel, number)));
        }
        assert_eq!(payloads.number(b"{}"), None);
        assert_eq!(payloads.number(b""), None);
    }
}

#[test]
fn the_share_of_random_characters_is_the_one_that_is_asked_for() {
    let of = |share| Payloads::synthetic(2_000, share, false).expect("a share");
    assert!(of(0.0).bits_per_byte() < 4.6 && of(1.0).bits_per_byte() > 5.8);
    for share in [0.0, 0.3, 1.0] {
        let payloads = of(share);
        let is_repeated = |(a, b): (&u8, &u8)| a == b;
        let bodies = payloads.bodies.iter();
        let same: usize = bodies
            .map(|body| {
                let body = &body[1..body.len() - 1];
                body.iter().zip(REPEATED.iter().cycle()).filter(|pair| is_repeated(*pair)).count()
            })
            .sum();
        let found = 1.0 - same as f64 / (2_000 * SYNTHETIC_BODIES) as f64;
        assert!((found - share).abs() < 0.05, "{found} of {share}");
    }
    assert!(Payloads::synthetic(1, 1.1, false).is_err());
    assert_eq!(
        Payloads::synthetic(0, 0.5, false).expect("a share").data(0, 0),
        b"{\"c\":0,\"n\":0,\"p\":\"\"}"
    );
}
