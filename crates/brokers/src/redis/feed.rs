//! A connection for PUB/SUB: everything that is published to its channels, in the order of the Redis, to the door.
//! In: names that are wanted or not any more, from any thread; messages → out: publications, joins, leaves, words of nodes.
//! Uses: one task, a RESP3 connection whose pushes wait in a bounded queue. Never: lets that queue grow; it gives up instead.
//! Change here: how names are heard. When one is asked for lives in `roll.rs`, where messages go in `mouth.rs`.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{PushInfo, PushKind, RedisResult, Value};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval, sleep, sleep_until};

use super::backoff::Backoff;
use super::dial::Dialer;
use super::error::{Failure, RedisError};
use super::health::Health;
use super::mouth::Mouth;
use super::roll::{Heard, Roll};
use super::wire::{Command, text};

/// The wanting end. The connection ends with it.
pub(crate) struct Feed {
    shared: Arc<Shared>,
    patience: Duration,
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

/// What a question to the Redis came to. Confirmations of names are pushes.
type Asked = Pin<Box<dyn Future<Output = RedisResult<()>> + Send>>;

impl Ear {
    async fn run(mut self) {
        while !self.is_closed() {
            let (sender, mut pushes) = Pushes::pair();
            let must_wait = match self.dialer.dial(std::iter::empty(), sender).await {
                Ok(connection) => {
                    let began = Instant::now();
                    self.health.came_up();
                    let end = self.hear(connection, &mut pushes).await;
                    self.health.went_down();
                    self.shared.roll.lock().lost();
                    self.shared.take_what_is_left(&mut pushes);
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

    async fn hear(&self, connection: MultiplexedConnection, pushes: &mut Pushes) -> End {
        let mut asked = FuturesUnordered::<Asked>::new();
        let mut probe = interval(self.dialer.io_timeout);
        probe.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut turn = Vec::new();
        loop {
            if self.is_closed() {
                return End::Closed;
            }
            let next_look = self.look(&connection, &mut asked);
            tokio::select! {
                _ = pushes.queue.recv_many(&mut turn, PUSHES_IN_A_TURN) => {
                    for push in turn.drain(..) {
                        pushes.taken(&push);
                        if push.kind == PushKind::Disconnection {
                            return End::Lost(self.lost("it closed a PUB/SUB connection"));
                        }
                        self.shared.take(push);
                    }
                }
                Some(outcome) = asked.next() => {
                    if let Err(error) = outcome {
                        return End::Lost(self.dialer.broken(&error));
                    }
                }
                () = pushes.overflow.notified() => {
                    return End::Lost(self.lost("it sends more than this node can take"));
                }
                _ = probe.tick() => asked.push(ping(connection.clone())),
                () = self.shared.woken.notified() => {}
                () = sleep_until(next_look.into()) => {}
            }
        }
    }

    fn lost(&self, why: &str) -> RedisError {
        self.dialer.unreachable(why)
    }

    /// Asks for what is to be asked for; when to look again at the latest.
    fn look(
        &self,
        connection: &MultiplexedConnection,
        asked: &mut FuturesUnordered<Asked>,
    ) -> Instant {
        let now = Instant::now();
        self.shared.tire();
        let mut roll = self.shared.roll.lock();
        while asked.len() < QUESTIONS_MAX && roll.due(now).is_some_and(|due| due <= now) {
            let turn = roll.turn(now, TURN_MAX);
            if !turn.subscribe.is_empty() {
                let (mut connection, names) = (connection.clone(), turn.subscribe);
                asked.push(Box::pin(async move { connection.subscribe(arguments(&names)).await }));
            }
            if !turn.unsubscribe.is_empty() {
                let (mut connection, names) = (connection.clone(), turn.unsubscribe);
                asked
                    .push(Box::pin(async move { connection.unsubscribe(arguments(&names)).await }));
            }
        }
        let due = if asked.len() < QUESTIONS_MAX { roll.due(now) } else { None };
        let tired_at = now + self.dialer.io_timeout / 4;
        due.map_or(tired_at, |due| due.min(tired_at))
    }
}

/// Proves that the connection lives: the answer comes in time, or an error does.
fn ping(mut connection: MultiplexedConnection) -> Asked {
    Box::pin(async move {
        let ping = Command::of(&[b"PING"]).into_cmd();
        connection.send_packed_command(&ping).await.map(drop)
    })
}

fn arguments(names: &[Arc<str>]) -> Vec<&str> {
    names.iter().map(|name| &**name).collect()
}

impl Shared {
    /// Takes a message, or that a name is heard or not any more; other pushes say nothing.
    fn take(&self, PushInfo { kind, data }: PushInfo) {
        let Ok([name, last]) = <[Value; 2]>::try_from(data) else { return };
        let Some(name) = text(name) else { return };
        match kind {
            PushKind::Message => {
                if let Some(message) = text(last) {
                    self.mouth.say(&name, message, Instant::now());
                }
            }
            PushKind::Subscribe | PushKind::Unsubscribe => {
                let Ok(name) = str::from_utf8(&name) else { return };
                let confirmed = self.roll.lock().confirmed(name);
                if confirmed.is_again {
                    self.mouth.doubt(name);
                }
                confirmed.waiters.into_iter().for_each(|(_, waiter)| waiter(Ok(())));
            }
            _ => {}
        }
    }

    /// Takes the messages that came before the connection was lost. What it confirmed is void.
    fn take_what_is_left(&self, pushes: &mut Pushes) {
        while let Ok(push) = pushes.queue.try_recv() {
            if push.kind == PushKind::Message {
                self.take(push);
            }
        }
    }

    /// Lets the waiters go whose patience is over.
    fn tire(&self) {
        let over = self.roll.lock().impatient(Instant::now());
        over.into_iter().for_each(|waiter| waiter(Err(Failure::Unavailable)));
    }
}

/// What the Redis sent and nobody took yet.
struct Pushes {
    queue: mpsc::Receiver<PushInfo>,
    bytes: Arc<AtomicUsize>,
    /// It became too much: something was dropped, so the connection has to be made again.
    overflow: Arc<Notify>,
}

impl Pushes {
    /// The sending end is called by the task that reads the socket, which must not wait.
    fn pair() -> (impl Fn(PushInfo) + Send + Sync + 'static, Self) {
        let (sender, queue) = mpsc::channel(PUSHES_MAX);
        let (bytes, overflow) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let pushes = Self { queue, bytes: Arc::clone(&bytes), overflow: Arc::clone(&overflow) };
        let send = move |push: PushInfo| {
            let length = length(&push);
            if bytes.fetch_add(length, Relaxed) > PUSH_BYTES_MAX || sender.try_send(push).is_err() {
                overflow.notify_one();
            }
        };
        (send, pushes)
    }

    fn taken(&self, push: &PushInfo) {
        self.bytes.fetch_sub(length(push), Relaxed);
    }
}

fn length(push: &PushInfo) -> usize {
    let texts = push.data.iter().map(|value| match value {
        Value::BulkString(text) => text.len(),
        _ => 0,
    });
    texts.sum()
}

/// Names asked for in one command.
const TURN_MAX: usize = 1024;
/// Commands that were asked and not answered.
const QUESTIONS_MAX: usize = 16;
/// Pushes that wait to be taken.
const PUSHES_MAX: usize = 64 * 1024;
/// And their bytes.
const PUSH_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Pushes taken at once.
const PUSHES_IN_A_TURN: usize = 256;

#[cfg(test)]
mod tests;
