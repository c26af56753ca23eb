//! Property tests: the crate's client against the crate's server (RFC 6455 §4, §5, RFC 7692 §7.1).
//! Random offers, settings of the server, messages and splits → an agreement of both sides, and the same messages at the other end.
//! Uses both roles of the crate, and deflate's compressors as senders.
//! Changed here: properties of both sides together. A client that is independent of the crate is in `client`.

use fanwire_deflate::{Compressor, Dedicated, Scratch};
use fanwire_ws::client::{
    ClientAgreement, ClientHandshake, ExtensionOffer, HandshakeResponse, TakeoverOffer,
};
use fanwire_ws::extension::{self, Agreement, ClientTakeover, ExtensionSettings};
use fanwire_ws::{
    ClientReader, Event, Failure, Input, Limits, Opcode, Pool, Reader, frame, handshake,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

proptest! {
    #[test]
    fn client_and_server_agree_and_read_each_other(
        chance: [u8; 16],
        offer in offers(),
        settings in settings(),
        messages in vec("[a-z]{1,12}".prop_map(|word| word.repeat(90)), 1..6),
        key: [u8; 4],
        cuts in vec(any::<Index>(), 0..8),
    ) {
        let client = ClientHandshake::new(chance, Some("centrifuge-json"), Some(offer));
        let head = client.request("localhost", "/", &[]).expect("no line ends");
        let (accept, agreement) = answer(&head, settings);
        let extensions = agreement.map(|agreement| agreement.response());
        let response = HandshakeResponse {
            status: 101,
            upgrade: Some("websocket"),
            connection: Some("Upgrade"),
            accept: Some(&accept),
            subprotocol: Some("centrifuge-json"),
            extensions: extensions.as_deref(),
        };
        let agreed = client.check(&response).expect("the server follows the offer");
        prop_assert_eq!(agreed.is_some(), agreement.is_some());

        let of_client = client_stream(agreed, &messages, key);
        let mut server = match agreement.map(|agreement| agreement.client_window_bits) {
            None => Reader::new(false),
            Some(None) => Reader::new(true),
            Some(Some(window_bits)) => Reader::with_takeover(window_bits),
        };
        let seen = read(&of_client, &cuts, |input, pool| {
            server.receive(input, pool, &Limits::default()).expect("a valid stream").map(text)
        });
        prop_assert_eq!(&seen, &messages);

        let of_server = server_stream(agreement, &messages);
        let mut client = ClientReader::new(agreed.as_ref());
        let seen = read(&of_server, &cuts, |input, pool| {
            client.receive(input, pool, &Limits::default()).expect("a valid stream").map(text)
        });
        prop_assert_eq!(&seen, &messages);
    }

    #[test]
    fn a_client_reads_any_bytes_the_same_however_they_are_split(
        bytes in vec(any::<u8>(), 0..300),
        compressed: bool,
        window_bits in 8..=15u8,
    ) {
        let agreement = ClientAgreement {
            server_window_bits: Some(window_bits),
            client_window_bits: 15,
            client_context_takeover: true,
        };
        let reader = || ClientReader::new(Some(&agreement).filter(|_| compressed));
        let whole = outcome(reader(), &bytes, bytes.len().max(1));
        prop_assert_eq!(whole, outcome(reader(), &bytes, 1));
    }
}

/// RFC 6455 §5.1: a client closes the connection when a server masks.
#[test]
fn a_masked_frame_of_a_server_fails_with_1002() {
    let mut bytes = Vec::new();
    frame::encode_masked(Opcode::Text, false, b"Hello", [0x37, 0xfa, 0x21, 0x3d], &mut bytes);
    assert_eq!(bytes, b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", "RFC 6455 §5.7");
    let mut pool = Pool::new();
    let mut input = Input::new(&mut bytes);
    let read = ClientReader::new(None).receive(&mut input, &mut pool, &Limits::default());
    assert_eq!(read, Err(Failure::Masked));
    assert_eq!(Failure::Masked.close_code(), 1002);
}

fn offers() -> impl Strategy<Value = ExtensionOffer> {
    let direction = || {
        (any::<bool>(), 9..=15u8).prop_map(|(context_takeover, window_bits)| TakeoverOffer {
            context_takeover,
            window_bits,
        })
    };
    (direction(), direction()).prop_map(|(server, client)| ExtensionOffer { server, client })
}

fn settings() -> impl Strategy<Value = ExtensionSettings> {
    let takeover = (9..=15u8, any::<bool>())
        .prop_map(|(window_bits, requires_choice)| ClientTakeover { window_bits, requires_choice });
    (any::<bool>(), 9..=15u8, prop::option::of(takeover)).prop_map(
        |(enabled, server_window_bits, client_takeover)| ExtensionSettings {
            enabled,
            server_window_bits,
            client_takeover,
        },
    )
}

/// The server's part of the handshake, from the head of the request.
fn answer(head: &str, settings: ExtensionSettings) -> (String, Option<Agreement>) {
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| *found == name).map(|(_, value)| value).next()
    };
    let request = handshake::HandshakeRequest {
        method: head.split(' ').next().expect("a method"),
        http_1_1_or_newer: head.contains(" HTTP/1.1\r\n"),
        has_body: false,
        upgrade: header("Upgrade"),
        connection: header("Connection"),
        key: header("Sec-WebSocket-Key"),
        version: header("Sec-WebSocket-Version"),
    };
    let accept = handshake::check(&request).expect("a valid request");
    let agreement = extension::negotiate(header("Sec-WebSocket-Extensions").into_iter(), settings);
    (accept, agreement)
}

fn client_stream(agreed: Option<ClientAgreement>, messages: &[String], key: [u8; 4]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut scratch = Scratch::default();
    let mut compressor =
        agreed.map(|agreed| (Dedicated::new(agreed.client_window_bits, 8, 6), agreed));
    for message in messages {
        match &mut compressor {
            None => frame::encode_masked(Opcode::Text, false, message.as_bytes(), key, &mut out),
            Some((dedicated, agreed)) => {
                if !agreed.client_context_takeover {
                    dedicated.reset();
                }
                let mut payload = Vec::new();
                dedicated.compress(message.as_bytes(), &mut scratch, &mut payload);
                frame::encode_masked(Opcode::Text, true, &payload, key, &mut out);
            }
        }
    }
    out
}

fn server_stream(agreement: Option<Agreement>, messages: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut scratch = Scratch::default();
    let mut standalone = Compressor::new(6);
    let mut dedicated =
        agreement.map(|agreement| Dedicated::new(agreement.server_window_bits, 8, 6));
    for message in messages {
        let mut payload = Vec::new();
        match (agreement, &mut dedicated) {
            (Some(agreement), Some(dedicated)) if !agreement.server_no_context_takeover => {
                dedicated.compress(message.as_bytes(), &mut scratch, &mut payload);
            }
            (Some(agreement), _) => {
                let window_bits = agreement.server_window_bits;
                standalone.standalone_within(window_bits, message.as_bytes(), &mut payload);
            }
            (None, _) => payload.extend(message.as_bytes()),
        }
        frame::encode(Opcode::Text, agreement.is_some(), &payload, &mut out);
    }
    out
}

/// The texts of a stream in pieces; `next` takes one event.
fn read(
    stream: &[u8],
    cuts: &[Index],
    mut next: impl FnMut(&mut Input<'_>, &mut Pool) -> Option<String>,
) -> Vec<String> {
    let mut pool = Pool::new();
    let mut texts = Vec::new();
    for mut piece in pieces(stream, cuts) {
        let mut input = Input::new(&mut piece);
        while let Some(text) = next(&mut input, &mut pool) {
            texts.push(text);
        }
    }
    texts
}

fn text(event: Event<'_>) -> String {
    match event {
        Event::Text(text) => text.to_owned(),
        other => panic!("{other:?} is no text"),
    }
}

fn pieces(stream: &[u8], cuts: &[Index]) -> Vec<Vec<u8>> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    cuts.extend([0, stream.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|ends| stream[ends[0]..ends[1]].to_vec()).collect()
}

/// The events as text, and the failure at the end.
fn outcome(mut reader: ClientReader, bytes: &[u8], size: usize) -> (Vec<String>, Option<Failure>) {
    let mut pool = Pool::new();
    let mut events = Vec::new();
    for piece in bytes.chunks(size) {
        let mut piece = piece.to_vec();
        let mut input = Input::new(&mut piece);
        loop {
            match reader.receive(&mut input, &mut pool, &Limits::default()) {
                Ok(Some(event)) => events.push(format!("{event:?}")),
                Ok(None) => break,
                Err(failure) => return (events, Some(failure)),
            }
        }
    }
    (events, None)
}
