//! Publications with a gap each before them: bytes and time by how many are referred to.
//! In: corpora → out: a table.
//! Uses the gap coder and the yardsticks. Never: real traffic of other channels, see `interleaved`.
//! Change here what is timed of a publication in context.

use std::hint::black_box;
use std::time::{Duration, Instant};

use fanwire_deflate::gap::{Counter, Depth, History, Parse, Reference, SubscriptionWindow};

use crate::yardstick::{Total, best, micros, stock, total, zlib};

pub(crate) fn print(name: &str, messages: &[Vec<u8>]) {
    for depth in [1, 4, 8] {
        row(name, messages, depth);
    }
}

fn row(name: &str, messages: &[Vec<u8>], depth: usize) {
    let primed = depth.min(PRIMED_MAX);
    let mut parts = [Duration::MAX; 3];
    let mut ours = || {
        let mut now = [Duration::ZERO; 3];
        emit_scattered(messages, depth, Some(&mut now));
        now[2] /= EMITS;
        parts.iter_mut().zip(now).for_each(|(least, now)| *least = now.min(*least));
        emit_scattered(messages, depth, None)
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
    let all = micros(ours.time) / count;
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

/// A client of five channels: between two publications comes what the other four bring. The time of each part is taken only
/// where it is asked for: a look at the clock takes as long as an emission.
fn emit_scattered(
    messages: &[Vec<u8>],
    depth: usize,
    mut parts: Option<&mut [Duration; 3]>,
) -> Total {
    let mut history = History::new(1 << 15, depth, 6);
    let (mut reach, mut counter) = (SubscriptionWindow::default(), Counter::default());
    let mut out = Vec::new();
    let mut random = 1u64;
    let emits = if parts.is_some() { EMITS } else { 1 };
    total(messages, |message| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        counter.advance(1 + (random >> 33) as usize % 4_000);
        let [hash, parse, emit] = match &mut parts {
            Some(parts) => parts.each_mut().map(Some),
            None => [None, None, None],
        };
        let publication = timed(hash, || history.publish(message)).expect("a usual length");
        let reference = reach.reference(&publication, counter, 15);
        let parsed = timed(parse, || history.parse(&publication, reference.depth()));
        let parsed: Parse = parsed.expect("the newest one");
        timed(emit, || {
            for _ in 0..emits {
                out.clear();
                parsed.emit(black_box(reference.gaps()), &mut out);
            }
        });
        reach.queued(&publication, &mut counter);
        debug_assert!(reference == Reference::ALONE || reference.depth() != Depth::Alone);
        out.len()
    })
}

fn timed<T>(sum: Option<&mut Duration>, work: impl FnOnce() -> T) -> T {
    let Some(sum) = sum else { return work() };
    let start = Instant::now();
    let result = work();
    *sum += start.elapsed();
    result
}

/// Messages that the yardstick is primed with at most.
const PRIMED_MAX: usize = 4;

/// More than one, so that the look at the clock does not count.
const EMITS: u32 = 8;
