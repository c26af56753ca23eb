//! Processes of one test: a Redis, the server, and the folder with their files.
//! In: commands → out: addresses; a process ends with its value.
//! Uses the machine's Redis or the one that `FANWIRE_REDIS_SERVER` names. Never: ports that somebody chose.
//! Changed here: how a process is started and stopped.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};

use fanwire_testing::{Folder, free_port};

use crate::serve::send;

/// A server that listens.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: String,
    /// Stays open, as it does for a server in a container.
    _stdout: BufReader<ChildStdout>,
}

impl Process {
    /// Starts the server and reads its address from the greeting.
    pub(crate) fn serve(command: &mut Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the binary runs");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        let mut greeting = String::new();
        stdout.read_line(&mut greeting).expect("text");
        let address = greeting.trim_end().rsplit_once(" listens on ").map(|(_, address)| address);
        let address = address.unwrap_or_else(|| panic!("{command:?} did not start: {greeting}"));
        Self { child, address: address.to_owned(), _stdout: stdout }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send(&self, signal: &str) {
        send(signal, &self.child);
    }

    /// Memory of the process, in bytes (`VmRSS` of proc(5)).
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("the process runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kib * 1024
    }

    /// Sends a signal and waits for the exit code.
    pub(crate) fn stop(mut self, signal: &str) -> Option<i32> {
        self.send(signal);
        self.child.wait().expect("the server ends").code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// A Redis at a free port of the loopback.
pub(crate) struct Redis {
    child: Child,
    pub(crate) port: u16,
    _folder: Folder,
}

impl Redis {
    /// `None` when there is no `redis-server`.
    pub(crate) fn start(options: &[&str]) -> Option<Self> {
        let chosen = std::env::var_os(CHOICE).map(|program| vec![program]);
        let programs = chosen.unwrap_or_else(|| PROGRAMS.map(OsString::from).to_vec());
        let port = free_port();
        let folder = Folder::new(&format!("redis-{port}"));
        let mut child = programs.iter().find_map(|program| {
            let mut command = Command::new(program);
            command.arg0("redis-server").args(["--port", &port.to_string()]);
            command.args(["--bind", "127.0.0.1", "--dir", folder.path()]).args(options);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().ok()
        })?;
        let mut lines = BufReader::new(child.stdout.take()?).lines();
        let is_ready = lines.any(|line| line.is_ok_and(|line| line.contains(READY)));
        assert!(is_ready, "no Redis starts with {options:?}");
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { child, port, _folder: folder })
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Reports a test that needs a Redis, past what a test runner keeps to itself.
pub(crate) fn no_redis(what: &str) {
    let _ = writeln!(
        std::io::stderr(),
        "NOT RUN: {what}: no redis-server; install the Debian package redis-tools, or name one in {CHOICE}"
    );
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// The variable that names another program to test with.
const CHOICE: &str = "FANWIRE_REDIS_SERVER";
/// Debian's package redis-tools has the program under the second name.
const PROGRAMS: [&str; 2] = ["redis-server", "redis-check-rdb"];
const READY: &str = "Ready to accept connections";
