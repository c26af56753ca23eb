//! Prints what the DEFLATE encoder makes of whole corpora, next to zlib-rs and stock zlib: bytes and µs.
//! In: files of messages (`.jsonl` by lines, others with a four-byte length before each) → out: tables.
//! Uses the pure crates only: no sockets, no server.
//! Change here what the tables show: cargo run --profile dist -p fanwire-bench --example encoder -- FILE…
#![forbid(unsafe_code)]

mod interleaved;
mod messages;
mod recovered;
mod scattered;
mod trials;
mod yardstick;

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use fanwire_deflate::Compressor;
use fanwire_deflate::gap::{Counter, History, SubscriptionWindow};

use messages::messages;
use yardstick::{best, compare, framed, micros, stock, total, zlib};

struct Table {
    about: &'static str,
    columns: &'static str,
    /// Prints what belongs to one corpus: its name and messages.
    print: fn(&str, &[Vec<u8>]),
}

const TABLES: [Table; 7] = [
    Table {
        about: "Standalone at level 6, frame header included.",
        columns: "corpus | raw B | ours B | zlib-rs B | ratio | ours µs | zlib-rs µs | ratio",
        print: standalone,
    },
    Table {
        about: "Standalone by level: bytes / µs.",
        columns: "corpus | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9",
        print: levels,
    },
    Table {
        about: "One channel per client: bytes per delivery in context, against zlib-rs and stock zlib at\n\
                level 6 with context, and µs for hash, parse, plan and first emit of all that the window\n\
                holds.",
        columns: "corpus | ours B | zlib-rs B | ratio | ours µs | zlib-rs µs | ratio | zlib B | ratio",
        print: run,
    },
    Table {
        about: "Other traffic in between: K publications with a gap each, against stock zlib level 6 (bytes)\n\
                and zlib-rs level 6 (time), both primed with the same, but 4 at most. Hash and parse include a\n\
                look at the clock each; all is timed without.",
        columns: "corpus | K | ours B | zlib B | ratio | hash µs | parse and plan µs | emit µs | all µs \
                  | zlib-rs µs | ratio | emit µs/KB",
        print: scattered::print,
    },
    Table {
        about: "Five channels, interleaved at random: bytes, against stock zlib level 6 primed with the\n\
                channel's last 4 publications, wherever they are; the share of publications that find none\n\
                of these in the window of 32 KiB; and zlib primed with those that are there.",
        columns: "corpus | ours B | zlib B | ratio | out of reach | zlib B within the window | ratio",
        print: interleaved::print,
    },
    Table {
        about: "The first publication after a subscribe whose reply holds the one before it, in bytes: by\n\
                itself, and referring to the reply; next to it with the whole message of the one before in\n\
                the window, and stock zlib level 6 primed with a reply that holds the last 1, 2, 4, 8.",
        columns: "corpus | raw | alone | to the reply | share | whole | zlib 1 | 2 | 4 | 8",
        print: recovered::print,
    },
    Table {
        about: "What a history's trials conclude, by its limit: depth, whether more (+) or less (-)\n\
                is wanted, and the bytes that context saves per delivery; µs of a trial.",
        columns: "corpus | 1 KiB | 2 KiB | 4 KiB | 8 KiB | 16 KiB | 32 KiB | µs",
        print: trials::print,
    },
];

fn main() -> Result<()> {
    let mut corpora = Vec::new();
    for file in std::env::args().skip(1) {
        let path = Path::new(&file);
        let name = path.file_stem().context("a file")?.to_string_lossy().into_owned();
        let messages = messages(path, &name)?;
        ensure!(!messages.is_empty(), "{file} holds no message");
        corpora.push((name, messages));
    }
    for Table { about, columns, print } in TABLES {
        let rule = "|---".repeat(columns.split(" | ").count());
        println!("{about}\n\n| {columns} |\n{rule}|");
        corpora.iter().for_each(|(name, messages)| print(name, messages));
        println!();
    }
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
        let (mut reach, mut counter) = (SubscriptionWindow::default(), Counter::default());
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
