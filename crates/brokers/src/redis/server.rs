//! The connections to one Redis, and how they are opened.
//! In: an address, what is expected there, who guides → out: lines, feeds and a clock.
//! Uses: lines, feeds. Never: decides which channel is here.
//! Change here: what belongs to one Redis. Which one has a channel is decided in `store.rs`.

use std::sync::Arc;
use std::time::Instant;

use redis::Value;
use tokio::runtime::Handle;

use super::clock::Clock;
use super::dial::{self, Dialer, Expected};
use super::error::Failure;
use super::feed::Feed;
use super::guide::Guided;
use super::health::Health;
use super::line::{Limbo, Line};
use super::mouth::Mouth;
use super::options::{Address, RedisOptions};
use super::wire::Command;

/// The connections to one Redis.
pub(crate) struct Server {
    pub(crate) address: Address,
    pub(crate) lines: Vec<Line>,
    pub(crate) feeds: Vec<Feed>,
    pub(crate) clock: Arc<Clock>,
}

impl Server {
    /// Whether the last try to open a connection for commands failed.
    pub(crate) fn is_down(&self) -> bool {
        self.lines.iter().any(Line::is_down)
    }

    /// Asks for the time and sets the clock by it, later.
    pub(crate) fn keep_time(&self) {
        let clock = Arc::clone(&self.clock);
        let set = move |reply: Result<Value, Failure>| {
            if let Some(unix_ms) = reply.ok().and_then(dial::unix_ms) {
                clock.set(Instant::now(), unix_ms);
            }
        };
        self.lines[0].send(Command::of(&[b"TIME"]), set);
    }
}

/// Opens connections of one engine.
#[derive(Clone)]
pub(crate) struct Opener {
    pub(crate) options: Arc<RedisOptions>,
    pub(crate) mouth: Arc<Mouth>,
    pub(crate) health: Arc<Health>,
    pub(crate) runtime: Handle,
    /// What clocks say until the time of their Redis is known: all the same.
    pub(crate) clock: Arc<Clock>,
}

impl Opener {
    /// Begins to connect, and goes on until the server is dropped.
    pub(crate) fn open(&self, address: &Address, expected: Expected, guided: &Guided) -> Server {
        let clock = Arc::new(self.clock.twin());
        let dialer = Dialer::new(address, &self.options, Arc::clone(&clock)).expecting(expected);
        dialer.watch(&self.runtime);
        let to_line = dialer.clone().for_a_line();
        let line = |_| {
            Line::open(to_line.clone(), Arc::clone(&self.health), guided.clone(), &self.runtime)
        };
        let feed = |_| {
            let (mouth, health) = (Arc::clone(&self.mouth), Arc::clone(&self.health));
            Feed::open(dialer.clone(), mouth, health, guided.clone(), &self.runtime)
        };
        Server {
            address: address.clone(),
            lines: (0..self.line_count()).map(line).collect(),
            feeds: (0..self.feed_count()).map(feed).collect(),
            clock,
        }
    }

    /// A server for what belongs to none yet: calls and names wait there.
    pub(crate) fn nowhere(&self, guided: &Guided) -> (Server, Limbo) {
        let (line, limbo) = Line::nowhere(Arc::clone(&self.health));
        let patience = self.options.io_timeout;
        let feed = |_| Feed::nowhere(Arc::clone(&self.mouth), guided.clone(), patience);
        let server = Server {
            address: Address::default(),
            lines: vec![line; self.line_count()],
            feeds: (0..self.feed_count()).map(feed).collect(),
            clock: Arc::clone(&self.clock),
        };
        (server, limbo)
    }

    fn line_count(&self) -> usize {
        self.options.command_connections.max(1)
    }

    fn feed_count(&self) -> usize {
        self.options.feed_connections.max(1)
    }
}
