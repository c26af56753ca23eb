//! Claim `latency`: delay of publications over a narrow link, raw and in context.
//! In: the measured time of each row → out: a table of p50 and p99.
//! Uses the load generator of `fanwire bench` behind a `Link`.
//! Changed here: the rows and the link.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::encoder::corpus;
use super::link::Link;
use super::page::{Table, figure};
use crate::plots::{Load, plan};
use crate::setup::Setup;
use crate::target::Target;
use fanwire_load::{Payloads, ServerAddress};

/// # Errors
/// A server that does not start, or nothing that arrives.
pub(super) fn table(setup: &Setup, duration: Duration) -> Result<Table> {
    let heads = ["publications/s", "compression", "p50 ms", "p99 ms", "B / delivery", "kbit/s"];
    let mut table = Table::new(&heads, NOTE);
    let binary = setup.binary()?;
    for rate in [10.0, 50.0, 90.0] {
        for (name, compression) in [("off", false), ("in context", true)] {
            let target = Target::fanwire(&binary, Some(setup.server_core), json!({}))?;
            let link = Link::start(target.address(), BITS_PER_SECOND, DELAY)?;
            let load = Load { connections: 1, rate, payloads: scores()?, compression, duration };
            let mut plan = plan(&target, load);
            let direct = plan.server;
            plan.server = ServerAddress { path: direct.path, ..link.address().into() };
            let report = fanwire_load::run(&plan, &Default::default(), |_| {})?;
            let bytes = report.bytes_per_delivery.unwrap_or_default();
            table.row(vec![
                figure(rate),
                name.to_owned(),
                figure(report.latency.p50_ms),
                figure(report.latency.p99_ms),
                figure(bytes),
                figure(bytes * rate * 8.0 / 1e3),
            ]);
        }
    }
    Ok(table)
}

/// The live scores of the corpus.
pub(super) fn scores() -> Result<Payloads> {
    Payloads::corpus(corpus("score.jsonl")?, false, "score.jsonl".to_owned())
}

const BITS_PER_SECOND: f64 = 1e6;
const DELAY: Duration = Duration::from_millis(50);
const NOTE: &str = "One client behind a link of 1 Mbit/s and 50 ms in each direction, live-score states of 1.3 KB (`bench/corpus/score.jsonl`). From the planned time of a \
publication to its arrival.";
