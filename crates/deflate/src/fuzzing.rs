//! Properties that must hold for any bytes: bodies of fuzz targets, also run by `tests/it/any_bytes.rs`.
//! Bytes from a fuzzer → nothing, or a panic that names the property.
//! Uses this crate's own encoder and decoder, and a shadow as a client; never part of the server.
//! Changed here: a target per decoder; the programs that call them live in the fuzz folder.

use crate::gap::{History, SubscriptionWindow, WindowCounter};
use crate::{
    Compressor, Dedicated, InflateError, Inflater, Scratch, SenderWindow, Shadow, Strategy,
};

/// A payload, in two pieces and within a limit: the decoder ends, stays in bounds, and its result does not depend on
/// the cut.
pub fn inflate(data: &[u8]) {
    let Some((&[cut, kilobytes], payload)) = data.split_first_chunk() else { return };
    let bytes_max = usize::from(kilobytes) << 10;
    let mut inflater = Inflater::new();
    let whole = run(&mut inflater, &[payload], bytes_max);
    let cut = payload.len() * usize::from(cut) / 256;
    let (first, second) = payload.split_at(cut);
    let cut = run(&mut inflater, &[first, second], bytes_max);
    assert_eq!(whole, cut, "the cut changes the message");
    if let Ok(message) = whole
        && let Some(bytes_max) = message.len().checked_sub(1)
    {
        let tight = run(&mut inflater, &[payload], bytes_max);
        assert_eq!(tight, Err(InflateError::TooLarge { bytes_max }));
    }
}

/// A message, then any payload that may refer to it: decoded like one payload with both, within the window.
///
/// The first two bytes are the size of the window and the length of the message.
pub fn takeover(data: &[u8]) {
    let Some((&[bits, length], data)) = data.split_first_chunk() else { return };
    let (before, payload) = data.split_at(data.len().min(usize::from(length)));
    let mut stored = vec![0];
    stored.extend((before.len() as u16).to_le_bytes());
    stored.extend((!before.len() as u16).to_le_bytes());
    stored.extend(before);
    let mut inflater = Inflater::new();
    let mut window = SenderWindow::new(9 + bits % 7);
    let mut first = Vec::new();
    let mut second = Vec::new();
    // The zero byte begins the empty block that the flush tail completes.
    let first_message = [&stored[..], &[0]].concat();
    let result = inflater.message(&first_message, &mut window, &mut first, BYTES_MAX);
    assert_eq!((result, &first[..]), (Ok(()), before));
    let in_context = inflater.message(payload, &mut window, &mut second, BYTES_MAX);
    assert!(second.len() <= BYTES_MAX && second.capacity() <= BYTES_MAX + 1);
    assert!(window.heap_bytes() <= SenderWindow::memory_for(9 + bits % 7));
    if payload.is_empty() {
        return assert_eq!(in_context, Ok(()), "an empty message");
    }
    let both_max = before.len() + BYTES_MAX;
    let whole = run(&mut inflater, &[&stored, payload], both_max);
    match in_context {
        Ok(()) => assert_eq!(whole, Ok([before, &second].concat())),
        // The stored block counts towards the final blocks that a message may have.
        Err(InflateError::Corrupt) => assert!(whole.is_err() || payload.len() > FINAL_BLOCKS_FREE),
        Err(InflateError::TooLarge { .. }) => {
            assert_eq!(whole, Err(InflateError::TooLarge { bytes_max: both_max }));
        }
    }
}

/// Messages of one channel to a client that also gets other messages: each is decoded in context,
/// without a final block and from within the window.
///
/// The first three bytes are the settings; pieces of 64 are messages, some of them replies, and
/// some change the history.
pub fn gap(data: &[u8]) {
    let Some((&[bits, depth, level], data)) = data.split_first_chunk() else { return };
    let window_bits = 8 + bits % 8;
    let mut history = History::new(1 << 12, 1 + usize::from(depth % 8), level);
    let mut window = SubscriptionWindow::default();
    let mut counter = WindowCounter::default();
    let mut compressor = Compressor::new(level);
    let mut shadow = Shadow::new(window_bits);
    let mut payload = Vec::new();
    for piece in data.chunks(64) {
        payload.clear();
        match piece[0] % 16 {
            0 => history.resize(usize::from(piece[piece.len() - 1]) << 5),
            1 => history.set_depth(usize::from(piece[piece.len() - 1] % 10)),
            _ => {}
        }
        if piece[0] % 4 == 3 {
            compressor.standalone_within(window_bits, piece, &mut payload);
            counter.advance(piece.len());
        } else {
            let publication = history.publish(piece).expect("1 to 64 bytes");
            let reference = window.reference(&publication, counter, window_bits);
            let parse = history.parse(&publication, reference.depth()).expect("the newest one");
            parse.emit(reference.gaps(), &mut payload);
            window.queued(&publication, &mut counter);
            let trial = (piece[0] % 16 == 2).then(|| history.trial(&publication));
            assert_ne!(trial, Some(None), "the newest one can be tried");
        }
        assert_eq!(shadow.check(&payload, piece), Ok(()));
        assert!(history.memory() <= History::memory_for(history.bytes_max()));
    }
}

/// One message: it is decoded unchanged, whatever the level, without a final block and from within the window.
pub fn standalone(data: &[u8]) {
    let Some((&[level, bits], message)) = data.split_first_chunk() else { return };
    let window_bits = 8 + bits % 8;
    let mut payload = Vec::new();
    Compressor::new(level).standalone_within(window_bits, message, &mut payload);
    assert_eq!(Shadow::new(window_bits).check(&payload, message), Ok(()));
    let back = run(&mut Inflater::new(), &[&payload], message.len());
    assert_eq!(back.as_deref(), Ok(message));
}

/// Messages of one connection: each is decoded in context, whatever the settings and strategy.
///
/// The first four bytes are the settings; a message's first byte is its length, 255 resets the compressor.
pub fn dedicated(data: &[u8]) {
    let Some((&[bits, memory_level, level, strategy], rest)) = data.split_first_chunk() else {
        return;
    };
    let window_bits = 9 + bits % 7;
    let strategy = STRATEGIES[usize::from(strategy) % STRATEGIES.len()];
    let mut dedicated = Dedicated::new(window_bits, memory_level, level).with_strategy(strategy);
    let mut shadow = Shadow::new(window_bits);
    let mut inflater = Inflater::new();
    let mut window = SenderWindow::new(window_bits);
    let mut rest = rest;
    let mut scratch = Scratch::default();
    let mut payload = Vec::new();
    while let Some((&bytes, after)) = rest.split_first() {
        if bytes == 255 {
            dedicated.reset();
        }
        let (message, after) = after.split_at(after.len().min(usize::from(bytes)));
        rest = after;
        payload.clear();
        dedicated.compress(message, &mut scratch, &mut payload);
        assert_eq!(shadow.check(&payload, message), Ok(()));
        let mut out = Vec::new();
        let result = inflater.message(&payload, &mut window, &mut out, message.len());
        assert_eq!((result, &out[..]), (Ok(()), message), "with a window between messages");
    }
}

fn run(
    inflater: &mut Inflater,
    pieces: &[&[u8]],
    bytes_max: usize,
) -> Result<Vec<u8>, InflateError> {
    let mut out = Vec::new();
    inflater.reset();
    let result = pieces
        .iter()
        .try_for_each(|piece| inflater.push(piece, &mut out, bytes_max))
        .and_then(|()| inflater.finish(&mut out, bytes_max));
    assert!(out.len() <= bytes_max, "more output than allowed");
    assert!(out.capacity() <= bytes_max + 1, "more memory than allowed");
    result.map(|()| out)
}

/// Small, so that a fuzzer reaches it.
const BYTES_MAX: usize = 2_000;

/// A payload of so many bytes has no more final blocks than any message may have: each takes more than a byte.
const FINAL_BLOCKS_FREE: usize = 16;

const STRATEGIES: [Strategy; 5] =
    [Strategy::Default, Strategy::Filtered, Strategy::HuffmanOnly, Strategy::Rle, Strategy::Fixed];
