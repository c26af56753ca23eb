//! Opening a connection to a Redis, and making sure that it is one we can work with.
//! In: an address and timeouts → out: a socket that is logged in, or an error that names the address and the remedy.
//! Uses: tokio's TCP. Never: waits without a limit.
//! Change here: what is asked of a Redis before it is used. Who tries again lives in `line.rs` and `feed.rs`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::clock::Clock;
use super::error::RedisError;
use super::options::{Address, RedisOptions};
use super::resp::{Command, Reply};

/// Opens connections to one Redis.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    address: Address,
    client_name: String,
    connect_timeout: Duration,
    pub(crate) io_timeout: Duration,
    clock: Arc<Clock>,
}

impl Dialer {
    pub(crate) fn new(address: &Address, options: &RedisOptions, clock: Arc<Clock>) -> Self {
        let RedisOptions { client_name, connect_timeout, io_timeout, .. } = options;
        Self {
            address: address.clone(),
            client_name: client_name.clone(),
            connect_timeout: *connect_timeout,
            io_timeout: *io_timeout,
            clock,
        }
    }

    /// A connection on which `first` was answered well, too. Sets the clock by the time of the Redis.
    ///
    /// # Errors
    /// A [`RedisError`] with the address, after the two timeouts at the latest.
    pub(crate) async fn dial(
        &self,
        first: impl Iterator<Item = Command>,
    ) -> Result<TcpStream, RedisError> {
        let place = (self.address.host.as_str(), self.address.port);
        let connected = timeout(self.connect_timeout, TcpStream::connect(place)).await;
        let connected = connected.map_err(|_| self.late("connecting", self.connect_timeout))?;
        let mut stream = connected.map_err(|error| self.unreachable(error))?;
        stream.set_nodelay(true).map_err(|error| self.unreachable(error))?;
        let greeted = timeout(self.io_timeout, self.greet(&mut stream, first)).await;
        greeted.map_err(|_| self.late("its first reply", self.io_timeout))??;
        Ok(stream)
    }

    /// The connection was lost.
    pub(crate) fn unreachable(&self, why: impl ToString) -> RedisError {
        RedisError::Unreachable { address: self.address.clone(), why: why.to_string() }
    }

    pub(crate) fn not_redis(&self) -> RedisError {
        RedisError::NotRedis { address: self.address.clone() }
    }

    /// What an error reply means for the connection.
    pub(crate) fn refused(&self, reply: &[u8]) -> RedisError {
        let address = self.address.clone();
        let reply = String::from_utf8_lossy(reply).into_owned();
        if DENIALS.iter().any(|denial| reply.starts_with(denial)) {
            RedisError::Denied { address, reply }
        } else {
            RedisError::Refused { address, reply }
        }
    }

    fn late(&self, what: &str, after: Duration) -> RedisError {
        self.unreachable(format_args!("{what} took longer than {after:?}"))
    }

    async fn greet(
        &self,
        stream: &mut TcpStream,
        first: impl Iterator<Item = Command>,
    ) -> Result<(), RedisError> {
        let mut out = Vec::new();
        let login = self.login();
        let questions = [["INFO", "server"], ["INFO", "replication"]];
        let questions =
            questions.map(|[one, other]| Command::of(&[one.as_bytes(), other.as_bytes()]));
        let first: Vec<Command> = first.collect();
        for command in
            login.iter().chain(&questions).chain([&Command::of(&[b"TIME"])]).chain(&first)
        {
            out.extend_from_slice(command.bytes());
        }
        stream.write_all(&out).await.map_err(|error| self.unreachable(error))?;
        let mut replies = Replies { dialer: self, stream, buffer: BytesMut::new() };
        for _ in &login {
            replies.next().await?;
        }
        let server = replies.next().await?;
        let replication = replies.next().await?;
        self.judge(server.text(), replication.text())?;
        let time = replies.next().await?;
        self.clock.set(Instant::now(), unix_ms(time).ok_or_else(|| self.not_redis())?);
        for _ in &first {
            replies.next().await?;
        }
        if replies.buffer.is_empty() { Ok(()) } else { Err(self.not_redis()) }
    }

    fn login(&self) -> Vec<Command> {
        let Address { user, password, db, .. } = &self.address;
        let mut login = Vec::new();
        match (user.as_str(), password.as_str()) {
            ("", "") => {}
            ("", password) => login.push(Command::of(&[b"AUTH", password.as_bytes()])),
            (user, password) => {
                login.push(Command::of(&[b"AUTH", user.as_bytes(), password.as_bytes()]));
            }
        }
        if *db > 0 {
            login.push(Command::of(&[b"SELECT", db.to_string().as_bytes()]));
        }
        if !self.client_name.is_empty() {
            login.push(Command::of(&[b"CLIENT", b"SETNAME", self.client_name.as_bytes()]));
        }
        login
    }

    /// Whether we can work with a Redis that says this of itself (`INFO`). What it does not say is not held against it.
    fn judge(&self, server: Option<&Bytes>, replication: Option<&Bytes>) -> Result<(), RedisError> {
        let address = || self.address.clone();
        let said = |section: Option<&Bytes>, name| field(section.map_or(b"", |text| text), name);
        if let Some(version) = said(server, "redis_version")
            && number_of(&version) < VERSION_MIN
        {
            return Err(RedisError::TooOld { address: address(), version });
        }
        let mode = said(server, "redis_mode").filter(|mode| mode != "standalone");
        let role = said(replication, "role").filter(|role| role != "master");
        match mode.or(role) {
            Some(role) => Err(RedisError::Role { address: address(), role }),
            None => Ok(()),
        }
    }
}

/// Replies one after the other, errors among them being errors.
struct Replies<'a> {
    dialer: &'a Dialer,
    stream: &'a mut TcpStream,
    buffer: BytesMut,
}

impl Replies<'_> {
    async fn next(&mut self) -> Result<Reply, RedisError> {
        loop {
            match Reply::take(&mut self.buffer) {
                Ok(Some(Reply::Error(text))) => return Err(self.dialer.refused(&text)),
                Ok(Some(reply)) => return Ok(reply),
                Ok(None) => {}
                Err(_) => return Err(self.dialer.not_redis()),
            }
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) => return Err(self.dialer.unreachable("it closed the connection")),
                Ok(_) => {}
                Err(error) => return Err(self.dialer.unreachable(error)),
            }
        }
    }
}

/// What `TIME` answers: seconds and microseconds.
pub(crate) fn unix_ms(reply: Reply) -> Option<u64> {
    let parts = reply.parts()?;
    let [seconds, micros] = &parts[..] else { return None };
    Some(seconds.number()?.checked_mul(1000)? + micros.number()? / 1000)
}

/// The value of a line `name:value`.
fn field(section: &[u8], name: &str) -> Option<String> {
    let section = String::from_utf8_lossy(section);
    let value = section.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

/// The first two numbers of a version.
fn number_of(version: &str) -> (u32, u32) {
    let mut numbers = version.split('.').map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// What refusals begin with that credentials or access lists cause.
const DENIALS: &[&str] = &[
    "WRONGPASS",
    "NOAUTH",
    "NOPERM",
    "DENIED",
    "ERR invalid password",
    "ERR AUTH",
    "ERR Client sent AUTH",
    "ERR invalid username-password",
];
/// Exclusive ranges of streams.
const VERSION_MIN: (u32, u32) = (6, 2);

#[cfg(test)]
mod tests;
