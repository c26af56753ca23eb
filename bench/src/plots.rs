//! Scenario `plots`: Fanwire and Centrifugo under the same load, drawn into the pages of `docs/`.
//! In: the program of Centrifugo, connections, rate, seconds → out: SVG files, a table; not passed when a message was lost or wrong.
//! Uses the load generator of `fanwire bench`, which knows neither server; one server runs at a time, on the same core.
//! Changed here: which load is compared; lines are drawn in `load::report`.

use anyhow::Result;
use clap::Args;
use fanwire_load::generator::messages::Encoding;
use fanwire_load::{
    ApiAddress, Pace, Payloads, Plan, Popularity, PublishMethod, Report, ServerAddress, grouped,
};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::setup::Setup;
use crate::target::{API_KEY, Target};

/// Latency and CPU of Fanwire and of Centrifugo, as plots.
#[derive(Args)]
pub struct Plots {
    /// The program of Centrifugo.
    #[arg(long, value_name = "FILE")]
    centrifugo: PathBuf,
    /// Folder of the SVG files.
    #[arg(long, default_value = "docs/images")]
    output: PathBuf,
    #[arg(long, default_value_t = 500)]
    connections: usize,
    /// Publications per second, one channel.
    #[arg(long, default_value_t = 60.0)]
    rate: f64,
    /// Bytes of a publication.
    #[arg(long, default_value_t = 2_000)]
    bytes: usize,
    /// Measured time of each server.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    #[command(flatten)]
    setup: Setup,
}

impl Plots {
    /// True when every message arrived once, in order and unchanged.
    ///
    /// # Errors
    /// A server that does not start, or a file that cannot be written.
    pub fn run(self) -> Result<bool> {
        self.setup.pin_generator()?;
        fs::create_dir_all(&self.output)?;
        println!("server          p50 ms   p99 ms  % of a core  B/delivery");
        let core = self.setup.server_core;
        let ours = Target::fanwire(&self.setup.binary()?, Some(core), serde_json::json!({}))?;
        let fanwire = self.measure("Fanwire", &ours)?;
        drop(ours);
        let theirs = Target::centrifugo(&self.centrifugo, core, serde_json::json!({}))?;
        let centrifugo = self.measure("Centrifugo", &theirs)?;
        drop(theirs);
        for (name, svg) in Report::compared([("Fanwire", &fanwire), ("Centrifugo", &centrifugo)]) {
            fs::write(self.output.join(format!("bench-{name}.svg")), svg)?;
        }
        Ok(!fanwire.has_failed() && !centrifugo.has_failed())
    }

    fn measure(&self, name: &str, target: &Target) -> Result<Report> {
        let load = Load {
            connections: self.connections,
            rate: self.rate,
            payloads: Payloads::synthetic(self.bytes, 0.3, false)?,
            compression: false, // the generator reads no fragmented messages, which Centrifugo sends then
            duration: Duration::from_secs(self.seconds),
        };
        let plan = plan(target, load);
        let report = fanwire_load::run(&plan, &AtomicBool::new(false), |_| {})?;
        println!(
            "{name:<12} {:>9.2} {:>8.2} {:>12.1} {:>11}",
            report.latency.p50_ms,
            report.latency.p99_ms,
            report.server.cpu_share.unwrap_or_default() * 100.0,
            grouped(report.bytes_per_delivery.unwrap_or_default()),
        );
        for remark in report.faults.iter().chain(&report.invalid) {
            println!("    {remark}");
        }
        Ok(report)
    }
}

/// Subscribers of one channel, and what is published to them.
pub(crate) struct Load {
    pub(crate) connections: usize,
    /// Publications per second.
    pub(crate) rate: f64,
    pub(crate) payloads: Payloads,
    pub(crate) compression: bool,
    /// Measured time, after two seconds that warm up.
    pub(crate) duration: Duration,
}

/// The plan of a load on a server of either kind, by the server API.
pub(crate) fn plan(target: &Target, load: Load) -> Plan {
    let address = |path: &str| ServerAddress { path: path.to_owned(), ..target.address().into() };
    let api = ApiAddress { address: address("/api"), key: API_KEY.to_owned() };
    Plan {
        server: address("/connection/websocket"),
        token: None,
        encoding: Encoding::Json,
        compression: load.compression,
        connections: load.connections,
        slow: 0,
        slow_bytes: 0,
        stopped: 0,
        churn: 0.0,
        channels: 1,
        channel: "bench".to_owned(),
        subscriptions: 1,
        popularity: Popularity::Uniform,
        publish: PublishMethod::Api { api, connections: 1 },
        pace: Pace::Open { rate: load.rate },
        is_latest: false,
        payloads: load.payloads,
        warm_up: WARM_UP,
        duration: load.duration,
        parts: 1,
        pid: Some(target.pid()),
    }
}

const WARM_UP: Duration = Duration::from_secs(2);
