//! Consumers: messages of queues are commands of the server API, executed at least once (docs/consumers.md).
//! In: options, the API → out: tasks that read, execute and acknowledge messages until the stop; their numbers.
//! Uses `api`, `tls`, clients of queues. Never: HTTP, sessions; nothing is acknowledged before it is done.
//! Changed here: which queues there are. `message` reads messages, `outcome` judges results, `runner` has the loop, and each
//! queue has a file.
#![forbid(unsafe_code)]

#[cfg(feature = "jetstream")]
mod jetstream;
#[cfg(feature = "kafka")]
mod kafka;
mod message;
mod options;
mod outcome;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis-stream")]
mod redis_stream;
mod runner;
mod start;
mod state;

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use fanwire_api::Api;
use parking_lot::Mutex;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock, watch};
use tokio::task::{Id, JoinHandle, JoinSet};
use tokio::time::timeout;

pub use message::SkipCause;
pub use options::{
    ConsumerKind, ConsumerOptions, JetStreamOptions, KafkaOptions, OutboxOptions,
    PublicationDataMode, RedisStreamOptions, START_DELAY_MAX,
};
use runner::{Lane, QueueError, Runner};
use start::StartGate;
pub use start::StartPhase;
use state::ConsumerState;
pub use state::ConsumerStats;

/// The consumers of a server. Dropping the value ends them at once.
#[derive(Debug)]
pub struct Consumers {
    states: Arc<[Arc<ConsumerState>]>,
    stop: watch::Sender<bool>,
    phase: watch::Sender<StartPhase>,
    pause: Arc<RwLock<()>>,
    supervisor: Mutex<Option<JoinHandle<()>>>,
}

/// Consumers that execute nothing until this is dropped. If they are [stopped](Consumers::stop) first, they give back what they received.
#[derive(Debug)]
pub struct PausedConsumers {
    _pause: OwnedRwLockWriteGuard<()>,
}

/// The numbers of consumers, for as long as anybody asks.
#[derive(Clone, Debug)]
pub struct ConsumerMonitor(Arc<[Arc<ConsumerState>]>);

/// Why a consumer cannot be used; names it, the key and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("consumers[{name}]{}{key}: {reason}", if .key.is_empty() { "" } else { "." })]
pub struct ConsumerError {
    name: String,
    /// The key in the consumer's section; "" = the consumer itself.
    key: String,
    reason: String,
}

/// An error at the start, by the key in the section of its queue.
#[derive(Debug)]
pub(crate) struct OpenError {
    pub(crate) key: &'static str,
    pub(crate) reason: String,
}

impl OpenError {
    pub(crate) fn new(key: &'static str, reason: impl ToString) -> Self {
        Self { key, reason: reason.to_string() }
    }
}

/// The tasks of consumers, with the names of their consumers.
struct Tasks {
    /// The wait of each task before it begins.
    gate: StartGate,
    set: JoinSet<Result<(), QueueError>>,
    names: HashMap<Id, Arc<str>>,
}

impl Tasks {
    fn new(gate: StartGate) -> Self {
        Self { gate, set: JoinSet::new(), names: HashMap::new() }
    }

    fn spawn(
        &mut self,
        name: &Arc<str>,
        task: impl Future<Output = Result<(), QueueError>> + Send + 'static,
    ) {
        let gate = self.gate.clone();
        let task = async move {
            gate.opened().await;
            task.await
        };
        let id = self.set.spawn(task).id();
        self.names.insert(id, Arc::clone(name));
    }

    /// Calls `on_failure` for each task that ends for good, until all have ended.
    async fn supervise(mut self, on_failure: impl Fn(ConsumerError)) {
        while let Some(ended) = self.set.join_next_with_id().await {
            let id = match &ended {
                Ok((id, _)) => *id,
                Err(error) => error.id(),
            };
            let reason = match ended {
                Ok((_, Ok(()))) => continue,
                Ok((_, Err(error))) => error.why,
                Err(error) => error.to_string(),
            };
            let name = self.names.get(&id).map(ToString::to_string).unwrap_or_default();
            on_failure(ConsumerError { name, key: String::new(), reason });
        }
    }
}

/// Starts the tasks of a consumer.
type Start = Box<dyn FnOnce(&mut Tasks) + Send>;

impl Consumers {
    /// Connects every enabled consumer; `None` when none is enabled. They begin when [`enter`](Self::enter) says that clients can connect.
    /// `node` is the name of this node in queues.
    /// `on_failure` is called when a consumer ended with an error, after which it consumes nothing.
    ///
    /// # Errors
    /// The first consumer whose queue cannot be used. Then none runs.
    pub async fn start(
        options: &BTreeMap<String, ConsumerOptions>,
        api: &Arc<Api>,
        node: &str,
        on_failure: impl Fn(ConsumerError) + Send + 'static,
    ) -> Result<Option<Self>, ConsumerError> {
        let enabled = || options.iter().filter(|(_, consumer)| consumer.enabled);
        if enabled().next().is_none() {
            return Ok(None);
        }
        Self::check(options).map_or(Ok(()), Err)?;
        let (stop, stopped) = watch::channel(false);
        let phase = watch::Sender::default();
        let pause = Arc::<RwLock<()>>::default();
        let mut states = Vec::new();
        // No lane runs before all are open: dropping them ends all.
        let mut lanes: Vec<(Duration, Start)> = Vec::new();
        for (name, consumer) in enabled() {
            let state = Arc::new(ConsumerState::new(name));
            let api = Arc::clone(api);
            let stop = stopped.clone();
            let pause = Arc::clone(&pause);
            let runner = Runner { api, state: Arc::clone(&state), mode: None, stop, pause };
            lanes.push((consumer.start_delay, open(consumer, runner, node).await?));
            states.push(state);
        }
        let gate = StartGate { phase: phase.subscribe(), stop: stopped, delay: Duration::ZERO };
        let mut tasks = Tasks::new(gate);
        for (delay, start) in lanes {
            tasks.gate.delay = delay;
            start(&mut tasks);
        }
        let supervisor = tokio::spawn(tasks.supervise(on_failure));
        let supervisor = Mutex::new(Some(supervisor));
        Ok(Some(Self { states: states.into(), stop, phase, pause, supervisor }))
    }

    /// The first error that can be found without a connection: a queue that this build lacks.
    pub fn check(options: &BTreeMap<String, ConsumerOptions>) -> Option<ConsumerError> {
        options.iter().filter(|(_, consumer)| consumer.enabled).find_map(|(name, consumer)| {
            let kind = consumer.kind?;
            let reason = match kind {
                ConsumerKind::Postgresql if cfg!(feature = "postgres") => return None,
                ConsumerKind::RedisStream if cfg!(feature = "redis-stream") => return None,
                ConsumerKind::NatsJetStream if cfg!(feature = "jetstream") => return None,
                ConsumerKind::Kafka if cfg!(feature = "kafka") => return None,
                ConsumerKind::Kafka => {
                    "this build has no client of Kafka, and neither have the packages and the container image: librdkafka cannot \
                     be linked statically with musl; build it with `cargo build --release --features full`, which needs make and perl"
                }
                kind if kind.is_supported() => "this build was made without that queue",
                _ => "Fanwire does not support that queue yet",
            };
            let key = "type".to_owned();
            let reason = format!("{:?}: {reason}", kind.name());
            Some(ConsumerError { name: name.clone(), key, reason })
        })
    }

    /// Says how far the start of the server is.
    pub fn enter(&self, phase: StartPhase) {
        self.phase.send_replace(phase);
    }

    /// The numbers of the consumers.
    pub fn monitor(&self) -> ConsumerMonitor {
        ConsumerMonitor(Arc::clone(&self.states))
    }

    /// Waits until no batch is in work. None begins before the result is dropped.
    pub async fn pause(&self) -> PausedConsumers {
        PausedConsumers { _pause: Arc::clone(&self.pause).write_owned().await }
    }

    /// Lets every consumer end: messages in work are done, others are given back. Ends them after `limit`.
    pub async fn stop(&self, limit: Duration) {
        let _ = self.stop.send(true);
        let supervisor = self.supervisor.lock().take();
        let Some(mut supervisor) = supervisor else { return };
        if timeout(limit, &mut supervisor).await.is_err() {
            tracing::warn!("consumers did not end in time; their last messages will be repeated");
            supervisor.abort();
        }
    }
}

impl Drop for Consumers {
    fn drop(&mut self) {
        self.supervisor.get_mut().take().iter().for_each(JoinHandle::abort);
    }
}

impl ConsumerMonitor {
    /// The numbers of each consumer.
    pub fn stats(&self) -> Vec<ConsumerStats> {
        self.0.iter().map(|state| state.stats()).collect()
    }
}

/// Connects to the queue of a consumer. Returns what starts its lanes.
///
/// The clients of queues are compiled in this crate alone: code of an `async fn` is in every crate that awaits it.
fn open<'a>(
    consumer: &'a ConsumerOptions,
    runner: Runner,
    node: &'a str,
) -> Pin<Box<dyn Future<Output = Result<Start, ConsumerError>> + Send + 'a>> {
    Box::pin(connect(consumer, runner, node))
}

async fn connect(
    consumer: &ConsumerOptions,
    runner: Runner,
    node: &str,
) -> Result<Start, ConsumerError> {
    let name = runner.state.name.to_string();
    let kind = consumer.kind.map_or("", ConsumerKind::name);
    let failed = |OpenError { key, reason }| ConsumerError {
        name: name.clone(),
        key: format!("{kind}.{key}"),
        reason,
    };
    let mode = |mode: &PublicationDataMode| mode.enabled.then(|| mode.clone());
    match consumer.kind {
        #[cfg(feature = "postgres")]
        Some(ConsumerKind::Postgresql) => {
            let lanes = postgres::open(&consumer.postgresql, &runner.state).await;
            Ok(start(runner, lanes.map_err(failed)?))
        }
        #[cfg(feature = "redis-stream")]
        Some(ConsumerKind::RedisStream) => {
            let lanes = redis_stream::open(&consumer.redis_stream, node).await;
            let mode = mode(&consumer.redis_stream.publication_data_mode);
            Ok(start(Runner { mode, ..runner }, lanes.map_err(failed)?))
        }
        #[cfg(feature = "jetstream")]
        Some(ConsumerKind::NatsJetStream) => {
            let lanes = jetstream::open(&consumer.nats_jetstream, &name).await;
            let mode = mode(&consumer.nats_jetstream.publication_data_mode);
            Ok(start(Runner { mode, ..runner }, lanes.map_err(failed)?))
        }
        #[cfg(feature = "kafka")]
        Some(ConsumerKind::Kafka) => {
            let member = kafka::open(&consumer.kafka).await.map_err(failed)?;
            let mode = mode(&consumer.kafka.publication_data_mode);
            let runner = Runner { mode, ..runner };
            Ok(Box::new(move |tasks| tasks.spawn(&runner.state.name.clone(), member.run(runner))))
        }
        _ => Err(failed(OpenError::new("type", "this build lacks the queue"))),
    }
}

/// Makes a task of each lane.
fn start<L: Lane>(runner: Runner, lanes: Vec<L>) -> Start {
    Box::new(move |tasks| {
        for lane in lanes {
            tasks.spawn(&runner.state.name, runner.clone().run(lane));
        }
    })
}

#[cfg(test)]
mod tests;
