//! Property tests: clients with context takeover that compress with stock zlib (RFC 7692 §7.1.1.2, §7.1.2.2).
//! Random messages in every size of window, fragmented, some raw, some with final blocks → the same events.
//! Uses flate2 as the sender, which keeps its window from message to message, and the frames of `client_streams`.
//! Changed here: how a sender may compress. Streams without takeover are in `client_streams`.

use fanwire_ws::{Event, Failure, Input, Limits, Pool, Reader};
use flate2::{Compress, Compression, FlushCompress, Status};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::client::Sent;
use crate::client_streams::{client_frames, read, write};

proptest! {
    #[test]
    fn what_zlib_compresses_in_context_comes_out_however_it_is_split(
        window_bits in 9..=15u8,
        level in 1..=9u32,
        frames in vec(client_frames(related_body()), 0..8),
        ends in vec(prop::bool::weighted(0.2), 8),
        cuts in vec(any::<Index>(), 0..12),
    ) {
        let mut sender = Sender::new(window_bits, level);
        let mut ends = ends.into_iter();
        let (stream, expect) = write(&frames, |message| {
            if ends.next() == Some(true) { sender.with_final_block(message) } else { sender.message(message) }
        });
        let reader = || Reader::with_takeover(window_bits);
        prop_assert!(read(reader(), &stream, &[]) == expect, "at once");
        let cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        prop_assert!(read(reader(), &stream, &cuts) == expect, "cut at {cuts:?}");
    }

    #[test]
    fn a_larger_window_than_agreed_is_never_needed(
        sent in 9..=15u8,
        agreed in 9..=15u8,
        messages in vec(related_body(), 1..10),
    ) {
        let mut sender = Sender::new(sent.min(agreed), 9);
        let mut reader = Reader::with_takeover(agreed);
        let mut pool = Pool::new();
        for (_, message) in messages {
            let seen = receive(&mut reader, &mut pool, &sender.frame(&message));
            prop_assert!(seen == Ok(message));
            prop_assert!(reader.window_bytes() <= 1 << agreed);
        }
    }
}

/// RFC 7692 §7.1.2.2: such a client breaks the agreement, and its connection ends.
#[test]
fn a_message_that_refers_beyond_the_agreed_window_fails_with_1007() {
    let noise: Vec<u8> =
        (0..2_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut sender = Sender::new(15, 9);
    let mut reader = Reader::with_takeover(9);
    let mut pool = Pool::new();
    assert_eq!(receive(&mut reader, &mut pool, &sender.frame(&noise)), Ok(noise.clone()));
    let seen = receive(&mut reader, &mut pool, &sender.frame(&noise[..600]));
    assert_eq!(seen, Err(Failure::CorruptDeflate));
    assert_eq!(Failure::CorruptDeflate.close_code(), 1007);
}

/// A client that compresses with zlib and takes its window over from message to message.
pub(crate) struct Sender {
    zlib: Compress,
    window_bits: u8,
    /// All messages so far.
    stream: Vec<u8>,
}

impl Sender {
    pub(crate) fn new(window_bits: u8, level: u32) -> Self {
        let level = Compression::new(level);
        let zlib = Compress::new_with_window_bits(level, false, window_bits);
        Self { zlib, window_bits, stream: Vec::new() }
    }

    /// One payload, without the flush tail (RFC 7692 §7.2.1).
    pub(crate) fn message(&mut self, message: &[u8]) -> Vec<u8> {
        if message.is_empty() {
            return vec![0]; // RFC 7692 §7.2.3.6
        }
        let mut payload = self.compress(message, FlushCompress::Sync);
        assert!(payload.ends_with(&[0, 0, 0xff, 0xff]));
        payload.truncate(payload.len() - 4);
        payload
    }

    /// One binary message in one frame.
    pub(crate) fn frame(&mut self, message: &[u8]) -> Vec<u8> {
        let (payload, mut bytes) = (self.message(message), Vec::new());
        Sent { fin: true, rsv1: true, opcode: 2, key: [1, 2, 3, 4], payload }.encode(&mut bytes);
        bytes
    }

    /// One payload in a block with BFINAL = 1 (RFC 7692 §7.2.3.4); later messages refer to what is before it.
    fn with_final_block(&mut self, message: &[u8]) -> Vec<u8> {
        let mut payload = self.compress(message, FlushCompress::Finish);
        payload.push(0);
        self.zlib.reset();
        let window = self.stream.len().saturating_sub(1 << self.window_bits);
        if !self.stream.is_empty() {
            self.zlib.set_dictionary(&self.stream[window..]).expect("between two streams");
        }
        payload
    }

    fn compress(&mut self, message: &[u8], flush: FlushCompress) -> Vec<u8> {
        self.stream.extend(message);
        let mut payload = Vec::with_capacity(message.len() + message.len() / 8 + 128);
        let status = self.zlib.compress_vec(message, &mut payload, flush).expect("room enough");
        assert!(matches!(status, Status::Ok | Status::StreamEnd));
        payload
    }
}

/// The binary message in one frame.
pub(crate) fn receive(
    reader: &mut Reader,
    pool: &mut Pool,
    frame: &[u8],
) -> Result<Vec<u8>, Failure> {
    let mut bytes = frame.to_vec();
    let mut input = Input::new(&mut bytes);
    match reader.receive(&mut input, pool, &LIMITS)? {
        Some(Event::Binary(message)) => Ok(message.to_vec()),
        other => panic!("{other:?} is not a whole binary message"),
    }
}

/// Messages that have much in common with others, near and far, and some of noise; a few fill any window.
fn related_body() -> impl Strategy<Value = (bool, Vec<u8>)> {
    prop_oneof![
        8 => (0..50u32, 1..12u32).prop_map(|(start, count)| (true, records(start, count))),
        2 => vec(any::<u8>(), 0..700).prop_map(|bytes| (false, bytes)),
        1 => (0..50u32, 100..1_500u32).prop_map(|(start, count)| (true, records(start, count))),
        1 => Just((true, Vec::new())),
    ]
}

fn records(start: u32, count: u32) -> Vec<u8> {
    let record = |n: u32| format!("{{\"id\":{n},\"row\":{},\"value\":{}}}", n % 5, n * n % 97);
    (start..start + count).map(record).collect::<String>().into_bytes()
}

const LIMITS: Limits =
    Limits { message_bytes_max: 1 << 20, inflated_bytes_max: 1 << 20, fragments_max: 100 };
