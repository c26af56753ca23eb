//! Tests of the record of a connection.
//! In: records, and bytes that are none → out: the same records, or nothing.
//! Uses proptest. Never: a socket.
//! Changed here: the values that a field may have.

use fanwire_testing::fingerprint;
use proptest::prelude::*;

use super::*;

fn compressions() -> impl Strategy<Value = Compression> {
    let window = 8..=15_u8;
    prop_oneof![
        Just(Compression::Raw),
        window.clone().prop_map(|window_bits| Compression::Standalone { window_bits }),
        window.clone().prop_map(|window_bits| Compression::Context { window_bits }),
        window.prop_map(|window_bits| Compression::Dedicated { window_bits }),
    ]
}

fn inbounds() -> impl Strategy<Value = InboundCompression> {
    let takeover = |window_bits| InboundCompression::Takeover { window_bits };
    prop_oneof![
        Just(InboundCompression::Raw),
        Just(InboundCompression::Standalone),
        (8..=15_u8).prop_map(takeover),
    ]
}

fn addresses() -> impl Strategy<Value = SocketAddr> {
    let ip = prop_oneof![
        any::<[u8; 4]>().prop_map(std::net::IpAddr::from),
        any::<[u8; 16]>().prop_map(std::net::IpAddr::from),
    ];
    (ip, any::<u16>()).prop_map(SocketAddr::from)
}

fn streams() -> impl Strategy<Value = StreamState> {
    let checksum = prop_oneof![
        any::<u32>().prop_map(Checksum::Crc32),
        any::<u32>().prop_map(Checksum::Adler32),
    ];
    (checksum, any::<u64>())
        .prop_map(|(checksum, plaintext_bytes)| StreamState { checksum, plaintext_bytes })
}

fn some_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..40)
}

prop_compose! {
    fn records()(
        transport in prop::sample::select(&Transport::ALL[..]),
        is_binary in any::<bool>(),
        compression in compressions(),
        inbound in inbounds(),
        address in prop::option::of(addresses()),
        has_small_buffer in any::<bool>(),
        parts in prop::collection::vec(some_bytes(), 5..=5),
        stream in prop::option::of(streams()),
    ) -> SavedConnection {
        let [client_window, input, begun, queued, application] =
            <[Vec<u8>; 5]>::try_from(parts).expect("five");
        SavedConnection {
            transport,
            is_binary,
            compression,
            inbound,
            client_window,
            address,
            has_small_buffer,
            input,
            begun,
            queued,
            stream,
            application,
        }
    }
}

fn encoded(record: &SavedConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    bytes
}

proptest! {
    #[test]
    fn records_are_read_as_they_were_written(records in prop::collection::vec(records(), 0..4)) {
        let mut bytes = Vec::new();
        records.iter().for_each(|record| record.append(&mut bytes));
        let mut left = bytes.as_slice();
        for record in records {
            prop_assert_eq!(SavedConnection::take_first(&mut left), Some(record));
        }
        prop_assert_eq!(SavedConnection::take_first(&mut left), None);
    }

    #[test]
    fn a_record_that_is_cut_or_continued_is_none(record in records(), at in any::<prop::sample::Index>()) {
        let bytes = encoded(&record);
        prop_assert_eq!(SavedConnection::decode(&bytes[..at.index(bytes.len())]), None);
        prop_assert_eq!(SavedConnection::decode(&[&bytes[..], &[0]].concat()), None);
    }

    #[test]
    fn any_bytes_are_a_record_or_none(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Some(record) = SavedConnection::decode(&bytes) {
            prop_assert_eq!(SavedConnection::decode(&encoded(&record)), Some(record));
        }
    }

    #[test]
    fn a_changed_byte_gives_another_record_or_none(
        record in records(), at in any::<prop::sample::Index>(), change in 1..=255_u8
    ) {
        let mut bytes = encoded(&record);
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        prop_assert_ne!(SavedConnection::decode(&bytes), Some(record));
    }
}

#[test]
fn a_record_of_another_version_is_none() {
    let record = SavedConnection {
        transport: Transport::WebSocket,
        is_binary: false,
        compression: Compression::Raw,
        inbound: InboundCompression::Raw,
        client_window: Vec::new(),
        address: None,
        has_small_buffer: false,
        input: Vec::new(),
        begun: Vec::new(),
        queued: Vec::new(),
        stream: None,
        application: Vec::new(),
    };
    let mut bytes = encoded(&record);
    assert!(SavedConnection::decode(&bytes).is_some());
    bytes[0] = 2;
    assert!(SavedConnection::decode(&bytes).is_none());
    let mut records = Vec::new();
    put_bytes(&bytes, &mut records);
    record.append(&mut records);
    let mut left = records.as_slice();
    assert_eq!(SavedConnection::take_first(&mut left), None);
    assert_eq!(SavedConnection::take_first(&mut left), Some(record), "the next one is read");
}

/// A record with a value in each field.
#[test]
fn another_layout_has_another_version() {
    let record = SavedConnection {
        transport: Transport::UniEventStream,
        is_binary: true,
        compression: Compression::Context { window_bits: 12 },
        inbound: InboundCompression::Takeover { window_bits: 9 },
        client_window: vec![1],
        address: Some(SocketAddr::from(([192, 0, 2, 1], 443))),
        has_small_buffer: true,
        input: vec![2, 2],
        begun: vec![3, 3, 3],
        queued: vec![4; 4],
        stream: Some(StreamState { checksum: Checksum::Adler32(5), plaintext_bytes: 6 }),
        application: vec![7; 7],
    };
    let mut bytes = Vec::new();
    record.append(&mut bytes);
    assert_eq!((CONNECTION_VERSION, fingerprint(&bytes)), (1, 0x9d7f_579d));
}
