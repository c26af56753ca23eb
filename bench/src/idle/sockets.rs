//! Idle connections that have a socket each: WebSockets and event streams.
//! In: numbers of connections → out: open ones, whose pings are answered.
//! Uses `generator`; event streams answer by requests on a few more connections.
//! Changed here: how they are opened and answered; WebSockets in streams of HTTP/2 live in `http2`.

use anyhow::{Context, Result, bail, ensure};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::mem;
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::time::{Duration, Instant};

use super::{Channels, IdleConnections};
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::{
    ConnectTarget, Generator, Profile, PublicationHandler, SubscriberTransport,
};

pub(super) struct SocketConnections {
    generator: Generator,
    address: SocketAddr,
    channels: Channels,
    compression: bool,
    /// Connections for the answers of event streams. They are opened when they are needed.
    uplinks: Uplinks,
}

impl SocketConnections {
    pub(super) fn new(
        address: SocketAddr,
        endpoint: ConnectTarget,
        compression: bool,
        channels: Channels,
    ) -> Result<Self> {
        // The generator would not see the pings of a compressed stream.
        let compression = compression && endpoint.transport != SubscriberTransport::EventStream;
        let mut generator = Generator::new(false)?;
        generator.set_endpoint(endpoint);
        Ok(Self { generator, address, channels, compression, uplinks: Uplinks::new(address) })
    }

    fn profile(&self, number: usize) -> Profile {
        Profile {
            plain: false,
            encoding: Encoding::Json,
            compression: self.compression,
            channels: vec![self.channels.name(number)],
        }
    }
}

impl IdleConnections for SocketConnections {
    fn open(&mut self, numbers: Range<usize>) -> Result<()> {
        let profile = self.profile(numbers.start);
        match self.channels {
            Channels::OneForAll => self.generator.open(self.address, numbers.len(), &profile),
            Channels::OneForEach => numbers.into_iter().try_for_each(|number| {
                let profile = self.profile(number);
                self.generator.open(self.address, 1, &profile)
            }),
        }
    }

    fn rest(&mut self, stretch: Duration) -> Result<()> {
        let started = Instant::now();
        while let Some(left) = stretch.checked_sub(started.elapsed()) {
            self.generator.turn(Some(left), &mut Silence)?;
            self.generator.take_pongs().iter().try_for_each(|pong| self.uplinks.send(pong))?;
        }
        self.uplinks.wait()
    }

    fn pings(&self) -> u64 {
        self.generator.pings()
    }
}

/// Connections for the answers of event streams to pings, each with one request at a time, as a proxy keeps them.
struct Uplinks {
    address: SocketAddr,
    /// The one that was used first is the first.
    used: VecDeque<CommandSource>,
}

impl Uplinks {
    fn new(address: SocketAddr) -> Self {
        Self { address, used: VecDeque::new() }
    }

    /// Sends a request on another connection than the last ones.
    fn send(&mut self, request: &[u8]) -> Result<()> {
        let mut command_source = match self.used.len() {
            UPLINKS => self.used.pop_front().context("one was used")?,
            _ => CommandSource::open(self.address)?,
        };
        command_source.wait()?;
        command_source.socket.write_all(request)?;
        command_source.is_waiting = true;
        self.used.push_back(command_source);
        Ok(())
    }

    /// Reads the missing answers.
    fn wait(&mut self) -> Result<()> {
        self.used.iter_mut().try_for_each(CommandSource::wait)
    }
}

struct CommandSource {
    socket: TcpStream,
    is_waiting: bool,
}

impl CommandSource {
    fn open(address: SocketAddr) -> Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, is_waiting: false })
    }

    /// Reads the answer to the last request, which has no body.
    fn wait(&mut self) -> Result<()> {
        if !mem::take(&mut self.is_waiting) {
            return Ok(());
        }
        let mut answer = [0; 1024];
        let mut length = 0;
        while !answer[..length].ends_with(b"\r\n\r\n") {
            let read = self.socket.read(&mut answer[length..])?;
            ensure!(read > 0, "the answer to a pong ends early");
            length += read;
        }
        let is_accepted = answer.starts_with(b"HTTP/1.1 204 ");
        ensure!(is_accepted, "a pong was refused: {}", answer[..length].escape_ascii());
        Ok(())
    }
}

/// Idle connections receive no publications.
struct Silence;

impl PublicationHandler for Silence {
    fn publication(&mut self, subscriber: usize, message: &[u8]) -> Result<()> {
        bail!("idle subscriber {subscriber} received {}", message.escape_ascii());
    }
}

/// Connections that a proxy keeps to a server (`keepalive` in its documentation's examples: 16 to 32).
const UPLINKS: usize = 16;
