//! The generator: many subscribers and one publisher on one thread over one poller.
//! In: an address and a profile of subscribers → out: their messages to a `PublicationHandler`, in the order of arrival.
//! Uses mio and socket2 for sockets; never starts processes and never measures (see `machine`, and `target` in `bench`).
//! Changed here: how subscribers are opened and polled; what one of them says lives in `connection`.

use anyhow::{Context, Result, bail};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Registry, Token};
use rustls::ClientConfig;
use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use connection::{ClientConnection, GeneratorState};
use messages::Encoding;

pub mod connection;
pub mod events;
pub mod frame;
pub mod handshake;
pub mod inflate;
pub mod messages;
pub mod protobuf;
pub mod publisher;
pub mod stream_publisher;
pub mod tls;

/// Options that the subscribers of a group share.
#[derive(Clone, Debug)]
pub struct Profile {
    /// No handshake and no commands: the bare send loop only wants connections.
    pub plain: bool,
    pub encoding: Encoding,
    /// Offer permessage-deflate.
    pub compression: bool,
    pub channels: Vec<String>,
}

/// Target of subscribers, and their token.
#[derive(Clone, Debug)]
pub struct ConnectTarget {
    /// Value of the `Host` header.
    pub host: String,
    /// Path and query; `None` is Fanwire's own path for the encoding.
    pub path: Option<String>,
    /// The token of the connect command.
    pub token: Option<String>,
    pub subscribe: SubscribeForm,
    pub transport: SubscriberTransport,
    /// TLS of the connections; the certificate must have the name in `host`.
    pub tls: Option<Arc<ClientConfig>>,
}

/// The content that subscribes ask for besides publications from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SubscribeForm {
    #[default]
    Live,
    /// Everything that the history has.
    Recovering,
    /// The entries of a map, which must fit into one page.
    Map,
}

/// How subscribers receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SubscriberTransport {
    #[default]
    WebSocket,
    /// Server-Sent Events, in JSON; the path is that of Fanwire. Answers to pings are [`Generator::take_pongs`].
    EventStream,
    /// Unidirectional Server-Sent Events, with channels that the connect request asks for; the path is that of Fanwire.
    UniEventStream,
    /// A unidirectional WebSocket, in JSON, with channels that the connect request asks for; the path is that of Fanwire.
    UniWebSocket,
    /// A WebSocket that sends no command.
    UpgradeOnly,
}

impl SubscriberTransport {
    /// Subscribers read Server-Sent Events.
    pub fn is_events(self) -> bool {
        matches!(self, Self::EventStream | Self::UniEventStream)
    }

    fn is_unidirectional(self) -> bool {
        matches!(self, Self::UniEventStream | Self::UniWebSocket)
    }
}

impl Default for ConnectTarget {
    fn default() -> Self {
        Self {
            host: "localhost".to_owned(),
            path: Default::default(),
            token: Default::default(),
            subscribe: SubscribeForm::default(),
            transport: Default::default(),
            tls: None,
        }
    }
}

/// Takes what subscribers receive.
pub trait PublicationHandler {
    /// One message that is neither a reply nor a ping. A generator that does not inflate hands out a compressed
    /// payload as it came, and counts it as one message.
    ///
    /// # Errors
    /// Ends the run.
    fn publication(&mut self, subscriber: usize, message: &[u8]) -> Result<()>;

    /// The subscriber has all its replies: it receives what is published from now on.
    fn subscribed(&mut self, _subscriber: usize) {}

    /// The connection of a subscriber has failed, for a `Closed` or another reason, and is not used again.
    ///
    /// # Errors
    /// Ends the run. Without a method of its own, a handler ends it always.
    fn failed(&mut self, _subscriber: usize, error: anyhow::Error) -> Result<()> {
        Err(error)
    }
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
    state: GeneratorState,
    buffer: Box<[u8]>,
    bytes_received: u64,
    idle: Duration,
    /// Last byte of the loopback address that new connections come from; grows when its ports run out.
    source: u8,
    /// The kernel's receive buffer of each connection; `None` = its default.
    receive_buffer: Option<usize>,
    /// Connections that [`open_some`](Self::open_some) opens at a time.
    opening_max: usize,
}

impl Generator {
    /// `inflate` hands out plaintext of compressed frames, at the cost of an inflater per connection.
    pub fn new(inflate: bool) -> Result<Self> {
        Ok(Self {
            poll: Poll::new()?,
            events: Events::with_capacity(1024),
            connections: Vec::new(),
            state: GeneratorState::new(inflate),
            buffer: vec![0; READ_BYTES_MAX].into(),
            bytes_received: 0,
            idle: Duration::ZERO,
            source: 1,
            receive_buffer: None,
            opening_max: OPENING_MAX,
        })
    }

    /// Inflates, and gives connections a receive buffer of this number of bytes.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_receive_buffer(bytes: usize) -> Result<Self> {
        Ok(Self { receive_buffer: Some(bytes), ..Self::new(true)? })
    }

    /// Connects its subscribers to `endpoint`.
    pub fn set_endpoint(&mut self, endpoint: ConnectTarget) {
        self.state.endpoint = endpoint;
    }

    /// Sets the number of connections that open at a time, 100 by default.
    pub fn set_opening_max(&mut self, opening_max: usize) {
        self.opening_max = opening_max;
    }

    /// Returns the registry at which publishers register; their tokens are `PUBLISHER_TOKEN` and up.
    pub fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    pub fn bytes_received(&self) -> u64 {
        self.bytes_received
    }

    /// How long the generator waited for events.
    pub fn idle(&self) -> Duration {
        self.idle
    }

    pub fn pings(&self) -> u64 {
        self.state.pings
    }

    /// Requests to be sent on other connections: the answers of event streams to pings.
    pub fn take_pongs(&mut self) -> Vec<Box<[u8]>> {
        std::mem::take(&mut self.state.pongs)
    }

    /// Subscribers that have all their replies and did not fail.
    pub fn subscribed(&self) -> usize {
        self.state.subscribed
    }

    /// The version of the server, from its connect reply.
    pub fn server_version(&self) -> Option<&str> {
        self.state.server_version.as_deref()
    }

    /// Opens `count` more subscribers and returns when each has all its replies.
    ///
    /// # Errors
    /// A refused connection, an error reply, or ten seconds without progress.
    pub fn open(&mut self, address: SocketAddr, count: usize, profile: &Profile) -> Result<()> {
        let goal = self.connections.len() + count;
        let mut progress = StallTimer::default();
        while self.state.subscribed < goal {
            self.open_some(address, goal, |_| profile.clone())?;
            self.turn(Some(Duration::from_millis(100)), &mut Nobody)?;
            let subscribed = self.state.subscribed;
            progress.check(subscribed as u64, || format!("{subscribed} of {goal} subscribers"))?;
        }
        Ok(())
    }

    /// Opens connections up to `goal`, at most `opening_max` (100 by default) at a time. `profile(n)` describes subscriber `n`.
    ///
    /// # Errors
    /// A refused connection.
    pub fn open_some(
        &mut self,
        address: SocketAddr,
        goal: usize,
        profile: impl Fn(usize) -> Profile,
    ) -> Result<()> {
        let opening = self.connections.len() - self.state.subscribed;
        for _ in opening..self.opening_max.min(opening + goal - self.connections.len()) {
            let number = self.connections.len();
            let connection = self.connection(number, address, &profile(number))?;
            self.connections.push(connection);
        }
        Ok(())
    }

    /// Closes the connection of a subscriber and opens another one for it.
    ///
    /// # Errors
    /// A refused connection.
    pub fn reopen(
        &mut self,
        subscriber: usize,
        address: SocketAddr,
        profile: &Profile,
    ) -> Result<()> {
        let connection = &mut self.connections[subscriber];
        connection.close(&mut self.state);
        // A connection that the server closed is deregistered already.
        let _ = self.poll.registry().deregister(&mut connection.stream);
        let connection = self.connection(subscriber, address, profile)?;
        self.connections[subscriber] = connection;
        Ok(())
    }

    /// Sends a message of a subscriber.
    ///
    /// # Errors
    /// The socket does not take all of it.
    pub fn send(&mut self, subscriber: usize, message: &[u8]) -> Result<()> {
        self.connections[subscriber].send_message(message, &mut self.state)
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
        let before = Instant::now();
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(false),
            polled => polled?,
        }
        if self.events.is_empty() || timeout != Some(Duration::ZERO) {
            self.idle += before.elapsed();
        }
        let mut publisher_ready = false;
        for event in &self.events {
            let Token(index) = event.token();
            if index >= PUBLISHER_TOKEN {
                publisher_ready = true;
                continue;
            }
            let connection = &mut self.connections[index];
            match read(connection, index, &mut self.buffer, &mut self.state, handler) {
                Ok(bytes) => self.bytes_received += bytes,
                Err(error) => {
                    connection.fail(&mut self.state);
                    self.poll.registry().deregister(&mut connection.stream)?;
                    handler.failed(index, error.context(format!("subscriber {index}")))?;
                }
            }
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
        let mut total = 0;
        let most = bytes.min(self.buffer.len());
        for (index, connection) in self.connections.iter_mut().enumerate() {
            let part = &mut self.buffer[..most];
            match read_once(connection, index, part, &mut self.state, handler) {
                Ok(bytes) => total += bytes,
                Err(error) => {
                    connection.fail(&mut self.state);
                    handler.failed(index, error.context(format!("subscriber {index}")))?;
                }
            }
        }
        self.bytes_received += total;
        Ok(total)
    }

    fn connection(
        &mut self,
        subscriber: usize,
        address: SocketAddr,
        profile: &Profile,
    ) -> Result<ClientConnection> {
        let mut stream = connect(&mut self.source, address)
            .with_context(|| format!("connecting subscriber {subscriber} to {address}"))?;
        if let Some(bytes) = self.receive_buffer {
            SockRef::from(&stream).set_recv_buffer_size(bytes)?;
        }
        self.poll.registry().register(&mut stream, Token(subscriber), Interest::READABLE)?;
        ClientConnection::open(stream, profile, &mut self.state)
    }
}

/// A server closed a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Closed {
    /// `None`: without a close frame, or the frame has no code; `reason` says which.
    pub code: Option<u16>,
    pub reason: String,
}

impl Closed {
    fn without(what: &str) -> Self {
        Self { code: None, reason: format!("without {what}") }
    }
}

impl std::fmt::Display for Closed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.code {
            Some(code) => write!(formatter, "the server closed: {code} {}", self.reason),
            None => write!(formatter, "the server closed {}", self.reason),
        }
    }
}

impl std::error::Error for Closed {}

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
    /// The count has been the same for ten seconds; `state` describes what is missing.
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
    state: &mut GeneratorState,
    handler: &mut impl PublicationHandler,
) -> Result<u64> {
    let mut total = 0;
    if connection.has_failed() {
        return Ok(0);
    }
    loop {
        match connection.stream.read(buffer) {
            Ok(0) => return Err(Closed::without("a close frame").into()),
            Ok(length) => {
                total += length as u64;
                connection.receive(index, &buffer[..length], state, handler)?;
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
    state: &mut GeneratorState,
    handler: &mut impl PublicationHandler,
) -> Result<u64> {
    if connection.has_failed() {
        return Ok(0);
    }
    match connection.stream.read(buffer) {
        Ok(0) => Err(Closed::without("a close frame").into()),
        Ok(length) => {
            connection.receive(index, &buffer[..length], state, handler)?;
            Ok(length as u64)
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        Err(error) => Err(error).context("reading"),
    }
}

/// Connects; to a loopback address, from the one that ends with `source`, which grows when its ports have run out.
///
/// # Errors
/// No server listens, or no descriptor or port is left.
pub fn connect(source: &mut u8, address: SocketAddr) -> Result<TcpStream> {
    let is_loopback = address.is_ipv4() && address.ip().is_loopback();
    loop {
        match connect_from(*source, address) {
            Err(error)
                if error.kind() == ErrorKind::AddrNotAvailable && is_loopback && *source < 250 =>
            {
                *source += 1;
            }
            connected => return Ok(TcpStream::from_std(connected?.into())),
        }
    }
}

/// A blocking connect (loopback answers at once), then a nonblocking socket.
fn connect_from(source: u8, address: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if source > 1 {
        let from = SocketAddr::from((Ipv4Addr::new(127, 0, 0, source), 0));
        socket.bind(&SockAddr::from(from))?;
    }
    socket.connect_timeout(&SockAddr::from(address), STALL)?;
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
