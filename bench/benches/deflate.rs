//! Criterion benches of the DEFLATE encoder, next to zlib-rs level 6 with the same context.
//! In: the corpora of this folder → out: time per message of standalone, of parse with first emit, of emit.
//! Uses the pure crates only: no sockets, no server.
//! Changed here: which steps are timed; bytes are printed by `fanwire tune`.
#![forbid(unsafe_code)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fanwire_bench::corpus::files::{Source, load};
use fanwire_deflate::Compressor;
use fanwire_deflate::gap::{Depth, History, SubscriptionWindow, WindowCounter};
use std::hint::black_box;
use std::path::Path;
use zlib_rs::{Deflate, DeflateFlush};

fn corpora() -> Vec<Source> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    load(&dir, MESSAGES).expect("the corpora of the repository")
}

/// Each message by itself.
fn standalone(criterion: &mut Criterion) {
    for source in corpora() {
        let mut group = criterion.benchmark_group(format!("standalone {}", source.channel));
        let bytes = source.messages.iter().map(Vec::len).sum::<usize>() / source.messages.len();
        group.throughput(Throughput::Bytes(bytes as u64));
        let mut messages = source.messages.iter().cycle();
        let mut compressor = Compressor::new(6);
        let mut out = Vec::new();
        group.bench_function("ours", |bencher| {
            bencher.iter(|| {
                out.clear();
                compressor.standalone(messages.next().expect("endless"), &mut out);
                black_box(out.len())
            });
        });
        let mut deflate = Deflate::new(6, false, 15);
        let mut room = vec![0; 1 << 20];
        group.bench_function("zlib-rs", |bencher| {
            bencher.iter(|| {
                deflate.reset();
                let message = messages.next().expect("endless");
                deflate.compress(message, &mut room, DeflateFlush::SyncFlush).expect("room")
            });
        });
    }
}

/// One more publication of a channel, in the context of the last four: hash, parse, plan, emit.
fn publication(criterion: &mut Criterion) {
    for source in corpora() {
        let mut group = criterion.benchmark_group(format!("publication {}", source.channel));
        let mut messages = source.messages.iter().cycle();
        let mut out = Vec::new();
        let mut history = History::new(1 << 15, 4, 6);
        let mut reach = SubscriptionWindow::default();
        let mut counter = WindowCounter::default();
        group.bench_function("parse and first emit", |bencher| {
            bencher.iter(|| {
                let message = messages.next().expect("endless");
                counter.advance(100); // other traffic, so that publications have a gap each
                let publication = history.publish(message).expect("a usual length");
                let reference = reach.reference(&publication, counter, 15);
                reach.queued(&publication, &mut counter);
                let parse = history.parse(&publication, reference.depth()).expect("the newest");
                out.clear();
                parse.emit(reference.gaps(), &mut out);
                black_box(out.len())
            });
        });
        let message = messages.next().expect("endless");
        let publication = history.publish(message).expect("a usual length");
        let parse = history.parse(&publication, Depth::Several).expect("the newest");
        let gaps = [20_000, 23_000, 26_000, 29_000];
        out.clear();
        parse.emit(&gaps, &mut out);
        group.throughput(Throughput::Bytes(out.len() as u64));
        group.bench_function("emit", |bencher| {
            bencher.iter(|| {
                out.clear();
                parse.emit(black_box(&gaps), &mut out);
                black_box(out.len())
            });
        });
    }
}

/// Few enough to be quick, many enough that no branch can be learned by heart.
const MESSAGES: usize = 1_000;

criterion_group!(benches, standalone, publication);
criterion_main!(benches);
