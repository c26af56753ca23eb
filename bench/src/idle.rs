//! Scenario `idle`: memory of an idle connection with one subscription, and CPU with pings on.
//! In: a number of connections → out: resident bytes at steps, their slope, CPU per connection and second.
//! Uses `target` and `machine`; the connections answer pings and do nothing else.
//! Changed here: what is measured; connections live in `sockets` and `http2`, how memory and CPU are read in `machine`.

mod http2;
mod sockets;

use anyhow::{Result, bail};
use clap::Args;
use rustls::ClientConfig;
use serde_json::Value;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::certificate::{API_IP, Certificate};
use crate::fanout::map;
use crate::setup::Setup;
use crate::stats::{grouped, limit, slope};
use crate::target::{Target, merge};
use fanwire_load::generator::{ConnectTarget, SubscribeForm, SubscriberTransport};
use fanwire_load::machine::{self, Meter};
use http2::Http2Connections;
use sockets::SocketConnections;

/// Server memory per idle connection (slope of resident memory) and CPU per connection with pings on.
#[derive(Args)]
pub struct Idle {
    /// Connections at the last step; the others are a nineteenth, a quarter and half of it.
    #[arg(long, default_value_t = 19_000)]
    connections: usize,
    /// Do not offer permessage-deflate.
    #[arg(long)]
    no_compression: bool,
    /// Event streams instead of WebSockets; they answer pings by requests on 16 more connections, as behind a proxy.
    #[arg(long)]
    event_streams: bool,
    /// WebSockets in streams of HTTP/2 without TLS (RFC 8441).
    #[arg(long, conflicts_with_all = ["event_streams", "tls"])]
    http2: bool,
    /// WebSockets that share one socket: 1 as browsers do, more as proxies do.
    #[arg(long, requires = "http2", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    streams: u16,
    /// Connections with TLS.
    #[arg(long)]
    tls: bool,
    /// Subscriptions of a map.
    #[arg(long, conflicts_with = "http2")]
    map: bool,
    /// Subscriptions with positions.
    #[arg(long, conflicts_with = "map")]
    positions: bool,
    /// One channel per connection instead of one for all.
    #[arg(long)]
    own_channels: bool,
    /// Compare a server after so many takeovers, with the connections of the time, to a fresh one.
    #[arg(long, value_name = "COUNT", default_value_t = 0, conflicts_with_all = ["tls", "http2"])]
    takeovers: usize,
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
        if descriptors < self.server_descriptors() + DESCRIPTORS_SPARE {
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
        if self.http2 {
            let address = serde_json::json!({ "h2c_external": true, "internal_address": API_IP });
            merge(&mut settings, serde_json::json!({ "http_server": address }));
        }
        if self.map {
            merge(&mut settings, map::map());
        }
        if self.positions {
            merge(&mut settings, map::stream());
        }
        let tls = certificate.as_ref().map(Certificate::client);
        let (bytes, is_kept) = self.measure_server(settings.clone(), tls.clone(), 0)?;
        if self.takeovers == 0 {
            return Ok(is_kept);
        }
        let (bytes_after, is_kept_after) = self.measure_server(settings, tls, self.takeovers)?;
        println!("ratio of bytes, taken over / fresh: {:.3}", bytes_after / bytes);
        Ok(is_kept && is_kept_after)
    }

    /// Returns the bytes of an idle connection after so many takeovers, and whether the limits are kept.
    fn measure_server(
        &self,
        settings: Value,
        tls: Option<Arc<ClientConfig>>,
        takeovers: usize,
    ) -> Result<(f64, bool)> {
        let core = Some(self.setup.server_core);
        let mut target = Target::fanwire(&self.setup.binary()?, core, settings)?;
        let connections = self.connections(&target, tls)?;
        let measured = self.measure(&mut target, connections, takeovers);
        measured.map_err(|error| error.context(format!("server log:\n{}", target.log_tail())))
    }

    fn connections(
        &self,
        target: &Target,
        tls: Option<Arc<ClientConfig>>,
    ) -> Result<Box<dyn IdleConnections>> {
        let compression = !self.no_compression;
        let channels = if self.own_channels { Channels::OneForEach } else { Channels::OneForAll };
        if self.http2 {
            let connections =
                Http2Connections::new(target.address(), self.streams, compression, channels)?;
            return Ok(Box::new(connections));
        }
        let transport = if self.event_streams {
            SubscriberTransport::EventStream
        } else {
            SubscriberTransport::WebSocket
        };
        let subscribe = if self.map { SubscribeForm::Map } else { SubscribeForm::Live };
        let endpoint = ConnectTarget { transport, tls, subscribe, ..ConnectTarget::default() };
        let connections =
            SocketConnections::new(target.address(), endpoint, compression, channels)?;
        Ok(Box::new(connections))
    }

    fn measure(
        &self,
        target: &mut Target,
        mut connections: Box<dyn IdleConnections>,
        takeovers: usize,
    ) -> Result<(f64, bool)> {
        println!("{}\n", self.title());
        println!("connections   resident MB   bytes per connection so far");
        let empty = machine::resident_bytes(target.pid())? as f64;
        println!("{:>11} {:>13.2}", 0, empty / 1e6);
        let mut points = Vec::new();
        let mut opened = 0;
        let steps = self.steps();
        for (number, step) in steps.into_iter().enumerate() {
            connections.open(opened..step)?;
            opened = step;
            let times = takeovers * (number + 1) / steps.len() - takeovers * number / steps.len();
            target.take_over(&self.setup.binary()?, times)?;
            connections.rest(SETTLE)?;
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
        let (is_small, verdict) = limit(bytes, self.bytes_max);
        println!("\nbytes per idle connection (least squares): {bytes:.0}{verdict}");
        let is_idle = self.cpu_with_pings(target, connections.as_mut())?;
        Ok((bytes, is_idle && is_small))
    }

    fn title(&self) -> String {
        let transport = match (self.http2, self.streams) {
            (false, _) => String::new(),
            (true, 1) => ", HTTP/2 with one stream per socket".to_owned(),
            (true, streams) => format!(", HTTP/2 with {streams} streams per socket"),
        };
        let compression = if self.no_compression { "not offered" } else { "negotiated" };
        let channels = if self.own_channels { "a channel each" } else { "one channel" };
        let tls = if self.tls { ", TLS" } else { "" };
        let kind = match (self.map, self.positions) {
            (true, _) => "subscription of a map",
            (_, true) => "subscription with positions",
            _ => "subscription",
        };
        format!(
            "idle: one {kind} per connection, {channels}, compression {compression}{tls}{transport}"
        )
    }

    /// True when the limit is kept or nothing is measured.
    fn cpu_with_pings(
        &self,
        target: &Target,
        connections: &mut dyn IdleConnections,
    ) -> Result<bool> {
        if self.seconds == 0.0 {
            return Ok(true);
        }
        connections.rest(FIRST_PING_MAX)?;
        let pings = connections.pings();
        let meter = Meter::start(target.pid(), self.setup.server_core)?;
        connections.rest(Duration::from_secs_f64(self.seconds))?;
        let usage = meter.stop()?;
        let count = self.connections as f64;
        let cpu_us = usage.cpu_seconds * 1e6 / count / usage.wall_seconds;
        let pings = (connections.pings() - pings) as f64;
        let (kept, verdict) = limit(cpu_us, self.cpu_us_max);
        println!(
            "µs of CPU per connection and second with pings: {cpu_us:.3}{verdict} ({:.2} pings per connection in {:.0} s, {:.1} µs per ping)",
            pings / count,
            usage.wall_seconds,
            usage.cpu_seconds * 1e6 / pings.max(1.0),
        );
        let resident = machine::resident_bytes(target.pid())? as f64;
        println!("resident after the pings: {:.2} MB", resident / 1e6);
        Ok(kept)
    }

    /// Counts of the connections as the server has them: it has more than this program has.
    fn server_descriptors(&self) -> u64 {
        let connections = self.connections as u64;
        if self.http2 {
            connections.div_ceil(self.streams.into()) + 2 * connections
        } else {
            connections
        }
    }

    fn steps(&self) -> [usize; 4] {
        [19, 4, 2, 1].map(|part| self.connections.div_ceil(part))
    }
}

/// Connections of one kind, which do nothing but answer pings.
trait IdleConnections {
    /// Opens those of these numbers; returns when each has its subscription.
    ///
    /// # Errors
    /// A refused connection or command, or no progress.
    fn open(&mut self, numbers: Range<usize>) -> Result<()>;

    /// Answers pings for this long.
    ///
    /// # Errors
    /// A connection has ended, or received anything but a ping.
    fn rest(&mut self, stretch: Duration) -> Result<()>;

    /// Pings that were answered so far.
    fn pings(&self) -> u64;
}

/// The channel that a connection subscribes to.
#[derive(Clone, Copy)]
enum Channels {
    OneForAll,
    OneForEach,
}

impl Channels {
    fn name(self, number: usize) -> String {
        match self {
            Self::OneForAll => "idle".to_owned(),
            Self::OneForEach => format!("idle-{number}"),
        }
    }
}

/// Time for the server to free what handshakes and takeovers needed: its allocator keeps pages for a second and for as long as their
/// thread lives, which is ten seconds for the one of a takeover.
const SETTLE: Duration = Duration::from_secs(12);
/// Every connection has had its first ping after one interval of 25 s.
const FIRST_PING_MAX: Duration = Duration::from_secs(25);
/// Standard streams, the poller, and what the server itself needs next to connections.
const DESCRIPTORS_SPARE: u64 = 50;
