//! `fanwire serve`: from a configuration to a running server, and to its shutdown.
//! In: file, environment, flags, then signals → out: a server; its address and first steps on stdout.
//! Uses `fanwire::Server`. Never: server behaviour.
//! The text at the start and the handled signals are changed here.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, anyhow};
use fanwire::Server;
use fanwire_api::ConfigReader;
use fanwire_config::example::{self, reachable};
use fanwire_config::{Config, ConfigError, Finding, LoadedConfig, LogOptions, Severity};
use rand::distr::{Alphanumeric, SampleString};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::arguments::Serve;
use crate::{check, environment, init, logs, logs::Logs};
use pid_file::PidFile;

mod pid_file;
mod reload;
#[cfg(test)]
mod tests;

pub(crate) fn run(arguments: &Serve) -> Result<()> {
    let path = arguments.config.as_deref();
    let (mut loaded, findings) =
        LoadedConfig::load(path, environment::variables()?, &arguments.keys.0).map_err(report)?;
    let logs = logs::start(&loaded.config.log)?;
    log(&findings);
    if let Some(line) = without_development(&loaded.config) {
        tracing::info!("{line}");
    }
    if path.is_none() {
        for file in UNREAD.into_iter().filter(|file| Path::new(file).is_file()) {
            tracing::warn!(
                "{file} of this folder is not read without --config; use --config {file} to read it"
            );
        }
    }
    let generated = generate_key(&mut loaded.config);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("fanwire-http")
        .enable_all()
        .build()
        .context("the threads for HTTP cannot be started")?;
    let result = runtime.block_on(serve(arguments, loaded, generated, logs));
    // Does not wait for tasks that a second signal or the end of shutdown.timeout has abandoned.
    runtime.shutdown_background();
    result
}

async fn serve(arguments: &Serve, loaded: LoadedConfig, generated: bool, logs: Logs) -> Result<()> {
    let mut signals = Signals::listen(logs).context("signal handlers cannot be installed")?;
    let mut config = loaded.config.clone();
    let loaded = Arc::new(Mutex::new(loaded));
    config.http_api.api.config_reader = config_reader(arguments, &loaded);
    // Opened before the server starts, so that its errors are found before clients connect.
    let mut pid_file = PidFile::open(&config.pid_file)?;
    let server = Server::start(config.clone()).await?;
    pid_file.as_mut().map_or(Ok(()), PidFile::write)?;
    // An error of stdout must not stop the server.
    let grpc = [server.grpc_api_address(), server.uni_grpc_address()];
    let greeting = greeting(&config, (server.address(), server.api_address(), grpc), generated);
    let _ = std::io::stdout().write_all(greeting.as_bytes());
    log_start(&config, arguments.config.as_deref(), &server);
    loop {
        match signals.next().await {
            Event::Hangup => reload::run(arguments, &mut lock(&loaded), &server, &signals.logs),
            Event::Dump => write_dump(&server.dump().await, &config.log),
            Event::Stop => break,
        }
    }
    tracing::info!("stopping; a second signal stops at once");
    let second = async { while !matches!(signals.next().await, Event::Stop) {} };
    tokio::select! {
        () = server.shutdown() => Ok(()),
        () = second => Err(anyhow!("stopped by a second signal before all clients were disconnected")),
    }
}

/// Compares the configuration that runs with what the sources say, for the server API.
fn config_reader(arguments: &Serve, loaded: &Arc<Mutex<LoadedConfig>>) -> ConfigReader {
    let (file, flags) = (arguments.config.clone(), arguments.keys.0.clone());
    let loaded = Arc::clone(loaded);
    ConfigReader(Some(Arc::new(move || {
        let loaded = lock(&loaded);
        let again = environment::variables().map_err(|error| format!("{error:#}"));
        let again = again.and_then(|variables| {
            let again = loaded.reload(file.as_deref(), variables, &flags);
            again.map_err(|error| error.to_string())
        });
        loaded.report(again)
    })))
}

/// A panic of a thread that read the configuration has not changed it.
fn lock(loaded: &Mutex<LoadedConfig>) -> MutexGuard<'_, LoadedConfig> {
    loaded.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a dump to a file with the name of the log, or to stderr without one. A newer dump replaces it.
fn write_dump(dump: &str, log: &LogOptions) {
    let path = format!("{}.dump.json", log.file);
    let written = match log.file.is_empty() {
        true => std::io::stderr().write_all(format!("{dump}\n").as_bytes()),
        false => std::fs::write(&path, dump),
    };
    match written {
        Ok(()) if log.file.is_empty() => {}
        Ok(()) => tracing::info!("the dump is in {path}"),
        Err(error) => tracing::error!("the dump cannot be written to {path}: {error}"),
    }
}

/// The parts of the configuration on which most questions to an operator depend, in one line.
fn log_start(config: &Config, file: Option<&Path>, server: &Server) {
    let internal = server.internal_address();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        pid = std::process::id(),
        config = file.map(|file| file.display().to_string()),
        engine = config.engine.kind.name(),
        shards = server.shards(),
        descriptors = server.descriptors(),
        compression = config.websocket.compression,
        address = %server.address(),
        internal_address = (internal != server.address()).then(|| display(internal)),
        grpc_api_address = server.grpc_api_address().map(display),
        uni_grpc_address = server.uni_grpc_address().map(display),
        "listening"
    );
}

/// SIGINT and SIGTERM stop the server, SIGHUP reloads the configuration, SIGUSR2 writes a dump; SIGUSR1 and SIGHUP, which
/// log rotation sends, reopen `log.file`.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    user: Signal,
    dump: Signal,
    logs: Logs,
}

/// Request that comes with a signal.
enum Event {
    Stop,
    Hangup,
    Dump,
}

impl Signals {
    fn listen(logs: Logs) -> std::io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        let hangup = signal(SignalKind::hangup())?;
        let user = signal(SignalKind::user_defined1())?;
        let dump = signal(SignalKind::user_defined2())?;
        Ok(Self { interrupt, terminate, hangup, user, dump, logs })
    }

    /// Waits for the next signal that requests more than to reopen the log.
    async fn next(&mut self) -> Event {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return Event::Stop,
                _ = self.terminate.recv() => return Event::Stop,
                _ = self.hangup.recv() => {
                    self.logs.reopen();
                    return Event::Hangup;
                }
                _ = self.dump.recv() => return Event::Dump,
                _ = self.user.recv() => self.logs.reopen(),
            }
        }
    }
}

/// The log line that names the defaults of development mode which a configuration switches off.
fn without_development(config: &Config) -> Option<String> {
    let keys = config.without_development_defaults();
    (!config.development && !keys.is_empty()).then(|| {
        format!(
            "development mode is off, so its values of {} do not apply; `fanwire config-doc` lists them",
            keys.join(", ")
        )
    })
}

/// The text at the start: addresses, and a command that publishes.
fn greeting(
    config: &Config,
    (address, api_address, grpc): (SocketAddr, SocketAddr, [Option<SocketAddr>; 2]),
    generated: bool,
) -> String {
    let host = reachable(address);
    let mut lines = vec![format!("Fanwire {} listens on {address}", env!("CARGO_PKG_VERSION"))];
    if config.development {
        lines.push(DEVELOPMENT.to_owned());
    }
    lines.push(String::new());
    let (http, ws) = example::client_schemes(config);
    if config.demo.enabled {
        lines.push(format!("  demo page  {http}://{host}{}", config.demo.handler_prefix));
    }
    if !config.websocket.disabled {
        lines.push(format!("  WebSocket  {ws}://{host}{}", config.websocket.handler_prefix));
    }
    let api = &config.http_api;
    if !api.disabled {
        let host = reachable(api_address);
        let scheme = example::api_scheme(config);
        lines.push(format!("  server API {scheme}://{host}{}", api.api.handler_prefix));
    }
    for (name, address) in ["gRPC API  ", "uni gRPC  "].into_iter().zip(grpc) {
        lines.extend(address.map(|address| format!("  {name} {}", reachable(address))));
    }
    if generated {
        let key = &*api.api.key;
        lines.push(format!("  API key    {key} (random, until http_api.key is set)"));
    }
    if !api.disabled && (generated || api.api.insecure) {
        let curl = example::curl(config, api_address, example::DEMO);
        lines.push(format!("\nPublish to the channel `demo`:\n\n  {curl}"));
    }
    if http == "https" {
        lines.push(TLS.to_owned());
    }
    lines.join("\n") + "\n"
}

/// Generates a random API key if one is needed and none is configured. Returns whether it did.
fn generate_key(config: &mut Config) -> bool {
    let options = &mut config.http_api;
    let needed = !options.disabled && !options.api.insecure && options.api.key.is_empty();
    if needed {
        options.api.key = Alphanumeric.sample_string(&mut rand::rng(), KEY_CHARS).into();
    }
    needed
}

/// Prints all findings to stderr and returns the error of the start.
fn report(error: ConfigError) -> anyhow::Error {
    let ConfigError::Findings(findings) = error else { return error.into() };
    // An error of stderr cannot be reported.
    let _ = check::print(&findings, &mut std::io::stderr().lock());
    anyhow!("the configuration has errors, the server was not started")
}

fn log(findings: &[Finding]) {
    for finding in findings {
        match finding.severity {
            Severity::Error => tracing::error!("{finding}"),
            Severity::Warning => tracing::warn!("{finding}"),
            Severity::Note => tracing::debug!("{finding}"),
        }
    }
}

/// Files that `init` writes by default, and that Centrifugo reads by default.
const UNREAD: [&str; 2] = [init::FILE, init::FILE_OF_CENTRIFUGO];

const TLS: &str = "
  Clients verify the certificate: use a name that it has in place of the address.";

/// 190 bits of randomness.
const KEY_CHARS: usize = 32;

const DEVELOPMENT: &str = "
  Development mode: nothing was configured, so only this machine can connect, no credentials
  are required, and every channel is open. `fanwire init` writes a configuration.";
