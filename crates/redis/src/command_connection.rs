//! A connection for commands: commands that are queued together leave as one pipeline, and replies come in their order.
//! In: commands with a reply handler, from any thread → out: replies or failures, each once and in bounded time.
//! Uses one task, a bounded queue, a socket connection. Never: the meaning of a command.
//! Changed here: how commands are sent, and what becomes of them when the connection is lost.

mod in_flight;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use redis::{PushInfo, PushKind, ServerError, Value};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout, timeout_at};

use self::in_flight::{Batch, InFlightBatches, Sent};
use super::backoff::Backoff;
use super::call::{Call, Caller, Route};
use super::dial::{Connection, Dialer, PushHandler};
use super::error::{Failure, RedisError};
use super::health::Health;
use super::redirect::{ClusterRedirects, Redirect, ends_connection, is_of_slots};
use super::script;
use super::wire::{RedisCommand, number};

/// A handle to send with. The connection ends with the last handle.
#[derive(Clone)]
pub(crate) struct CommandConnection {
    queue: mpsc::Sender<Call>,
    shared: Arc<Shared>,
    /// The route of commands that this handle sends.
    route: Route,
}

struct Shared {
    /// Bytes of commands that wait to be sent or answered.
    held_bytes: AtomicUsize,
    /// The last try to connect failed: commands fail at once instead of waiting for the next try.
    is_down: AtomicBool,
    health: Arc<Health>,
}

impl CommandConnection {
    /// Starts to connect, and reconnects until the last handle is dropped.
    pub(crate) fn open(
        dialer: Dialer,
        health: Arc<Health>,
        redirects: ClusterRedirects,
        runtime: &Handle,
    ) -> Self {
        health.connection_added();
        let (connection, UnroutedCalls { calls, shared }) = Self::unrouted(health);
        let connection_task =
            ConnectionTask { dialer, calls, shared, redirects, backoff: Backoff::default() };
        runtime.spawn(connection_task.run());
        connection
    }

    /// A connection without a Redis: its calls wait in the returned queue.
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

    /// A handle for this route.
    pub(crate) fn on(&self, route: Route) -> Self {
        Self { route, ..self.clone() }
    }

    /// Whether the last try to connect failed; calls fail at once then.
    pub(crate) fn is_down(&self) -> bool {
        self.shared.is_down.load(Relaxed)
    }

    /// Sends a command. `done` gets the reply, later on another thread, or a failure, possibly at once.
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

    /// Queues a call of another connection, or fails it when `is_refused`.
    pub(crate) fn forward(&self, call: Call, is_refused: bool) {
        let held = self.shared.held_bytes.fetch_add(call.bytes, Relaxed);
        if is_refused || held > HELD_BYTES_MAX {
            self.shared.fail(call);
        } else if let Err(returned) = self.queue.try_send(call) {
            self.shared.fail(returned.into_inner());
        }
    }
}

/// Calls whose slot has no known master yet.
pub(crate) struct UnroutedCalls {
    calls: mpsc::Receiver<Call>,
    shared: Arc<Shared>,
}

impl UnroutedCalls {
    /// Lets new calls fail at once, except those that are [forwarded](CommandConnection::forward) here.
    pub(crate) fn close(&self) {
        self.shared.is_down.store(true, Relaxed);
    }

    /// The waiting calls. Takes at most as many as the queue holds, because others may be queued while it runs.
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

/// The task of a connection.
struct ConnectionTask {
    dialer: Dialer,
    calls: mpsc::Receiver<Call>,
    shared: Arc<Shared>,
    redirects: ClusterRedirects,
    backoff: Backoff,
}

/// Why a connection ended.
enum End {
    /// The last handle was dropped.
    Closed,
    /// The Redis dropped its data, perhaps to become a replica: its replication history has to be read again. All
    /// commands were answered.
    Replaced,
    Lost(RedisError),
}

/// Pushes that end a connection.
#[derive(Default)]
struct ConnectionSignals {
    /// The socket is closed.
    disconnected: Notify,
    /// All data was dropped: by FLUSHALL, or because the Redis became a replica of another.
    invalidated: Notify,
}

impl ConnectionTask {
    async fn run(mut self) {
        self.reconnect_until_closed().await;
        self.shared.health.connection_removed();
    }

    /// Connects again and again until the last handle is dropped.
    async fn reconnect_until_closed(&mut self) {
        loop {
            let signals = Arc::new(ConnectionSignals::default());
            let sender = Arc::clone(&signals);
            let pushed = move |push: PushInfo| match push.kind {
                PushKind::Disconnection => sender.disconnected.notify_one(),
                PushKind::Invalidate => sender.invalidated.notify_one(),
                _ => {}
            };
            let must_wait = match self.dial(Arc::new(pushed)).await {
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

    /// Connects. After the timeout, waiting and new calls fail while it goes on.
    async fn dial(&mut self, pushed: PushHandler) -> Result<Connection, RedisError> {
        let mut dialing = self.dialer.dial(script::loads(), pushed);
        if let Ok(dialed) = timeout(self.dialer.timeouts.connect, &mut dialing).await {
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

    /// Serves until the connection ends. Returns whether to wait before the next try, or `None` when the last handle
    /// was dropped.
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
        let mut is_closing = false;
        let mut is_replaced = false;
        let limit = self.dialer.io_timeout;
        let mut reply_timer = pin!(sleep(limit));
        // Created once, so that a signal between two turns of the loop is not lost.
        let mut disconnected = pin!(signals.disconnected.notified());
        let mut invalidated = pin!(signals.invalidated.notified());
        while !(is_closing || is_replaced) || !batches.is_idle() {
            tokio::select! {
                // The order starves nothing: signals are rare, calls are taken only while there is room, replies only
                // follow calls.
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
                // One timer for all batches: a timer for each, and futures that wake by themselves, took 1,900 of
                // 26,400 instructions of a publish.
                () = &mut reply_timer => {
                    let since = batches.oldest_unanswered_since().unwrap_or_else(tokio::time::Instant::now);
                    if since.elapsed() >= limit {
                        return End::Lost(RedisError::late(self.dialer.address(), "a reply", limit));
                    }
                    // A PING finds a dead connection before the next call does.
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
        let is_replicated =
            !batch.waits || replies.pop().is_some_and(|count| has_replicas(count, wait.replicas));
        let mut unreplicated = 0;
        let sent = batch.commands.cmd_iter().zip(batch.sent);
        for ((command, Sent { bytes, is_write, caller }), reply) in sent.zip(replies) {
            match reply {
                Value::ServerError(error) => {
                    let call = Call { command: command.clone(), bytes, is_write, caller };
                    self.handle_error(batches, call, &error)?;
                }
                _ if is_write && !is_replicated => {
                    unreplicated += 1;
                    caller.finish(Err(Failure::Unavailable));
                }
                reply => caller.finish(Ok(reply)),
            }
        }
        self.shared.health.count_unreplicated(unreplicated, wait.replicas);
        batches.repeat();
        Ok(())
    }

    /// Handles an error reply: the call is repeated, redirected, or fails.
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
                Some(redirect) => redirector.redirect(call, redirect),
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

    /// Waits before the next try and fails calls until then. Returns false when the last handle was dropped.
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

/// Whether a reply to `WAIT` counts enough replicas.
fn has_replicas(count: Value, replicas: u32) -> bool {
    number(count).is_some_and(|count| count >= replicas.into())
}

/// Commands in the queue.
const QUEUE_MAX: usize = 64 * 1024;
/// Bytes of commands that wait to be sent or answered.
const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;
