//! A Redis for one test: its process, and commands to it.
//! In: options of `redis-server` → out: an address; the process ends with the value.
//! Uses the machine's Redis or a chosen one, a process per value, ended by its own id. Never: the default port, others.
//! Changed here: how a Redis is started for tests.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fanwire_redis::{Address, RedisOptions};
use fanwire_testing::{Folder, free_port, wait_for};

use crate::node::WAIT_MAX;

/// A running Redis without persistence.
pub(crate) struct RedisServer {
    child: Child,
    folder: Folder,
    port: u16,
    options: Vec<String>,
}

impl RedisServer {
    pub(crate) fn start(options: &[&str]) -> Self {
        let folder = Folder::new("redis");
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let port = free_port();
        let Some(child) = launch(&[], port, &folder, &options) else {
            panic!("no redis-server starts: install redis-tools of Debian, or look at {CHOICE}");
        };
        Self { child, folder, port, options }
    }

    /// A Sentinel that watches one master, through which it finds the others.
    pub(crate) fn start_sentinel(port: u16, name: &str, master: &Self, options: &[&str]) -> Self {
        let folder = Folder::new("sentinel");
        let mut lines = format!(
            "sentinel monitor {name} 127.0.0.1 {} 2\nsentinel down-after-milliseconds {name} 3000\n\
             sentinel failover-timeout {name} 3000\nsentinel parallel-syncs {name} 2\n",
            master.port
        );
        options.iter().for_each(|line| lines += &format!("{line}\n"));
        let file = folder.write("sentinel.conf", &lines);
        let child = launch(&[&file, "--sentinel"], port, &folder, &[]).expect("a Sentinel starts");
        Self { child, folder, port, options: Vec::new() }
    }

    pub(crate) fn address(&self) -> Address {
        Address { port: self.port, ..Address::default() }
    }

    pub(crate) fn options(&self) -> RedisOptions {
        RedisOptions { addresses: vec![self.address()], ..RedisOptions::default() }
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was killed");
    }

    /// Stops or continues the process.
    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args([signal, &pid]).status();
        assert!(status.expect("there is a kill").success());
    }

    /// Stops the process, and waits until it has stopped.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
        let is_stopped = || {
            let pid = self.child.id().to_string();
            let asked = Command::new("ps").args(["-o", "state=", "-p", &pid]).output();
            asked.expect("there is a ps").stdout.starts_with(b"T")
        };
        wait_for(is_stopped, WAIT_MAX);
    }

    /// Starts it again at the same port, with its saved data.
    pub(crate) fn restart(&mut self) {
        self.child =
            launch(&[], self.port, &self.folder, &self.options).expect("the port is still free");
    }

    /// The reply to a command as text; its arguments have no spaces.
    pub(crate) fn ask(&self, command: &str) -> String {
        self.ask_with(&command.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    /// The reply to a command, undecoded.
    pub(crate) fn ask_with(&self, arguments: &[&[u8]]) -> String {
        self.try_ask(arguments).expect("it listens and answers")
    }

    /// The same for a command that may end the connection, as it does when a Redis becomes a replica.
    pub(crate) fn try_ask(&self, arguments: &[&[u8]]) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        let mut out = format!("*{}\r\n", arguments.len()).into_bytes();
        for argument in arguments {
            out.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            out.extend_from_slice(argument);
            out.extend_from_slice(b"\r\n");
        }
        stream.write_all(&out)?;
        // The sending side stays open: Valkey drops a client that closes it while a slot is being set.
        let mut reply = Vec::new();
        let mut part = [0; 4096];
        while end_of_reply(&reply).is_none() {
            match stream.read(&mut part)? {
                0 => break,
                count => reply.extend_from_slice(&part[..count]),
            }
        }
        Ok(String::from_utf8_lossy(&reply).into_owned())
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts it and waits until it is ready; `None` when it ends before that.
///
/// The program is that of `FANWIRE_REDIS_SERVER`, or the one of the machine. Debian's package redis-tools, which
/// installs no service, has the program under another name; it acts as a server when it is called `redis-server`.
fn launch(first: &[&str], port: u16, folder: &Path, options: &[String]) -> Option<Child> {
    let chosen = std::env::var_os(CHOICE).map(|program| vec![program]);
    let programs = chosen.unwrap_or_else(|| PROGRAMS.map(OsString::from).to_vec());
    let mut child = programs.iter().find_map(|program| {
        let mut command = Command::new(program);
        command.arg0("redis-server").args(first).args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
        ]);
        command.args(["--save", "", "--daemonize", "no", "--logfile", "", "--dir"]).arg(folder);
        command.args(options).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().ok()
    })?;
    let mut lines = BufReader::new(child.stdout.take()?).lines();
    while let Some(Ok(line)) = lines.next() {
        if READY.iter().any(|ready| line.contains(ready)) {
            std::thread::spawn(move || lines.for_each(drop));
            return Some(child);
        }
    }
    let _ = child.wait();
    None
}

/// The end of the first reply (RESP2) in these bytes, if it is complete.
fn end_of_reply(bytes: &[u8]) -> Option<usize> {
    let line = bytes.windows(2).position(|two| two == b"\r\n")?;
    let count = || str::from_utf8(&bytes[1..line]).ok()?.parse::<i64>().ok();
    let behind = line + 2;
    match bytes[0] {
        b'$' => {
            let end = usize::try_from(count()?).map_or(behind, |length| behind + length + 2);
            (end <= bytes.len()).then_some(end)
        }
        b'*' => (0..count()?).try_fold(behind, |at, _| Some(at + end_of_reply(&bytes[at..])?)),
        _ => Some(behind),
    }
}

/// The variable that names another program to test with.
const CHOICE: &str = "FANWIRE_REDIS_SERVER";
const PROGRAMS: [&str; 2] = ["redis-server", "redis-check-rdb"];
/// The log lines of a ready Redis and a ready Sentinel.
const READY: &[&str] = &["Ready to accept connections", "+monitor master"];
