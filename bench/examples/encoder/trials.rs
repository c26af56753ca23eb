//! What a history's trials conclude of a corpus, by the history's limit.
//! In: corpora → out: a table.
//! Uses the gap coder.
//! Change here how often a trial is made.

use std::time::{Duration, Instant};

use fanwire_deflate::gap::{History, Trial};

use crate::yardstick::micros;

/// One publication in twenty is tried.
pub(crate) fn print(name: &str, messages: &[Vec<u8>]) {
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
