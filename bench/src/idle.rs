//! Scenario `idle`: memory of an idle connection with one subscription, and CPU with pings on.
//! In: a number of connections → out: resident bytes at steps, their slope, CPU per connection and second.
//! Uses `target`, `generator` and `machine`; subscribers answer pings and do nothing else.
//! Change here what an idle connection is; how memory and CPU are read lives in `machine`.

use anyhow::{Result, bail, ensure};
use clap::Args;
use rustls::ClientConfig;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::certificate::Certificate;
use crate::setup::Setup;
use crate::stats::{grouped, slope};
use crate::target::{Target, merge};
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::{
    ConnectTarget, Generator, Profile, PublicationHandler, SubscriberTransport,
};
use fanwire_load::machine::{self, Meter};

/// Server memory per idle connection (slope of resident memory) and CPU per connection with pings on.
#[derive(Args)]
pub struct Idle {
    /// Connections at the last step; the others are a nineteenth, a quarter and half of it.
    #[arg(long, default_value_t = 19_000)]
    connections: usize,
    /// Do not offer permessage-deflate.
    #[arg(long)]
    no_compression: bool,
    /// Event streams instead of WebSockets; they answer pings by requests on one more connection.
    #[arg(long)]
    event_streams: bool,
    /// Connections with TLS.
    #[arg(long)]
    tls: bool,
    /// One channel per connection instead of one for all.
    #[arg(long)]
    own_channels: bool,
    /// Measured seconds with pings on; a multiple of the ping interval (25 s) counts each ping once. 0 leaves it out.
    #[arg(long, default_value_t = 50.0)]
    seconds: f64,
    /// Fail when a connection takes more bytes than this.
    #[arg(long)]
    bytes_max: Option<f64>,
    /// Fail when a connection takes more µs of CPU per second than this.
    #[arg(long)]
    cpu_us_max: Option<f64>,
    #[command(flatten)]
    setup: Setup,
}

impl Idle {
    /// True when no limit was set or both are kept.
    ///
    /// # Errors
    /// A server that does not start, or that closes or sends anything but replies and pings.
    pub fn run(self) -> Result<bool> {
        let descriptors = machine::raise_descriptor_limit();
        if descriptors < self.connections as u64 + DESCRIPTORS_SPARE {
            bail!(
                "{} connections need more than the {descriptors} descriptors allowed",
                self.connections
            );
        }
        self.setup.pin_generator()?;
        let certificate = self.tls.then(Certificate::new).transpose()?;
        let mut settings =
            certificate.as_ref().map_or_else(|| serde_json::json!({}), Certificate::settings);
        if self.event_streams {
            merge(&mut settings, serde_json::json!({ "sse": { "enabled": true } }));
        }
        let core = Some(self.setup.server_core);
        let target = Target::with_settings(&self.setup.binary()?, core, settings)?;
        let tls = certificate.as_ref().map(Certificate::client);
        let measured = self.measure(&target, tls);
        measured.map_err(|error| error.context(format!("server log:\n{}", target.log_tail())))
    }

    fn measure(&self, target: &Target, tls: Option<Arc<ClientConfig>>) -> Result<bool> {
        let mut generator = Generator::new(false)?;
        let transport = match self.event_streams {
            true => SubscriberTransport::EventStream,
            false => SubscriberTransport::WebSocket,
        };
        generator.set_endpoint(ConnectTarget { transport, tls, ..ConnectTarget::default() });
        let compression = if self.no_compression { "not offered" } else { "negotiated" };
        let channels = if self.own_channels { "a channel each" } else { "one channel" };
        let tls = if self.tls { ", TLS" } else { "" };
        println!(
            "idle: one subscription per connection, {channels}, compression {compression}{tls}\n"
        );
        println!("connections   resident MB   bytes per connection so far");
        let empty = machine::resident_bytes(target.pid())? as f64;
        println!("{:>11} {:>13.2}", 0, empty / 1e6);
        let mut points = Vec::new();
        let mut opened = 0;
        for step in self.steps() {
            self.open(target, &mut generator, opened..step)?;
            opened = step;
            rest(&mut generator, SETTLE, |_| Ok(()))?;
            let resident = machine::resident_bytes(target.pid())? as f64;
            println!(
                "{:>11} {:>13.2} {:>29.0}",
                grouped(step as f64),
                resident / 1e6,
                (resident - empty) / step as f64
            );
            points.push((step as f64, resident));
        }
        let bytes = slope(&points);
        println!(
            "\nbytes per idle connection (least squares): {bytes:.0}{}",
            limit(bytes, self.bytes_max)
        );
        let cpu_us = self.cpu_with_pings(target, &mut generator)?;
        let kept = |value: f64, max: Option<f64>| max.is_none_or(|max| value <= max);
        Ok(kept(bytes, self.bytes_max) && kept(cpu_us, self.cpu_us_max))
    }

    fn cpu_with_pings(&self, target: &Target, generator: &mut Generator) -> Result<f64> {
        if self.seconds == 0.0 {
            return Ok(0.0);
        }
        let mut uplink = Uplink::open(target)?;
        uplink.rest(generator, FIRST_PING_MAX)?;
        let pings = generator.pings();
        let meter = Meter::start(target.pid(), self.setup.server_core)?;
        uplink.rest(generator, Duration::from_secs_f64(self.seconds))?;
        let usage = meter.stop()?;
        let connections = self.connections as f64;
        let cpu_us = usage.cpu_seconds * 1e6 / connections / usage.wall_seconds;
        let pings = (generator.pings() - pings) as f64;
        println!(
            "µs of CPU per connection and second with pings: {cpu_us:.3}{} ({:.2} pings per connection in {:.0} s, {:.1} µs per ping)",
            limit(cpu_us, self.cpu_us_max),
            pings / connections,
            usage.wall_seconds,
            usage.cpu_seconds * 1e6 / pings.max(1.0),
        );
        let resident = machine::resident_bytes(target.pid())? as f64;
        println!("resident after the pings: {:.2} MB", resident / 1e6);
        Ok(cpu_us)
    }

    fn open(
        &self,
        target: &Target,
        generator: &mut Generator,
        numbers: std::ops::Range<usize>,
    ) -> Result<()> {
        let mut profile = Profile {
            plain: false,
            encoding: Encoding::Json,
            // The generator would not see the pings of a compressed stream.
            compression: !self.no_compression && !self.event_streams,
            channels: vec!["idle".to_owned()],
        };
        if !self.own_channels {
            return generator.open(target.address(), numbers.len(), &profile);
        }
        for number in numbers {
            profile.channels = vec![format!("idle-{number}")];
            generator.open(target.address(), 1, &profile)?;
        }
        Ok(())
    }

    fn steps(&self) -> [usize; 4] {
        [19, 4, 2, 1].map(|part| self.connections.div_ceil(part))
    }
}

/// Answers pings for this long; those of event streams are passed to `send`.
fn rest(
    generator: &mut Generator,
    stretch: Duration,
    mut send: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let started = Instant::now();
    while let Some(left) = stretch.checked_sub(started.elapsed()) {
        generator.turn(Some(left), &mut Silence)?;
        generator.take_pongs().iter().try_for_each(|pong| send(pong))?;
    }
    Ok(())
}

/// A connection for the answers of event streams to pings.
struct Uplink(TcpStream);

impl Uplink {
    fn open(target: &Target) -> Result<Self> {
        let socket = TcpStream::connect(target.address())?;
        socket.set_nodelay(true)?;
        Ok(Self(socket))
    }

    fn rest(&mut self, generator: &mut Generator, stretch: Duration) -> Result<()> {
        rest(generator, stretch, |pong| self.send(pong))
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

fn limit(value: f64, max: Option<f64>) -> String {
    match max {
        None => String::new(),
        Some(max) => {
            format!(" (at most {max}: {})", if value <= max { "kept" } else { "EXCEEDED" })
        }
    }
}

/// Time for the server to free what the handshakes needed.
const SETTLE: Duration = Duration::from_secs(1);
/// Every connection has had its first ping after one interval of 25 s.
const FIRST_PING_MAX: Duration = Duration::from_secs(25);
/// Standard streams, the poller, and what the server itself needs next to connections.
const DESCRIPTORS_SPARE: u64 = 50;
