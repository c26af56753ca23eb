//! Property tests: what a good client sends comes out as it went in (RFC 6455 §5, RFC 7692 §6).
//! Random messages, fragmented, masked, compressed, with control frames between → the same events.
//! Uses `client` as the sender.
//! Changed here: properties of valid streams. Any bytes at all are in `any_bytes`.

use fanwire_deflate::Compressor;
use fanwire_ws::{Event, Input, Limits, Pool, Reader};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::client::Sent;

proptest! {
    #[test]
    fn what_a_client_sends_comes_out_however_it_is_split(
        frames in vec(client_frames(body()), 0..6),
        cuts in vec(any::<Index>(), 0..12),
    ) {
        let (stream, expect) = write(&frames, standalone);
        prop_assert_eq!(read(Reader::new(true), &stream, &[]), expect.clone());
        let cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        prop_assert_eq!(read(Reader::new(true), &stream, &cuts), expect);
    }

    #[test]
    fn every_length_of_payload_is_read(length in 0..70_000usize, key: [u8; 4], cut: Index) {
        let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
        let sent = Sent { fin: true, rsv1: false, opcode: 2, key, payload: payload.clone() };
        let mut stream = Vec::new();
        sent.encode(&mut stream);
        let expect = [("binary", payload)];
        prop_assert_eq!(&read(Reader::new(true), &stream, &[]), &expect);
        prop_assert_eq!(&read(Reader::new(true), &stream, &[cut.index(stream.len())]), &expect);
    }
}

/// A message with the ways in which a client may send it, or a control frame.
#[derive(Clone, Debug)]
pub(crate) enum ClientFrames {
    Message {
        is_text: bool,
        body: Vec<u8>,
        compressed: bool,
        cuts: Vec<Index>,
        keys: Vec<[u8; 4]>,
        pings: Vec<Option<Vec<u8>>>,
    },
    Control {
        opcode: u8,
        body: Vec<u8>,
        key: [u8; 4],
    },
}

/// Whether the message is text, and its bytes.
fn body() -> impl Strategy<Value = (bool, Vec<u8>)> {
    prop_oneof![
        ".{0,40}".prop_map(|text| (true, text.into_bytes())),
        (".{1,9}", 1..300usize).prop_map(|(text, times)| (true, text.repeat(times).into_bytes())),
        vec(any::<u8>(), 0..300).prop_map(|bytes| (false, bytes)),
    ]
}

pub(crate) fn client_frames(
    body: impl Strategy<Value = (bool, Vec<u8>)>,
) -> impl Strategy<Value = ClientFrames> {
    let cuts = vec(any::<Index>(), 0..5);
    let pings = vec(proptest::option::of(control_body()), 6);
    let message = (body, any::<bool>(), cuts, vec(any::<[u8; 4]>(), 6), pings).prop_map(
        |((is_text, body), compressed, cuts, keys, pings)| ClientFrames::Message {
            is_text,
            body,
            compressed,
            cuts,
            keys,
            pings,
        },
    );
    let control = (9..=10u8, control_body(), any::<[u8; 4]>())
        .prop_map(|(opcode, body, key)| ClientFrames::Control { opcode, body, key });
    prop_oneof![3 => message, 1 => control]
}

fn control_body() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..=125)
}

pub(crate) type Events = Vec<(&'static str, Vec<u8>)>;

/// The bytes of `frames`, whose compressed messages have the payloads that `compress` returns, and what is to come out.
pub(crate) fn write(
    frames: &[ClientFrames],
    mut compress: impl FnMut(&[u8]) -> Vec<u8>,
) -> (Vec<u8>, Events) {
    let (mut stream, mut events) = (Vec::new(), Events::new());
    for client_frames in frames {
        match client_frames {
            ClientFrames::Control { opcode, body, key } => {
                control(*opcode, body, *key, &mut stream, &mut events);
            }
            ClientFrames::Message { is_text, body, compressed, cuts, keys, pings } => {
                let payload = if *compressed { compress(body) } else { body.clone() };
                let mut ends: Vec<_> =
                    cuts.iter().map(|cut| cut.index(payload.len() + 1)).collect();
                ends.push(payload.len());
                ends.sort_unstable();
                let mut start = 0;
                for (at, &end) in ends.iter().enumerate() {
                    let first = if *is_text { 1 } else { 2 };
                    let frame = Sent {
                        fin: at + 1 == ends.len(),
                        rsv1: *compressed && at == 0,
                        opcode: if at == 0 { first } else { 0 },
                        key: keys[at],
                        payload: payload[start..end].to_vec(),
                    };
                    frame.encode(&mut stream);
                    start = end;
                    if let Some(body) = pings[at].as_ref().filter(|_| !frame.fin) {
                        control(9, body, keys[at], &mut stream, &mut events);
                    }
                }
                events.push((if *is_text { "text" } else { "binary" }, body.clone()));
            }
        }
    }
    (stream, events)
}

fn control(opcode: u8, body: &[u8], key: [u8; 4], stream: &mut Vec<u8>, events: &mut Events) {
    Sent { fin: true, rsv1: false, opcode, key, payload: body.to_vec() }.encode(stream);
    events.push((if opcode == 9 { "ping" } else { "pong" }, body.to_vec()));
}

fn standalone(message: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    Compressor::new(6).standalone(message, &mut payload);
    payload
}

/// Reads `stream` cut at `cuts`.
pub(crate) fn read(mut reader: Reader, stream: &[u8], cuts: &[usize]) -> Events {
    let mut ends = cuts.to_vec();
    ends.push(stream.len());
    ends.sort_unstable();
    let mut pool = Pool::new();
    let limits = Limits { message_bytes_max: 1 << 20, ..Limits::default() };
    let mut events = Events::new();
    let mut start = 0;
    for end in ends {
        let mut piece = stream[start..end].to_vec();
        start = end;
        let mut input = Input::new(&mut piece);
        while let Some(event) = reader.receive(&mut input, &mut pool, &limits).expect("valid") {
            events.push(match event {
                Event::Text(text) => ("text", text.as_bytes().to_vec()),
                Event::Binary(bytes) => ("binary", bytes.to_vec()),
                Event::Ping(bytes) => ("ping", bytes.to_vec()),
                Event::Pong(bytes) => ("pong", bytes.to_vec()),
                Event::Close(_) => unreachable!("none was sent"),
            });
        }
    }
    events
}
