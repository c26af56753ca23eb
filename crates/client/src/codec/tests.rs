//! Tests of `codec`: messages with every agreement through the server's reader, bytes on the wire, and any bytes.
//! Random messages and settings → the same messages at the server.
//! Uses the server's side of ws.
//! Changed here: properties of our messages. Frames themselves are tested in ws.

use fanwire_ws::Reader;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::Strategy as ZlibStrategy;

proptest! {
    #[test]
    fn a_server_reads_our_messages_with_every_setting(
        messages in vec("[a-z]{1,9}".prop_map(|it| it.repeat(40)), 1..6),
        client_window_bits in 8..=15u8,
        client_context_takeover: bool,
        level in 1..=9u8,
        memory_level in 1..=9u8,
        strategy in 0..5usize,
    ) {
        let agreement =
            ClientAgreement { server_window_bits: None, client_window_bits, client_context_takeover };
        let strategy = ZlibStrategy::named(ZlibStrategy::NAMES[strategy]).expect("a known name");
        let config = CompressionConfig::default()
            .level(level).memory_level(memory_level).strategy(strategy);
        let mut codec = MessageCodec::new(Encoding::Json, Some(agreement), Some(&config), 1 << 20);
        let mut stream = Vec::new();
        for message in &messages {
            codec.send(message.as_bytes(), [1, 2, 3, 4], &mut stream);
        }
        let mut reader = if client_context_takeover {
            Reader::with_takeover(client_window_bits)
        } else {
            Reader::new(true)
        };
        let mut pool = Pool::new();
        let mut input = Input::new(&mut stream);
        for message in &messages {
            let event = reader.receive(&mut input, &mut pool, &Limits::default());
            prop_assert_eq!(event, Ok(Some(Event::Text(message))));
        }
    }

    #[test]
    fn any_bytes_are_read_or_fail(mut bytes in vec(any::<u8>(), 0..300), compressed: bool) {
        let agreement = ClientAgreement {
            server_window_bits: Some(15),
            client_window_bits: 15,
            client_context_takeover: true,
        };
        let agreement = Some(agreement).filter(|_| compressed);
        let config = CompressionConfig::default();
        let mut codec = MessageCodec::new(Encoding::Json, agreement, Some(&config), 1 << 10);
        let mut sum = 0;
        let length = bytes.len();
        let read = codec.receive(&mut bytes, |received| {
            if let WireEvent::Message { wire_bytes, .. } = received {
                sum += wire_bytes;
            }
        });
        prop_assert!(sum <= length, "{read:?}");
    }
}

#[test]
fn the_bytes_of_a_message_on_the_wire_are_counted() {
    let mut codec = MessageCodec::new(Encoding::Json, None, None, 1 << 10);
    let mut stream = Vec::new();
    frame::encode(Opcode::Text, false, b"{}", &mut stream);
    frame::encode(Opcode::Ping, false, b"p", &mut stream);
    frame::encode_close(3001, "shutdown", &mut stream);
    let mut all = Vec::new();
    for byte in stream {
        codec.receive(&mut [byte], |received| all.push(received)).expect("a valid stream");
    }
    let expect = [
        WireEvent::Message { bytes: b"{}".to_vec(), wire_bytes: 4 },
        WireEvent::Ping(b"p".to_vec()),
        WireEvent::Close { code: Some(3001), reason: "shutdown".to_owned() },
    ];
    assert_eq!(all, expect);
}
