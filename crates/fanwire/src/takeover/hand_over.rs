//! The old program's side: it starts the new one, and gives it everything once that one is ready.
//! In: a command, then shards that stand still and the engine → out: a new program that serves, or one that has ended.
//! Uses the link and a child process. Never: gives anything before the new program is ready.
//! Changed here: what the old program sends, and when it gives up. The new program's side is `take_over`.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_fanout::Shards;
use fanwire_shard::{ConnectionSink, FrozenShards};
use parking_lot::Mutex;

use super::link::{LinkMessage, MessageKind, ProgramLink};
use super::{FORMAT, Hello, RECORDS, RedisSide, VARIABLE};

/// Why a server was not handed over. It serves as before, except after [`Ended`](Self::Ended).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandOverError {
    /// This server cannot be handed over; says what to do.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The new program could not be started.
    #[error("the new program cannot be started: {0}")]
    Start(io::Error),
    /// The new program refuses; its reason.
    #[error("the new program refuses: {0}")]
    Refused(String),
    /// The new program ended before it was ready.
    #[error("the new program ended before it was ready ({0}): its log says why")]
    EndedEarly(ExitStatus),
    /// The new program ended or hung before it had everything.
    #[error("the new program did not take everything ({0}): this one goes on")]
    Failed(io::Error),
    /// The new program hung or ended when it had begun to serve. This one serves again, without the connections.
    #[error(
        "the new program has ended just after it began to serve: this one serves, and its clients reconnect"
    )]
    Ended,
}

/// A server that is now in another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandedOver {
    /// Connections that moved.
    pub connections: usize,
    /// The process of the new program.
    pub pid: u32,
}

/// A program that is to take over.
pub(crate) struct NewProgram {
    link: Arc<Mutex<ProgramLink>>,
    /// `None` in tests, where it is a thread.
    child: Option<Child>,
}

/// What a new program gets.
pub(crate) struct Moving<'a> {
    pub(crate) shards: &'a Shards,
    /// How long commands may take that wait for an answer.
    pub(crate) patience: Duration,
    pub(crate) save_engine: &'a dyn Fn(&mut dyn Write) -> io::Result<()>,
    /// The Redis of the node, if its engine is there.
    pub(crate) redis: Option<&'a RedisSide>,
}

impl NewProgram {
    /// Starts the command, whose standard input is the other end of the link.
    pub(crate) fn start(mut command: Command) -> Result<Self, HandOverError> {
        let (ours, theirs) = UnixStream::pair().map_err(HandOverError::Start)?;
        command.env(VARIABLE, "stdin").stdin(OwnedFd::from(theirs));
        let child = command.spawn().map_err(HandOverError::Start)?;
        Ok(Self { child: Some(child), ..Self::of_socket(ours) })
    }

    pub(crate) fn of_socket(socket: UnixStream) -> Self {
        Self { link: Arc::new(Mutex::new(ProgramLink::new(socket))), child: None }
    }

    /// Gives the new program the descriptors, and waits until it is ready to serve. Ends it otherwise. Blocks.
    pub(crate) fn prepare(
        &mut self,
        node: &str,
        engine: &str,
        descriptors: &[(&str, BorrowedFd<'_>)],
    ) -> Result<(), HandOverError> {
        let hello = Hello {
            format: FORMAT,
            records: RECORDS,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            node: node.to_owned(),
            engine: engine.to_owned(),
            descriptors: descriptors.iter().map(|(name, _)| (*name).to_owned()).collect(),
        };
        let payload = serde_json::to_vec(&hello).expect("a struct of texts is JSON");
        let copied: Vec<_> = descriptors.iter().map(|(_, descriptor)| *descriptor).collect();
        let answer = {
            let mut link = self.link.lock();
            link.limit(READY_MAX);
            link.send(MessageKind::Hello, &payload, &copied).and_then(|()| link.receive())
        };
        match answer {
            Ok(LinkMessage { kind: MessageKind::Ready, .. }) => Ok(()),
            Ok(LinkMessage { kind: MessageKind::Refused, payload, .. }) => {
                self.end();
                Err(HandOverError::Refused(String::from_utf8_lossy(&payload).into_owned()))
            }
            Ok(_) => {
                self.end();
                Err(HandOverError::Refused("it speaks another format".to_owned()))
            }
            Err(error) => {
                let has_ended = ENDS.contains(&error.kind());
                Err(match self.end() {
                    Some(status) if has_ended => HandOverError::EndedEarly(status),
                    _ => HandOverError::Failed(error),
                })
            }
        }
    }

    /// Gives the new program everything, and waits until it serves. Otherwise the shards run on. Blocks.
    pub(crate) fn give(&mut self, moving: &Moving<'_>) -> Result<HandedOver, HandOverError> {
        let began = Instant::now();
        let mut stopped = Ok(());
        let stop_redis = || stopped = moving.redis.map_or(Ok(()), |redis| self.stop_redis(redis));
        let frozen = moving.shards.freeze(moving.patience, stop_redis);
        self.link.lock().limit(MOVE_MAX);
        let error = match stopped.and_then(|()| self.give_frozen(&frozen, moving)) {
            Ok(connections) => {
                frozen.forget();
                let pause_ms = began.elapsed().as_millis() as u64;
                tracing::info!(connections, pause_ms, "the new program has everything");
                let pid = self.child.as_ref().map_or(std::process::id(), Child::id);
                return Ok(HandedOver { connections, pid });
            }
            Err(error) => error,
        };
        self.end();
        // Nothing more can come, and what has come tells whether it has begun.
        self.link.lock().limit(LATE_MAX);
        let has_begun = self.link.lock().expect(MessageKind::Serving).is_ok();
        if has_begun {
            frozen.forget();
            return Err(HandOverError::Ended);
        }
        Err(HandOverError::Failed(error))
    }

    fn stop_redis(&self, redis: &RedisSide) -> io::Result<()> {
        let mut link = self.link.lock();
        link.limit(MOVE_MAX);
        redis.stop(&mut link)
    }

    fn give_frozen(&self, frozen: &FrozenShards, moving: &Moving<'_>) -> io::Result<usize> {
        let mut engine = BufWriter::with_capacity(PART_BYTES, EngineWriter(&self.link));
        (moving.save_engine)(&mut engine)?;
        engine.flush()?;
        drop(engine);
        self.link.lock().send(MessageKind::Engine, &[], &[])?;
        let link = Arc::clone(&self.link);
        let sink: Arc<ConnectionSink> = Arc::new(move |records, sockets| {
            link.lock().send(MessageKind::Connections, records, sockets)
        });
        let count = frozen.give(&sink)?;
        self.link.lock().send(MessageKind::Complete, &[], &[])?;
        self.link.lock().expect(MessageKind::Serving)?;
        Ok(count)
    }

    /// Ends the new program, and waits for its end.
    fn end(&mut self) -> Option<ExitStatus> {
        let child = self.child.as_mut()?;
        // It may have ended by itself.
        let _ = child.kill();
        child.wait().ok()
    }
}

/// Sends what is written as parts of the engine.
struct EngineWriter<'a>(&'a Mutex<ProgramLink>);

impl Write for EngineWriter<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        // An empty part would be the last one.
        if !part.is_empty() {
            self.0.lock().send(MessageKind::Engine, part, &[])?;
        }
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Errors of a link whose other program has ended, with unread messages or without.
const ENDS: [ErrorKind; 3] =
    [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];

/// From the start of the new program until it is ready. It reads its configuration, and may wait for other machines.
const READY_MAX: Duration = Duration::from_secs(30);

/// From the freeze until the new program serves. Clients wait for so long at most.
const MOVE_MAX: Duration = Duration::from_secs(5);

/// For what a program that has ended has sent.
const LATE_MAX: Duration = Duration::from_millis(100);

const PART_BYTES: usize = 256 << 10;
