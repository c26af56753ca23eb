//! The publisher: HTTP keep-alive connections to `POST /api/publish`, or the control connection of the bare loop.
//! In: ready-made requests → out: bytes to the target; answers are checked and counted.
//! Uses mio sockets on the generator's poller; one request per lane at a time.
//! Changed here: how a publication is asked for; what it contains is the scenario's business.

use anyhow::{Context, Result, bail};
use mio::{Interest, Registry, Token};
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;

use super::PUBLISHER_TOKEN;
use super::tls::{self, PlainOrTls};
use crate::address::ServerAddress;

pub struct Publisher {
    address: ServerAddress,
    registry: Registry,
    lanes: Vec<Lane>,
    /// The bare loop does not answer.
    answered: bool,
}

impl Publisher {
    /// HTTP lanes: as many requests can be under way at once.
    pub fn http(
        address: impl Into<ServerAddress>,
        lanes: usize,
        registry: &Registry,
    ) -> Result<Self> {
        Self::http_from(0, address, lanes, registry)
    }

    /// Creates HTTP lanes as [`Publisher::http`] does, next to others on the same poller: its tokens begin at `PUBLISHER_TOKEN + first`.
    pub fn http_from(
        first: usize,
        address: impl Into<ServerAddress>,
        lanes: usize,
        registry: &Registry,
    ) -> Result<Self> {
        let address = address.into();
        let registry = registry.try_clone()?;
        let connecting =
            (first..first + lanes).map(|lane| Lane::connect(&address, lane, &registry));
        let lanes = connecting.collect::<Result<_>>()?;
        Ok(Self { address, registry, lanes, answered: true })
    }

    /// The control connection of the bare loop: must be its first connection.
    pub fn bare(address: SocketAddr, registry: &Registry) -> Result<Self> {
        let address = ServerAddress::from(address);
        let lanes = vec![Lane::connect(&address, 0, registry)?];
        Ok(Self { address, registry: registry.try_clone()?, lanes, answered: false })
    }

    /// Whether the lane with this number can take a request.
    pub fn is_free(&self, lane: usize) -> bool {
        !self.lanes[lane].busy
    }

    pub fn has_free_lane(&self) -> bool {
        self.lanes.iter().any(|lane| !lane.busy)
    }

    pub fn is_idle(&self) -> bool {
        self.lanes.iter().all(|lane| !lane.busy)
    }

    /// Sends one request on a free lane.
    ///
    /// # Errors
    /// No free lane, or a socket that has failed.
    pub fn publish(&mut self, request: &[u8]) -> Result<()> {
        let lane = self.lanes.iter().position(|lane| !lane.busy).context("every lane is busy")?;
        self.publish_on(lane, request)
    }

    /// Sends one request on a lane that is free; what the socket does not take is sent by `flush`.
    ///
    /// # Errors
    /// A socket that has failed.
    pub fn publish_on(&mut self, lane: usize, request: &[u8]) -> Result<()> {
        let lane = &mut self.lanes[lane];
        if lane.is_closed {
            *lane = Lane::connect(&self.address, lane.number, &self.registry)?;
        }
        lane.pending.extend_from_slice(request);
        lane.busy = self.answered;
        lane.flush()
    }

    /// Sends what the sockets did not take before.
    ///
    /// # Errors
    /// A socket that has failed.
    pub fn flush(&mut self) -> Result<()> {
        self.lanes.iter_mut().try_for_each(Lane::flush)
    }

    /// Reads the answers that are there.
    ///
    /// # Errors
    /// An answer that is not 200 with a result, or a closed connection.
    pub fn receive(&mut self) -> Result<()> {
        self.lanes.iter_mut().try_for_each(Lane::receive)
    }
}

/// A request to `POST /api/publish`; `payload` is the field with the data, `"data":…` or `"b64data":"…"`.
pub fn publish_request(channel: &str, payload: &str, key: &str) -> Vec<u8> {
    http_request("publish", &format!("{{\"channel\":\"{channel}\",{payload}}}"), key)
}

/// A request to a method of the server API.
pub fn http_request(method: &str, body: &str, key: &str) -> Vec<u8> {
    post("localhost", &format!("/api/{method}"), body, key)
}

/// A POST request with a JSON body.
pub fn post(host: &str, path: &str, body: &str, key: &str) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nX-API-Key: {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    (head + body).into_bytes()
}

struct Lane {
    stream: Box<dyn PlainOrTls>,
    number: usize,
    busy: bool,
    /// The server ends connections that are idle for long.
    is_closed: bool,
    /// Part of the request that was not sent yet.
    pending: Vec<u8>,
    answer: Vec<u8>,
}

impl Lane {
    fn connect(address: &ServerAddress, lane: usize, registry: &Registry) -> Result<Self> {
        let stream = tls::connect(address, |socket| {
            registry.register(socket, Token(PUBLISHER_TOKEN + lane), Interest::READABLE)
        })?;
        Ok(Self {
            stream,
            number: lane,
            busy: false,
            is_closed: false,
            pending: Vec::new(),
            answer: Vec::new(),
        })
    }

    fn flush(&mut self) -> Result<()> {
        send(&mut self.stream, &mut self.pending).context("publishing")
    }

    fn receive(&mut self) -> Result<()> {
        let mut buffer = [0; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) if self.busy => bail!("the server closed the publisher's connection"),
                Ok(0) => {
                    self.is_closed = true;
                    return Ok(());
                }
                Ok(length) => self.answer.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error).context("reading an answer"),
            }
        }
        if let Some(length) = answer_length(&self.answer)? {
            self.answer.drain(..length);
            self.busy = false;
        }
        Ok(())
    }
}

/// Writes what the socket takes of `pending`, and removes it there.
///
/// # Errors
/// The socket has failed.
pub(super) fn send(stream: &mut impl Write, pending: &mut Vec<u8>) -> io::Result<()> {
    while !pending.is_empty() {
        match stream.write(pending) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => drop(pending.drain(..count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The length of a complete good answer at the front, `None` when more bytes are needed.
///
/// # Errors
/// An answer that is not 200 with a result.
pub fn answer_length(bytes: &[u8]) -> Result<Option<usize>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..end])?;
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let (_, length) =
        length.with_context(|| format!("an answer without content-length: {head}"))?;
    let length: usize = length.trim().parse().context("content-length")?;
    let Some(body) = bytes.get(end + 4..end + 4 + length) else { return Ok(None) };
    let is_good = if body.starts_with(b"{\"replies\":") {
        !String::from_utf8_lossy(body).contains("\"error\"")
    } else {
        body.starts_with(b"{\"result\":")
    };
    if !head.starts_with("HTTP/1.1 200 ") || !is_good {
        let status = head.lines().next().unwrap_or_default();
        let text = String::from_utf8_lossy(body);
        bail!(
            "the API answers {status}: {}",
            text.chars().take(ANSWER_CHARS_MAX).collect::<String>()
        );
    }
    Ok(Some(end + 4 + length))
}

/// Characters of a bad answer that are shown.
const ANSWER_CHARS_MAX: usize = 300;

#[cfg(test)]
mod tests;
