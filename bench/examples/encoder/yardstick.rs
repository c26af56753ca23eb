//! What other compressors make of the same messages, and how both are timed.
//! In: messages, a way to compress one → out: frame bytes and time of all.
//! Uses zlib-rs for time, stock zlib for bytes, as its search is the one that everybody knows. Never: prints.
//! Change here how a figure is taken. What is compared stands in the module of its table.

use std::hint::black_box;
use std::time::{Duration, Instant};

use flate2::{Compress, Compression, FlushCompress};
use zlib_rs::{Deflate, DeflateFlush};

pub(crate) struct Total {
    pub(crate) bytes: f64,
    pub(crate) time: Duration,
}

pub(crate) fn compare(ours: &Total, theirs: &Total, count: f64) -> String {
    format!(
        "{:.1} | {:.1} | {:.3} | {:.2} | {:.2} | {:.2}",
        ours.bytes / count,
        theirs.bytes / count,
        ours.bytes / theirs.bytes,
        micros(ours.time) / count,
        micros(theirs.time) / count,
        micros(ours.time) / micros(theirs.time),
    )
}

/// Frame bytes and time of all messages.
pub(crate) fn total(messages: &[Vec<u8>], mut compress: impl FnMut(&[u8]) -> usize) -> Total {
    let start = Instant::now();
    let bytes: usize = messages.iter().map(|message| framed(compress(black_box(message)))).sum();
    Total { bytes: bytes as f64, time: start.elapsed() }
}

/// The faster of five turns each, taken by turns because the machine may have other work.
pub(crate) fn best(
    ours: &mut impl FnMut() -> Total,
    theirs: &mut impl FnMut() -> Total,
) -> (Total, Total) {
    let mut least = (ours(), theirs());
    for _ in 0..4 {
        let (a, b) = (ours(), theirs());
        least.0.time = least.0.time.min(a.time);
        least.1.time = least.1.time.min(b.time);
    }
    least
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// With the header of a server's frame (RFC 6455 §5.2).
pub(crate) fn framed(bytes: usize) -> usize {
    bytes + if bytes < 126 { 2 } else { 4 }
}

pub(crate) fn zlib<'a>(
    messages: &'a [Vec<u8>],
    prepare: impl Fn(&mut Deflate, usize) + 'a,
) -> impl FnMut() -> Total + 'a {
    let mut room = vec![0; 1 << 20];
    move || {
        let mut deflate = Deflate::new(6, false, 15);
        let mut at = 0;
        total(messages, |message| {
            prepare(&mut deflate, at);
            at += 1;
            let before = deflate.total_out();
            deflate.compress(message, &mut room, DeflateFlush::SyncFlush).expect("room");
            (deflate.total_out() - before) as usize - 4
        })
    }
}

/// Frame bytes of stock zlib at level 6, primed with so many messages before or with all.
pub(crate) fn stock(messages: &[Vec<u8>], depth: Option<usize>) -> f64 {
    let mut compress = Compress::new(Compression::new(6), false);
    let mut room = vec![0; 1 << 20];
    let mut bytes = 0;
    for (at, message) in messages.iter().enumerate() {
        if let Some(depth) = depth {
            compress.reset();
            let before = messages[at.saturating_sub(depth)..at].concat();
            if !before.is_empty() {
                compress.set_dictionary(&before).expect("at the start");
            }
        }
        let before = compress.total_out();
        compress.compress(message, &mut room, FlushCompress::Sync).expect("room");
        bytes += framed((compress.total_out() - before) as usize - 4);
    }
    bytes as f64
}

/// Frame bytes of stock zlib at level 6 after these bytes.
pub(crate) fn primed(before: &[u8], message: &[u8]) -> usize {
    let mut compress = Compress::new(Compression::new(6), false);
    if !before.is_empty() {
        compress.set_dictionary(before).expect("at the start");
    }
    let mut room = vec![0; 1 << 16];
    compress.compress(message, &mut room, FlushCompress::Sync).expect("room");
    framed(compress.total_out() as usize - 4)
}
