//! Compresses and decompresses one message: state made for it, state reset for it, and kept context.
//! In: payloads of 1 to 64 KB, repeated and varying → out: criterion's times, then one table of medians.
//! Uses our encoder with zlib-rs to inflate, zlib-rs alone, and stock zlib through flate2; all at level 6.
//! Change here sizes, lifetimes and libraries: cargo bench -p fanwire-bench --bench round_trip
//!
//! Repeated and varying payloads are kept apart because they answer different questions. With one payload over and over,
//! kept context finds the whole message in its window and makes it a few copies: the factor between "init" and "context"
//! is then mostly that hit, not the saved setup, which is what "init" against "reset" shows. With varying payloads context
//! finds what messages of a kind have in common, as on a real connection. From 64 KB on, a message is longer than the
//! window, and context finds nothing of the message before, whichever payloads they are.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hint::black_box;
use std::iter::Cycle;
use std::slice::Iter;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput};
use fanwire_deflate::{Compressor, Dedicated, FLUSH_TAIL, Scratch};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use zlib_rs::{Deflate, DeflateFlush, Inflate, InflateFlush};

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .sample_size(20)
        .configure_from_args();
    let mut table = Table::default();
    for (kind, kilobytes) in KINDS.into_iter().flat_map(|kind| KILOBYTES.map(|size| (kind, size))) {
        let name = format!("round trip {kilobytes} KB {}", kind.name());
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(kilobytes as u64 * 1024));
        let payloads = payloads(kind, kilobytes * 1024);
        bench(&mut group, &payloads);
        table.measure((kind, kilobytes), &payloads);
    }
    criterion.final_summary();
    println!("\n{}", table.text());
}

/// All libraries and lifetimes on the same payloads, one after the other.
fn bench(group: &mut BenchmarkGroup<'_, WallTime>, payloads: &[Vec<u8>]) {
    for (library, lifetime) in contenders() {
        let mut trip = Trip::new(library, lifetime, payloads);
        group.bench_function(BenchmarkId::new(library.name(), lifetime.name()), |bencher| {
            bencher.iter(|| trip.run());
        });
    }
}

fn contenders() -> impl Iterator<Item = (Library, Lifetime)> {
    LIBRARIES.into_iter().flat_map(|library| LIFETIMES.map(|lifetime| (library, lifetime)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Repeated,
    Varying,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Library {
    Ours,
    ZlibRs,
    Zlib,
}

/// How long compressor and decompressor live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lifetime {
    /// Made for each message.
    Init,
    /// Reset for each message.
    Reset,
    /// Kept, with the context of the messages before.
    Context,
}

const KILOBYTES: [usize; 4] = [1, 4, 16, 64];
const KINDS: [Kind; 2] = [Kind::Repeated, Kind::Varying];
const LIBRARIES: [Library; 3] = [Library::Ours, Library::ZlibRs, Library::Zlib];
const LIFETIMES: [Lifetime; 3] = [Lifetime::Init, Lifetime::Reset, Lifetime::Context];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Repeated => "repeated",
            Self::Varying => "varying",
        }
    }
}

impl Library {
    fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::ZlibRs => "zlib-rs",
            Self::Zlib => "zlib",
        }
    }

    fn pair(self, lifetime: Lifetime) -> Box<dyn Pair> {
        match (self, lifetime) {
            (Self::Ours, Lifetime::Context) => Box::new(OurContext {
                compressor: Dedicated::new(15, 8, LEVEL),
                scratch: Scratch::default(),
                inflate: Inflate::new(false, 15),
            }),
            (Self::Ours, _) => Box::new(OurStandalone {
                compressor: Compressor::new(LEVEL),
                inflate: Inflate::new(false, 15),
            }),
            (Self::ZlibRs, _) => Box::new(ZlibRs {
                deflate: Deflate::new(LEVEL.into(), false, 15),
                inflate: Inflate::new(false, 15),
            }),
            (Self::Zlib, _) => Box::new(Zlib {
                compress: Compress::new(Compression::new(LEVEL.into()), false),
                decompress: Decompress::new(false),
            }),
        }
    }
}

impl Lifetime {
    fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Reset => "reset",
            Self::Context => "context",
        }
    }
}

/// A compressor and the decompressor of its peer.
trait Pair {
    /// Forgets all messages so far, at both ends.
    fn reset(&mut self);

    /// Leaves the payload with its flush tail in `out`.
    fn compress(&mut self, message: &[u8], out: &mut Vec<u8>);

    /// Writes the message into `out`, which has room for it and one byte more, and returns its length.
    fn decompress(&mut self, payload: &[u8], out: &mut [u8]) -> usize;
}

struct OurStandalone {
    compressor: Compressor,
    inflate: Inflate,
}

impl Pair for OurStandalone {
    fn reset(&mut self) {
        self.inflate.reset(false); // the compressor forgets by itself
    }

    fn compress(&mut self, message: &[u8], out: &mut Vec<u8>) {
        out.clear();
        self.compressor.standalone(message, out);
        out.extend_from_slice(&FLUSH_TAIL);
    }

    fn decompress(&mut self, payload: &[u8], out: &mut [u8]) -> usize {
        inflate(&mut self.inflate, payload, out)
    }
}

struct OurContext {
    compressor: Dedicated,
    scratch: Scratch,
    inflate: Inflate,
}

impl Pair for OurContext {
    fn reset(&mut self) {
        self.compressor.reset();
        self.inflate.reset(false);
    }

    fn compress(&mut self, message: &[u8], out: &mut Vec<u8>) {
        out.clear();
        self.compressor.compress(message, &mut self.scratch, out);
        out.extend_from_slice(&FLUSH_TAIL);
    }

    fn decompress(&mut self, payload: &[u8], out: &mut [u8]) -> usize {
        inflate(&mut self.inflate, payload, out)
    }
}

struct ZlibRs {
    deflate: Deflate,
    inflate: Inflate,
}

impl Pair for ZlibRs {
    fn reset(&mut self) {
        self.deflate.reset();
        self.inflate.reset(false);
    }

    fn compress(&mut self, message: &[u8], out: &mut Vec<u8>) {
        out.resize(room(message), 0);
        let before = self.deflate.total_out();
        self.deflate.compress(message, out, DeflateFlush::SyncFlush).expect("room");
        out.truncate((self.deflate.total_out() - before) as usize);
    }

    fn decompress(&mut self, payload: &[u8], out: &mut [u8]) -> usize {
        inflate(&mut self.inflate, payload, out)
    }
}

fn inflate(inflate: &mut Inflate, payload: &[u8], out: &mut [u8]) -> usize {
    let before = inflate.total_out();
    inflate.decompress(payload, out, InflateFlush::SyncFlush).expect("valid");
    (inflate.total_out() - before) as usize
}

struct Zlib {
    compress: Compress,
    decompress: Decompress,
}

impl Pair for Zlib {
    fn reset(&mut self) {
        self.compress.reset();
        self.decompress.reset(false);
    }

    fn compress(&mut self, message: &[u8], out: &mut Vec<u8>) {
        out.resize(room(message), 0);
        let before = self.compress.total_out();
        self.compress.compress(message, out, FlushCompress::Sync).expect("room");
        out.truncate((self.compress.total_out() - before) as usize);
    }

    fn decompress(&mut self, payload: &[u8], out: &mut [u8]) -> usize {
        let before = self.decompress.total_out();
        self.decompress.decompress(payload, out, FlushDecompress::Sync).expect("valid");
        (self.decompress.total_out() - before) as usize
    }
}

/// More than any message of this length becomes.
fn room(message: &[u8]) -> usize {
    message.len() + message.len() / 8 + 64
}

/// One library's way there and back, with endless payloads.
struct Trip<'a> {
    library: Library,
    lifetime: Lifetime,
    pair: Box<dyn Pair>,
    payloads: Cycle<Iter<'a, Vec<u8>>>,
    payload: Vec<u8>,
    plain: Vec<u8>,
}

impl<'a> Trip<'a> {
    fn new(library: Library, lifetime: Lifetime, payloads: &'a [Vec<u8>]) -> Self {
        let (pair, plain) = (library.pair(lifetime), vec![0; payloads[0].len() + 1]);
        let payloads = payloads.iter().cycle();
        let mut trip = Self { library, lifetime, pair, payloads, payload: Vec::new(), plain };
        // The second one has context, if there is any.
        for _ in 0..2 {
            let (message, made) = trip.run();
            assert_eq!(&trip.plain[..made], message, "{library:?} {lifetime:?}");
        }
        trip
    }

    /// The message and the length of what came back.
    fn run(&mut self) -> (&'a [u8], usize) {
        let message = self.payloads.next().expect("endless");
        match self.lifetime {
            Lifetime::Init => self.pair = self.library.pair(Lifetime::Init),
            Lifetime::Reset => self.pair.reset(),
            Lifetime::Context => (),
        }
        self.pair.compress(black_box(message), &mut self.payload);
        (message, self.pair.decompress(&self.payload, &mut self.plain))
    }
}

/// Lists of records in JSON, of exactly so many bytes: one, or enough that none is in the window
/// when it comes again.
fn payloads(kind: Kind, bytes: usize) -> Vec<Vec<u8>> {
    let count = match kind {
        Kind::Repeated => 1,
        Kind::Varying => (WINDOWS_APART << 15) / bytes,
    };
    let mut random = 1u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    let mut payload = || {
        let mut text = String::from("[");
        while text.len() < bytes {
            let name = NAMES[draw(NAMES.len() as u64) as usize];
            let (id, price, amount) = (draw(1 << 30), draw(1_000_000), draw(500));
            let _ = write!(
                text,
                r#"{{"id":{id},"symbol":"{name}","price":{}.{:02},"amount":{amount},"side":"{}"}},"#,
                price / 100,
                price % 100,
                ["buy", "sell"][draw(2) as usize],
            );
        }
        text.truncate(bytes);
        text.into_bytes()
    };
    (0..count).map(|_| payload()).collect()
}

type Cell = (Kind, usize, Library, Lifetime);

/// Nanoseconds per round trip.
#[derive(Default)]
struct Table(BTreeMap<Cell, f64>);

impl Table {
    /// Medians of contenders that take turns, so that other work on the machine meets all of them.
    fn measure(&mut self, (kind, kilobytes): (Kind, usize), payloads: &[Vec<u8>]) {
        let mut trips: Vec<_> = contenders()
            .map(|(library, lifetime)| Trip::new(library, lifetime, payloads))
            .collect();
        let mut turns = vec![Vec::new(); trips.len()];
        let count = SLICE_BYTES / 1024 / kilobytes;
        for _ in 0..TURNS {
            for (trip, turns) in trips.iter_mut().zip(&mut turns) {
                let start = Instant::now();
                (0..count).for_each(|_| {
                    black_box(trip.run());
                });
                turns.push(start.elapsed().as_nanos() as f64 / count as f64);
            }
        }
        for ((library, lifetime), mut turns) in contenders().zip(turns) {
            turns.sort_unstable_by(f64::total_cmp);
            self.0.insert((kind, kilobytes, library, lifetime), turns[TURNS / 2]);
        }
    }

    /// In Markdown.
    fn text(&self) -> String {
        let mut out = HEAD.to_owned();
        let rows = self.0.keys().map(|(kind, kilobytes, library, _)| (*kind, *kilobytes, *library));
        for (kind, kilobytes, library) in rows.collect::<BTreeSet<_>>() {
            let time = |library, lifetime| self.0[&(kind, kilobytes, library, lifetime)] / 1e3;
            let [init, reset, context] = LIFETIMES.map(|lifetime| time(library, lifetime));
            let theirs = time(Library::ZlibRs, Lifetime::Context);
            let _ = writeln!(
                out,
                "| {} | {kilobytes} | {} | {init:.1} | {reset:.1} | {context:.1} | {:.2} | {:.2} | {:.2} |",
                kind.name(),
                library.name(),
                init / reset,
                init / context,
                context / theirs,
            );
        }
        out
    }
}

const HEAD: &str = "\
Microseconds to compress and decompress a message at level 6, medians of turns, and factors.

| payloads | KB | library | init | reset | context | init ÷ reset | init ÷ context | context ÷ that of zlib-rs |
|---|---|---|---|---|---|---|---|---|
";

const LEVEL: u8 = 6;

/// Plaintext of a turn, a millisecond or so.
const SLICE_BYTES: usize = 64 << 10;
const TURNS: usize = 101;

/// Varying payloads come again after so many windows of others.
const WINDOWS_APART: usize = 64;

const NAMES: [&str; 12] = [
    "NORDA", "KELP", "TIDE", "MOSSX", "FJORD", "BIRCH", "AMBER", "HAZEL", "QUILL", "ROWAN",
    "SLATE", "WREN",
];
