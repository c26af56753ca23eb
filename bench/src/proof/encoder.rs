//! Claims `windows` and `round-trips`: what contexts of single connections cost, next to the shared one.
//! In: a corpus, a time for each row → out: tables of memory, bytes and time; round trips of messages of four sizes.
//! Uses `deflate` for ours, zlib-rs and stock zlib by flate2 for the others. Never: sockets.
//! Changed here: the rows. The engine's own codecs over whole files are shown by `fanwire tune`.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fanwire_deflate::gap::{History, SubscriptionWindow, WindowCounter};
use fanwire_deflate::{Compressor, Dedicated, FLUSH_TAIL, Scratch};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use zlib_rs::{Deflate, DeflateFlush, Inflate, InflateFlush};

use super::page::{Table, figure};
use super::timing::nanoseconds;
use crate::corpus::files::read;
use crate::stats::median;

/// Window bits and memory level of a compressor.
const SETTINGS: [(u8, u8); 7] = [(15, 8), (14, 7), (13, 6), (12, 5), (11, 4), (10, 3), (9, 2)];

/// The messages of one file in `bench/corpus`.
///
/// # Errors
/// The file is not there.
pub(super) fn corpus(name: &str) -> Result<Vec<Vec<u8>>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let (_, messages) = read(&path)?.context("a file of messages")?;
    Ok(messages)
}

/// Seven dedicated contexts and the shared one.
///
/// # Errors
/// A corpus is not there.
pub(super) fn windows() -> Result<Table> {
    let heads = [
        "window bits / memory level",
        "zlib's formula",
        "ours, per connection",
        "ticks B",
        "ticks µs",
        "scores B",
        "scores µs",
    ];
    let mut table = Table::new(&heads, WINDOWS_NOTE);
    let corpora = [corpus("ticks.jsonl")?, corpus("score.jsonl")?];
    for (bits, level) in SETTINGS {
        let formula = (1_usize << (bits + 2)) + (1 << (level + 9));
        let mut cells = vec![format!("{bits} / {level}"), kibibytes(formula)];
        let memory = Dedicated::new(bits, level, EFFORT).memory();
        cells.push(kibibytes(memory));
        for messages in &corpora {
            let outcome = dedicated(messages, bits, level);
            cells.extend([figure(outcome.bytes), figure(outcome.micros)]);
        }
        table.row(cells);
    }
    let connection = size_of::<WindowCounter>() + size_of::<SubscriptionWindow>();
    let mut cells =
        vec!["shared context".to_owned(), "–".to_owned(), format!("**{connection} B**")];
    for messages in &corpora {
        let outcome = shared(messages)?;
        cells.extend([figure(outcome.bytes), figure(outcome.micros)]);
    }
    table.row(cells);
    Ok(table)
}

/// Means over the messages of a file.
struct Outcome {
    bytes: f64,
    micros: f64,
}

fn dedicated(messages: &[Vec<u8>], bits: u8, level: u8) -> Outcome {
    let mut context = Dedicated::new(bits, level, EFFORT);
    let mut scratch = Scratch::default();
    each(messages, |message, out| context.compress(message, &mut scratch, out))
}

fn shared(messages: &[Vec<u8>]) -> Result<Outcome> {
    let mut history = History::new(1 << 15, 4, EFFORT);
    let mut window = SubscriptionWindow::default();
    let mut counter = WindowCounter::default();
    let longest = messages.iter().map(Vec::len).max().unwrap_or_default();
    ensure!(longest <= history.message_bytes_max(), "a message of {longest} bytes");
    Ok(each(messages, |message, out| {
        let publication = history.publish(message).expect("it is short");
        let reference = window.reference(&publication, counter, 15);
        let parse = history.parse(&publication, reference.depth()).expect("it is the newest");
        parse.emit(reference.gaps(), out);
        window.queued(&publication, &mut counter);
    }))
}

/// Compresses every message in its order; the first part fills the window and counts nothing.
fn each(messages: &[Vec<u8>], mut compress: impl FnMut(&[u8], &mut Vec<u8>)) -> Outcome {
    let mut out = Vec::new();
    let mut bytes = 0;
    let mut micros = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        out.clear();
        let began = Instant::now();
        compress(message, &mut out);
        let elapsed = began.elapsed();
        if number >= messages.len() / 4 {
            bytes += out.len();
            micros.push(elapsed.as_secs_f64() * 1e6);
        }
    }
    Outcome { bytes: bytes as f64 / micros.len() as f64, micros: median(micros) }
}

/// Four sizes, with the context kept and without.
///
/// # Errors
/// A message does not come back.
pub(super) fn round_trips(patience: Duration) -> Result<Table> {
    let heads = [
        "size",
        "zlib, new",
        "zlib, kept",
        "zlib-rs, new",
        "zlib-rs, kept",
        "ours, alone",
        "ours, kept",
        "new ÷ kept: zlib",
        "ours",
    ];
    let mut table = Table::new(&heads, ROUND_TRIPS_NOTE);
    for kilobytes in [1, 4, 16, 64] {
        let message = document(kilobytes << 10);
        let mut codecs: [Box<dyn FnMut() -> bool + '_>; 6] = [
            Box::new(|| Stock::new().comes_back(&message)),
            kept(Stock::new(), &message),
            Box::new(|| Rust::new().comes_back(&message)),
            kept(Rust::new(), &message),
            alone(&message),
            kept(Ours::new(), &message),
        ];
        let mut times = Vec::new();
        for codec in &mut codecs {
            ensure!(codec() && codec(), "{kilobytes} KB came back changed");
            times.push(nanoseconds(patience, || {
                codec();
            }));
        }
        let ratios = [times[0] / times[1], times[4] / times[5]];
        let mut cells = vec![format!("{kilobytes} KB")];
        cells.extend(times.iter().map(|time| figure(time / 1e3)));
        cells.extend(ratios.map(figure));
        table.row(cells);
    }
    Ok(table)
}

/// Compresses and decompresses a message after all those before.
trait Codec {
    fn comes_back(&mut self, message: &[u8]) -> bool;
}

fn kept<'a>(mut codec: impl Codec + 'a, message: &'a [u8]) -> Box<dyn FnMut() -> bool + 'a> {
    Box::new(move || codec.comes_back(message))
}

/// Zlib itself.
struct Stock {
    compress: Compress,
    decompress: Decompress,
    payload: Vec<u8>,
    plain: Vec<u8>,
}

impl Stock {
    fn new() -> Self {
        let compress = Compress::new(Compression::new(u32::from(EFFORT)), false);
        Self {
            compress,
            decompress: Decompress::new(false),
            payload: Vec::new(),
            plain: Vec::new(),
        }
    }
}

impl Codec for Stock {
    fn comes_back(&mut self, message: &[u8]) -> bool {
        self.payload.clear();
        self.payload.reserve(message.len() + SLACK);
        self.plain.clear();
        self.plain.reserve(message.len() + SLACK);
        let packed = self.compress.compress_vec(message, &mut self.payload, FlushCompress::Sync);
        let unpacked =
            self.decompress.decompress_vec(&self.payload, &mut self.plain, FlushDecompress::Sync);
        packed.is_ok() && unpacked.is_ok() && self.plain == message
    }
}

/// Zlib-rs.
struct Rust {
    deflate: Deflate,
    client: Client,
    payload: Vec<u8>,
}

impl Rust {
    fn new() -> Self {
        let deflate = Deflate::new(i32::from(EFFORT), false, 15);
        Self { deflate, client: Client::new(), payload: Vec::new() }
    }
}

impl Codec for Rust {
    fn comes_back(&mut self, message: &[u8]) -> bool {
        self.payload.resize(message.len() + SLACK, 0);
        let before = self.deflate.total_out();
        let packed = self.deflate.compress(message, &mut self.payload, DeflateFlush::SyncFlush);
        let length = (self.deflate.total_out() - before) as usize;
        packed.is_ok() && self.client.reads(&self.payload[..length], message)
    }
}

/// A dedicated context of ours, with the decoder that our server and most clients have.
struct Ours {
    context: Dedicated,
    scratch: Scratch,
    client: Client,
    payload: Vec<u8>,
}

impl Ours {
    fn new() -> Self {
        let context = Dedicated::new(15, 8, EFFORT);
        let scratch = Scratch::default();
        Self { context, scratch, client: Client::new(), payload: Vec::new() }
    }
}

impl Codec for Ours {
    fn comes_back(&mut self, message: &[u8]) -> bool {
        self.payload.clear();
        self.context.compress(message, &mut self.scratch, &mut self.payload);
        self.payload.extend_from_slice(&FLUSH_TAIL);
        self.client.reads(&self.payload, message)
    }
}

/// Standalone frames, for clients whose decoder starts empty with each.
fn alone(message: &[u8]) -> Box<dyn FnMut() -> bool + '_> {
    let mut compressor = Compressor::new(EFFORT);
    let mut client = Client::new();
    let mut payload = Vec::new();
    Box::new(move || {
        payload.clear();
        compressor.standalone(message, &mut payload);
        payload.extend_from_slice(&FLUSH_TAIL);
        client.inflate.reset(false);
        client.reads(&payload, message)
    })
}

struct Client {
    inflate: Inflate,
    plain: Vec<u8>,
}

impl Client {
    fn new() -> Self {
        Self { inflate: Inflate::new(false, 15), plain: Vec::new() }
    }

    fn reads(&mut self, payload: &[u8], message: &[u8]) -> bool {
        // One byte more, so that a message that is too long shows itself.
        self.plain.resize(message.len() + 1, 0);
        let before = self.inflate.total_out();
        let done = self.inflate.decompress(payload, &mut self.plain, InflateFlush::SyncFlush);
        let length = (self.inflate.total_out() - before) as usize;
        done.is_ok() && self.plain[..length] == *message
    }
}

/// A JSON text of about this many bytes with text that neither repeats nor is pure noise.
fn document(bytes: usize) -> Vec<u8> {
    crate::fanout::made_up_payloads(bytes)[0].clone().into_bytes()
}

fn kibibytes(bytes: usize) -> String {
    format!("{:.1} KiB", bytes as f64 / 1024.0)
}

const EFFORT: u8 = 6;
/// Bytes of a buffer beyond a message that does not compress.
const SLACK: usize = 1 << 10;
const WINDOWS_NOTE: &str = "Level 6. Bytes are means of a message's payload, µs are medians of its compression; the first quarter of a file \
fills the window and does not count. The shared context has up to four earlier publications in view; its channel keeps one \
history, whatever the number of connections, and a frame serves all connections with the same gaps.";
const ROUND_TRIPS_NOTE: &str = "µs to compress and decompress the same JSON text again and again at level 6, windows of 32 KiB. \
\"new\" makes both ends for each message, \"kept\" keeps both and so finds the message in its window, unless it is longer than that.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_a_row_and_the_shared_context_another() {
        let text = windows().expect("the corpora are there").to_string();
        assert_eq!(text.matches("KiB |").count(), 14, "{text}");
        assert!(text.contains("shared context"), "{text}");
    }

    #[test]
    fn every_size_comes_back_from_every_codec() {
        let text = round_trips(Duration::ZERO).expect("it comes back").to_string();
        assert!(text.contains("| 64 KB |"), "{text}");
    }
}
