//! The Redis engine: publications, history and presence that several nodes share.
//! In: options, a door, a runtime → out: calls that are answered later, and whatever any node publishes, at the door.
//! Uses the crate `redis` and a runtime. Never: sessions; no call blocks, every call ends in bounded time.
//! Change here: which connection a call takes. The ports are in `ports.rs`, commands are made in `stream.rs` and `members.rs`.

mod backoff;
mod clock;
mod dial;
mod error;
mod feed;
mod health;
mod keys;
mod line;
mod members;
mod mouth;
mod options;
mod place;
mod ports;
mod record;
mod roll;
mod script;
mod stream;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use fanwire_node::broker::{Query, Retention};
use fanwire_node::{Answer, Deliver, Stretch};
use tokio::runtime::Handle;

use clock::Clock;
use dial::Dialer;
use error::Failure;
use feed::Feed;
use keys::{Keys, Kind};
use line::Line;
use mouth::Mouth;
use wire::Command;

pub use error::RedisError;
pub use health::Health;
pub use options::{Address, RedisOptions};

/// One engine: its connections to one Redis, or to several that share the channels among them.
pub struct Redis {
    servers: Vec<Server>,
    keys: Keys,
    mouth: Arc<Mouth>,
    health: Arc<Health>,
    started_at: Instant,
    /// When the times of the Redis were asked for last, in seconds since the start.
    asked_at_s: AtomicU64,
}

/// The connections to one Redis.
struct Server {
    lines: Vec<Line>,
    feeds: Vec<Feed>,
    clock: Arc<Clock>,
}

impl Redis {
    /// Begins to connect and returns at once; what comes of it is seen by [`health`](Self::health). Connections are made
    /// again for as long as this value lives.
    pub fn start(options: &RedisOptions, runtime: &Handle) -> Self {
        let health = Arc::new(Health::default());
        let keys = Keys::new(&options.prefix);
        let mouth = Arc::new(Mouth::new(keys.clone(), Arc::clone(&health)));
        let servers = options.addresses.iter().map(|address| {
            let clock = Arc::new(Clock::new());
            let dialer = Dialer::new(address, options, Arc::clone(&clock));
            let line = || Line::open(dialer.clone(), Arc::clone(&health), runtime);
            let feed = || {
                let (mouth, health) = (Arc::clone(&mouth), Arc::clone(&health));
                Feed::open(dialer.clone(), mouth, health, runtime)
            };
            Server {
                lines: (0..options.command_connections.max(1)).map(|_| line()).collect(),
                feeds: (0..options.feed_connections.max(1)).map(|_| feed()).collect(),
                clock,
            }
        });
        let servers = servers.collect();
        let (started_at, asked_at_s) = (Instant::now(), AtomicU64::new(0));
        Self { servers, keys, mouth, health, started_at, asked_at_s }
    }

    /// Connects to each Redis once and disconnects again.
    ///
    /// # Errors
    /// The first [`RedisError`]. One that [is permanent](RedisError::is_permanent) should end a start.
    pub async fn check(options: &RedisOptions) -> Result<(), RedisError> {
        for address in &options.addresses {
            let dialer = Dialer::new(address, options, Arc::new(Clock::new()));
            dialer.dial(script::loads(), drop).await?;
        }
        Ok(())
    }

    /// Delivers whatever is published from now on to `door`; before the first call of a port.
    ///
    /// # Panics
    /// At the second call.
    pub fn deliver_to(&self, door: Arc<dyn Deliver>) {
        self.mouth.deliver_to(door);
    }

    /// Makes this node, which has the id `uid`, hear the others: `listener` gets what they send to all and to it, as it
    /// was given to `Bus::send`. It is called on the task of a connection, so it must be short. The answer comes when
    /// nothing more is missed.
    ///
    /// # Panics
    /// At the second call.
    pub fn hear_nodes(
        &self,
        uid: &str,
        listener: impl Fn(&[u8]) + Send + Sync + 'static,
    ) -> Answer<()> {
        self.mouth.tell(Box::new(listener));
        let feed = &self.servers[0].feeds[0];
        let (to_all, to_this) = (self.keys.of_node(None), self.keys.of_node(Some(uid)));
        feed.want(&to_all);
        feed.want(&to_this);
        let (done, answer) = ports::later();
        feed.when_heard(&to_this, done); // asked for last, so confirmed last
        answer
    }

    /// How the connections are.
    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Asks each Redis for its time, but not more often than every half minute: a clock that was set, or a machine that
    /// slept, would else make members end too early or too late.
    fn keep_time(&self) {
        let now_s = self.started_at.elapsed().as_secs();
        if now_s < self.asked_at_s.load(Relaxed) + TIME_INTERVAL_S {
            return;
        }
        self.asked_at_s.store(now_s, Relaxed);
        for server in &self.servers {
            let clock = Arc::clone(&server.clock);
            server.lines[0].send(Command::of(&[b"TIME"]), move |reply| {
                if let Some(unix_ms) = reply.ok().and_then(dial::unix_ms) {
                    clock.set(Instant::now(), unix_ms);
                }
            });
        }
    }

    /// A read that is begun when it is called.
    fn read<F>(&self, channel: &str, query: Query, retention: Retention) -> impl FnOnce(F) + use<F>
    where
        F: FnOnce(Result<Stretch, Failure>) + Send + 'static,
    {
        let (line, keys) = (self.line(channel).clone(), self.keys.clone());
        let (channel, health) = (channel.to_owned(), Arc::clone(&self.health));
        move |done| {
            let command = stream::history(&keys, &channel, query, retention);
            line.send(command, move |reply| {
                let place = (&keys, channel.as_str());
                let read = |reply| stream::stretch(reply, place, query.reverse, &health);
                done(reply.and_then(read));
            });
        }
    }

    fn server(&self, hash: u64) -> &Server {
        &self.servers[place::jump(hash, self.servers.len())]
    }

    fn line(&self, channel: &str) -> &Line {
        let hash = place::hash(channel);
        let lines = &self.server(hash).lines;
        &lines[place::spread(hash, lines.len())]
    }

    /// The feed of a channel, and the name to hear.
    fn feed(&self, channel: &str) -> (&Feed, String) {
        let hash = place::hash(channel);
        let feeds = &self.server(hash).feeds;
        (&feeds[place::spread(hash, feeds.len())], self.keys.of(Kind::Feed, channel))
    }

    fn ms(&self, channel: &str, now: Instant) -> u64 {
        self.server(place::hash(channel)).clock.ms(now)
    }
}

/// Between two questions for the time.
const TIME_INTERVAL_S: u64 = 30;
