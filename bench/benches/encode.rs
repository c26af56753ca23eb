//! Criterion benches of writing one publication: as a push in both encodings, and as the record that goes to Redis.
//! In: payloads of 50 B, 300 B and 2 KB of JSON → out: time per message, ours, derived (prost, serde_json), and the bare copy.
//! Uses the protocol crate, prost and serde_json: no sockets, no server.
//! Change here which payloads and which rivals; allocations are counted by a test of the protocol crate.
#![forbid(unsafe_code)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fanwire_protocol::{Encoding, Publication, Push, Reply, encode_publication, is_json, protobuf};
use prost::Message as _;
use serde::Serialize;
use serde_json::value::RawValue;

const SIZES: [usize; 3] = [50, 300, 2_048];
const CHANNEL: &str = "ticks:EURUSD";

/// JSON of about this size: records that differ a little, as lists of readings do.
fn payload(bytes: usize) -> Vec<u8> {
    let mut text = String::from("[");
    for number in 0.. {
        let record = format!("{{\"id\":{},\"name\":\"sensor {number}\"}}", number * 7919 % 10_007);
        if text.len() + record.len() > bytes {
            break;
        }
        text.push_str(&record);
        text.push(',');
    }
    text.pop();
    text.push(']');
    text.into_bytes()
}

fn publication(data: Vec<u8>) -> Publication {
    Publication { data: data.into(), offset: 123_456, ..Publication::default() }
}

/// The same message as prost has it.
fn reply(publication: &Publication) -> Reply {
    let r#pub = Some(publication.clone());
    let push = Some(Push { channel: CHANNEL.to_owned(), r#pub, ..Push::default() });
    Reply { push, ..Reply::default() }
}

/// The same message as anybody would write it for serde_json, with the fields that are set here.
#[derive(Serialize)]
struct Message<'a> {
    push: Inner<'a>,
}

#[derive(Serialize)]
struct Inner<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    channel: &'a str,
    r#pub: Derived<'a>,
}

#[derive(Serialize)]
struct Derived<'a> {
    data: &'a RawValue,
    #[serde(skip_serializing_if = "is_zero")]
    offset: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    key: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    epoch: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    version: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl<'a> Message<'a> {
    /// With a payload that was judged before, or is here.
    fn new(data: &'a RawValue, publication: &'a Publication) -> Self {
        let Publication { offset, key, epoch, version, .. } = publication;
        let (offset, version) = (*offset, *version);
        Self {
            push: Inner { channel: CHANNEL, r#pub: Derived { data, offset, key, epoch, version } },
        }
    }
}

/// `copy` is an allocation with the payload in it: what any message costs. `envelope` is a push without a payload; `ours`
/// judges the payload, `judge` does nothing else. `derived` judges it too, `derived, judged` was given it as JSON.
fn json(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("json push");
    let empty = publication(Vec::new());
    group.bench_function("envelope", |bencher| {
        bencher.iter(|| encode_publication(Encoding::Json, black_box(CHANNEL), black_box(&empty)));
    });
    for bytes in SIZES {
        let publication = publication(payload(bytes));
        let data = &publication.data;
        let text: &RawValue = serde_json::from_slice(data).expect("JSON");
        let ours = encode_publication(Encoding::Json, CHANNEL, &publication).expect("JSON");
        let derived = serde_json::to_vec(&Message::new(text, &publication)).expect("JSON");
        assert_eq!(ours, derived);
        group.bench_function(BenchmarkId::new("copy", bytes), |bencher| {
            bencher.iter(|| black_box(&data[..]).to_vec());
        });
        group.bench_function(BenchmarkId::new("judge", bytes), |bencher| {
            bencher.iter(|| is_json(black_box(data)));
        });
        group.bench_function(BenchmarkId::new("ours", bytes), |bencher| {
            bencher.iter(|| {
                encode_publication(Encoding::Json, black_box(CHANNEL), black_box(&publication))
            });
        });
        group.bench_function(BenchmarkId::new("derived", bytes), |bencher| {
            bencher.iter(|| {
                let data: &RawValue = serde_json::from_slice(black_box(data)).expect("JSON");
                serde_json::to_vec(&Message::new(data, black_box(&publication)))
            });
        });
        group.bench_function(BenchmarkId::new("derived, judged", bytes), |bencher| {
            bencher.iter(|| {
                serde_json::to_vec(&Message::new(black_box(text), black_box(&publication)))
            });
        });
    }
}

fn protobuf_push(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("protobuf push");
    for bytes in SIZES {
        let publication = publication(payload(bytes));
        let (data, reply) = (&publication.data, reply(&publication));
        let ours = encode_publication(Encoding::Protobuf, CHANNEL, &publication).expect("any");
        assert_eq!(ours, reply.encode_length_delimited_to_vec());
        group.bench_function(BenchmarkId::new("copy", bytes), |bencher| {
            bencher.iter(|| black_box(&data[..]).to_vec());
        });
        group.bench_function(BenchmarkId::new("ours", bytes), |bencher| {
            bencher.iter(|| {
                encode_publication(Encoding::Protobuf, black_box(CHANNEL), black_box(&publication))
            });
        });
        group.bench_function(BenchmarkId::new("derived", bytes), |bencher| {
            bencher.iter(|| black_box(&reply).encode_length_delimited_to_vec());
        });
    }
}

/// What goes to Redis: a version, then a message whose first field is the publication, into a buffer that is there.
fn record(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("record");
    for bytes in SIZES {
        let publication = publication(payload(bytes));
        let mut out = Vec::with_capacity(2 * bytes);
        group.bench_function(BenchmarkId::new("copy", bytes), |bencher| {
            bencher.iter(|| {
                out.clear();
                out.extend_from_slice(black_box(&publication.data));
                black_box(&mut out).len()
            });
        });
        group.bench_function(BenchmarkId::new("ours", bytes), |bencher| {
            bencher.iter(|| {
                let publication = black_box(&publication);
                out.clear();
                out.push(1);
                protobuf::put_head(1, protobuf::publication_length(publication), &mut out);
                protobuf::put_publication(publication, &mut out);
                black_box(&mut out).len()
            });
        });
        group.bench_function(BenchmarkId::new("derived", bytes), |bencher| {
            bencher.iter(|| {
                let publication = black_box(&publication);
                out.clear();
                out.push(1);
                prost::encoding::message::encode(1, publication, &mut out);
                black_box(&mut out).len()
            });
        });
    }
}

criterion_group!(benches, json, protobuf_push, record);
criterion_main!(benches);
