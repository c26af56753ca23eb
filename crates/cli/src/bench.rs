//! `fanwire bench`: loads a server that speaks the Centrifugo protocol, ours or another, and checks what arrives.
//! In: options → out: a report on stdout, as JSON, as a page; live figures on a terminal; exit codes 0, 1 and 2.
//! Uses the crate `load`, and the configuration for addresses and key. Never: a server of its own.
//! Options are changed in `arguments/bench.rs`; docs/bench.md explains every figure.

use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use fanwire_load::generator::messages::Encoding;
use fanwire_load::{
    ApiAddress, Pace, Payloads, Percentiles, Plan, Popularity, PublishMethod, Report, RunStatus,
    ServerAddress, histogram_file,
};
use fanwire_tls::Tls;

use crate::arguments::{Bench, BenchCommand, BenchLoad, BenchMethod, BenchOutput, BenchServer};
use crate::local::{LocalServer, with_remedy};
use crate::{document, tune};

#[cfg(test)]
mod tests;

/// Prints errors itself: without figures the code is 2.
pub(crate) fn run(arguments: &Bench) -> ExitCode {
    let outcome = match &arguments.command {
        Some(BenchCommand::Merge { files, output }) => merge(files, output.as_deref()),
        None => measure(arguments),
    };
    outcome.unwrap_or_else(|error| {
        // An error of stderr must not cause a panic.
        let _ = writeln!(std::io::stderr(), "fanwire: {error:#}");
        ExitCode::from(NOTHING_MEASURED)
    })
}

fn measure(arguments: &Bench) -> Result<ExitCode> {
    let plan = plan(&arguments.server, &arguments.load)?;
    plan.check()?;
    writable(&arguments.output)?;
    let stop = stop_on_signal()?;
    let mut terminal = Terminal::of_stderr();
    let report = fanwire_load::run(&plan, &stop, |status| terminal.show(status));
    terminal.clear();
    let report = report.map_err(with_remedy)?;
    document::print(&report.to_string())?;
    write(&arguments.output, &report, plan.duration)?;
    Ok(if report.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn plan(server: &BenchServer, load: &BenchLoad) -> Result<Plan> {
    let local = LocalServer::load(server.config.as_deref())?;
    let mut url = server.url.clone().unwrap_or_else(|| local.websocket_url());
    if load.protobuf && !url.contains("format=") && !url.contains("cf_protocol=") {
        url += if url.contains('?') { "&format=protobuf" } else { "?format=protobuf" };
    }
    let encoding = if load.protobuf { Encoding::Protobuf } else { Encoding::Json };
    let tls = || local.tls(&server.trust, server.url.as_ref(), false);
    Ok(Plan {
        server: address(&url, "ws", tls).context("--url")?,
        token: server.token.clone(),
        encoding,
        compression: load.compression,
        connections: load.connections,
        slow: load.slow,
        slow_bytes: load.slow_rate,
        stopped: load.stopped,
        churn: load.churn,
        channels: load.channels,
        channel: load.channel.clone(),
        subscriptions: load.subscriptions,
        popularity: match load.zipf {
            Some(exponent) => Popularity::Zipf { exponent },
            None => Popularity::Uniform,
        },
        publish: publish_method(server, load, &local)?,
        pace: match load.closed {
            Some(outstanding) => Pace::Closed { outstanding },
            None => Pace::Open { rate: load.rate },
        },
        is_latest: load.latest,
        payloads: payloads(load)?,
        warm_up: load.warm_up,
        duration: load.duration,
        parts: load.runs,
        pid: server.pid,
    })
}

fn publish_method(
    server: &BenchServer,
    load: &BenchLoad,
    local: &LocalServer,
) -> Result<PublishMethod> {
    let key = server.key.clone().unwrap_or_else(|| local.api_key());
    let method =
        load.publish.unwrap_or(if key.is_empty() { BenchMethod::Client } else { BenchMethod::Api });
    if method == BenchMethod::Client {
        return Ok(PublishMethod::Client);
    }
    ensure!(
        !key.is_empty(),
        "publishing by the server API needs its key: --key, or --config with a file that sets http_api.key"
    );
    let url = server.api_url.clone().unwrap_or_else(|| local.api_url());
    let tls = || local.tls(&server.trust, server.api_url.as_ref(), true);
    let api = ApiAddress { address: address(&url, "http", tls).context("--api-url")?, key };
    let connections = load.api_connections;
    Ok(match method {
        BenchMethod::Api => PublishMethod::Api { api, connections },
        BenchMethod::Batch => PublishMethod::Batch { api, connections },
        _ => PublishMethod::Stream { api },
    })
}

/// Resolves a URL; `tls` is for `wss` and `https`.
fn address(url: &str, scheme: &str, tls: impl FnOnce() -> Result<Tls>) -> Result<ServerAddress> {
    if !url.starts_with("wss:") && !url.starts_with("https:") {
        return ServerAddress::resolve(url, scheme, None);
    }
    let tls = tls()?;
    let mut address = ServerAddress::resolve(url, scheme, Some(tls.config().clone()))?;
    if !tls.server_name().is_empty() {
        address.host = tls.server_name().to_owned();
    }
    Ok(address)
}

fn payloads(load: &BenchLoad) -> Result<Payloads> {
    let Some(file) = &load.file else {
        return Payloads::synthetic(load.size, load.random, false);
    };
    let sample = tune::read(file, usize::MAX)?;
    Payloads::corpus(sample.messages().to_vec(), sample.is_binary(), sample.file.clone())
}

/// Ctrl-C ends publishing; the second one ends the process.
fn stop_on_signal() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signalled = stop.clone();
    std::thread::spawn(move || {
        runtime.block_on(async {
            while tokio::signal::ctrl_c().await.is_ok() {
                if signalled.swap(true, Ordering::Relaxed) {
                    std::process::exit(INTERRUPTED);
                }
            }
        });
    });
    Ok(stop)
}

/// Fails before the run if a file cannot be written after it.
fn writable(output: &BenchOutput) -> Result<()> {
    for path in [&output.json, &output.html, &output.histogram].into_iter().flatten() {
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        file.with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(())
}

fn write(output: &BenchOutput, report: &Report, duration: Duration) -> Result<()> {
    let put = |path: &Path, bytes: Vec<u8>| {
        fs::write(path, bytes).with_context(|| format!("{} cannot be written", path.display()))
    };
    if let Some(path) = &output.json {
        put(path, report.json()?.into_bytes())?;
    }
    if let Some(path) = &output.html {
        put(path, report.html().into_bytes())?;
    }
    if let Some(path) = &output.histogram {
        put(path, histogram_file::write(report.histogram(), duration)?)?;
    }
    Ok(())
}

fn merge(files: &[impl AsRef<Path>], output: Option<&Path>) -> Result<ExitCode> {
    let mut logs = Vec::new();
    for path in files {
        let path = path.as_ref();
        let log = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
        // One wrong file is named.
        histogram_file::read(&log).with_context(|| path.display().to_string())?;
        logs.extend(log);
    }
    let sum = histogram_file::read(&logs)?;
    let Percentiles { count, p50_ms, p90_ms, p99_ms, p999_ms, max_ms } = Percentiles::from(&sum);
    document::print(&format!(
        "deliveries  {count}\np50         {p50_ms:.3} ms\np90         {p90_ms:.3} ms\np99         {p99_ms:.3} ms\n\
         p99.9       {p999_ms:.3} ms\nmax         {max_ms:.3} ms\n"
    ))?;
    if let Some(path) = output {
        let log = histogram_file::write(&sum, Duration::ZERO)?;
        fs::write(path, log).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One line of live figures, if stderr is a terminal.
struct Terminal {
    is_shown: bool,
}

impl Terminal {
    fn of_stderr() -> Self {
        Self { is_shown: std::io::stderr().is_terminal() }
    }

    fn show(&mut self, status: RunStatus<'_>) {
        if self.is_shown {
            // An error of the terminal must not stop the run.
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", line(status));
        }
    }

    fn clear(&self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(status: RunStatus<'_>) -> String {
    match status {
        RunStatus::Connecting { open, of } => format!("connecting: {open} of {of}"),
        RunStatus::CatchingUp => "waiting for what is on its way".to_owned(),
        RunStatus::Second { second, is_warm_up, lost } => {
            let phase = if is_warm_up { "warm-up" } else { "measuring" };
            format!(
                "{phase}: {} published/s, {} delivered/s, p50 {:.2} ms, p99 {:.2} ms, {lost} lost",
                second.published, second.deliveries, second.p50_ms, second.p99_ms
            )
        }
    }
}

const NOTHING_MEASURED: u8 = 2;
/// 128 + SIGINT, as shells have it.
const INTERRUPTED: i32 = 130;
