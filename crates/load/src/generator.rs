//! The generator: many subscribers and one publisher on one thread over one poller.
//! In: an address and a profile of subscribers → out: their messages to a `PublicationHandler`, in the order of arrival.
//! Uses mio and socket2 for sockets; never starts processes and never measures (see `target`, `machine`).
//! Change here how subscribers are opened and polled; what one of them says lives in `connection`.

use anyhow::{Context, Result, bail};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Registry, Token};
use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use connection::{ClientConnection, GeneratorState};
use messages::Encoding;

pub mod connection;
pub mod frame;
pub mod handshake;
pub mod inflate;
pub mod messages;
pub mod protobuf;
pub mod publisher;
pub mod stream_publisher;

/// What a group of subscribers asks for.
#[derive(Clone, Debug)]
pub struct Profile {
    /// No handshake and no commands: the bare send loop only wants connections.
    pub plain: bool,
    pub encoding: Encoding,
    /// Offer permessage-deflate.
    pub compression: bool,
    pub channels: Vec<String>,
}

/// Who looks at what subscribers receive.
pub trait PublicationHandler {
    /// One message that is neither a reply nor a ping. A generator that does not inflate hands out a compressed
    /// payload as it came, and counts it as one message.
    ///
    /// # Errors
    /// Ends the run.
    fn publication(&mut self, subscriber: usize, message: &[u8]) -> Result<()>;
}

/// Counts deliveries.
#[derive(Default)]
pub struct Deliveries(pub u64);

impl PublicationHandler for Deliveries {
    fn publication(&mut self, _subscriber: usize, _message: &[u8]) -> Result<()> {
        self.0 += 1;
        Ok(())
    }
}

/// The subscribers of one run; dropping it closes them all.
pub struct Generator {
    poll: Poll,
    events: Events,
    connections: Vec<ClientConnection>,
    shared: GeneratorState,
    buffer: Box<[u8]>,
    bytes_received: u64,
    /// Last byte of the loopback address that new connections come from; grows when its ports run out.
    source: u8,
    /// The kernel's receive buffer of each connection; `None` = its default.
    receive_buffer: Option<usize>,
}

impl Generator {
    /// `inflate` hands out plaintext of compressed frames, at the cost of an inflater per connection.
    pub fn new(inflate: bool) -> Result<Self> {
        Ok(Self {
            poll: Poll::new()?,
            events: Events::with_capacity(1024),
            connections: Vec::new(),
            shared: GeneratorState::new(inflate),
            buffer: vec![0; READ_BYTES_MAX].into(),
            bytes_received: 0,
            source: 1,
            receive_buffer: None,
        })
    }

    /// Inflates, and gives connections a receive buffer of so many bytes.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_receive_buffer(bytes: usize) -> Result<Self> {
        Ok(Self { receive_buffer: Some(bytes), ..Self::new(true)? })
    }

    /// Where publishers register; their tokens are `PUBLISHER_TOKEN` and up.
    pub fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    pub fn bytes_received(&self) -> u64 {
        self.bytes_received
    }

    pub fn pings(&self) -> u64 {
        self.shared.pings
    }

    /// Opens `count` more subscribers and returns when each has all its replies.
    ///
    /// # Errors
    /// A refused connection, an error reply, or ten seconds without progress.
    pub fn open(&mut self, address: SocketAddr, count: usize, profile: &Profile) -> Result<()> {
        let goal = self.connections.len() + count;
        let mut progress = StallTimer::default();
        while self.shared.subscribed < goal {
            let opening = self.connections.len() - self.shared.subscribed;
            for _ in opening..OPENING_MAX.min(opening + goal - self.connections.len()) {
                self.connect(address, profile)?;
            }
            self.turn(Some(Duration::from_millis(100)), &mut Nobody)?;
            let subscribed = self.shared.subscribed;
            progress.check(subscribed as u64, || format!("{subscribed} of {goal} subscribers"))?;
        }
        Ok(())
    }

    /// Waits for events and handles them; `Duration::ZERO` only looks. True when a publisher has something to read.
    ///
    /// # Errors
    /// The first subscriber that failed, by number.
    pub fn turn(
        &mut self,
        timeout: Option<Duration>,
        handler: &mut impl PublicationHandler,
    ) -> Result<bool> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(false),
            polled => polled?,
        }
        let mut publisher_ready = false;
        for event in &self.events {
            let Token(index) = event.token();
            if index >= PUBLISHER_TOKEN {
                publisher_ready = true;
                continue;
            }
            let connection = &mut self.connections[index];
            let read = read(connection, index, &mut self.buffer, &mut self.shared, handler);
            self.bytes_received += read.with_context(|| format!("subscriber {index}"))?;
        }
        Ok(publisher_ready)
    }

    /// Reads at most `bytes` of each connection, once: subscribers that are slower than the server. Returns the sum.
    ///
    /// # Errors
    /// The first subscriber that failed, by number.
    pub fn read_each(
        &mut self,
        bytes: usize,
        handler: &mut impl PublicationHandler,
    ) -> Result<u64> {
        let (mut total, most) = (0, bytes.min(self.buffer.len()));
        for (index, connection) in self.connections.iter_mut().enumerate() {
            let part = &mut self.buffer[..most];
            let read = read_once(connection, index, part, &mut self.shared, handler);
            total += read.with_context(|| format!("subscriber {index}"))?;
        }
        self.bytes_received += total;
        Ok(total)
    }

    fn connect(&mut self, address: SocketAddr, profile: &Profile) -> Result<()> {
        let mut stream = connect(&mut self.source, address).with_context(|| {
            format!("connecting subscriber {} to {address}", self.connections.len())
        })?;
        if let Some(bytes) = self.receive_buffer {
            SockRef::from(&stream).set_recv_buffer_size(bytes)?;
        }
        let token = Token(self.connections.len());
        self.poll.registry().register(&mut stream, token, Interest::READABLE)?;
        self.connections.push(ClientConnection::open(stream, profile, &mut self.shared)?);
        Ok(())
    }
}

/// Ends a run that stands still, so that a lost message is an error and not a run without end.
pub struct StallTimer {
    since: Instant,
    count: u64,
}

impl Default for StallTimer {
    fn default() -> Self {
        Self { since: Instant::now(), count: 0 }
    }
}

impl StallTimer {
    /// # Errors
    /// The count has been the same for ten seconds; `state` says what is there and what is missing.
    pub fn check(&mut self, count: u64, state: impl FnOnce() -> String) -> Result<()> {
        let now = Instant::now();
        if count != self.count {
            *self = Self { since: now, count };
        } else if now - self.since > STALL {
            bail!("no progress in {STALL:?}: {}", state());
        }
        Ok(())
    }
}

/// Reads until the socket is empty; a short read is the end, so most deliveries cost one system call.
fn read(
    connection: &mut ClientConnection,
    index: usize,
    buffer: &mut [u8],
    shared: &mut GeneratorState,
    handler: &mut impl PublicationHandler,
) -> Result<u64> {
    let mut total = 0;
    loop {
        match connection.stream.read(buffer) {
            Ok(0) => bail!("the server closed without a close frame"),
            Ok(length) => {
                total += length as u64;
                connection.receive(index, &buffer[..length], shared, handler)?;
                if length < buffer.len() {
                    return Ok(total);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(total),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("reading"),
        }
    }
}

fn read_once(
    connection: &mut ClientConnection,
    index: usize,
    buffer: &mut [u8],
    shared: &mut GeneratorState,
    handler: &mut impl PublicationHandler,
) -> Result<u64> {
    match connection.stream.read(buffer) {
        Ok(0) => bail!("the server closed without a close frame"),
        Ok(length) => {
            connection.receive(index, &buffer[..length], shared, handler)?;
            Ok(length as u64)
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        Err(error) => Err(error).context("reading"),
    }
}

/// Connects from the loopback address that ends with `source`, which grows when its ports have run out.
///
/// # Errors
/// No server listens, or no descriptor or port is left.
pub fn connect(source: &mut u8, address: SocketAddr) -> Result<TcpStream> {
    loop {
        match connect_from(*source, address) {
            Err(error) if error.kind() == ErrorKind::AddrNotAvailable && *source < 250 => {
                *source += 1;
            }
            connected => return Ok(TcpStream::from_std(connected?.into())),
        }
    }
}

/// A blocking connect (loopback answers at once), then a nonblocking socket.
fn connect_from(source: u8, address: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    if source > 1 {
        let from = SocketAddr::from((Ipv4Addr::new(127, 0, 0, source), 0));
        socket.bind(&SockAddr::from(from))?;
    }
    socket.connect(&SockAddr::from(address))?;
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The subscribers at the start: no publication yet.
struct Nobody;

impl PublicationHandler for Nobody {
    fn publication(&mut self, subscriber: usize, message: &[u8]) -> Result<()> {
        bail!("subscriber {subscriber} got {} before any publication", message.escape_ascii());
    }
}

/// Tokens from here on belong to publishers.
pub const PUBLISHER_TOKEN: usize = usize::MAX / 2;
/// Without progress for this long a run has failed.
const STALL: Duration = Duration::from_secs(10);
/// Handshakes under way at once, below every listen backlog.
const OPENING_MAX: usize = 100;
const READ_BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests;
