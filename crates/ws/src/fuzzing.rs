//! Properties that must hold for any bytes: bodies of fuzz targets, also run by `tests/it/any_bytes.rs`.
//! Bytes from a fuzzer → nothing, or a panic that names the property.
//! Uses the public items of this crate; never part of the server.
//! Changed here: a target per decoder; the programs that call them live in the fuzz folder.

use crate::extension::{self, ClientTakeover, ExtensionSettings};
use crate::handshake::{self, HandshakeRequest};
use crate::{Compression, Event, Failure, Input, Limits, Pool, Reader};

/// A client's stream after the handshake: however it is split, the same events come out, in bounds.
///
/// The first byte chooses whether compression was agreed on, and whether with context takeover and in which window; the
/// next four are the sizes of the reads.
pub fn reader(data: &[u8]) {
    let Some((&[flags, ref sizes @ ..], stream)) = data.split_first_chunk::<5>() else { return };
    let window_bits = 8 + (flags >> 2) % 8;
    let reader = || match flags & 3 {
        0 | 2 => Reader::new(false),
        1 => Reader::new(true),
        _ => Reader::with_takeover(window_bits),
    };
    let whole = read(reader(), stream, [usize::MAX; 4]);
    assert_eq!(whole, read(reader(), stream, [1; 4]), "read byte by byte");
    let sizes = sizes.map(|size| usize::from(size) + 1);
    assert_eq!(whole, read(reader(), stream, sizes), "read in pieces of {sizes:?}");
}

/// Values of `Sec-WebSocket-Extensions`, one per line: the response has only allowed parameters.
pub fn negotiation(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let disabled = ExtensionSettings { enabled: false, ..ExtensionSettings::default() };
    assert_eq!(extension::negotiate(text.lines(), disabled), None);
    for (server_window_bits, client_takeover) in [
        (15, None),
        (10, None),
        (15, Some(ClientTakeover { window_bits: 15, requires_choice: false })),
        (9, Some(ClientTakeover { window_bits: 12, requires_choice: true })),
    ] {
        let enabled = true;
        answer(text, ExtensionSettings { enabled, server_window_bits, client_takeover });
    }
}

fn answer(offers: &str, settings: ExtensionSettings) {
    let Some(agreement) = extension::negotiate(offers.lines(), settings) else { return };
    let takeover_bits = settings.client_takeover.map(|takeover| takeover.window_bits);
    assert!((9..=settings.server_window_bits).contains(&agreement.server_window_bits));
    let response = agreement.response();
    let mut parts = response.split("; ");
    assert_eq!(parts.next(), Some("permessage-deflate"));
    let parts: Vec<_> = parts.collect();
    let stands_alone = parts.contains(&"client_no_context_takeover");
    assert_eq!(stands_alone, agreement.client_window_bits.is_none());
    assert!(stands_alone || takeover_bits.is_some(), "takeover that the server does not offer");
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let is_offered = offers.contains(name);
        match name {
            "client_no_context_takeover" => {}
            "server_no_context_takeover" => assert!(is_offered),
            "server_max_window_bits" => assert!(is_offered || settings.server_window_bits < 15),
            "client_max_window_bits" => {
                // RFC 7692 §7.1.2.2: only as the answer to an offer.
                assert!(is_offered && !stands_alone);
                assert!(value.parse::<u8>().is_ok_and(|bits| Some(bits) <= takeover_bits));
            }
            _ => panic!("{name} is no parameter"),
        }
    }
    // Negotiating the response as an offer gives the same response (RFC 7692 §7.1: same grammar).
    let again = extension::negotiate([response.as_str()].into_iter(), settings);
    assert_eq!(again, Some(agreement));
    assert_ne!(Compression::of(again), Compression::Raw);
    let without = agreement.without_client_takeover();
    let again = extension::negotiate([without.response().as_str()].into_iter(), settings);
    assert_eq!(again, Some(without));
}

/// The parts of an upgrade request, one per line; an empty line is a missing header.
pub fn handshake(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let mut lines = text.lines().chain(std::iter::repeat(""));
    let mut line = || lines.next().expect("endless");
    let method = line();
    let mut header = || Some(line()).filter(|value| !value.is_empty());
    let request = HandshakeRequest {
        method,
        http_1_1_or_newer: true,
        has_body: false,
        upgrade: header(),
        connection: header(),
        key: header(),
        version: header(),
    };
    match handshake::check(&request) {
        Ok(accept) => assert_eq!(accept.len(), 28, "base64 of a SHA-1"),
        Err(error) => {
            assert!([400, 405, 426].contains(&error.status()));
            assert!(error.to_string().len() < 1000, "an error repeats a whole value");
        }
    }
    let protocol = handshake::choose_subprotocol(text.lines(), &["a", "b"]);
    assert!(protocol.is_none_or(|protocol| text.contains(protocol)));
}

/// An event with bytes of its own.
#[derive(Debug, PartialEq)]
enum Owned {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<(u16, String)>),
}

fn read(mut reader: Reader, stream: &[u8], sizes: [usize; 4]) -> (Vec<Owned>, Option<Failure>) {
    let mut pool = Pool::new();
    let mut events = Vec::new();
    let mut failure = None;
    let mut rest = stream;
    for size in sizes.into_iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, behind) = rest.split_at(size.min(rest.len()));
        rest = behind;
        let mut piece = piece.to_vec();
        let mut input = Input::new(&mut piece);
        loop {
            match reader.receive(&mut input, &mut pool, &LIMITS) {
                Ok(Some(event)) => events.push(own(event)),
                Ok(None) => break,
                Err(error) => assert_eq!(failure.replace(error), None, "a second failure"),
            }
        }
        assert!(input.is_empty(), "Ok(None) says that everything was taken");
    }
    (events, failure)
}

fn own(event: Event<'_>) -> Owned {
    match event {
        Event::Text(text) => Owned::Text(text.to_owned()),
        Event::Binary(bytes) => Owned::Binary(bytes.to_vec()),
        Event::Ping(bytes) => Owned::Ping(bytes.to_vec()),
        Event::Pong(bytes) => Owned::Pong(bytes.to_vec()),
        Event::Close(close) => Owned::Close(close.map(|(code, reason)| (code, reason.to_owned()))),
    }
    .in_bounds()
}

impl Owned {
    fn in_bounds(self) -> Self {
        let (bytes, bytes_max) = match &self {
            Self::Text(text) => (text.len(), LIMITS.inflated_bytes_max),
            Self::Binary(bytes) => (bytes.len(), LIMITS.inflated_bytes_max),
            Self::Ping(bytes) | Self::Pong(bytes) => (bytes.len(), 125),
            Self::Close(close) => (close.as_ref().map_or(0, |(_, reason)| reason.len()), 123),
        };
        assert!(bytes <= bytes_max, "{bytes} bytes are more than {bytes_max}");
        self
    }
}

/// Small, so that a fuzzer reaches them.
const LIMITS: Limits =
    Limits { message_bytes_max: 400, inflated_bytes_max: 2_000, fragments_max: 20 };
