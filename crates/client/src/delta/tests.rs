//! Tests of `delta`: payloads through the server's encoder and this decoder, and broken ones.
//! Random texts → the same texts.
//! Uses the fossil encoder of the protocol.
//! Changed here: cases of payloads.

use fanwire_protocol::fossil::Differ;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn every_payload_comes_out_whole(texts in vec("[a-cé]{0,8}".prop_map(|it| it.repeat(9)), 1..8)) {
        for encoding in Encoding::ALL {
            let mut decoder = DeltaDecoder::new(encoding, 1 << 20);
            let mut differ = Differ::default();
            let mut base: Option<&String> = None;
            for text in &texts {
                let mut delta = Vec::new();
                if let Some(base) = base {
                    differ.create_text(base.as_bytes(), text, &mut delta);
                } else {
                    delta.extend(text.as_bytes());
                }
                let mut publication = publication(encoding, &delta, base.is_some());
                prop_assert_eq!(decoder.decode(&mut publication), Ok(()));
                prop_assert_eq!(&publication.data, text.as_bytes());
                prop_assert!(!publication.delta);
                base = Some(text);
            }
        }
    }

    #[test]
    fn any_bytes_decode_or_fail(payloads in vec((vec(any::<u8>(), 0..60), any::<bool>()), 0..6)) {
        for encoding in Encoding::ALL {
            let mut decoder = DeltaDecoder::new(encoding, 1 << 10);
            for (data, delta) in &payloads {
                let data = Bytes::from(data.clone());
                let mut publication = Publication { data, delta: *delta, ..Publication::default() };
                if decoder.decode(&mut publication).is_err() {
                    prop_assert!(decoder.base.is_none(), "a base that no server has");
                }
            }
        }
    }
}

#[test]
fn a_delta_needs_the_publication_before_it() {
    let mut decoder = DeltaDecoder::new(Encoding::Protobuf, 1 << 10);
    let mut first = publication(Encoding::Protobuf, b"3\n3:abc1YVCK0;", true);
    assert!(decoder.decode(&mut first).is_err());
    let mut embedded = Publication { data: "{\"a\":1}".into(), ..Publication::default() };
    assert!(DeltaDecoder::new(Encoding::Json, 1 << 10).decode(&mut embedded).is_err());
}

fn publication(encoding: Encoding, payload: &[u8], delta: bool) -> Publication {
    let data = match encoding {
        Encoding::Protobuf => Bytes::copy_from_slice(payload),
        Encoding::Json => {
            let text = std::str::from_utf8(payload).expect("the encoder keeps characters whole");
            serde_json::to_string(text).expect("a string").into()
        }
    };
    Publication { data, delta, ..Publication::default() }
}
