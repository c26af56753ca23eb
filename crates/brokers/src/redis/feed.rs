//! A connection for PUB/SUB: everything that is published to its channels, in the order of the Redis, to the door.
//! In: names that are wanted or not any more, from any thread; messages → out: publications, joins, leaves, words of nodes.
//! Uses: one task with one socket. Never: a queue of messages: what the door does not take in time stays in the socket.
//! Change here: how names are heard. When one is asked for lives in `roll.rs`, where messages go in `mouth.rs`.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf as _, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{sleep, sleep_until};

use super::backoff::Backoff;
use super::dial::Dialer;
use super::error::{Failure, RedisError};
use super::health::Health;
use super::mouth::Mouth;
use super::resp::{Command, Reply};
use super::roll::{Heard, Roll, Turn};

/// The wanting end. The connection ends with it.
pub(crate) struct Feed {
    shared: Arc<Shared>,
    patience: std::time::Duration,
}

struct Shared {
    roll: Mutex<Roll<Waiter>>,
    /// There is something to ask for, or to end.
    woken: Notify,
    mouth: Arc<Mouth>,
}

/// Called once: when the channel is heard, or when it will not be.
type Waiter = Box<dyn FnOnce(Result<(), Failure>) + Send>;

impl Feed {
    /// Begins to connect, and goes on until it is dropped.
    pub(crate) fn open(
        dialer: Dialer,
        mouth: Arc<Mouth>,
        health: Arc<Health>,
        runtime: &Handle,
    ) -> Self {
        health.counts_on();
        let shared = Arc::new(Shared { roll: Mutex::default(), woken: Notify::new(), mouth });
        let patience = dialer.io_timeout;
        let (backoff, shared_too) = (Backoff::default(), Arc::clone(&shared));
        let ear = Ear { dialer, shared: shared_too, health, backoff };
        runtime.spawn(ear.run());
        Self { shared, patience }
    }

    /// What is published under `name` is wanted from now on.
    pub(crate) fn want(&self, name: &str) {
        if self.shared.roll.lock().want(name) {
            self.shared.woken.notify_one();
        }
    }

    /// Nobody wants `name` any more.
    pub(crate) fn leave(&self, name: &str) {
        self.shared.roll.lock().leave(name, Instant::now());
        self.shared.woken.notify_one(); // so that the task knows when to look
    }

    /// Calls `waiter` when the Redis has confirmed that it sends what is published under `name`: at once, later on
    /// another thread, or with a failure when that takes too long or nobody wants it.
    pub(crate) fn when_heard(
        &self,
        name: &str,
        waiter: impl FnOnce(Result<(), Failure>) + Send + 'static,
    ) {
        let by = Instant::now() + self.patience;
        let heard = self.shared.roll.lock().wait(name, by, Box::new(waiter));
        match heard {
            Heard::Yes(waiter) => waiter(Ok(())),
            Heard::NotYet => self.shared.woken.notify_one(),
            Heard::Never(waiter) => waiter(Err(Failure::Unavailable)),
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.shared.woken.notify_one();
    }
}

/// The task of a feed.
struct Ear {
    dialer: Dialer,
    shared: Arc<Shared>,
    health: Arc<Health>,
    backoff: Backoff,
}

/// Why a connection ended.
enum End {
    /// Nobody wants anything any more.
    Closed,
    Lost(RedisError),
}

/// One connection's buffers and signs of life.
struct Flow {
    reads: BytesMut,
    writes: BytesMut,
    heard_at: Instant,
    /// A question is out whose answer proves that the connection lives.
    is_probed: bool,
}

impl Ear {
    async fn run(mut self) {
        while !self.is_closed() {
            let must_wait = match self.dialer.dial(std::iter::empty()).await {
                Ok(stream) => {
                    let began = Instant::now();
                    self.health.came_up();
                    let end = self.hear(stream).await;
                    self.health.went_down();
                    self.shared.roll.lock().lost();
                    if let End::Lost(error) = end {
                        self.health.is_troubled(error);
                    }
                    self.backoff.ended(began.elapsed())
                }
                Err(error) => {
                    self.health.is_troubled(error);
                    true
                }
            };
            self.shared.tire();
            if must_wait {
                self.wait().await;
            }
        }
    }

    /// Whether the wanting end is gone.
    fn is_closed(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }

    /// Waits before the next try, and lets waiters go whose patience ends meanwhile.
    async fn wait(&mut self) {
        let end = tokio::time::Instant::now() + self.backoff.next();
        while !self.is_closed() && tokio::time::Instant::now() < end {
            tokio::select! {
                () = sleep_until(end) => {}
                () = self.shared.woken.notified() => {}
                () = sleep(self.dialer.io_timeout / 4) => {}
            }
            self.shared.tire();
        }
    }

    async fn hear(&self, mut stream: TcpStream) -> End {
        let (mut reader, mut writer) = stream.split();
        let mut flow = Flow {
            reads: BytesMut::with_capacity(READ_BYTES),
            writes: BytesMut::new(),
            heard_at: Instant::now(),
            is_probed: false,
        };
        loop {
            if self.is_closed() {
                return End::Closed;
            }
            let next_look = self.look(&mut flow);
            let Some(next_look) = next_look else {
                return End::Lost(
                    self.dialer.unreachable("it does not answer on a PUB/SUB connection"),
                );
            };
            flow.reads.reserve(READ_BYTES);
            tokio::select! {
                read = reader.read_buf(&mut flow.reads) => {
                    let taken = match read {
                        Ok(0) => Err(self.dialer.unreachable("it closed a PUB/SUB connection")),
                        Ok(_) => self.take(&mut flow),
                        Err(error) => Err(self.dialer.unreachable(error)),
                    };
                    if let Err(error) = taken {
                        return End::Lost(error);
                    }
                }
                written = writer.write(&flow.writes), if !flow.writes.is_empty() => match written {
                    Ok(count) => flow.writes.advance(count),
                    Err(error) => return End::Lost(self.dialer.unreachable(error)),
                },
                () = self.shared.woken.notified() => {}
                () = sleep_until(next_look.into()) => {}
            }
        }
    }

    /// Asks for what is to be asked for; when to look again at the latest, or `None` when the connection is dead.
    fn look(&self, flow: &mut Flow) -> Option<Instant> {
        let now = Instant::now();
        self.shared.tire();
        let mut roll = self.shared.roll.lock();
        if flow.writes.is_empty() {
            let turn = roll.turn(now, TURN_MAX);
            self.ask(&turn, &mut flow.writes);
        }
        let due = if flow.writes.is_empty() { roll.due(now) } else { None };
        drop(roll);
        let probe_at = flow.heard_at + self.dialer.io_timeout;
        if now >= probe_at + self.dialer.io_timeout {
            return None;
        }
        if now >= probe_at && !flow.is_probed {
            flow.is_probed = true;
            flow.writes.extend_from_slice(Command::of(&[b"PING"]).bytes());
        }
        let probe_at = if flow.is_probed { probe_at + self.dialer.io_timeout } else { probe_at };
        let tired_at = now + self.dialer.io_timeout / 4;
        Some(due.unwrap_or(probe_at).min(probe_at).min(tired_at))
    }

    fn ask(&self, turn: &Turn, out: &mut BytesMut) {
        for (command, names) in [("SUBSCRIBE", &turn.subscribe), ("UNSUBSCRIBE", &turn.unsubscribe)]
        {
            if names.is_empty() {
                continue;
            }
            let bytes = names.iter().map(|name| name.len()).sum();
            let mut asked = Command::new(1 + names.len(), bytes);
            asked.text(command);
            for name in names {
                asked.text(name.as_bytes());
            }
            out.extend_from_slice(asked.bytes());
        }
    }

    /// Takes all messages that came.
    fn take(&self, flow: &mut Flow) -> Result<(), RedisError> {
        let now = Instant::now();
        (flow.heard_at, flow.is_probed) = (now, false);
        while let Some(reply) = Reply::take(&mut flow.reads).map_err(|_| self.dialer.not_redis())? {
            match reply {
                Reply::Array(parts) => self.shared.take(parts, now),
                Reply::Error(text) => return Err(self.dialer.refused(&text)),
                _ => {} // an answer to PING while nothing is subscribed
            }
        }
        Ok(())
    }
}

impl Shared {
    /// Takes `message`, `subscribe` or `unsubscribe`, each with a name; other things say nothing.
    fn take(&self, parts: Vec<Reply>, now: Instant) {
        let Ok([Reply::Bulk(kind), Reply::Bulk(name), last]) = <[Reply; 3]>::try_from(parts) else {
            return;
        };
        match (&kind[..], last) {
            (b"message", Reply::Bulk(message)) => self.mouth.say(&name, message, now),
            (b"subscribe" | b"unsubscribe", _) => {
                let Ok(name) = str::from_utf8(&name) else { return };
                let waiters = self.roll.lock().confirmed(name);
                waiters.into_iter().for_each(|(_, waiter)| waiter(Ok(())));
            }
            _ => {}
        }
    }

    /// Lets the waiters go whose patience is over.
    fn tire(&self) {
        let over = self.roll.lock().impatient(Instant::now());
        over.into_iter().for_each(|waiter| waiter(Err(Failure::Unavailable)));
    }
}

/// Channels asked for in one command.
const TURN_MAX: usize = 1024;
/// Room for each read.
const READ_BYTES: usize = 64 * 1024;
