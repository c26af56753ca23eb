//! Claim `curves`: CPU, memory and bandwidth of a server while its load changes, without compression and with it.
//! In: the length of a curve, the program of Centrifugo → out: a table of means, and a plot of each quantity.
//! Uses the load generator of `fanwire bench`, at one rate after the other against the same server.
//! Changed here: the load and the contenders. Lines are drawn in `load::report`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Proof;
use super::latency::scores;
use super::page::{Table, figure};
use crate::plots::{Load, plan};
use crate::target::Target;
use fanwire_load::{Report, machine, time_plot};

/// A server with settings, and the offer of its clients.
struct Contender<'a> {
    name: &'static str,
    centrifugo: Option<&'a Path>,
    settings: Value,
    compression: bool,
}

/// One curve: a value for each second.
#[derive(Default)]
struct Curve {
    cpu: Vec<f64>,
    mebibytes: Vec<f64>,
    mbit: Vec<f64>,
    /// Lost and wrong deliveries.
    faults: Vec<String>,
}

/// The figure that a plot shows of each curve.
struct Quantity {
    name: &'static str,
    unit: &'static str,
    of: fn(&Curve) -> &[f64],
}

/// # Errors
/// A server that does not start, or a plot that cannot be written.
pub(super) fn table(proof: &Proof) -> Result<Table> {
    let seconds = if proof.long { 300.0 } else { proof.seconds(60.0) };
    let step = Duration::from_secs_f64(seconds / STEPS.len() as f64);
    let mut curves = Vec::new();
    for contender in contenders(proof.centrifugo.as_deref()) {
        let curve = measure(proof, &contender, step).context(contender.name)?;
        curves.push((contender.name, curve));
    }
    let heads = ["server", "CPU %, mean", "most", "MiB, mean", "most", "Mbit/s, mean", "most"];
    let mut table = Table::new(&heads, note(&curves));
    for (name, curve) in &curves {
        let mut cells = vec![(*name).to_owned()];
        for values in [&curve.cpu, &curve.mebibytes, &curve.mbit] {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            cells.push(figure(mean));
            cells.push(figure(values.iter().copied().fold(0.0, f64::max)));
        }
        table.row(cells);
    }
    fs::create_dir_all(&proof.images)?;
    for quantity in QUANTITIES {
        let line = |(name, curve): &(&'static str, Curve)| (*name, (quantity.of)(curve).to_vec());
        let lines: Vec<_> = curves.iter().map(line).collect();
        let path = proof.images.join(format!("proof-{}.svg", quantity.name));
        fs::write(path, time_plot(quantity.unit, &lines))?;
    }
    Ok(table)
}

fn contenders(centrifugo: Option<&Path>) -> Vec<Contender<'_>> {
    let namespace =
        |compression| json!({ "channel": { "without_namespace": { "compression": compression } } });
    let ours =
        |name, compression, settings| Contender { name, centrifugo: None, settings, compression };
    let mut contenders = vec![
        ours("off", false, json!({})),
        ours("standalone", true, namespace("standalone")),
        ours("context", true, namespace("context")),
    ];
    if centrifugo.is_some() {
        let theirs = |name, compression| Contender {
            name,
            centrifugo,
            settings: json!({ "websocket": { "compression": compression } }),
            compression,
        };
        contenders.push(theirs("Centrifugo, off", false));
        contenders.push(theirs("Centrifugo, on", true));
    }
    contenders
}

fn measure(proof: &Proof, contender: &Contender<'_>, step: Duration) -> Result<Curve> {
    let core = proof.setup.server_core;
    let settings = contender.settings.clone();
    let target = match contender.centrifugo {
        Some(program) => Target::centrifugo(program, core, settings)?,
        None => Target::fanwire(&proof.setup.binary()?, Some(core), settings)?,
    };
    let mut curve = Curve::default();
    for rate in STEPS {
        let load = Load {
            connections: CONNECTIONS,
            rate,
            payloads: scores()?,
            compression: contender.compression,
            duration: step,
        };
        let report = fanwire_load::run(&plan(&target, load), &Default::default(), |_| {})?;
        curve.add(&report, machine::resident_bytes(target.pid())?);
    }
    Ok(curve)
}

impl Curve {
    fn add(&mut self, report: &Report, resident: u64) {
        let bits = report.bytes_per_delivery.unwrap_or_default() * 8.0;
        for second in &report.seconds {
            self.cpu.push(second.server_cpu.unwrap_or_default() * 100.0);
            let resident = second.server_resident_bytes.unwrap_or(resident) as f64;
            self.mebibytes.push(resident / f64::from(1 << 20));
            self.mbit.push(second.deliveries as f64 * bits / 1e6);
        }
        self.faults.extend(report.faults.iter().cloned());
    }
}

fn note(curves: &[(&str, Curve)]) -> String {
    let mut note = NOTE.to_owned();
    for (name, curve) in curves {
        if let Some(fault) = curve.faults.first() {
            let _ = write!(note, " {name}: {fault} ({} such).", curve.faults.len());
        }
    }
    note
}

const QUANTITIES: [Quantity; 3] = [
    Quantity { name: "cpu", unit: "%", of: |curve| &curve.cpu },
    Quantity { name: "memory", unit: "MiB", of: |curve| &curve.mebibytes },
    Quantity { name: "bandwidth", unit: "Mbit/s", of: |curve| &curve.mbit },
];
/// Publications per second, one after the other.
const STEPS: [f64; 6] = [10.0, 20.0, 40.0, 60.0, 30.0, 10.0];
const CONNECTIONS: usize = 200;
const NOTE: &str = "200 clients of one channel, live-score states of 1.3 KB, at 10, 20, 40, 60, 30 and 10 publications per second for a sixth of the \
time each. Between two rates all clients connect again.";
