//! Plan of a run.
//! In: the options of a user → out: a plan that can be carried out.
//! Pure. Never: sockets.
//! Another option is added here, and to the command line in `crates/cli`.

use anyhow::{Result, ensure};
use serde::Serialize;
use std::time::Duration;

use crate::address::ServerAddress;
use crate::choice::Popularity;
use crate::generator::messages::Encoding;
use crate::payload::Payloads;

/// A run: who connects, what is published, how fast and for how long.
#[derive(Clone, Debug)]
pub struct Plan {
    pub server: ServerAddress,
    /// Token of the connect commands.
    pub token: Option<String>,
    pub encoding: Encoding,
    /// Offer permessage-deflate.
    pub compression: bool,
    /// Connections that read all the time.
    pub connections: usize,
    pub slow: usize,
    /// Bytes per second that each slow connection reads.
    pub slow_bytes: usize,
    pub stopped: usize,
    /// Connections per second that are closed and opened again.
    pub churn: f64,
    pub channels: u32,
    /// Name of the only channel, or the beginning of the names.
    pub channel: String,
    /// Channels of each connection.
    pub subscriptions: u32,
    pub popularity: Popularity,
    pub publish: PublishMethod,
    pub pace: Pace,
    /// Publish with `delivery: latest`, where the server may leave out what a newer publication replaces.
    pub is_latest: bool,
    pub payloads: Payloads,
    pub warm_up: Duration,
    /// Measured time, the sum of all parts.
    pub duration: Duration,
    pub parts: usize,
    /// The server's process, for CPU and memory.
    pub pid: Option<u32>,
}

/// How publications reach the server.
#[derive(Clone, Debug)]
pub enum PublishMethod {
    /// A request for each, on this number of connections; those of a channel on the same one.
    Api { api: ApiAddress, connections: usize },
    /// `POST /api/batch` with all that are due.
    Batch { api: ApiAddress, connections: usize },
    /// Fanwire's `POST /api/stream`.
    Stream { api: ApiAddress },
    /// The publish command of a client.
    Client,
}

/// The server API.
#[derive(Clone, Debug)]
pub struct ApiAddress {
    /// The path is the prefix of the methods.
    pub address: ServerAddress,
    pub key: String,
}

/// Timing of publications.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// Open loop: this number per second in all channels, at any speed of the server.
    Open { rate: f64 },
    /// Closed loop: the next one when fewer than `outstanding` wait for their last receiver. Hides the server's delays.
    Closed { outstanding: usize },
}

impl Plan {
    /// # Errors
    /// Numbers that do not fit together; the text names the option.
    pub fn check(&self) -> Result<()> {
        ensure!(self.channels > 0, "--channels 0: at least one");
        ensure!(
            self.subscriptions <= self.channels,
            "--subscriptions {}: at most as many as --channels {}",
            self.subscriptions,
            self.channels
        );
        ensure!(self.parts > 0, "--runs 0: at least one");
        ensure!(!self.duration.is_zero(), "--duration 0: the measured time must not be empty");
        match self.pace {
            Pace::Open { rate } => {
                ensure!(
                    rate > 0.0 && rate <= RATE_MAX,
                    "--rate {rate}: expected above 0 and up to {RATE_MAX}"
                );
            }
            Pace::Closed { outstanding } => {
                ensure!(outstanding > 0, "--closed 0: at least one");
                ensure!(self.connections > 0, "--closed waits for receivers: --connections 0");
            }
        }
        let churn = self.churn;
        ensure!((0.0..=RATE_MAX).contains(&churn), "--churn {churn}: expected 0 to {RATE_MAX}");
        ensure!(
            self.encoding == Encoding::Protobuf || !self.payloads.is_binary(),
            "{}: no JSON, for --protobuf only",
            self.payloads.origin()
        );
        ensure!(
            !(self.is_latest && matches!(self.publish, PublishMethod::Client)),
            "--latest needs the server API: clients cannot choose the delivery"
        );
        Ok(())
    }

    /// All connections.
    pub fn subscribers(&self) -> usize {
        self.connections + self.slow + self.stopped
    }

    /// Names of the channels.
    pub fn channel_names(&self) -> Vec<String> {
        match self.channels {
            1 => vec![self.channel.clone()],
            count => (0..count).map(|number| format!("{}-{number}", self.channel)).collect(),
        }
    }
}

const RATE_MAX: f64 = 1e7;
