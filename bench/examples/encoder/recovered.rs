//! The first publication after a reply that holds the one before it.
//! In: corpora → out: a table.
//! Uses the gap coder and stock zlib primed with the reply.
//! Change here what a reply looks like.

use fanwire_deflate::Compressor;
use fanwire_deflate::gap::{Counter, Depth, History, SubscriptionWindow};
use fanwire_protocol::{Encoding, publication_in_push};

use crate::yardstick::{framed, primed};

/// Every publication is once the first one after a reply.
pub(crate) fn print(name: &str, messages: &[Vec<u8>]) {
    let mut history = History::new(1 << 15, 1, 6);
    let mut compressor = Compressor::new(6);
    let mut sums = [0; 8];
    let (mut count, mut newest) = (0.0, None);
    for (at, message) in messages.iter().enumerate() {
        let embedded = newest.map(|at: usize| {
            let part = publication_in_push(Encoding::Json, &messages[at]).expect("a push");
            (at, part.len(), history.embed(part).expect("a part of the newest"))
        });
        let Some(publication) = history.publish(message) else { continue };
        newest = Some(at);
        let Some((before, part, embedded_part)) = embedded else { continue };
        let mut counter = Counter::default();
        let mut reach = SubscriptionWindow::default();
        let reply = reply(&messages[before..=before]);
        reach.embedded(embedded_part, reply.len() - REPLY_TAIL.len() - part, counter);
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
    let [raw, alone, embedded, whole, rest @ ..] = sums.map(|sum| sum as f64 / count);
    let rest = rest.map(|bytes| format!("{bytes:.0}")).join(" | ");
    let share = embedded / alone;
    println!(
        "| {name} | {raw:.0} | {alone:.0} | {embedded:.0} | {share:.2} | {whole:.0} | {rest} |"
    );
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

const REPLY_TAIL: &[u8] =
    br#"],"recovered":true,"offset":123,"positioned":true,"was_recovering":true}}"#;
