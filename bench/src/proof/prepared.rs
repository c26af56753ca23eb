//! Claim `prepared`: a broadcast to 100, 1,000 and 10,000 connections, with compression and without.
//! In: seconds of each row → out: a table of µs, allocations and memory.
//! Uses the rounds of `fanout` for sockets, `deflate` and `protocol` for what is done once for all connections.
//! Changed here: the rows. How a round is measured is in `fanout::round`.

use std::hint::black_box;
use std::time::Duration;

use anyhow::Result;
use fanwire_deflate::Compressor;
use fanwire_deflate::gap::{History, SubscriptionWindow, WindowCounter};
use fanwire_protocol::{Encoding, Publication, encode_publication};

use super::encoder::corpus;
use super::page::{Table, figure};
use super::timing::{allocations, nanoseconds};
use crate::corpus::files::payload;
use crate::fanout::round::Round;
use crate::fanout::schedule::Choice;
use crate::fanout::source::By;
use crate::fanout::{Contender, publications};
use crate::setup::Setup;
use crate::stats::grouped;
use fanwire_load::generator::SubscriberTransport;
use fanwire_load::generator::messages::Encoding as ClientEncoding;

/// # Errors
/// A server that does not start, or wrong deliveries.
pub(super) fn table(setup: &Setup, seconds: f64) -> Result<Table> {
    let heads = [
        "connections",
        "compression",
        "server CPU, µs",
        "of it once for all, µs",
        "allocations once for all",
        "B / delivery",
        "server MiB",
    ];
    let mut table = Table::new(&heads, NOTE);
    let messages = corpus("ticks.jsonl")?;
    let fields: Vec<String> = messages.iter().map(|message| payload(false, message)).collect();
    let publications = publications(&fields, 1, false)?;
    let binary = setup.binary()?;
    let contenders = [false, true].map(|compression| Contender::Fanwire { compression });
    let once = [once_raw(&messages), once_in_context(&messages)];
    for subscribers in [100, 1_000, 10_000] {
        let round = Round {
            binary: &binary,
            other: None,
            publications: &publications,
            choice: Choice { each: 1, all: 1 },
            transport: SubscriberTransport::WebSocket,
            encoding: ClientEncoding::Json,
            subscribers,
            outstanding: 1,
            by: By::Http,
            rate: None,
            seconds,
            turns: ((seconds / 0.1).ceil() as u32).max(1),
            server_core: setup.server_core,
            generator_core: setup.generator_core,
            certificate: None,
            takeovers: 0,
        };
        for ((outcome, once), name) in
            round.run(contenders)?.into_iter().zip(&once).zip(["off", "in context"])
        {
            table.row(vec![
                grouped(subscribers as f64),
                name.to_owned(),
                figure(subscribers as f64 * 1e6 / outcome.per_cpu_second),
                figure(once.micros),
                once.allocations.to_string(),
                figure(outcome.bytes_per_delivery),
                figure(outcome.resident_bytes / f64::from(1 << 20)),
            ]);
        }
    }
    let alone = once_alone(&messages);
    table.row(vec![
        "any".to_owned(),
        "standalone".to_owned(),
        "–".to_owned(),
        figure(alone.micros),
        alone.allocations.to_string(),
        "–".to_owned(),
        "–".to_owned(),
    ]);
    Ok(table)
}

/// Cost of a broadcast before the first connection gets it.
struct Once {
    micros: f64,
    allocations: u64,
}

impl Once {
    fn of(messages: &[Vec<u8>], mut step: impl FnMut(&[u8])) -> Self {
        let pushes: Vec<_> = messages.iter().map(|message| publication(message)).collect();
        let mut turns = pushes.iter().cycle();
        let mut broadcast = || {
            let publication = turns.next().expect("endless");
            let push = encode_publication(Encoding::Json, CHANNEL, publication);
            step(&push.expect("the corpus is JSON"));
        };
        let allocations = allocations(&mut broadcast);
        Self { micros: nanoseconds(PATIENCE, broadcast) / 1e3, allocations }
    }
}

fn once_raw(messages: &[Vec<u8>]) -> Once {
    Once::of(messages, |push| {
        black_box(push);
    })
}

fn once_alone(messages: &[Vec<u8>]) -> Once {
    let mut compressor = Compressor::new(6);
    let mut out = Vec::new();
    Once::of(messages, |push| {
        out.clear();
        compressor.standalone(push, &mut out);
    })
}

/// As for connections that have had all earlier publications of one channel.
fn once_in_context(messages: &[Vec<u8>]) -> Once {
    let mut history = History::new(1 << 15, 4, 6);
    let mut window = SubscriptionWindow::default();
    let mut counter = WindowCounter::default();
    let mut out = Vec::new();
    Once::of(messages, |push| {
        out.clear();
        let publication = history.publish(push).expect("it is short");
        let reference = window.reference(&publication, counter, 15);
        let parse = history.parse(&publication, reference.depth()).expect("it is the newest");
        parse.emit(reference.gaps(), &mut out);
        window.queued(&publication, &mut counter);
    })
}

fn publication(message: &[u8]) -> Publication {
    Publication { data: message.to_vec().into(), ..Publication::default() }
}

const CHANNEL: &str = "ticks";
const PATIENCE: Duration = Duration::from_millis(100);
const NOTE: &str = "CPU of the server for one broadcast of a trade tick of 0.2 KB to real sockets: the request by HTTP, the message, its \
compression, and one `send` by the kernel for each connection. \"Once for all\" is the message and its frame alone, without sockets; \
that the rest allocates nothing for each connection is a test (`crates/fanout/src/realtime/tests.rs`).";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broadcast_allocates_its_message_and_little_more() {
        let messages = corpus("ticks.jsonl").expect("it is there");
        let raw = once_raw(&messages).allocations;
        let alone = once_alone(&messages).allocations;
        assert!(raw >= 1 && alone >= raw, "{raw}, {alone}");
    }
}
