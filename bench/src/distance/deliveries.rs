//! Rows of `distance` with deliveries per CPU-second.
//! In: subscribers, channels, and how publications come → out: the figures of both builds, and of the bare loop.
//! Uses the rounds of `fanout`. Never: a measurement of its own.
//! Changed here: what the rows have in common.

use anyhow::Result;

use super::{Distance, Figure, OfEach};
use crate::corpus::files::payload;
use crate::fanout::round::Round;
use crate::fanout::schedule::Choice;
use crate::fanout::source::By;
use crate::fanout::{Contender, made_up_payloads, publications};
use fanwire_load::generator::SubscriberTransport;
use fanwire_load::generator::messages::Encoding;

/// The receivers of a row, and the way of its publications.
pub(super) struct Deliveries {
    pub(super) name: &'static str,
    pub(super) subscribers: usize,
    pub(super) channels: usize,
    pub(super) by: By,
    pub(super) outstanding: usize,
    pub(super) rate: Option<f64>,
    pub(super) compression: bool,
    /// The bare loop is a peer; it has one channel.
    pub(super) has_bare: bool,
}

/// Channels with ten subscribers each, eight publications under way.
pub(super) const TEN_EACH: Deliveries = Deliveries {
    name: "",
    subscribers: 640,
    channels: 64,
    by: By::Http,
    outstanding: 8,
    rate: None,
    compression: false,
    has_bare: false,
};

impl Deliveries {
    pub(super) fn measure(&self, distance: &Distance) -> Result<Vec<Figure>> {
        let binary = distance.setup.binary()?;
        let data = made_up_payloads(BYTES);
        let fields: Vec<String> = data.iter().map(|data| payload(false, data.as_bytes())).collect();
        let publications = publications(&fields, self.channels, false)?;
        let round = Round {
            binary: &binary,
            other: Some(&distance.against),
            publications: &publications,
            choice: Choice { each: 1, all: self.channels },
            transport: SubscriberTransport::WebSocket,
            encoding: Encoding::Json,
            subscribers: self.subscribers,
            outstanding: self.outstanding,
            by: self.by,
            rate: self.rate,
            seconds: distance.seconds,
            turns: ((distance.seconds / TURN).ceil() as u32).max(1),
            server_core: distance.setup.server_core,
            generator_core: distance.setup.generator_core,
            certificate: None,
            takeovers: 0,
        };
        let other = Contender::Other { compression: self.compression };
        let fanwire = Contender::Fanwire { compression: self.compression };
        let outcomes = if self.has_bare {
            let [before, now, bare] = round.run([other, fanwire, Contender::Bare])?;
            OfEach { before, now, peer: Some(("bare loop", bare)) }
        } else {
            let [before, now] = round.run([other, fanwire])?;
            OfEach { before, now, peer: None }
        };
        let per_second = outcomes.line(self.name, "deliveries/CPU-s", |one| one.per_cpu_second);
        Ok(vec![
            Figure { is_more_better: true, ..per_second },
            outcomes.line(self.name, "p99 ms", |one| one.latency_p99_ms),
        ])
    }
}

const BYTES: usize = 200;
/// Seconds after which it is the other contender's turn.
const TURN: f64 = 0.1;
