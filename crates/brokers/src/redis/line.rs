//! A connection for commands: those of one turn leave together, and replies come in their order.
//! In: commands with who wants the reply, from any thread → out: replies or failures, each once and in bounded time.
//! Uses one task, a bounded queue, a `MultiplexedConnection`. Never: knows what a command does.
//! Change here: how commands are sent, and what becomes of them when the connection is lost.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, PushKind, RedisResult, Value};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout_at;

use super::backoff::Backoff;
use super::dial::{BATCHES_MAX, Dialer};
use super::error::{Failure, RedisError};
use super::health::Health;
use super::script;
use super::wire::Command;

/// The sending end. The connection ends with the last of them.
#[derive(Clone)]
pub(crate) struct Line {
    queue: mpsc::Sender<Call>,
    shared: Arc<Shared>,
}

struct Shared {
    /// Of commands that wait to be sent.
    queued_bytes: AtomicUsize,
    /// The last try to connect failed: commands fail at once instead of waiting for the next.
    is_down: AtomicBool,
    health: Arc<Health>,
}

/// Takes a reply, on the connection's task: to be short.
type Done = Box<dyn FnOnce(Result<Value, Failure>) + Send>;

/// A command to be sent.
struct Call {
    command: Cmd,
    bytes: usize,
    caller: Caller,
}

/// Who wants a reply. One that is dropped gets none, which is a failure to whoever waits.
struct Caller {
    done: Option<Done>,
    is_repeated: bool,
}

impl Line {
    /// Begins to connect, and goes on until the last handle is gone.
    pub(crate) fn open(dialer: Dialer, health: Arc<Health>, runtime: &Handle) -> Self {
        let (queue, calls) = mpsc::channel(QUEUE_MAX);
        health.counts_on();
        let shared = Arc::new(Shared {
            queued_bytes: AtomicUsize::new(0),
            is_down: AtomicBool::new(false),
            health,
        });
        let keeper =
            Keeper { dialer, calls, shared: Arc::clone(&shared), backoff: Backoff::default() };
        runtime.spawn(keeper.run());
        Self { queue, shared }
    }

    /// Sends a command. `done` gets the reply, later on another thread; or it gets the failure, perhaps at once.
    ///
    /// Commands of one thread are sent in its order. An error reply is a failure.
    pub(crate) fn send(
        &self,
        command: Command,
        done: impl FnOnce(Result<Value, Failure>) + Send + 'static,
    ) {
        let bytes = command.length();
        let queued = self.shared.queued_bytes.fetch_add(bytes, Relaxed);
        let caller = Caller { done: Some(Box::new(done)), is_repeated: false };
        let call = Call { command: command.into_cmd(), bytes, caller };
        if self.shared.is_down.load(Relaxed) || queued > QUEUE_BYTES_MAX {
            self.shared.fail(call);
        } else if let Err(returned) = self.queue.try_send(call) {
            self.shared.fail(returned.into_inner());
        }
    }
}

impl Shared {
    /// Takes a call out of the queue.
    fn taken(&self, call: &Call) {
        self.queued_bytes.fetch_sub(call.bytes, Relaxed);
    }

    /// Fails a call that was not sent.
    fn fail(&self, call: Call) {
        self.taken(&call);
        call.caller.finish(Err(Failure::Unavailable));
    }
}

impl Call {
    /// A command whose reply nobody wants.
    fn of(command: Command) -> Self {
        let caller = Caller { done: None, is_repeated: true };
        Self { command: command.into_cmd(), bytes: 0, caller }
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
struct Keeper {
    dialer: Dialer,
    calls: mpsc::Receiver<Call>,
    shared: Arc<Shared>,
    backoff: Backoff,
}

/// Why a connection ended.
enum End {
    /// Nobody can send any more.
    Closed,
    Lost(RedisError),
}

impl Keeper {
    async fn run(mut self) {
        loop {
            let gone = Arc::new(Notify::new());
            let told = Arc::clone(&gone);
            let pushed = move |push: redis::PushInfo| {
                if push.kind == PushKind::Disconnection {
                    told.notify_one();
                }
            };
            let must_wait = match self.dialer.dial(script::loads(), pushed).await {
                Ok(connection) => match self.serve_counted(connection, &gone).await {
                    Some(must_wait) => must_wait,
                    None => return,
                },
                Err(error) => {
                    self.shared.is_down.store(true, Relaxed);
                    self.shared.health.is_troubled(error);
                    true
                }
            };
            if must_wait && !self.wait().await {
                return;
            }
        }
    }

    /// Serves until the connection ends; whether to wait then, or `None` when nobody needs it any more.
    async fn serve_counted(
        &mut self,
        connection: MultiplexedConnection,
        gone: &Notify,
    ) -> Option<bool> {
        let began = Instant::now();
        self.shared.is_down.store(false, Relaxed);
        self.shared.health.came_up();
        let mut flow = Flow { connection, flight: FuturesOrdered::new(), again: VecDeque::new() };
        let end = self.serve(&mut flow, gone).await;
        self.shared.health.went_down();
        match end {
            End::Closed => None,
            End::Lost(error) => {
                self.shared.health.is_troubled(error);
                Some(self.backoff.ended(began.elapsed()))
            }
        }
    }

    async fn serve(&mut self, flow: &mut Flow, gone: &Notify) -> End {
        let mut calls = Vec::new();
        loop {
            tokio::select! {
                count = self.calls.recv_many(&mut calls, BATCH_MAX), if flow.has_room() => {
                    if count == 0 {
                        return End::Closed;
                    }
                    calls.iter().for_each(|call| self.shared.taken(call));
                    flow.begin(std::mem::take(&mut calls));
                }
                Some(batch) = flow.flight.next() => {
                    if let Err(error) = self.hear(flow, batch) {
                        return End::Lost(error);
                    }
                }
                () = gone.notified() => {
                    return End::Lost(self.dialer.unreachable("it closed the connection"));
                }
            }
        }
    }

    /// Takes the replies to a batch.
    fn hear(&self, flow: &mut Flow, batch: Batch) -> Result<(), RedisError> {
        let replies = batch.replies.map_err(|error| self.dialer.broken(&error))?;
        let sent = batch.commands.cmd_iter().zip(batch.callers);
        for ((command, mut caller), reply) in sent.zip(replies) {
            match reply {
                Value::ServerError(error) if error.code() == "NOSCRIPT" && !caller.is_repeated => {
                    caller.is_repeated = true;
                    flow.again.push_back(Call { command: command.clone(), bytes: 0, caller });
                }
                Value::ServerError(error) => {
                    self.shared.health.was_refused(&error);
                    caller.finish(Err(Failure::Refused));
                    if ENDS.contains(&error.code()) {
                        return Err(self.dialer.refused(error.code(), error.details()));
                    }
                }
                reply => caller.finish(Ok(reply)),
            }
        }
        flow.repeat();
        Ok(())
    }

    /// Waits before the next try, failing what is asked for meanwhile; false when nobody needs the line any more.
    async fn wait(&mut self) -> bool {
        let end = tokio::time::Instant::now() + self.backoff.next();
        loop {
            match timeout_at(end, self.calls.recv()).await {
                Ok(Some(call)) => self.shared.fail(call),
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }
}

/// What is on its way.
struct Flow {
    connection: MultiplexedConnection,
    /// Sent, in this order: a batch is given to the connection when it is first looked at, and the queue of the connection
    /// is long enough for all of them.
    flight: FuturesOrdered<Pin<Box<dyn Future<Output = Batch> + Send>>>,
    /// To be sent again, because a script was not known.
    again: VecDeque<Call>,
}

/// Commands that left together.
struct Batch {
    commands: Pipeline,
    callers: Vec<Caller>,
    replies: RedisResult<Vec<Value>>,
}

impl Flow {
    fn begin(&mut self, calls: Vec<Call>) {
        let mut connection = self.connection.clone();
        let mut commands = Pipeline::with_capacity(calls.len());
        let mut callers = Vec::with_capacity(calls.len());
        for Call { command, caller, .. } in calls {
            commands.add_command(command);
            callers.push(caller);
        }
        self.flight.push_back(Box::pin(async move {
            let replies = connection.send_packed_commands(&commands, 0, callers.len()).await;
            Batch { commands, callers, replies }
        }));
    }

    /// Whether more commands may be sent: not while some wait to be repeated, which must not be overtaken.
    fn has_room(&self) -> bool {
        self.flight.len() < BATCHES_MAX && self.again.is_empty()
    }

    /// Once all that was sent is answered: loads the scripts and repeats what needed them, in its order.
    fn repeat(&mut self) {
        if self.again.is_empty() || !self.flight.is_empty() {
            return;
        }
        let again = std::mem::take(&mut self.again);
        self.begin(script::loads().map(Call::of).chain(again).collect());
    }
}

/// Errors after which this connection is of no use: the Redis became a replica, or will do nothing for now.
const ENDS: &[&str] = &["READONLY", "LOADING", "MASTERDOWN", "NOAUTH"];
/// Commands that wait to be sent.
const QUEUE_MAX: usize = 64 * 1024;
/// And their bytes.
const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Commands that leave together.
const BATCH_MAX: usize = 1024;
