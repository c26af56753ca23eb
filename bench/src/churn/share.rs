//! How much of what the clients of `churn` get goes out in context: who has which channels, what is published, what is counted.
//! In: random numbers, a page of metrics → out: channels by Zipf's law, payloads that change slowly, deliveries by kind.
//! Uses `metrics`; the server counts, and the scenario checks what the clients got.
//! Changed here: what the share is made of; when it is asked for lives in `churn`.

use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::net::SocketAddr;

use crate::metrics;
use fanwire_load::random::Random;

/// Deliveries that the server has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deliveries {
    pub in_context: u64,
    pub all: u64,
}

impl Deliveries {
    /// Asks the server.
    ///
    /// # Errors
    /// No answer within ten seconds, or no page of metrics.
    pub fn ask(address: SocketAddr) -> Result<Self> {
        Self::read(&metrics::page(address)?)
    }

    fn read(page: &str) -> Result<Self> {
        let mut deliveries = Self::default();
        let rows = page.lines().filter_map(|line| line.strip_prefix(NAME));
        for (labels, count) in rows.filter_map(|row| row.split_once("} ")) {
            let count: u64 = count.parse().context("a count of deliveries")?;
            deliveries.all += count;
            let is_in_context = IN_CONTEXT.iter().any(|kind| labels.contains(kind));
            deliveries.in_context += if is_in_context { count } else { 0 };
        }
        if page.contains(NAME) { Ok(deliveries) } else { bail!("no deliveries in {page:.200}") }
    }

    /// The share in context of what was delivered since `before`.
    pub fn share_since(self, before: Self) -> f64 {
        (self.in_context - before.in_context) as f64 / (self.all - before.all) as f64
    }
}

/// One to five of the channels, few of them mostly: the first one is chosen twice as often as the second, and so on.
pub fn zipf(random: &mut Random, channels: usize) -> Vec<usize> {
    let several = [1, 1, 1, 1, 2, 2, 3, 3, 4, 5][random.below(10)].min(channels);
    let weights: Vec<usize> = (1..=channels).map(|rank| WEIGHT / rank).collect();
    let mut chosen = Vec::new();
    while chosen.len() < several {
        let mut left = random.below(weights.iter().sum());
        let ranked = weights.iter().position(|weight| match left.checked_sub(*weight) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
        let channel = ranked.expect("below the sum of the weights");
        if !chosen.contains(&channel) {
            chosen.push(channel);
        }
    }
    chosen
}

/// The data of publication `n` of a channel: about `bytes` of JSON, most of it as in the publication before.
pub fn data(channel: usize, n: u64, bytes: usize) -> String {
    let mut data = format!(r#"{{"n":{n}"#);
    for row in 0.. {
        if data.len() >= bytes {
            break;
        }
        let value = (n + row) / 7 * 31 % 1_000 + 1_000 * channel as u64;
        let _ = write!(data, r#","reading {row}":{value}"#);
    }
    data + "}"
}

/// How the rows begin that count deliveries.
const NAME: &str = "fanwire_compression_deliveries_total{";
/// The kinds of frames that refer to earlier publications.
const IN_CONTEXT: [&str; 3] = [r#"kind="newest""#, r#"kind="several""#, r#"kind="run""#];
/// Weight of the first channel.
const WEIGHT: usize = 1_000_000;

#[cfg(test)]
mod tests;
