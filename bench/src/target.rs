//! Processes under measurement: the `fanwire` binary or the bare loop, pinned to a core.
//! In: what to start and where → out: its address and process id; stopped and cleaned up when dropped.
//! Uses child processes and `taskset`; never speaks to them beyond reading the address that they print.
//! Changed here: how a server is started and configured; what is asked of it lives in the scenarios.

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::certificate::{API_IP, Certificate};

/// A running server. Dropping it ends the process and removes its folder.
pub struct Target {
    child: Child,
    /// The process that serves now.
    pid: u32,
    address: SocketAddr,
    folder: Option<PathBuf>,
}

impl Target {
    /// The bare send loop, with a certificate by TLS: this program once more.
    ///
    /// # Errors
    /// It does not start.
    pub fn bare(core: usize, certificate: Option<&Certificate>) -> Result<Self> {
        let files = certificate.into_iter().flat_map(|made| {
            let flag = |name, path: PathBuf| format!("--{name}={}", path.display());
            [flag("certificate", made.certificate()), flag("key", made.key())]
        });
        Self::this_program(core, "bare", &files.collect::<Vec<_>>())
    }

    /// The bare HTTP server: this program once more.
    ///
    /// # Errors
    /// It does not start.
    pub fn bare_http(core: usize) -> Result<Self> {
        Self::this_program(core, "bare-http", &[])
    }

    /// A program with a room: this program once more.
    ///
    /// # Errors
    /// It does not start.
    pub fn room(core: usize, arguments: &[String]) -> Result<Self> {
        Self::this_program(core, "room-server", arguments)
    }

    /// A program with a world of objects: this program once more.
    ///
    /// # Errors
    /// It does not start.
    pub fn area(core: usize, arguments: &[String]) -> Result<Self> {
        Self::this_program(core, "area-server", arguments)
    }

    /// The child prints its address first, and may end when its standard input does.
    fn this_program(core: usize, subcommand: &str, arguments: &[String]) -> Result<Self> {
        let program = std::env::current_exe()?;
        let mut command = command_on(Some(core), &program);
        command.arg(subcommand).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut first_line = String::new();
        let stdout = child.stdout.take().context("the pipe was asked for")?;
        BufReader::new(stdout).read_line(&mut first_line)?;
        let address = first_line.trim().parse().context("the child prints its address")?;
        Ok(Self { pid: child.id(), child, address, folder: None })
    }

    /// `fanwire serve` with a configuration of its own on a free port; returns when it accepts connections. On one core it
    /// has one shard, on all of them one shard each. `settings` are sections of the configuration.
    ///
    /// # Errors
    /// It ends or does not listen within ten seconds; the error carries its log.
    pub fn fanwire(
        binary: &Path,
        core: Option<usize>,
        settings: serde_json::Value,
    ) -> Result<Self> {
        let words = ["serve", "--config"];
        Self::configured(binary, core, &words, &configuration(settings), None)
    }

    /// Centrifugo on a core, with the same configuration and `settings`.
    ///
    /// # Errors
    /// As those of [`fanwire`](Self::fanwire).
    pub fn centrifugo(binary: &Path, core: usize, settings: serde_json::Value) -> Result<Self> {
        let mut whole = configuration(settings);
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        whole["http_server"]["port"] = address.port().into();
        // It says that it listens on this level.
        whole["log"]["level"] = "info".into();
        let target = Self::configured(binary, Some(core), &["--config"], &whole, Some(address))?;
        // It says that it listens right before it does.
        let until = Instant::now() + START_WAIT;
        while TcpStream::connect(address).is_err() {
            ensure!(Instant::now() < until, "Centrifugo does not listen at {address}");
        }
        Ok(target)
    }

    /// Starts a server whose arguments end with the file of its configuration; one that cannot choose a port gets `address`.
    fn configured(
        binary: &Path,
        core: Option<usize>,
        words: &[&str],
        configuration: &serde_json::Value,
        address: Option<SocketAddr>,
    ) -> Result<Self> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("fanwire-bench-{}-{number}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let child = spawn(&folder, binary, core, words, configuration)?;
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut target = Self { pid: child.id(), child, address: nowhere, folder: Some(folder) };
        target.address = target.wait_until_listening(address)?;
        Ok(target)
    }

    /// Stops `fanwire serve` as a planned stop does. Returns how long it takes.
    ///
    /// # Errors
    /// It has ended before.
    pub fn stop(&mut self) -> Result<Duration> {
        let started = Instant::now();
        let pid = Pid::from_raw(self.pid.cast_signed()).context("the number of a process")?;
        kill_process(pid, Signal::TERM)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "it ended with {status}:\n{}", self.log_tail());
        Ok(started.elapsed())
    }

    /// Starts a stopped `fanwire serve` again, with other settings in the same folder. Returns how long it takes.
    ///
    /// # Errors
    /// As those of [`fanwire`](Self::fanwire).
    pub fn start_again(&mut self, binary: &Path, settings: serde_json::Value) -> Result<Duration> {
        let started = Instant::now();
        let words = ["serve", "--config"];
        self.child = spawn(self.folder()?, binary, None, &words, &configuration(settings))?;
        self.pid = self.child.id();
        self.address = self.wait_until_listening(None)?;
        Ok(started.elapsed())
    }

    /// The folder with its configuration and its log.
    ///
    /// # Errors
    /// It is no server with a configuration.
    pub fn folder(&self) -> Result<&Path> {
        self.folder.as_deref().context("it has no configuration")
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address at which a server with the settings of a [`Certificate`] serves its API.
    pub fn plain_address(&self) -> SocketAddr {
        SocketAddr::new(API_IP.parse().expect("an address"), self.address.port())
    }

    /// The address at which the server serves its API by gRPC.
    ///
    /// # Errors
    /// It does not.
    pub fn grpc_address(&self) -> Result<SocketAddr> {
        let log = self.log();
        let address = log.lines().find_map(|line| line.trim().strip_prefix("gRPC API"));
        Ok(address.context("the server has no grpc_api")?.trim().parse()?)
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets so many new processes take the connections over, one after the other.
    ///
    /// # Errors
    /// One of them cannot.
    pub fn take_over(&mut self, binary: &Path, times: usize) -> Result<()> {
        for _ in 0..times {
            let mut command = Command::new(binary);
            command.args(["upgrade", "--config"]).arg(self.folder()?.join("config.json"));
            let output = command.output()?;
            let answer = String::from_utf8_lossy(&output.stdout);
            let word = answer.strip_prefix("process ").and_then(|rest| rest.split(' ').next());
            let refused = || String::from_utf8_lossy(&output.stderr).into_owned();
            self.pid = word.and_then(|pid| pid.parse().ok()).with_context(refused)?;
            // The process before this one has given everything, and ends.
            self.child.wait()?;
        }
        Ok(())
    }

    /// The last lines the server wrote: the context of a failed run.
    pub fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }

    fn log(&self) -> String {
        let log = self.folder.as_ref().map(|folder| fs::read_to_string(folder.join("log")));
        log.and_then(Result::ok).unwrap_or_default()
    }

    /// The address, once the server has printed that it listens there. Trying to connect to a port chosen for it would
    /// not do: while no server listens, a connection from that very port reaches itself, and keeps the server from it.
    fn wait_until_listening(&mut self, chosen: Option<SocketAddr>) -> Result<SocketAddr> {
        let started = Instant::now();
        loop {
            let log = self.log();
            let printed = printed_address(&log);
            if let Some(address) = printed.or(chosen.filter(|_| log.contains(" endpoints on "))) {
                return Ok(address);
            }
            let ended = self.child.try_wait()?;
            if ended.is_some() || started.elapsed() > START_WAIT {
                bail!(
                    "the server does not listen ({ended:?}); its log ends with\n{}",
                    self.log_tail()
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Killed, not asked: a graceful end spreads its disconnects over many seconds.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if self.pid != self.child.id()
            && let Some(pid) = Pid::from_raw(self.pid.cast_signed())
        {
            let _ = kill_process(pid, Signal::KILL);
        }
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Starts a server whose arguments end with the file of its configuration, which it finds in `folder` with its other files.
fn spawn(
    folder: &Path,
    binary: &Path,
    core: Option<usize>,
    words: &[&str],
    configuration: &serde_json::Value,
) -> Result<Child> {
    let config = folder.join("config.json");
    let mut configuration = configuration.clone();
    configuration["pid_file"] = folder.join("pid").to_string_lossy().into();
    fs::write(&config, configuration.to_string())?;
    let log = File::create(folder.join("log"))?;
    let mut command = command_on(core, binary);
    command.args(words).arg(config).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    command.spawn().with_context(|| format!("starting {}", binary.display()))
}

/// The address on which the server listens, if a whole line of the log has it.
fn printed_address(log: &str) -> Option<SocketAddr> {
    let (_, rest) = log.split_once(" listens on ")?;
    let (address, _) = rest.split_once('\n')?;
    address.trim().parse().ok()
}

/// The server to measure: the one named, the one that cargo built with this program in the same profile, or the release binary.
///
/// # Errors
/// There is none.
pub fn fanwire_binary(named: Option<PathBuf>) -> Result<PathBuf> {
    let beside = std::env::current_exe()?.with_file_name("fanwire");
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/fanwire");
    let binary = named.into_iter().chain([beside, built]).find(|path| path.is_file());
    binary.context("no fanwire binary: build fanwire-cli in the profile of this program, or name one with --server")
}

/// A command that runs on one core only, or wherever this thread may: taskset replaces itself, so the process id is the
/// program's.
pub fn command_on(core: Option<usize>, program: &Path) -> Command {
    let Some(core) = core else { return Command::new(program) };
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string()]).arg(program);
    command
}

/// Anonymous subscribers on every channel, compression as it is by default, and a known API key; and what `settings` say.
fn configuration(settings: serde_json::Value) -> serde_json::Value {
    let mut whole = serde_json::json!({
        "http_server": { "address": "127.0.0.1", "port": 0 },
        "log": { "level": "warn" },
        "http_api": { "key": API_KEY },
        "prometheus": { "enabled": true },
        "client": { "allow_anonymous_connect_without_token": true },
        "channel": { "without_namespace": {
            "allow_subscribe_for_client": true,
            "allow_subscribe_for_anonymous": true,
        }},
        "engine": { "type": "memory" },
    });
    merge(&mut whole, settings);
    whole
}

/// Settings of channels that keep so many publications and recover them.
pub fn history(publications: usize) -> serde_json::Value {
    serde_json::json!({ "channel": { "without_namespace": {
        "history_size": publications, "history_ttl": "300s", "force_recovery": true,
    }}})
}

/// Puts a value in the place of another one; of two objects only the keys that the later one has.
pub fn merge(into: &mut serde_json::Value, from: serde_json::Value) {
    match (into, from) {
        (serde_json::Value::Object(into), serde_json::Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(serde_json::Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

pub const API_KEY: &str = "bench";
/// Number of servers that this process has started. Their folders are named by it.
static NUMBER: AtomicUsize = AtomicUsize::new(0);
const START_WAIT: Duration = Duration::from_secs(10);
const LOG_LINES: usize = 20;

#[cfg(test)]
mod tests;
