//! The fuzz target of this crate as property tests on stable.
//! In: random bytes, records and instructions → out: no panic.
//! Uses `fuzzing` and proptest, which prints failing inputs.
//! Changed here: a test per fuzz target; what they promise is written in `fuzzing`.

use proptest::{collection::vec, prelude::*};

use super::*;

proptest! {
    #[test]
    fn any_bytes_are_records_or_an_error(data in vec(any::<u8>(), 0..300)) {
        tls_session(&data);
    }

    #[test]
    fn any_records_before_the_handshake_end_in_the_same_error(
        flags in 0..32_u8,
        sizes: [u8; 4],
        damage: [u8; 3],
        records in vec(record(), 0..6),
    ) {
        tls_session(&[&[flags & !4], &sizes[..], &damage, &records.concat()].concat());
    }

    #[test]
    fn any_instructions_after_the_handshake_keep_the_properties(
        flags in 0..32_u8,
        sizes: [u8; 4],
        instructions in vec(instruction(), 0..12),
    ) {
        tls_session(&[&[flags | 4], &sizes[..], &instructions.concat()].concat());
    }
}

#[test]
fn a_client_resumes_if_it_is_to() {
    for version in [&TLS13, &TLS12] {
        for is_resuming in [false, true] {
            let configs = configs(version);
            let mut client = client(&configs, is_resuming);
            let mut session = TlsSession::new(configs.server).expect("a configuration");
            shake_hands(&mut session, &mut client);
            assert_eq!(session.is_resumed(), is_resuming);
        }
    }
}

/// A record of any type, and a length that is its own more often than not.
fn record() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![4 => 20..24_u8, 1 => any::<u8>()];
    let version = prop_oneof![4 => Just([3, 3]), 1 => Just([3, 1]), 1 => any::<[u8; 2]>()];
    let wrong_length = prop::option::weighted(0.2, any::<u16>());
    (kind, version, wrong_length, vec(any::<u8>(), 0..60)).prop_map(
        |(kind, version, wrong_length, payload)| {
            let length = wrong_length.unwrap_or(payload.len() as u16).to_be_bytes();
            [&[kind], &version[..], &length, &payload].concat()
        },
    )
}

/// Genuine messages more often than anything else, so that later ones get somewhere.
fn instruction() -> impl Strategy<Value = Vec<u8>> {
    let genuine = |kinds: &'static [u8]| {
        (prop::sample::select(kinds), vec(any::<u8>(), 0..40))
            .prop_map(|(kind, bytes)| [&[kind, bytes.len() as u8], &bytes[..]].concat())
    };
    prop_oneof![
        8 => genuine(&[1, 2, 4, 5]),
        1 => genuine(&[3, 6]),
        1 => record().prop_map(|bytes| [&[0, bytes.len() as u8], &bytes[..]].concat()),
    ]
}
