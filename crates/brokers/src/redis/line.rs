//! A connection for commands: those of one turn leave together, and replies come in their order.
//! In: commands with who wants the reply, from any thread → out: replies or failures, each once and in bounded time.
//! Uses: one task with one socket, a bounded queue. Never: knows what a command does.
//! Change here: how commands are sent, and what becomes of them when the connection is lost.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout_at};

use super::backoff::Backoff;
use super::dial::Dialer;
use super::error::{Failure, RedisError};
use super::health::Health;
use super::resp::{Command, Reply};
use super::script;

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
type Done = Box<dyn FnOnce(Result<Reply, Failure>) + Send>;

struct Call {
    command: Command,
    done: Option<Done>,
    sent_at: Instant,
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
        done: impl FnOnce(Result<Reply, Failure>) + Send + 'static,
    ) {
        let length = command.bytes().len();
        let queued = self.shared.queued_bytes.fetch_add(length, Relaxed);
        let done: Option<Done> = Some(Box::new(done));
        let call = Call { command, done, sent_at: Instant::now(), is_repeated: false };
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
        self.queued_bytes.fetch_sub(call.command.bytes().len(), Relaxed);
    }

    /// Fails a call that was not sent.
    fn fail(&self, call: Call) {
        self.taken(&call);
        call.finish(Err(Failure::Unavailable));
    }
}

impl Call {
    fn finish(self, result: Result<Reply, Failure>) {
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
            let must_wait = match self.dialer.dial(script::loads()).await {
                Ok(stream) => match self.serve_counted(stream).await {
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
    async fn serve_counted(&mut self, stream: TcpStream) -> Option<bool> {
        let began = Instant::now();
        self.shared.is_down.store(false, Relaxed);
        self.shared.health.came_up();
        let mut flow = Flow::default();
        let end = self.serve(stream, &mut flow).await;
        for call in flow.flight.into_iter().chain(flow.again) {
            call.finish(Err(Failure::Unavailable));
        }
        self.shared.health.went_down();
        match end {
            End::Closed => None,
            End::Lost(error) => {
                self.shared.health.is_troubled(error);
                Some(self.backoff.ended(began.elapsed()))
            }
        }
    }

    async fn serve(&mut self, mut stream: TcpStream, flow: &mut Flow) -> End {
        let (mut reader, mut writer) = stream.split();
        let mut watch = interval(self.dialer.io_timeout / 4);
        watch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut calls = Vec::new();
        loop {
            tokio::select! {
                count = self.calls.recv_many(&mut calls, TURN_MAX), if flow.has_room() => {
                    if count == 0 {
                        return End::Closed;
                    }
                    for call in calls.drain(..) {
                        self.shared.taken(&call);
                        flow.begin(call);
                    }
                }
                read = reader.read_buf(&mut flow.reads) => {
                    let heard = match read {
                        Ok(0) => Err(self.dialer.unreachable("it closed the connection")),
                        Ok(_) => self.hear(flow),
                        Err(error) => Err(self.dialer.unreachable(error)),
                    };
                    if let Err(error) = heard {
                        return End::Lost(error);
                    }
                }
                written = writer.write(&flow.writes), if !flow.writes.is_empty() => match written {
                    Ok(count) => flow.writes.advance(count),
                    Err(error) => return End::Lost(self.dialer.unreachable(error)),
                },
                _ = watch.tick() => {
                    if flow.is_overdue(self.dialer.io_timeout) {
                        return End::Lost(self.dialer.unreachable("a reply did not come in time"));
                    }
                }
            }
        }
    }

    /// Takes the replies that came.
    fn hear(&self, flow: &mut Flow) -> Result<(), RedisError> {
        while let Some(reply) = Reply::take(&mut flow.reads).map_err(|_| self.dialer.not_redis())? {
            let mut call = flow.flight.pop_front().ok_or_else(|| self.dialer.not_redis())?;
            match reply {
                Reply::Error(text) if text.starts_with(b"NOSCRIPT") && !call.is_repeated => {
                    call.is_repeated = true;
                    flow.again.push_back(call);
                }
                Reply::Error(text) => {
                    self.shared.health.was_refused(&text);
                    call.finish(Err(Failure::Refused));
                    if ENDS.iter().any(|end| text.starts_with(end)) {
                        return Err(self.dialer.refused(&text));
                    }
                }
                reply => call.finish(Ok(reply)),
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
#[derive(Default)]
struct Flow {
    reads: BytesMut,
    writes: BytesMut,
    /// Sent, in this order.
    flight: VecDeque<Call>,
    /// To be sent again, because a script was not known.
    again: VecDeque<Call>,
}

impl Flow {
    fn begin(&mut self, mut call: Call) {
        self.writes.extend_from_slice(call.command.bytes());
        call.sent_at = Instant::now();
        self.flight.push_back(call);
    }

    /// Whether more commands may be sent: not while some wait to be repeated, which must not be overtaken.
    fn has_room(&self) -> bool {
        self.flight.len() < FLIGHT_MAX && self.writes.len() < WRITES_MAX && self.again.is_empty()
    }

    /// Once all that was sent is answered: loads the scripts and repeats what needed them, in its order.
    fn repeat(&mut self) {
        if self.again.is_empty() || !self.flight.is_empty() {
            return;
        }
        for command in script::loads() {
            self.begin(Call { command, done: None, sent_at: Instant::now(), is_repeated: true });
        }
        for call in std::mem::take(&mut self.again) {
            self.begin(call);
        }
    }

    /// Whether a reply is owed for longer than `limit`.
    fn is_overdue(&self, limit: std::time::Duration) -> bool {
        self.flight.front().is_some_and(|call| call.sent_at.elapsed() > limit)
    }
}

/// Errors after which this connection is of no use: the Redis became a replica, or will do nothing for now.
const ENDS: &[&[u8]] = &[b"READONLY", b"LOADING", b"MASTERDOWN", b"NOAUTH"];
/// Commands that wait to be sent.
const QUEUE_MAX: usize = 64 * 1024;
/// And their bytes.
const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Commands that are sent and not answered.
const FLIGHT_MAX: usize = 8 * 1024;
/// Bytes that the socket did not take yet, beyond which no more commands are begun.
const WRITES_MAX: usize = 1024 * 1024;
/// Commands taken from the queue at once.
const TURN_MAX: usize = 1024;
