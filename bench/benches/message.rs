//! Criterion benches of what happens once per message of a client: read a frame, inflate, alone or in context.
//! In: made-up messages of typical sizes → out: time per message, with bytes as throughput.
//! Uses the pure crates only: no sockets, no server.
//! Change here what of reading is timed; `encode.rs` times publications, `deflate.rs` compressing, `fanwire-bench` whole routes.
#![forbid(unsafe_code)]

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fanwire_deflate::{Compressor, Dedicated, Inflater, Scratch, SenderWindow};
use fanwire_load::generator::frame::{TEXT, encode_masked};
use fanwire_ws::{Input, Limits, Pool, Reader};
use std::hint::black_box;

/// Bytes of a chat line, a trade tick, an event and a match state.
const SIZES: [usize; 4] = [64, 270, 1_000, 2_200];

/// JSON of about this size: records that differ a little, as lists of readings do.
fn message(bytes: usize) -> Vec<u8> {
    let mut text = String::from("[");
    for number in 0.. {
        let record = format!("{{\"id\":{},\"name\":\"sensor {number}\"}}", number * 7919 % 10_007);
        if text.len() + record.len() + 1 > bytes {
            break;
        }
        text.push_str(&record);
        text.push(',');
    }
    text.pop();
    text.push(']');
    text.into_bytes()
}

fn read(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read frame");
    let limits = Limits::default();
    for bytes in [2, 64, 1_000] {
        let mut frame = Vec::new();
        encode_masked(TEXT, &vec![b'x'; bytes], &mut frame);
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(BenchmarkId::from_parameter(bytes), |bencher| {
            let (mut reader, mut pool) = (Reader::new(false), Pool::new());
            let read = |frame: &mut Vec<u8>| {
                let mut input = Input::new(frame);
                let event = reader.receive(&mut input, &mut pool, &limits);
                assert!(black_box(event).is_ok_and(|event| event.is_some()), "a whole valid frame");
            };
            // Unmasking changes the bytes, so each turn needs its own copy.
            bencher.iter_batched_ref(|| frame.clone(), read, BatchSize::SmallInput);
        });
    }
}

fn inflate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("inflate standalone");
    for bytes in SIZES {
        let (message, mut payload) = (message(bytes), Vec::new());
        Compressor::new(6).standalone(&message, &mut payload);
        group.throughput(Throughput::Bytes(message.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(bytes), |bencher| {
            let (mut inflater, mut out) = (Inflater::new(), Vec::new());
            bencher.iter(|| {
                out.clear();
                inflater.reset();
                let pushed = inflater.push(black_box(&payload), &mut out, usize::MAX);
                pushed.and_then(|()| inflater.finish(&mut out, usize::MAX))
            });
            assert_eq!(out, message);
        });
    }
}

/// The same from a client with context takeover, whose window is full: what the copy of the window costs is the difference
/// between the sizes of windows.
fn inflate_in_context(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("inflate in context");
    for window_bits in [9, 12, 15] {
        for bytes in SIZES {
            let message = message(bytes);
            let (mut sender, mut scratch) = (Dedicated::new(window_bits, 8, 6), Scratch::default());
            let (mut inflater, mut window) = (Inflater::new(), SenderWindow::new(window_bits));
            let (mut payload, mut out) = (Vec::new(), Vec::new());
            // Every message is the same, so the payload is the same, too, when the window is full of it.
            for _ in 0..=(2 << window_bits) / message.len() {
                payload.clear();
                out.clear();
                sender.compress(&message, &mut scratch, &mut payload);
                let inflated = inflater.message(&payload, &mut window, &mut out, usize::MAX);
                inflated.expect("a payload of our own");
            }
            group.throughput(Throughput::Bytes(message.len() as u64));
            group.bench_function(
                BenchmarkId::new(format!("window {window_bits}"), bytes),
                |bencher| {
                    bencher.iter(|| {
                        out.clear();
                        inflater.message(black_box(&payload), &mut window, &mut out, usize::MAX)
                    });
                },
            );
            assert_eq!(out, message);
        }
    }
}

criterion_group!(benches, read, inflate, inflate_in_context);
criterion_main!(benches);
