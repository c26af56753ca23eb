//! Resolves the address of a master through its Sentinels: asks them before each connection, and watches for a failover.
//! In: addresses of Sentinels and the name of a master → out: its address; futures that complete when the master changed.
//! Uses connections of its own. Never: connects to the master; `dial.rs` checks its role.
//! Changed here: the commands for Sentinels, and which of two answers is newer. `sentinel/sentinel_set.rs` has the order of Sentinels.

mod sentinel_set;

use std::fmt;
use std::future::pending;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use redis::{Pipeline, PushInfo, PushKind, Value};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

use super::address::{Address, Sentinels};
use super::backoff::Backoff;
use super::error::RedisError;
use super::socket::{Connection, PushHandler, RedisTls, Timeouts, open};
use super::wire::{RedisCommand, number, parts, text};
use sentinel_set::{SentinelChanges, SentinelSet, others_of};

/// The resolver of one master. The connections to it share one.
pub(crate) struct MasterResolver {
    sentinels: Arc<Sentinels>,
    tls: Option<RedisTls>,
    timeouts: Timeouts,
    current: watch::Sender<Option<MasterAddress>>,
    sentinel_set: Mutex<SentinelSet>,
    watchers: Mutex<Watchers>,
}

/// The tasks that watch Sentinels.
#[derive(Default)]
struct Watchers {
    /// Runtime of the tasks; `None` = not watching.
    runtime: Option<Handle>,
    tasks: Vec<(Address, AbortHandle)>,
}

/// The address of the master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MasterAddress {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Higher after each failover (`config-epoch`). A Sentinel that was cut off from the others has a lower one.
    pub(crate) config_epoch: u64,
}

impl MasterResolver {
    pub(crate) fn new(
        sentinels: Arc<Sentinels>,
        tls: Option<RedisTls>,
        timeouts: Timeouts,
    ) -> Self {
        let (current, _) = watch::channel(None);
        let sentinel_set = Mutex::new(SentinelSet::of(sentinels.addresses.clone()));
        Self { sentinels, tls, timeouts, current, sentinel_set, watchers: Mutex::default() }
    }

    /// Asks the Sentinels in order until one has an address that is not older than the known one. If all answers are
    /// older, the Sentinels were set up again, and the newest answer counts.
    ///
    /// # Errors
    /// When none answers: a permanent error if there is one; after the two timeouts together at the latest.
    pub(crate) async fn resolve(self: &Arc<Self>) -> Result<MasterAddress, RedisError> {
        let limit = self.timeouts.connect + self.timeouts.io;
        let resolved = timeout(limit, self.ask_all()).await;
        resolved.map_err(|_| {
            RedisError::late(&self.sentinels.addresses[0], "asking all Sentinels", limit)
        })?
    }

    async fn ask_all(self: &Arc<Self>) -> Result<MasterAddress, RedisError> {
        let mut older = None::<MasterAddress>;
        let mut failure = None::<RedisError>;
        let sentinels = self.sentinel_set.lock().in_order();
        for sentinel in &sentinels {
            match self.ask(sentinel).await {
                Ok(master) if self.accept(&master) => {
                    self.sentinel_set.lock().answered(sentinel);
                    return Ok(master);
                }
                Ok(master) => {
                    older = older
                        .filter(|other| other.config_epoch >= master.config_epoch)
                        .or(Some(master));
                }
                Err(error) => {
                    failure = failure.filter(RedisError::is_permanent).or(Some(error));
                }
            }
        }
        if let Some(master) = older {
            self.current.send_replace(Some(master.clone()));
            return Ok(master);
        }
        Err(failure.expect("there is a Sentinel, and it answered or failed"))
    }

    /// The address was not a master: the next call asks another Sentinel first.
    pub(crate) fn ask_next_first(&self) {
        self.sentinel_set.lock().ask_next_first();
    }

    /// Completes when a newer address is known.
    pub(crate) fn until_replaced(
        &self,
        config_epoch: u64,
    ) -> impl Future<Output = ()> + Send + use<> {
        let mut current = self.current.subscribe();
        async move {
            let is_newer = |current: &Option<MasterAddress>| {
                current.as_ref().is_some_and(|it| it.config_epoch > config_epoch)
            };
            if current.wait_for(is_newer).await.is_err() {
                pending::<()>().await; // the resolver is gone
            }
        }
    }

    /// Completes when the master changes.
    pub(crate) fn until_moved(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut current = self.current.subscribe();
        async move {
            if current.changed().await.is_err() {
                pending::<()>().await; // the resolver is gone
            }
        }
    }

    /// Starts to watch every Sentinel for a failover, until this value is dropped.
    pub(crate) fn watch(this: &Arc<Self>, runtime: &Handle) {
        this.watchers.lock().runtime = Some(runtime.clone());
        let added = this.sentinel_set.lock().in_order();
        this.update_watchers(SentinelChanges { added, ..SentinelChanges::default() });
    }

    /// Starts tasks for new Sentinels and ends those of dropped ones.
    fn update_watchers(self: &Arc<Self>, SentinelChanges { added, removed }: SentinelChanges) {
        let mut watchers = self.watchers.lock();
        let Some(runtime) = watchers.runtime.clone() else { return };
        for (_, task) in watchers.tasks.extract_if(.., |(one, _)| removed.contains(one)) {
            task.abort();
        }
        for sentinel in added {
            let watcher = Watcher { resolver: Arc::downgrade(self), sentinel: sentinel.clone() };
            watchers.tasks.push((sentinel, runtime.spawn(watcher.run()).abort_handle()));
        }
    }

    /// Stores an address unless it is older than the known one. Returns whether it was not older.
    fn accept(&self, master: &MasterAddress) -> bool {
        let mut is_fresh = true;
        self.current.send_if_modified(|current| {
            let config_epoch = current.as_ref().map_or(0, |current| current.config_epoch);
            is_fresh = master.config_epoch >= config_epoch;
            let has_moved = current.as_ref().is_some_and(|_| master.config_epoch > config_epoch);
            if has_moved {
                tracing::info!("the master {} is at {master} now", self.sentinels.master);
            }
            if current.is_none() || has_moved {
                *current = Some(master.clone());
            }
            has_moved
        });
        is_fresh
    }

    /// Asks one Sentinel on a connection of its own.
    async fn ask(self: &Arc<Self>, sentinel: &Address) -> Result<MasterAddress, RedisError> {
        let mut connection = self.open(sentinel, Arc::new(drop)).await?;
        self.ask_on(sentinel, &mut connection).await
    }

    async fn open(
        &self,
        sentinel: &Address,
        pushed: PushHandler,
    ) -> Result<Connection, RedisError> {
        let timeouts =
            Timeouts { io: self.timeouts.io.min(self.timeouts.connect), ..self.timeouts };
        open(sentinel, self.tls.as_ref(), timeouts, pushed, Box::pin(pending())).await
    }

    async fn ask_on(
        self: &Arc<Self>,
        sentinel: &Address,
        connection: &mut Connection,
    ) -> Result<MasterAddress, RedisError> {
        let name = self.sentinels.master.as_bytes();
        let mut commands = Pipeline::new();
        let client_name = self.sentinels.client_name.as_bytes();
        if !client_name.is_empty() {
            let set_name = RedisCommand::of(&[b"CLIENT", b"SETNAME", client_name]);
            commands.add_command(set_name.into_cmd()).ignore();
        }
        for subcommand in [&b"GET-MASTER-ADDR-BY-NAME"[..], b"MASTER", b"SENTINELS"] {
            let subcommand = RedisCommand::of(&[b"SENTINEL", subcommand, name]);
            commands.add_command(subcommand.into_cmd());
        }
        let skipped = commands.len() - 3;
        let answers = connection.send_packed_commands(&commands, 0, commands.len()).await;
        let broken = |error: redis::RedisError| RedisError::of(sentinel, &error, self.timeouts.io);
        let mut answers = answers.map_err(broken)?.into_iter().skip(skipped);
        let [place, state, others] = [(); 3].map(|()| answers.next().unwrap_or_default());
        let unknown = || RedisError::Master {
            address: sentinel.clone(),
            name: self.sentinels.master.clone(),
        };
        match place {
            Value::ServerError(error) => Err(refusal(sentinel, error.code(), error.details())),
            Value::Nil => Err(unknown()),
            place => {
                let (host, port) =
                    host_and_port_of(place).ok_or_else(|| not_a_sentinel(sentinel))?;
                let changes = self.sentinel_set.lock().add_discovered(others_of(sentinel, others));
                self.update_watchers(changes);
                Ok(MasterAddress { host, port, config_epoch: config_epoch_of(state) })
            }
        }
    }
}

/// The error of an error reply. A Redis that is not a Sentinel refuses the command as unknown.
fn refusal(sentinel: &Address, code: &str, details: Option<&str>) -> RedisError {
    match (code, details) {
        ("ERR", Some(details)) if details.starts_with("unknown command") => {
            not_a_sentinel(sentinel)
        }
        _ => RedisError::refusal(sentinel, code, details),
    }
}

fn not_a_sentinel(sentinel: &Address) -> RedisError {
    RedisError::NotSentinel { address: sentinel.clone() }
}

/// Decodes the reply to `SENTINEL GET-MASTER-ADDR-BY-NAME`: host and port.
fn host_and_port_of(reply: Value) -> Option<(String, u16)> {
    let [host, port] = parts(reply)?.try_into().ok()?;
    let host = String::from_utf8(text(host)?.to_vec()).ok()?;
    Some((host, number(port)?.try_into().ok()?))
}

/// The `config-epoch` in the reply to `SENTINEL MASTER`; 0 if it is missing, so that every answer is accepted.
fn config_epoch_of(reply: Value) -> u64 {
    let fields = fields_of(reply);
    let is_term = |name: &Bytes| name == "config-epoch";
    let field =
        fields.into_iter().find(|(name, _)| text(name.clone()).as_ref().is_some_and(is_term));
    field.and_then(|(_, value)| number(value)).unwrap_or(0)
}

/// The fields of a reply about one Redis or Sentinel, in RESP2 or RESP3.
fn fields_of(reply: Value) -> Vec<(Value, Value)> {
    match reply {
        Value::Map(fields) => fields,
        reply => {
            let mut flat = parts(reply).unwrap_or_default().into_iter();
            std::iter::from_fn(|| Some((flat.next()?, flat.next()?))).collect()
        }
    }
}

/// The task that watches one Sentinel.
struct Watcher {
    resolver: Weak<MasterResolver>,
    sentinel: Address,
}

impl Watcher {
    /// Runs until the resolver is dropped. A Sentinel that is down is logged once.
    async fn run(self) {
        let mut backoff = Backoff::default();
        let mut is_missed = false;
        loop {
            let began = Instant::now();
            let Err(error) = self.watch_sentinel().await else { return };
            if !is_missed {
                tracing::warn!("{error}; the other Sentinels are asked until it is back");
            }
            is_missed = backoff.ended(began.elapsed());
            if is_missed {
                sleep(backoff.next()).await;
            }
        }
    }

    /// Watches until the connection ends, which is an error, or the resolver is dropped.
    async fn watch_sentinel(&self) -> Result<(), RedisError> {
        let woken = Arc::new(Notify::new());
        let notifier = Arc::clone(&woken);
        let pushed = move |push: PushInfo| {
            if matches!(push.kind, PushKind::Message | PushKind::Disconnection) {
                notifier.notify_one();
            }
        };
        let Some(resolver) = self.resolver.upgrade() else { return Ok(()) };
        let limit = resolver.timeouts.io;
        let mut connection = resolver.open(&self.sentinel, Arc::new(pushed)).await?;
        drop(resolver);
        let subscribed = connection.subscribe("+switch-master").await;
        subscribed.map_err(|error| RedisError::of(&self.sentinel, &error, limit))?;
        while let Some(resolver) = self.resolver.upgrade() {
            // The command is also the check that the connection lives.
            if resolver.accept(&resolver.ask_on(&self.sentinel, &mut connection).await?) {
                resolver.sentinel_set.lock().answered(&self.sentinel);
            }
            drop(resolver);
            let _ = timeout(limit, woken.notified()).await;
        }
        Ok(())
    }
}

impl Drop for MasterResolver {
    fn drop(&mut self) {
        self.watchers.lock().tasks.iter().for_each(|(_, task)| task.abort());
    }
}

impl fmt::Display for MasterAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, .. } = self;
        write!(out, "{host}:{port}")
    }
}

impl fmt::Debug for MasterResolver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("MasterResolver")
            .field("sentinels", &self.sentinels)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
