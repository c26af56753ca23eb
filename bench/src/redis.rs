//! A Redis of a run's own, and how fast plain `redis-benchmark` publishes to it: the yardstick of the Redis engine.
//! In: cores, a record, how many at once → out: a listening server, stopped when dropped; µs for that many.
//! Uses the machine's redis-benchmark, and its redis-server or a chosen one, on the loopback. Never: a Redis that was there before.
//! Changed here: how a Redis is started and what the yardstick is; what is compared with it lives in the scenarios.

use anyhow::{Context, Result, ensure};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::target::command_on;

/// A running redis-server that saves nothing. Dropping it ends the process.
pub struct RedisServer {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl RedisServer {
    /// Starts one, on one core or on all, and returns when it accepts connections.
    ///
    /// # Errors
    /// There is no redis-server, or it ends before it is ready.
    pub fn start(core: Option<usize>) -> Result<Self> {
        let port = free_port()?;
        let folder = std::env::temp_dir().join(format!("fanwire-bench-redis-{port}"));
        std::fs::create_dir_all(&folder)?;
        let mut command = command_on(core, program(&folder)?.as_ref());
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.arg("--dir").arg(&folder).stdout(Stdio::piped());
        let mut child = command.spawn().context(PACKAGE)?;
        let mut lines = BufReader::new(child.stdout.take().context("it was piped")?).lines();
        let server = Self { child, port, folder };
        let is_ready = |line: &str| line.contains("Ready to accept");
        let ready = lines.find(|line| line.as_ref().is_ok_and(|line| is_ready(line)));
        ensure!(ready.is_some(), "redis-server ended before it was ready ({PACKAGE})");
        std::thread::spawn(move || lines.for_each(drop));
        Ok(server)
    }

    /// The section `engine` of a configuration that uses it.
    pub fn engine(&self) -> serde_json::Value {
        serde_json::json!({
            "type": "redis",
            "redis": { "address": format!("redis://127.0.0.1:{}", self.port) },
        })
    }

    /// µs for one pipeline of `load` on one connection: the mean over all of them. redis-benchmark runs on `core`.
    ///
    /// # Errors
    /// There is no redis-benchmark, or it prints what no version does that we know.
    pub fn publish_us(&self, core: Option<usize>, load: &PublishLoad<'_>) -> Result<f64> {
        let mut command = command_on(core, "redis-benchmark".as_ref());
        let port = self.port.to_string();
        let depth = load.at_once.to_string();
        let count = load.count.max(load.at_once).to_string();
        command.args(["-p", &port, "-P", &depth, "-n", &count, "-c", "1", "--csv", "-x"]);
        command.args(["PUBLISH", load.channel]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context(PACKAGE)?;
        child.stdin.take().context("it was piped")?.write_all(load.record)?;
        let output = String::from_utf8(child.wait_with_output()?.stdout)?;
        Ok(load.at_once as f64 * 1e6 / rate(&output)?)
    }
}

/// Plain PUBLISH of one record, as redis-benchmark repeats it.
pub struct PublishLoad<'a> {
    pub channel: &'a str,
    pub record: &'a [u8],
    /// Commands of one pipeline.
    pub at_once: usize,
    /// Commands in all, rounded up to whole pipelines.
    pub count: usize,
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The program that `FANWIRE_REDIS_SERVER` names, or the one of the machine. Debian's package redis-tools, which brings no
/// service along, has it under another name: called `redis-server`, as by a link in `folder`, it is one.
fn program(folder: &Path) -> Result<OsString> {
    if let Some(chosen) = std::env::var_os("FANWIRE_REDIS_SERVER") {
        return Ok(chosen);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let find = |name| std::env::split_paths(&path).map(|at| at.join(name)).find(|at| at.is_file());
    if let Some(server) = find("redis-server") {
        return Ok(server.into());
    }
    let link = folder.join("redis-server");
    symlink(find("redis-check-rdb").context(PACKAGE)?, &link)?;
    Ok(link.into())
}

/// A port without a listener.
///
/// # Errors
/// There is none.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Commands per second in what `redis-benchmark --csv` prints. The last line is the row, its first field is the command,
/// which may hold anything, and seven figures follow, the rate before the others.
fn rate(output: &str) -> Result<f64> {
    let row = output.lines().last().context("redis-benchmark printed nothing")?;
    let field = row.rsplit("\",\"").nth(6).with_context(|| format!("no rate in {row}"))?;
    field.trim_matches('"').parse().with_context(|| format!("no rate in {row}"))
}

const PACKAGE: &str = "redis-server and redis-benchmark come with the Debian package redis-tools";

#[cfg(test)]
mod tests;
