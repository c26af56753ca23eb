//! Idle connections that have a socket each: WebSockets and event streams.
//! In: numbers of connections → out: open ones, whose pings are answered.
//! Uses `generator`; event streams answer by requests on one more connection.
//! Change here how they are opened and answered; WebSockets in streams of HTTP/2 live in `http2`.

use anyhow::{Result, bail, ensure};
use std::io::{Read, Write};
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
    /// For the answers of event streams; opened for the first one.
    uplink: Option<Uplink>,
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
        Ok(Self { generator, address, channels, compression, uplink: None })
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
            for pong in self.generator.take_pongs() {
                let uplink = match &mut self.uplink {
                    Some(uplink) => uplink,
                    none => none.insert(Uplink::open(self.address)?),
                };
                uplink.send(&pong)?;
            }
        }
        Ok(())
    }

    fn pings(&self) -> u64 {
        self.generator.pings()
    }
}

/// A connection for the answers of event streams to pings.
struct Uplink(TcpStream);

impl Uplink {
    fn open(address: SocketAddr) -> Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        Ok(Self(socket))
    }

    /// Sends a request and reads its answer, which has no body.
    fn send(&mut self, request: &[u8]) -> Result<()> {
        self.0.write_all(request)?;
        let (mut answer, mut length) = ([0; 1024], 0);
        while !answer[..length].ends_with(b"\r\n\r\n") {
            let read = self.0.read(&mut answer[length..])?;
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
