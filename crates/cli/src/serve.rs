//! `fanwire serve`: from a configuration to a running server, and to its shutdown.
//! In: file, environment, flags, then signals → out: a server; its address and first steps on stdout.
//! Uses `fanwire::Server`. Never: server behaviour.
//! Changed here: the text at the start and the handled signals.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, anyhow};
use fanwire::{Builder, Server, Takeover};
use fanwire_api::ConfigReader;
use fanwire_config::example::{self, reachable};
use fanwire_config::{Config, ConfigError, Finding, LoadedConfig, LogOptions, Severity};
use rand::distr::{Alphanumeric, SampleString};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::arguments::Serve;
#[cfg(target_os = "linux")]
use crate::service_manager;
use crate::{check, config_file, environment, logs, logs::Logs};
use control::Control;
use pid_file::PidFile;
use upgrade::Program;

mod control;
mod pid_file;
mod reload;
#[cfg(test)]
mod tests;
mod upgrade;

pub(crate) fn run(arguments: &Serve) -> Result<()> {
    let program = Program::of_process();
    let takeover = Takeover::of_process().context("the program that this one is to replace")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("fanwire-http")
        .enable_all()
        .build()
        .context("the threads for HTTP cannot be started")?;
    // First of all: a reload or a rotation of logs must not end a server that is starting.
    let requests = {
        let _runtime = runtime.enter();
        Requests::listen().context(NO_HANDLERS)?
    };
    let path = arguments.config.as_deref();
    let variables = environment::variables()?;
    let loaded = if arguments.origin.is_centrifugo {
        LoadedConfig::load_closed(path, variables, &arguments.keys.0)
    } else {
        LoadedConfig::load(path, variables, &arguments.keys.0)
    };
    let (mut loaded, findings) = loaded.map_err(report)?;
    let logs = logs::start(&loaded.config.log)?;
    log_file(arguments, loaded.config.development);
    log(&findings);
    let generated = generate_key(&mut loaded.config);
    let start = Start { loaded, generated, logs, requests, program, takeover };
    let result = runtime.block_on(serve(arguments, start));
    // Does not wait for tasks that a second signal or the end of shutdown.timeout has abandoned.
    runtime.shutdown_background();
    result
}

/// The configuration, the logs and the signals with which a server starts.
struct Start {
    loaded: LoadedConfig,
    /// The API key is a random one.
    generated: bool,
    logs: Logs,
    requests: Requests,
    program: Program,
    /// The takeover from the program that this one replaces while it runs.
    takeover: Option<Takeover>,
}

async fn serve(arguments: &Serve, start: Start) -> Result<()> {
    let Start { loaded, generated, logs, requests, program, takeover } = start;
    let mut signals = Signals::listen(requests, logs).context(NO_HANDLERS)?;
    let mut config = loaded.config.clone();
    let loaded = Arc::new(Mutex::new(loaded));
    config.http_api.config_reader = config_reader(arguments, &loaded);
    // Opened before the server starts, so that its errors are found before clients connect.
    let mut pid_file = PidFile::open(&config.pid_file)?;
    let mut server = match takeover {
        Some(takeover) => Builder::new(config.clone()).take_over(takeover).start().await?,
        None => Server::start(config.clone()).await?,
    };
    pid_file.as_mut().map_or(Ok(()), PidFile::write)?;
    // An error of stdout must not stop the server.
    let greeting = greeting(&config, &Addresses::of(&server), generated);
    let _ = std::io::stdout().write_all(greeting.as_bytes());
    log_start(&config, arguments.config.as_deref(), &server);
    tracing::info!("serving {} endpoints on {}", endpoints(&config).join(", "), server.address());
    #[cfg(target_os = "linux")]
    service_manager::notify("READY=1");
    let control = Control::listen(&config);
    loop {
        let event = async {
            tokio::select! {
                event = signals.next() => event,
                request = control.next() => Event::Control(request),
            }
        };
        match until_failed(event, server.failed()).await? {
            Event::Control(request) => {
                if upgrade::answer(request, &mut server, &program, &control).await {
                    if let Some(file) = &mut pid_file {
                        file.leave();
                    }
                    return Ok(());
                }
            }
            Event::Hangup => reload::run(arguments, &mut lock(&loaded), &server, &signals.logs),
            Event::Dump => write_dump(&server.dump().await, &config.log),
            Event::Stop => break,
        }
    }
    control.remove();
    tracing::info!("stopping; a second signal stops at once");
    let second = async { while !matches!(signals.next().await, Event::Stop) {} };
    tokio::select! {
        () = server.shutdown() => Ok(()),
        () = second => Err(anyhow!("stopped by a second signal before all clients were disconnected")),
    }
}

/// Waits for the next event. A server that has lost a part ends the process at once, as a shard that panics does: it would
/// look healthy while messages wait.
async fn until_failed(
    event: impl Future<Output = Event>,
    failed: impl Future<Output = impl Into<anyhow::Error>>,
) -> Result<Event> {
    tokio::select! {
        event = event => Ok(event),
        error = failed => Err(error.into()),
    }
}

/// Compares the configuration that runs with what the sources say, for the server API.
fn config_reader(arguments: &Serve, loaded: &Arc<Mutex<LoadedConfig>>) -> ConfigReader {
    let file = arguments.config.clone();
    let flags = arguments.keys.0.clone();
    let loaded = Arc::clone(loaded);
    ConfigReader(Some(Arc::new(move || {
        let loaded = lock(&loaded);
        let again =
            environment::variables().map_err(|error| format!("{error:#}")).and_then(|variables| {
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
    let written = if log.file.is_empty() {
        std::io::stderr().write_all(format!("{dump}\n").as_bytes())
    } else {
        std::fs::write(&path, dump)
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

/// The endpoints of the server in the names of Centrifugo, whose tools wait for the line that lists them.
fn endpoints(config: &Config) -> Vec<&'static str> {
    let has_streams = config.http_stream.enabled || config.sse.enabled;
    let all = [
        ("websocket", !config.websocket.disabled),
        ("sse", config.sse.enabled),
        ("http_stream", config.http_stream.enabled),
        ("emulation", has_streams),
        ("api", !config.http_api.disabled),
        ("admin", config.admin.enabled),
        ("prometheus", config.prometheus.enabled),
        ("debug", config.debug.enabled),
        ("health", config.health.enabled),
        ("uni_websocket", config.uni_websocket.enabled),
        ("uni_sse", config.uni_sse.enabled),
        ("uni_http_stream", config.uni_http_stream.enabled),
        ("swagger", config.swagger.enabled),
    ];
    all.into_iter().filter_map(|(name, is_served)| is_served.then_some(name)).collect()
}

/// Signals that ask a server for something: SIGHUP reloads the configuration, SIGUSR2 writes a dump; SIGUSR1 and SIGHUP, which
/// log rotation sends, reopen `log.file`. One that comes during the start is answered after it.
struct Requests {
    hangup: Signal,
    user: Signal,
    dump: Signal,
}

impl Requests {
    fn listen() -> std::io::Result<Self> {
        let hangup = signal(SignalKind::hangup())?;
        let user = signal(SignalKind::user_defined1())?;
        let dump = signal(SignalKind::user_defined2())?;
        Ok(Self { hangup, user, dump })
    }
}

/// All handled signals: SIGINT and SIGTERM stop the server.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    requests: Requests,
    logs: Logs,
}

/// Request that comes with a signal.
enum Event {
    Stop,
    Hangup,
    Dump,
    Control(control::Request),
}

impl Signals {
    fn listen(requests: Requests, logs: Logs) -> std::io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { interrupt, terminate, requests, logs })
    }

    /// Waits for the next signal that requests more than to reopen the log.
    async fn next(&mut self) -> Event {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return Event::Stop,
                _ = self.terminate.recv() => return Event::Stop,
                _ = self.requests.hangup.recv() => {
                    self.logs.reopen();
                    return Event::Hangup;
                }
                _ = self.requests.dump.recv() => return Event::Dump,
                _ = self.requests.user.recv() => self.logs.reopen(),
            }
        }
    }
}

/// The first line of the log: which file was read. Then what was found while it was looked for.
fn log_file(arguments: &Serve, is_development: bool) {
    match &arguments.config {
        Some(path) => tracing::info!("the configuration is in {}", path.display()),
        None if is_development => tracing::info!("there is no configuration: development mode"),
        None if arguments.origin.is_centrifugo => tracing::warn!(
            "there is no file {}: variables and flags alone are the configuration",
            config_file::OF_CENTRIFUGO
        ),
        None => tracing::info!("there is no configuration file, only variables or flags"),
    }
    for remark in &arguments.origin.remarks {
        tracing::warn!("{remark}");
    }
}

/// Where a server listens.
struct Addresses {
    public: SocketAddr,
    internal: SocketAddr,
    api: SocketAddr,
    grpc_api: Option<SocketAddr>,
    uni_grpc: Option<SocketAddr>,
}

impl Addresses {
    fn of(server: &Server) -> Self {
        Self {
            public: server.address(),
            internal: server.internal_address(),
            api: server.api_address(),
            grpc_api: server.grpc_api_address(),
            uni_grpc: server.uni_grpc_address(),
        }
    }
}

/// The text at the start: addresses, and a command that publishes.
fn greeting(config: &Config, addresses: &Addresses, generated: bool) -> String {
    let address = addresses.public;
    let host = reachable(address);
    let mut lines = vec![format!("Fanwire {} listens on {address}", env!("CARGO_PKG_VERSION"))];
    if config.development {
        lines.push(DEVELOPMENT.to_owned());
    }
    lines.push(String::new());
    let (http, ws) = example::client_schemes(config);
    if config.serves_demo() {
        lines.push(format!("  demo page  {http}://{host}{}", config.demo.handler_prefix));
    }
    let admin = &config.admin;
    if admin.enabled {
        let host = reachable(if admin.external { address } else { addresses.internal });
        let scheme = example::scheme(config, admin.external);
        let path = admin.handler_prefix.trim_matches('/');
        let end = if path.is_empty() { "" } else { "/" };
        lines.push(format!("  admin page {scheme}://{host}/{path}{end}"));
    }
    if !config.websocket.disabled {
        lines.push(format!("  WebSocket  {ws}://{host}{}", config.websocket.handler_prefix));
    }
    let api = &config.http_api;
    if !api.disabled {
        let host = reachable(addresses.api);
        let scheme = example::api_scheme(config);
        lines.push(format!("  server API {scheme}://{host}{}", api.handler_prefix));
    }
    for (name, address) in [("gRPC API", addresses.grpc_api), ("uni gRPC", addresses.uni_grpc)] {
        lines.extend(address.map(|address| format!("  {name}   {}", reachable(address))));
    }
    if generated {
        let key = &*api.key;
        lines.push(format!("  API key    {key} (random, until http_api.key is set)"));
    }
    if !api.disabled && (generated || api.insecure) {
        let curl = example::curl(config, addresses.api, example::DEMO);
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
    let needed = !options.disabled && !options.insecure && options.key.is_empty();
    if needed {
        options.key = Alphanumeric.sample_string(&mut rand::rng(), KEY_CHARS).into();
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

const NO_HANDLERS: &str = "signal handlers cannot be installed";

const TLS: &str = "
  Clients verify the certificate: use a name that it has in place of the address.";

/// 190 bits of randomness.
const KEY_CHARS: usize = 32;

const DEVELOPMENT: &str = "
  Development mode: nothing was configured, so only this machine can connect, no credentials
  are required, and every channel is open. `fanwire init` writes a configuration.";
