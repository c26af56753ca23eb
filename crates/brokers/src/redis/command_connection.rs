//! A connection for commands: those of one turn leave together, and replies come in their order.
//! In: commands with who wants the reply, from any thread → out: replies or failures, each once and in bounded time.
//! Uses one task, a bounded queue, a connection. Never: knows what a command does.
//! Change here: how commands are sent, and what becomes of them when the connection is lost.

mod in_flight;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use redis::{Cmd, PushInfo, PushKind, ServerError, Value};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout, timeout_at};

use self::in_flight::{Batch, InFlightBatches};
use super::backoff::Backoff;
use super::dial::{Connection, Dialer};
use super::error::{Failure, RedisError};
use super::health::Health;
use super::redirect::{ClusterRedirects, Redirect, Route, ends_connection, is_of_slots};
use super::script;
use super::wire::{RedisCommand, number};

/// The sending end. The connection ends with the last of them.
#[derive(Clone)]
pub(crate) struct CommandConnection {
    queue: mpsc::Sender<Call>,
    shared: Arc<Shared>,
    /// How what is sent through this handle goes through a Cluster.
    route: Route,
}

struct Shared {
    /// Of commands that wait to be sent or answered.
    held_bytes: AtomicUsize,
    /// The last try to connect failed: commands fail at once instead of waiting for the next.
    is_down: AtomicBool,
    health: Arc<Health>,
}

/// Takes a reply, on the connection's task: to be short.
type Done = Box<dyn FnOnce(Result<Value, Failure>) + Send>;

/// A command to be sent.
pub(crate) struct Call {
    command: Cmd,
    bytes: usize,
    is_write: bool,
    caller: Caller,
}

/// Who wants a reply. One that is dropped gets none, which is a failure to whoever waits.
struct Caller {
    done: Option<Done>,
    is_repeated: bool,
    route: Route,
}

impl CommandConnection {
    /// Begins to connect, and goes on until the last handle is gone.
    pub(crate) fn open(
        dialer: Dialer,
        health: Arc<Health>,
        redirects: ClusterRedirects,
        runtime: &Handle,
    ) -> Self {
        health.connection_added();
        let (connection, UnroutedCalls { calls, shared }) = Self::unrouted(health);
        let keeper =
            ConnectionTask { dialer, calls, shared, redirects, backoff: Backoff::default() };
        runtime.spawn(keeper.run());
        connection
    }

    /// A line that leads nowhere yet.
    pub(crate) fn unrouted(health: Arc<Health>) -> (Self, UnroutedCalls) {
        let (queue, calls) = mpsc::channel(QUEUE_MAX);
        let shared = Arc::new(Shared {
            held_bytes: AtomicUsize::new(0),
            is_down: AtomicBool::new(false),
            health,
        });
        let unrouted_calls = UnroutedCalls { calls, shared: Arc::clone(&shared) };
        (Self { queue, shared, route: Route::default() }, unrouted_calls)
    }

    /// A handle for what goes this way.
    pub(crate) fn on(&self, route: Route) -> Self {
        Self { route, ..self.clone() }
    }

    /// The last try to connect failed, so that calls fail at once.
    pub(crate) fn is_down(&self) -> bool {
        self.shared.is_down.load(Relaxed)
    }

    /// Sends a command. `done` gets the reply, later on another thread; or it gets the failure, perhaps at once.
    ///
    /// Commands of one thread are sent in its order. An error reply is a failure.
    pub(crate) fn send(
        &self,
        command: RedisCommand,
        done: impl FnOnce(Result<Value, Failure>) + Send + 'static,
    ) {
        let bytes = command.length();
        let is_write = command.is_write();
        let caller = Caller { done: Some(Box::new(done)), is_repeated: false, route: self.route };
        self.forward(Call { command: command.into_cmd(), bytes, is_write, caller }, self.is_down());
    }

    /// Sends a call that was begun before, or fails it.
    pub(crate) fn forward(&self, call: Call, is_refused: bool) {
        let held = self.shared.held_bytes.fetch_add(call.bytes, Relaxed);
        if is_refused || held > HELD_BYTES_MAX {
            self.shared.fail(call);
        } else if let Err(returned) = self.queue.try_send(call) {
            self.shared.fail(returned.into_inner());
        }
    }
}

/// Calls that nobody sends yet.
pub(crate) struct UnroutedCalls {
    calls: mpsc::Receiver<Call>,
    shared: Arc<Shared>,
}

impl UnroutedCalls {
    /// From now on calls fail at once, but those that are [passed](CommandConnection::pass) here.
    pub(crate) fn close(&self) {
        self.shared.is_down.store(true, Relaxed);
    }

    /// Those that wait, at most as many as are there now.
    pub(crate) fn take(&mut self) -> Vec<Call> {
        let mut taken = Vec::new();
        while taken.len() < QUEUE_MAX
            && let Ok(call) = self.calls.try_recv()
        {
            self.shared.held_bytes.fetch_sub(call.bytes, Relaxed);
            taken.push(call);
        }
        taken
    }
}

impl Shared {
    /// Fails a call that was not sent.
    fn fail(&self, call: Call) {
        self.held_bytes.fetch_sub(call.bytes, Relaxed);
        call.caller.finish(Err(Failure::Unavailable));
    }
}

impl Call {
    /// A command whose reply nobody wants.
    fn of(command: RedisCommand) -> Self {
        let caller = Caller { done: None, is_repeated: true, route: Route::default() };
        Self { command: command.into_cmd(), bytes: 0, is_write: false, caller }
    }

    pub(crate) fn route(&self) -> Route {
        self.caller.route
    }

    /// The same call on another way.
    pub(crate) fn on(mut self, route: Route) -> Self {
        self.caller.route = route;
        self.caller.is_repeated = false;
        self
    }

    /// It will not be done.
    pub(crate) fn fail(self) {
        self.caller.finish(Err(Failure::Unavailable));
    }
}

impl Caller {
    fn finish(self, result: Result<Value, Failure>) {
        if let Some(done) = self.done {
            done(result);
        }
    }
}

/// The task of a line.
struct ConnectionTask {
    dialer: Dialer,
    calls: mpsc::Receiver<Call>,
    shared: Arc<Shared>,
    redirects: ClusterRedirects,
    backoff: Backoff,
}

/// Why a connection ended.
enum End {
    /// Nobody can send any more.
    Closed,
    /// The Redis has other data than before, perhaps of another master: in which reign it is has to be asked anew. Nothing
    /// that was sent is unanswered.
    Replaced,
    Lost(RedisError),
}

/// What the Redis says by itself.
#[derive(Default)]
struct ConnectionSignals {
    /// The connection has ended.
    disconnected: Notify,
    /// All its data was dropped: by whoever flushed it, or because it became a replica of another.
    invalidated: Notify,
}

impl ConnectionTask {
    async fn run(mut self) {
        self.reconnect_until_closed().await;
        self.shared.health.connection_removed();
    }

    /// Connects again and again, until nobody needs it any more.
    async fn reconnect_until_closed(&mut self) {
        loop {
            let signals = Arc::new(ConnectionSignals::default());
            let sender = Arc::clone(&signals);
            let pushed = move |push: PushInfo| match push.kind {
                PushKind::Disconnection => sender.disconnected.notify_one(),
                PushKind::Invalidate => sender.invalidated.notify_one(),
                _ => {}
            };
            let must_wait = match self.dial(pushed).await {
                Ok(connection) => match self.serve_counted(connection, &signals).await {
                    Some(must_wait) => must_wait,
                    None => return,
                },
                Err(error) => {
                    self.shared.is_down.store(true, Relaxed);
                    self.shared.health.report_error(error);
                    self.redirects.request_refresh();
                    true
                }
            };
            if must_wait && !self.wait().await {
                return;
            }
        }
    }

    /// Connects. Who waits for that is let go when it takes longer than it should, as is who comes later.
    async fn dial(
        &mut self,
        pushed: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> Result<Connection, RedisError> {
        let mut dialing = pin!(self.dialer.dial(script::loads(), pushed));
        if let Ok(dialed) = timeout(self.dialer.limits.connect, &mut dialing).await {
            return dialed;
        }
        self.shared.is_down.store(true, Relaxed);
        loop {
            tokio::select! {
                dialed = &mut dialing => return dialed,
                Some(call) = self.calls.recv() => self.shared.fail(call),
            }
        }
    }

    /// Serves until the connection ends; whether to wait then, or `None` when nobody needs it any more.
    async fn serve_counted(
        &mut self,
        connection: Connection,
        signals: &ConnectionSignals,
    ) -> Option<bool> {
        let began = Instant::now();
        self.shared.is_down.store(false, Relaxed);
        self.shared.health.connection_up();
        let mut batches =
            InFlightBatches::new(connection, self.dialer.wait, Arc::clone(&self.shared));
        let end = self.serve(&mut batches, signals).await;
        match end {
            End::Closed => {
                self.shared.health.connection_closed();
                None
            }
            End::Replaced => {
                self.shared.health.connection_closed();
                Some(self.backoff.ended(began.elapsed()))
            }
            End::Lost(error) => {
                self.shared.health.connection_lost();
                self.shared.health.report_error(error);
                self.redirects.request_refresh();
                Some(self.backoff.ended(began.elapsed()))
            }
        }
    }

    async fn serve(&mut self, batches: &mut InFlightBatches, signals: &ConnectionSignals) -> End {
        let mut calls = Vec::new();
        let (mut is_closing, mut is_replaced) = (false, false);
        let limit = self.dialer.io_timeout;
        let mut reply_timer = pin!(sleep(limit));
        // Asked again, not anew, each time.
        let (mut disconnected, mut invalidated) =
            (pin!(signals.disconnected.notified()), pin!(signals.invalidated.notified()));
        while !(is_closing || is_replaced) || !batches.is_idle() {
            tokio::select! {
                // In this order, which lets nobody wait: news are rare, calls come while there is room, replies to calls.
                biased;
                () = &mut disconnected => {
                    return End::Lost(self.dialer.unreachable("it closed the connection"));
                }
                () = &mut invalidated, if !is_replaced => is_replaced = true,
                count = self.calls.recv_many(&mut calls, batches.batch_max()), if batches.has_room() && !is_closing && !is_replaced => {
                    if count == 0 {
                        is_closing = true;
                        continue;
                    }
                    batches.send(std::mem::take(&mut calls));
                }
                Some(batch) = batches.next() => {
                    if let Err(error) = self.handle_replies(batches, batch) {
                        return End::Lost(error);
                    }
                }
                // One for all batches: a timer for each, and futures that wake by themselves, took 1,900 of 26,400
                // instructions of a publish.
                () = &mut reply_timer => {
                    let since = batches.oldest_unanswered_since().unwrap_or_else(tokio::time::Instant::now);
                    if since.elapsed() >= limit {
                        return End::Lost(RedisError::late(self.dialer.address(), "a reply", limit));
                    }
                    // Whoever calls next is not to be the one who finds out that the connection is dead.
                    if batches.in_flight.is_empty() {
                        batches.send(vec![Call::of(RedisCommand::of(&[b"PING"]))]);
                    }
                    reply_timer.as_mut().reset(since + limit);
                }
            }
        }
        if is_closing { End::Closed } else { End::Replaced }
    }

    /// Takes the replies to a batch.
    fn handle_replies(
        &self,
        batches: &mut InFlightBatches,
        batch: Batch,
    ) -> Result<(), RedisError> {
        let mut replies = batch.replies.map_err(|error| self.dialer.broken(&error))?;
        let wait = self.dialer.wait;
        let is_kept = !batch.waits || replies.pop().is_some_and(|count| has(count, wait.replicas));
        let mut unkept = 0;
        let sent = batch.commands.cmd_iter().zip(batch.callers);
        for ((command, (bytes, is_write, caller)), reply) in sent.zip(replies) {
            match reply {
                Value::ServerError(error) => {
                    let call = Call { command: command.clone(), bytes, is_write, caller };
                    self.handle_error(batches, call, &error)?;
                }
                _ if is_write && !is_kept => {
                    unkept += 1;
                    caller.finish(Err(Failure::Unavailable));
                }
                reply => caller.finish(Ok(reply)),
            }
        }
        self.shared.health.count_unreplicated(unkept, wait.replicas);
        batches.repeat();
        Ok(())
    }

    /// A command was not done: it is repeated, goes elsewhere, or has failed.
    fn handle_error(
        &self,
        batches: &mut InFlightBatches,
        mut call: Call,
        error: &ServerError,
    ) -> Result<(), RedisError> {
        if error.code() == "NOSCRIPT" && !call.caller.is_repeated {
            call.caller.is_repeated = true;
            batches.to_repeat.push_back(call);
            return Ok(());
        }
        if let Some(redirector) = self.redirects.redirector().filter(|_| is_of_slots(error)) {
            match Redirect::of(self.dialer.address(), error) {
                Some(elsewhere) => redirector.redirect(call, elsewhere),
                None => call.fail(),
            }
            redirector.request_refresh();
        } else {
            self.shared.health.command_refused(self.dialer.address(), &call.command, error);
            call.caller.finish(Err(Failure::Refused));
        }
        if ends_connection(error) {
            return Err(self.dialer.refused(error.code(), error.details()));
        }
        Ok(())
    }

    /// Waits before the next try, failing what is asked for meanwhile; false when nobody needs the line any more.
    async fn wait(&mut self) -> bool {
        let end = tokio::time::Instant::now() + self.backoff.next();
        let mut until_moved = self.dialer.until_moved();
        loop {
            tokio::select! {
                called = timeout_at(end, self.calls.recv()) => match called {
                    Ok(Some(call)) => self.shared.fail(call),
                    Ok(None) => return false,
                    Err(_) => return true,
                },
                () = &mut until_moved => return true,
            }
        }
    }
}

/// Whether a reply to `WAIT` says that as many replicas have what was written before it.
fn has(count: Value, replicas: u32) -> bool {
    number(count).is_some_and(|count| count >= replicas.into())
}

/// Commands that wait to be sent.
const QUEUE_MAX: usize = 64 * 1024;
/// Bytes of commands that wait to be sent or answered.
const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;
