//! The server around a takeover: it stops to accept, to consume and to answer the API, gives everything, and ends or goes on.
//! In: a command that starts a new program → out: a server that is empty, or one that serves as before.
//! Uses `takeover`. Never: a message between the programs.
//! Changed here: what stops before the shards do, and which servers cannot be handed over.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use fanwire_consumers::PausedConsumers;
use fanwire_durable::DurableStreams;
use fanwire_fanout::Shards;
use fanwire_shard::{MovableConnections, Stop};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::Server;
use super::backends::Backends;
use crate::engine::Engine;
use crate::takeover::{HandOverError, HandedOver, Moving, NewProgram, SNAPSHOT_LOCK, Takeover};

/// The stores that move to a new program.
#[derive(Clone)]
pub(super) struct MovedStores {
    pub(super) engine: Engine,
    pub(super) durable: Option<Arc<DurableStreams>>,
}

impl MovedStores {
    /// Writes the streams of `durable_streams` behind their length, then the engine.
    fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        let streams = self.durable.as_ref().map(|durable| durable.save()).unwrap_or_default();
        out.write_all(&(streams.len() as u64).to_le_bytes())?;
        out.write_all(&streams)?;
        self.engine.save(out)
    }

    fn restore(&self, saved: &mut dyn Read) -> io::Result<()> {
        let mut length = [0; 8];
        saved.read_exact(&mut length)?;
        let mut streams = Vec::new();
        Read::take(&mut *saved, u64::from_le_bytes(length)).read_to_end(&mut streams)?;
        self.engine.restore(saved)?;
        match &self.durable {
            Some(durable) if !durable.take_over(&streams) => Err(ErrorKind::InvalidData.into()),
            _ => Ok(()),
        }
    }
}

impl Server {
    /// Starts a new program, which takes the listeners, the engine and the connections of this server over; then this one is empty and
    /// only to be dropped. Clients do not notice, except those whose connections cannot move: they are closed with 3001 first. The new
    /// program calls [`Takeover::of_process`] and [`Builder::take_over`](crate::Builder::take_over).
    ///
    /// # Errors
    /// See [`HandOverError`]; this server serves on.
    pub async fn hand_over(&mut self, new_program: Command) -> Result<HandedOver, HandOverError> {
        self.check_obstacle()?;
        self.hand_over_to(move || NewProgram::start(new_program)).await
    }

    /// The connections that [`hand_over`](Self::hand_over) would move now, and others.
    ///
    /// # Errors
    /// [`HandOverError::Unsupported`]
    pub async fn count_movable(&self) -> Result<MovableConnections, HandOverError> {
        self.check_obstacle()?;
        let shards = Arc::clone(&self.shards);
        Ok(blocking(move || shards.count_movable()).await)
    }

    fn check_obstacle(&self) -> Result<(), HandOverError> {
        self.obstacle.map_or(Ok(()), |obstacle| Err(HandOverError::Unsupported(obstacle)))
    }

    pub(crate) async fn hand_over_to(
        &mut self,
        start: impl FnOnce() -> Result<NewProgram, HandOverError> + Send + 'static,
    ) -> Result<HandedOver, HandOverError> {
        let http_side = Arc::clone(&self.http_side);
        let engine = self.stores.engine.clone();
        let node = Arc::clone(&self.node);
        let mut program = blocking(move || {
            let mut program = start()?;
            let mut descriptors: Vec<(&str, BorrowedFd<'_>)> = Vec::new();
            for (name, listener) in http_side.listeners().named() {
                descriptors.push((name, listener.as_fd()));
            }
            let snapshots = engine.snapshots();
            if let Some(snapshots) = &snapshots {
                descriptors.push((SNAPSHOT_LOCK, snapshots.lock()));
            }
            program.prepare(node.uid(), engine.kind().name(), &descriptors)?;
            Ok(program)
        })
        .await?;
        let paused = self.stop_input().await;
        let shards = Arc::clone(&self.shards);
        let stores = self.stores.clone();
        let given = blocking(move || {
            let snapshots = stores.engine.snapshots();
            let paused = snapshots.as_ref().map(|snapshots| snapshots.pause());
            let save_engine = |out: &mut dyn Write| stores.save(out);
            let patience = FINISH_TIME;
            let redis_side = stores.engine.redis_side();
            let redis = redis_side.as_ref();
            let given = program.give(&Moving {
                shards: &shards,
                patience,
                save_engine: &save_engine,
                redis,
            });
            match (&given, paused) {
                (Ok(_), Some(paused)) => paused.end(),
                (Ok(_), None) => {}
                (Err(_), _) => stores.engine.run_on(),
            }
            given
        })
        .await;
        match given {
            Ok(handed_over) => {
                self.end(paused).await;
                Ok(handed_over)
            }
            Err(error) => {
                self.apis.reopen();
                self.http = self.http_side.begin();
                drop(paused);
                Err(error)
            }
        }
    }

    /// Requests in flight have [`FINISH_TIME`]; then nothing publishes any more but commands that shards have read.
    async fn stop_input(&mut self) -> Option<PausedConsumers> {
        // What lasts longer ends with the process.
        let _ = timeout(FINISH_TIME, self.http.end()).await;
        let paused = match &self.consumers {
            Some(consumers) => Some(consumers.pause().await),
            None => None,
        };
        self.apis.close();
        paused
    }

    /// Ends what is left: connections that were closed, and consumers, which give back what they have received.
    async fn end(&mut self, paused: Option<PausedConsumers>) {
        self.background_tasks.iter().chain(&self.outgoing).for_each(JoinHandle::abort);
        let shards = Arc::clone(&self.shards);
        let stopping = blocking(move || {
            shards.stop(Stop { timeout: FINISH_TIME, ..Stop::default() });
        });
        let consumers = async {
            let Some(consumers) = &self.consumers else { return };
            let stop = consumers.stop(FINISH_TIME);
            // The stop is known before the pause ends.
            tokio::join!(stop, async { drop(paused) });
        };
        tokio::join!(stopping, consumers);
        if let Some(closed_logs) = self.closed_logs.take() {
            closed_logs.stop().await;
        }
    }
}

/// Why a server with this configuration cannot be handed over.
pub(super) fn obstacle(engine: &Engine, backends: &Backends) -> Option<&'static str> {
    if backends.rooms.is_some() {
        return Some("a server with rooms is not handed over: restart it");
    }
    let redis = engine.redis()?;
    if !redis.can_be_taken_over() {
        return Some(
            "with a Redis Cluster a server is not handed over: restart it; its clients recover",
        );
    }
    backends.events.is_some().then_some(
        "with events and an engine in Redis a server is not handed over: restart it; its clients recover",
    )
}

/// Takes everything from the old program, if there is one. Returns whether there is.
pub(super) async fn take_everything(
    takeover: &mut Option<Takeover>,
    shards: &Arc<Shards>,
    stores: &MovedStores,
) -> bool {
    let Some(takeover) = takeover.take() else { return false };
    let shards = Arc::clone(shards);
    let stores = stores.clone();
    let take = move || {
        let redis = stores.engine.redis_side();
        takeover.run(&shards, redis.as_ref(), |input| stores.restore(input));
        stores.engine.run_on();
    };
    blocking(take).await;
    true
}

/// Runs what blocks. A panic goes on here.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Time limit of requests and commands in flight, and of connections that are closed.
const FINISH_TIME: Duration = Duration::from_secs(1);
