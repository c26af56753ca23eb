//! What holds for any bytes at all: bodies of fuzz targets, also run by `tests/it/any_bytes.rs`.
//! Bytes from a fuzzer → nothing, or a panic that names the broken promise.
//! Uses this crate's own encoder and decoder, and zlib-rs as a client; never part of the server.
//! Change here: a target per decoder; the programs that call them live in the fuzz folder.

use zlib_rs::{Inflate, InflateFlush};

use crate::gap::{Counter, History, Reach};
use crate::{Compressor, FLUSH_TAIL, InflateError, Inflater};

/// A payload, in two pieces and within a limit: ends, stays in bounds, and does not depend on the
/// cut.
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

/// Messages of one channel to a client that also gets other traffic: each comes back in context.
///
/// The first three bytes are the settings; pieces of 64 are messages, and some of them replies.
pub fn gap(data: &[u8]) {
    let Some((&[bits, depth, level], data)) = data.split_first_chunk() else { return };
    let window_bits = 8 + bits % 8;
    let mut history = History::new(1 << 12, 1 + usize::from(depth % 4), level);
    let (mut reach, mut counter) = (Reach::default(), Counter::default());
    let mut compressor = Compressor::new(level);
    let mut inflate = Inflate::new(false, 15);
    let mut payload = Vec::new();
    for piece in data.chunks(64) {
        payload.clear();
        if piece[0] % 4 == 0 {
            compressor.standalone_within(window_bits, piece, &mut payload);
            counter.advance(piece.len());
        } else {
            let publication = history.publish(piece).expect("1 to 64 bytes");
            let reference = reach.reference(&publication, counter, window_bits);
            let parse = history.parse(&publication, reference.depth()).expect("the newest one");
            parse.emit(reference.gaps(), &mut payload);
            reach.queued(&publication, &mut counter);
        }
        payload.extend(FLUSH_TAIL);
        let (mut out, before) = ([0; 65], inflate.total_out());
        inflate.decompress(&payload, &mut out, InflateFlush::SyncFlush).expect("valid");
        assert_eq!(&out[..(inflate.total_out() - before) as usize], piece);
    }
}

/// A message: it comes back, whatever the level.
pub fn standalone(data: &[u8]) {
    let Some((&level, message)) = data.split_first() else { return };
    let mut payload = Vec::new();
    Compressor::new(level).standalone(message, &mut payload);
    let back = run(&mut Inflater::new(), &[&payload], message.len());
    assert_eq!(back.as_deref(), Ok(message));
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
