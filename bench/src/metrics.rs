//! What a server counts, as its page of metrics says.
//! In: its address → out: the page, and single values of it.
//! Uses one HTTP request on a connection of its own, and waits for the answer.
//! Changed here: how metrics are asked for; which ones are of interest is the scenario's business.

use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The page, with the head of its answer.
///
/// # Errors
/// No answer within ten seconds.
pub fn page(address: SocketAddr) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("waiting for the metrics")?;
    Ok(answer)
}

/// The value of a metric without labels.
///
/// # Errors
/// There is none, or it is no number.
pub fn value(page: &str, name: &str) -> Result<f64> {
    let mut lines = page.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let value = lines.next().with_context(|| format!("no {name} in {page:.200}"))?;
    value.parse().with_context(|| format!("{name} {value}"))
}

const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
