//! Prints what the DEFLATE encoder makes of whole corpora, beside zlib-rs and stock zlib: bytes and µs.
//! In: files of messages (`.jsonl` by lines, others with a four-byte length before each) → out: tables.
//! Uses the pure crates only: no sockets, no server.
//! Change here what the tables show: cargo run --release -p fanwire-bench --example encoder -- FILE…
#![forbid(unsafe_code)]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use fanwire_deflate::Compressor;
use fanwire_deflate::gap::{Counter, Depth, History, Parse, Reach, Reference, Trial};
use fanwire_protocol::{Encoding, publication_in_push};
use flate2::{Compress, Compression, FlushCompress};
use zlib_rs::{Deflate, DeflateFlush};

fn main() -> Result<()> {
    let mut corpora = Vec::new();
    for file in std::env::args().skip(1) {
        let path = Path::new(&file);
        let name = path.file_stem().context("a file")?.to_string_lossy().into_owned();
        let messages = messages(path, &name)?;
        ensure!(!messages.is_empty(), "{file} holds no message");
        corpora.push((name, messages));
    }
    println!("Standalone at level 6, frame header included.\n");
    println!("| corpus | raw B | ours B | zlib-rs B | ratio | ours µs | zlib-rs µs | ratio |");
    println!("|---|---|---|---|---|---|---|---|");
    corpora.iter().for_each(|(name, messages)| standalone(name, messages));
    println!("\nStandalone by level: bytes / µs.\n");
    println!("| corpus | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    corpora.iter().for_each(|(name, messages)| levels(name, messages));
    println!(
        "\nOne channel per client: bytes per delivery in context, against zlib-rs and stock zlib at"
    );
    println!(
        "level 6 with context, and µs for hash, parse, plan and first emit of all that the window"
    );
    println!("holds.\n");
    println!(
        "| corpus | ours B | zlib-rs B | ratio | ours µs | zlib-rs µs | ratio | zlib B | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    corpora.iter().for_each(|(name, messages)| run(name, messages));
    println!(
        "\nOther traffic in between: K publications with a gap each, against stock zlib level 6 (bytes)"
    );
    println!("and zlib-rs level 6 (time), both primed with the same, but 4 at most.\n");
    println!(
        "| corpus | K | ours B | zlib B | ratio | hash µs | parse and plan µs | emit µs | all µs | zlib-rs µs | ratio | emit µs/KB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (name, messages) in &corpora {
        for depth in [1, 4, 8] {
            scattered(name, messages, depth);
        }
    }
    println!(
        "\nThe first publication after a subscribe whose reply holds the one before it, in bytes: by"
    );
    println!(
        "itself, and referring to the reply; beside it with the whole message of the one before in"
    );
    println!(
        "the window, and stock zlib level 6 primed with a reply that holds the last 1, 2, 4, 8.\n"
    );
    println!("| corpus | raw | alone | to the reply | share | whole | zlib 1 | 2 | 4 | 8 |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    corpora.iter().for_each(|(name, messages)| recovered(name, messages));
    println!(
        "\nWhat a history's trials conclude, by its limit: depth, whether more (+) or less (-)"
    );
    println!("is wanted, and the bytes that context saves per delivery; µs of a trial.\n");
    println!("| corpus | 1 KiB | 2 KiB | 4 KiB | 8 KiB | 16 KiB | 32 KiB | µs |");
    println!("|---|---|---|---|---|---|---|---|");
    corpora.iter().for_each(|(name, messages)| trials(name, messages));
    Ok(())
}

fn standalone(name: &str, messages: &[Vec<u8>]) {
    let mut compressor = Compressor::new(6);
    let mut out = Vec::new();
    let mut ours = || {
        total(messages, |message| {
            out.clear();
            compressor.standalone(message, &mut out);
            out.len()
        })
    };
    let mut theirs = zlib(messages, |deflate, _| deflate.reset());
    let (ours, theirs) = best(&mut ours, &mut theirs);
    let count = messages.len() as f64;
    let raw = messages.iter().map(|message| framed(message.len())).sum::<usize>() as f64 / count;
    println!("| {name} | {raw:.0} | {} |", compare(&ours, &theirs, count));
}

fn levels(name: &str, messages: &[Vec<u8>]) {
    let cells = (1..=9).map(|level| {
        let mut compressor = Compressor::new(level);
        let mut out = Vec::new();
        let total = total(messages, |message| {
            out.clear();
            compressor.standalone(message, &mut out);
            out.len()
        });
        let count = messages.len() as f64;
        format!("{:.1} / {:.1}", total.bytes / count, micros(total.time) / count)
    });
    println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
}

fn run(name: &str, messages: &[Vec<u8>]) {
    let mut ours = || {
        let mut history = History::new(1 << 15, 4, 6);
        let (mut reach, mut counter) = (Reach::default(), Counter::default());
        let mut out = Vec::new();
        total(messages, |message| {
            let publication = history.publish(message).expect("a usual length");
            let reference = reach.reference(&publication, counter, 15);
            reach.queued(&publication, &mut counter);
            out.clear();
            let parse = history.parse(&publication, reference.depth()).expect("the newest one");
            parse.emit(reference.gaps(), &mut out);
            out.len()
        })
    };
    let mut theirs = zlib(messages, |_, _| ());
    let (ours, theirs) = best(&mut ours, &mut theirs);
    let stock = stock(messages, None);
    let count = messages.len() as f64;
    let ratio = ours.bytes / stock;
    println!("| {name} | {} | {:.1} | {ratio:.3} |", compare(&ours, &theirs, count), stock / count);
}

fn scattered(name: &str, messages: &[Vec<u8>], depth: usize) {
    let primed = depth.min(PRIMED_MAX);
    let mut parts = [Duration::MAX; 3];
    let mut ours = || {
        let mut now = [Duration::ZERO; 3];
        let result = emit_scattered(messages, depth, &mut now);
        parts.iter_mut().zip(now).for_each(|(least, now)| *least = now.min(*least));
        result
    };
    let mut theirs = zlib(messages, |deflate, at| {
        deflate.reset();
        let before = messages[at.saturating_sub(primed)..at].concat();
        if !before.is_empty() {
            deflate.set_dictionary(&before).expect("at the start");
        }
    });
    let (ours, theirs) = best(&mut ours, &mut theirs);
    let count = messages.len() as f64;
    let stock = stock(messages, Some(primed));
    let [hash, parse, emit] = parts.map(|part| micros(part) / count);
    let all = hash + parse + emit;
    println!(
        "| {name} | {depth} | {:.1} | {:.1} | {:.3} | {hash:.2} | {parse:.2} | {emit:.2} | {all:.2} | {:.2} | {:.2} | {:.2} |",
        ours.bytes / count,
        stock / count,
        ours.bytes / stock,
        micros(theirs.time) / count,
        all / (micros(theirs.time) / count),
        micros(parts[2]) / ours.bytes * 1024.0,
    );
}

/// A client of five channels: between two publications comes what the other four bring.
fn emit_scattered(messages: &[Vec<u8>], depth: usize, parts: &mut [Duration; 3]) -> Total {
    let mut history = History::new(1 << 15, depth, 6);
    let (mut reach, mut counter) = (Reach::default(), Counter::default());
    let mut out = Vec::new();
    let mut random = 1u64;
    total(messages, |message| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        counter.advance(1 + (random >> 33) as usize % 4_000);
        let start = Instant::now();
        let publication = history.publish(message).expect("a usual length");
        let hashed = Instant::now();
        let reference = reach.reference(&publication, counter, 15);
        let parse: Parse = history.parse(&publication, reference.depth()).expect("the newest one");
        let parsed = Instant::now();
        for _ in 0..EMITS {
            out.clear();
            parse.emit(black_box(reference.gaps()), &mut out);
        }
        let ends = [hashed - start, parsed - hashed, parsed.elapsed() / EMITS];
        reach.queued(&publication, &mut counter);
        parts.iter_mut().zip(ends).for_each(|(sum, part)| *sum += part);
        debug_assert!(reference == Reference::ALONE || reference.depth() != Depth::Alone);
        out.len()
    })
}

/// Frame bytes of stock zlib at level 6, primed with so many messages before or with all.
fn stock(messages: &[Vec<u8>], depth: Option<usize>) -> f64 {
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

/// Every publication is once the first one after a reply.
fn recovered(name: &str, messages: &[Vec<u8>]) {
    let mut history = History::new(1 << 15, 1, 6);
    let mut compressor = Compressor::new(6);
    let mut sums = [0; 8];
    let (mut count, mut newest) = (0.0, None);
    for (at, message) in messages.iter().enumerate() {
        let quoted = newest.map(|at: usize| {
            let part = publication_in_push(Encoding::Json, &messages[at]).expect("a push");
            (at, part.len(), history.quote(part).expect("a part of the newest"))
        });
        let Some(publication) = history.publish(message) else { continue };
        newest = Some(at);
        let Some((before, part, quote)) = quoted else { continue };
        let mut counter = Counter::default();
        let mut reach = Reach::default();
        let reply = reply(&messages[before..=before]);
        reach.quoted(quote, reply.len() - REPLY_TAIL.len() - part, counter);
        counter.advance(reply.len());
        let reference = reach.reference(&publication, counter, 15);
        let payload = |depth, gaps: &[u32]| {
            let mut out = Vec::new();
            history.parse(&publication, depth).expect("the newest one").emit(gaps, &mut out);
            framed(out.len())
        };
        let mut alone = Vec::new();
        compressor.standalone(message, &mut alone);
        let mut sizes = vec![
            framed(message.len()),
            framed(alone.len()),
            payload(reference.depth(), reference.gaps()),
            payload(Depth::Newest, &[messages[before].len() as u32]),
        ];
        sizes.extend([1, 2, 4, 8].map(|known: usize| {
            let reply = self::reply(&messages[at.saturating_sub(known)..at]);
            primed(&reply[reply.len().saturating_sub(32_000)..], message)
        }));
        sums.iter_mut().zip(sizes).for_each(|(sum, size)| *sum += size);
        count += 1.0;
    }
    let [raw, alone, quoted, whole, rest @ ..] = sums.map(|sum| sum as f64 / count);
    let rest = rest.map(|bytes| format!("{bytes:.0}")).join(" | ");
    let share = quoted / alone;
    println!("| {name} | {raw:.0} | {alone:.0} | {quoted:.0} | {share:.2} | {whole:.0} | {rest} |");
}

/// What a subscribe that missed these publications is answered.
fn reply(messages: &[Vec<u8>]) -> Vec<u8> {
    let publications: Vec<_> = messages
        .iter()
        .map(|message| &message[publication_in_push(Encoding::Json, message).expect("a push")])
        .collect();
    let head = br#"{"id":2,"subscribe":{"recoverable":true,"epoch":"AbCdEfGh","publications":["#;
    [&head[..], &publications.join(&b','), REPLY_TAIL].concat()
}

/// Frame bytes of stock zlib at level 6 after these bytes.
fn primed(before: &[u8], message: &[u8]) -> usize {
    let mut compress = Compress::new(Compression::new(6), false);
    compress.set_dictionary(before).expect("at the start");
    let mut room = vec![0; 1 << 16];
    compress.compress(message, &mut room, FlushCompress::Sync).expect("room");
    framed(compress.total_out() as usize - 4)
}

const REPLY_TAIL: &[u8] =
    br#"],"recovered":true,"offset":123,"positioned":true,"was_recovering":true}}"#;

/// One publication in twenty is tried.
fn trials(name: &str, messages: &[Vec<u8>]) {
    let (mut time, mut count) = (Duration::ZERO, 0);
    let cells = (10..=15).map(|bits| {
        let mut history = History::new(1 << bits, 4, 6);
        let mut sum = None::<Trial>;
        for (at, message) in messages.iter().enumerate() {
            let Some(publication) = history.publish(message) else { continue };
            if at % 20 != 19 {
                continue;
            }
            let start = Instant::now();
            let trial = history.trial(&publication).expect("the newest one");
            time += start.elapsed();
            count += 1;
            sum.get_or_insert(trial).add(&trial);
        }
        let Some(sum) = sum else { return "too long".to_owned() };
        let more = if sum.wants_more() { "+" } else { "" };
        let less = if sum.wants_less() { "-" } else { "" };
        let incompressible = if sum.is_incompressible() { ", incompressible" } else { "" };
        format!("{}{more}{less}, {} B{incompressible}", sum.depth(), sum.saved())
    });
    let cells = cells.collect::<Vec<_>>().join(" | ");
    println!("| {name} | {cells} | {:.1} |", micros(time) / f64::from(count.max(1)));
}

fn zlib<'a>(
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

/// Messages that the yardstick is primed with at most.
const PRIMED_MAX: usize = 4;

/// More than one, so that the time of the clock itself does not count.
const EMITS: u32 = 8;

struct Total {
    bytes: f64,
    time: Duration,
}

fn compare(ours: &Total, theirs: &Total, count: f64) -> String {
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
fn total(messages: &[Vec<u8>], mut compress: impl FnMut(&[u8]) -> usize) -> Total {
    let start = Instant::now();
    let bytes: usize = messages.iter().map(|message| framed(compress(black_box(message)))).sum();
    Total { bytes: bytes as f64, time: start.elapsed() }
}

/// The faster of five turns each, taken by turns because the machine may have other work.
fn best(ours: &mut impl FnMut() -> Total, theirs: &mut impl FnMut() -> Total) -> (Total, Total) {
    let mut least = (ours(), theirs());
    for _ in 0..4 {
        let (a, b) = (ours(), theirs());
        least.0.time = least.0.time.min(a.time);
        least.1.time = least.1.time.min(b.time);
    }
    least
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// With the header of a server's frame (RFC 6455 §5.2).
fn framed(bytes: usize) -> usize {
    bytes + if bytes < 126 { 2 } else { 4 }
}

/// The messages of a file as they are on the wire: as publications of the JSON protocol.
fn messages(path: &Path, name: &str) -> Result<Vec<Vec<u8>>> {
    let file = fs::read(path).with_context(|| path.display().to_string())?;
    let payloads: Vec<Vec<u8>> = if path.extension().is_some_and(|extension| extension == "jsonl") {
        file.split(|byte| *byte == b'\n').filter(|l| !l.is_empty()).map(<[u8]>::to_vec).collect()
    } else {
        split(&file)?
    };
    let envelope = |(offset, payload): (usize, &Vec<u8>)| {
        let head = format!(r#"{{"push":{{"channel":"{name}","pub":{{"data":"#);
        let tail = format!(r#","offset":{}}}}}}}"#, offset + 1);
        [head.as_bytes(), payload, tail.as_bytes()].concat()
    };
    Ok(payloads.iter().enumerate().map(envelope).collect())
}

/// Binary messages; the envelope around them stands for that of Protobuf.
fn split(mut file: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut messages = Vec::new();
    while let Some((length, rest)) = file.split_first_chunk::<4>() {
        let (message, rest) = rest
            .split_at_checked(u32::from_le_bytes(*length) as usize)
            .context("a message is cut off")?;
        messages.push(message.to_vec());
        file = rest;
    }
    Ok(messages)
}
