//! A connection for PUB/SUB: everything that is published to its channels, in the order of the Redis, to the door.
//! In: names that are wanted or not any more, from any thread; messages → out: publications, joins, leaves, words of nodes.
//! Uses: one task, a RESP3 connection whose pushes wait in a bounded queue. Never: lets that queue grow; it gives up instead.
//! Change here: how names are heard. When one is asked for lives in `roll.rs`, where messages go in `mouth.rs`.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use redis::{Pipeline, PushInfo, PushKind, RedisResult, Value};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval, sleep, sleep_until, timeout};

use super::backoff::Backoff;
use super::dial::{Connection, Dialer};
use super::error::{Failure, RedisError};
use super::guide::{Guided, is_of_slots};
use super::health::Health;
use super::mouth::Mouth;
use super::roll::{Done, Heard, Moved, Roll};
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
    guided: Guided,
    /// How often names were not heard any more that had been.
    losses: Arc<AtomicU64>,
}

/// Called once: when the channel is heard, or when it will not be.
pub(crate) type Waiter = Box<dyn FnOnce(Result<Witness, Failure>) + Send>;

/// Whoever looks at something else after a name was heard asks this whether the name was heard all the time.
pub(crate) struct Witness {
    losses: Arc<AtomicU64>,
    before: u64,
}

impl Witness {
    /// Whether nothing was lost since, as far as is known by now. Who asks in time is told later of what is noticed later.
    pub(crate) fn is_sure(&self) -> bool {
        self.losses.load(Relaxed) == self.before
    }
}

impl Feed {
    /// Begins to connect, and goes on until it is dropped.
    pub(crate) fn open(
        dialer: Dialer,
        mouth: Arc<Mouth>,
        health: Arc<Health>,
        guided: Guided,
        runtime: &Handle,
    ) -> Self {
        health.counts_on();
        let feed = Self::nowhere(mouth, guided, dialer.io_timeout);
        let (backoff, shared) = (Backoff::default(), Arc::clone(&feed.shared));
        runtime.spawn(Ear { dialer, shared, health, backoff }.run());
        feed
    }

    /// A feed that hears nothing yet: names can be wanted, waited for and [taken](Self::take).
    pub(crate) fn nowhere(mouth: Arc<Mouth>, guided: Guided, patience: Duration) -> Self {
        let (roll, woken, losses) = (Mutex::default(), Notify::new(), Arc::default());
        Self { shared: Arc::new(Shared { roll, woken, mouth, guided, losses }), patience }
    }

    /// Takes out the names that belong elsewhere, with who waits for them.
    pub(crate) fn take(&self, is_elsewhere: impl Fn(&str) -> bool) -> Vec<Moved<Waiter>> {
        let mut roll = self.shared.roll.lock();
        let taken = roll.take(is_elsewhere);
        if !taken.is_empty() {
            self.shared.has_lost();
        }
        taken
    }

    /// Takes in names that were another feed's until now. Once they are heard they are doubted, if they were heard before.
    pub(crate) fn put(&self, moved: Vec<Moved<Waiter>>) {
        self.shared.roll.lock().put(moved);
        self.shared.woken.notify_one();
    }

    /// Names that the Redis would not send are asked for again: it should have their slots by now.
    pub(crate) fn ask_displaced(&self) {
        if self.shared.roll.lock().ask_displaced() {
            self.shared.woken.notify_one();
        }
    }

    /// Lets the waiters go whose patience is over. A feed that is connected does so by itself.
    pub(crate) fn tire(&self) {
        self.shared.tire();
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
        waiter: impl FnOnce(Result<Witness, Failure>) + Send + 'static,
    ) {
        let by = Instant::now() + self.patience;
        let (heard, witness) = {
            let mut roll = self.shared.roll.lock();
            (roll.wait(name, by, Box::new(waiter)), self.shared.witness())
        };
        match heard {
            Heard::Yes(waiter) => waiter(Ok(witness)),
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

/// What a question to the Redis came to. Confirmations of names are pushes; of names of a Cluster the replies are looked
/// at, too, because each may be refused for itself.
type Asked = Pin<Box<dyn Future<Output = RedisResult<Replies>> + Send>>;

/// Names that were asked for, each with a command of its own, and the replies.
#[derive(Default)]
struct Replies {
    names: Vec<Arc<str>>,
    replies: Vec<Value>,
}

impl Ear {
    async fn run(mut self) {
        self.keep().await;
        self.health.counts_off();
    }

    /// Connects again and again, until nobody needs it any more.
    async fn keep(&mut self) {
        while !self.is_closed() {
            let (sender, mut pushes) = Pushes::pair();
            let must_wait = match self.dial(sender).await {
                Ok(connection) => {
                    let began = Instant::now();
                    self.health.came_up();
                    let end = self.hear(connection, &mut pushes).await;
                    self.shared.take_what_is_left(&mut pushes);
                    self.shared.lose();
                    let End::Lost(error) = end else { return self.health.was_closed() };
                    self.health.went_down();
                    self.health.is_troubled(error);
                    self.shared.guided.look_again();
                    self.backoff.ended(began.elapsed())
                }
                Err(error) => {
                    self.health.is_troubled(error);
                    self.shared.guided.look_again();
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

    /// Connects, and lets waiters go whose patience ends meanwhile.
    async fn dial(
        &self,
        pushed: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> Result<Connection, RedisError> {
        let mut dialing = pin!(self.dialer.dial(std::iter::empty(), pushed));
        loop {
            match timeout(self.dialer.io_timeout / 4, &mut dialing).await {
                Ok(dialed) => return dialed,
                Err(_) => self.shared.tire(),
            }
        }
    }

    /// Waits before the next try, and lets waiters go whose patience ends meanwhile.
    async fn wait(&mut self) {
        let end = tokio::time::Instant::now() + self.backoff.next();
        let mut moves = self.dialer.moves();
        while !self.is_closed() && tokio::time::Instant::now() < end {
            tokio::select! {
                () = sleep_until(end) => {}
                () = &mut moves => return,
                () = self.shared.woken.notified() => {}
                () = sleep(self.dialer.io_timeout / 4) => {}
            }
            self.shared.tire();
        }
    }

    async fn hear(&self, connection: Connection, pushes: &mut Pushes) -> End {
        let mut asked = FuturesUnordered::<Asked>::new();
        let mut probe = interval(self.dialer.io_timeout);
        probe.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut turn = Vec::new();
        let mut unsure_until = None;
        loop {
            if self.is_closed() {
                return End::Closed;
            }
            if unsure_until.is_some_and(|until| until <= Instant::now()) {
                unsure_until = None;
                self.shared.displace_unconfirmed();
            }
            let next_look = self.look(&connection, &mut asked);
            tokio::select! {
                _ = pushes.queue.recv_many(&mut turn, PUSHES_IN_A_TURN) => {
                    for push in turn.drain(..) {
                        pushes.taken(&push);
                        if push.kind == PushKind::Disconnection {
                            return End::Lost(self.lost("it closed a PUB/SUB connection"));
                        }
                        if self.shared.take(push) && !asked.is_empty() {
                            unsure_until = Some(Instant::now() + self.dialer.io_timeout);
                        }
                    }
                }
                Some(outcome) = asked.next() => {
                    let replies = outcome.map_err(|error| self.dialer.broken(&error));
                    if let Err(error) = replies.and_then(|replies| self.look_at(replies)) {
                        return End::Lost(error);
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

    /// Asks the Redis to send what is published under `names`, or not to.
    fn ask(&self, mut connection: Connection, names: Vec<Arc<str>>, is_wanted: bool) -> Asked {
        if self.shared.guided.is_guided() {
            let command = if is_wanted { "SSUBSCRIBE" } else { "SUNSUBSCRIBE" };
            return ask_each(connection, command, names);
        }
        Box::pin(async move {
            let names: Vec<&str> = names.iter().map(|name| &**name).collect();
            let asked = match is_wanted {
                true => connection.subscribe(names).await,
                false => connection.unsubscribe(names).await,
            };
            asked.map(|()| Replies::default())
        })
    }

    /// Looks for names that were refused because their slots are elsewhere. A push that came unasked stands among the
    /// replies and shifts them; names without a reply are cared for by [`Shared::displace_unconfirmed`].
    fn look_at(&self, Replies { names, replies }: Replies) -> Result<(), RedisError> {
        let mut names = names.iter().peekable();
        let mut refused = Vec::new();
        for reply in replies {
            match reply {
                Value::ServerError(error) if is_of_slots(&error) => refused.extend(names.next()),
                Value::ServerError(error) => {
                    return Err(self.dialer.refused(error.code(), error.details()));
                }
                Value::Push { data, .. } => {
                    let name = data.into_iter().next().and_then(text);
                    names.next_if(|next| name.as_deref() == Some(next.as_bytes()));
                }
                _ => {}
            }
        }
        if !refused.is_empty() {
            let mut roll = self.shared.roll.lock();
            for name in refused {
                roll.displace(name);
            }
            drop(roll);
            self.shared.guided.look_again();
        }
        Ok(())
    }

    fn lost(&self, why: &str) -> RedisError {
        self.dialer.unreachable(why)
    }

    /// Asks for what is to be asked for; when to look again at the latest.
    fn look(&self, connection: &Connection, asked: &mut FuturesUnordered<Asked>) -> Instant {
        let now = Instant::now();
        self.shared.tire();
        let mut roll = self.shared.roll.lock();
        while asked.len() < QUESTIONS_MAX && roll.due(now).is_some_and(|due| due <= now) {
            let turn = roll.turn(now, TURN_MAX);
            for (names, is_wanted) in [(turn.subscribe, true), (turn.unsubscribe, false)] {
                if !names.is_empty() {
                    asked.push(self.ask(connection.clone(), names, is_wanted));
                }
            }
        }
        let due = if asked.len() < QUESTIONS_MAX { roll.due(now) } else { None };
        let tired_at = now + self.dialer.io_timeout / 4;
        due.map_or(tired_at, |due| due.min(tired_at))
    }
}

/// Asks for each name by itself, because a command may name one slot only and would be refused as a whole.
fn ask_each(mut connection: Connection, command: &'static str, names: Vec<Arc<str>>) -> Asked {
    let mut commands = Pipeline::with_capacity(names.len());
    for name in &names {
        let command = Command::of(&[command.as_bytes(), name.as_bytes()]);
        commands.add_command(command.into_cmd());
    }
    Box::pin(async move {
        let replies = connection.send_packed_commands(&commands, 0, names.len()).await?;
        Ok(Replies { names, replies })
    })
}

/// Proves that the connection lives: the answer comes in time, or an error does.
fn ping(mut connection: Connection) -> Asked {
    Box::pin(async move {
        let ping = Command::of(&[b"PING"]).into_cmd();
        connection.send_packed_command(&ping).await.map(|_| Replies::default())
    })
}

impl Shared {
    /// Takes a message, or that a name is heard or not any more; other pushes say nothing. Whether the Redis took a name
    /// away by itself.
    fn take(&self, PushInfo { kind, data }: PushInfo) -> bool {
        let Ok([name, last]) = <[Value; 2]>::try_from(data) else { return false };
        let Some(name) = text(name) else { return false };
        let done = match kind {
            PushKind::Message | PushKind::SMessage => {
                if let Some(message) = text(last).filter(|_| self.is_heard(&name)) {
                    self.mouth.say(&name, message, Instant::now());
                }
                return false;
            }
            PushKind::Subscribe | PushKind::SSubscribe => Done::Subscribed,
            PushKind::Unsubscribe | PushKind::SUnsubscribe => Done::Unsubscribed,
            _ => return false,
        };
        let Ok(name) = str::from_utf8(&name) else { return false };
        let mut roll = self.roll.lock();
        let confirmed = roll.confirmed(name, done);
        if confirmed.is_displaced {
            self.has_lost();
        }
        drop(roll);
        if confirmed.is_again {
            self.mouth.doubt(name);
        }
        if confirmed.is_displaced {
            self.guided.look_again();
        }
        confirmed.waiters.into_iter().for_each(|(_, waiter)| waiter(Ok(self.witness())));
        confirmed.is_displaced
    }

    /// Whether messages under this name are to be handed on. In a Cluster a name that moved may be heard from two Redis for
    /// a while: only that of the feed which has it counts.
    fn is_heard(&self, name: &[u8]) -> bool {
        let is_asked = |name| self.roll.lock().is_asked(name);
        !self.guided.is_guided() || str::from_utf8(name).is_ok_and(is_asked)
    }

    /// Names that were asked for long ago and never confirmed are asked for again once the slots are known anew.
    fn displace_unconfirmed(&self) {
        if self.roll.lock().displace_unconfirmed() {
            self.guided.look_again();
        }
    }

    /// The connection is gone.
    fn lose(&self) {
        let mut roll = self.roll.lock();
        roll.lost();
        self.has_lost();
    }

    /// A name that was heard is not any more. Called while the roll is locked: whoever looks for a name sees both or none.
    fn has_lost(&self) {
        self.losses.fetch_add(1, Relaxed);
    }

    fn witness(&self) -> Witness {
        Witness { losses: Arc::clone(&self.losses), before: self.losses.load(Relaxed) }
    }

    /// Takes the messages that came before the connection was lost. What it confirmed is void.
    fn take_what_is_left(&self, pushes: &mut Pushes) {
        while let Ok(push) = pushes.queue.try_recv() {
            if matches!(push.kind, PushKind::Message | PushKind::SMessage) {
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
