//! The task of a PUB/SUB connection: keeps it open, sends subscriptions that are due, and takes pushes.
//! In: due names, pushes, replies → out: updates of the state that it shares with the handle.
//! May use: the runtime's timers. Never decides which names are desired: that is `subscription_table.rs`.
//! Changed here: when a connection is given up, and how names are subscribed.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::ready;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use redis::{Pipeline, PushKind, RedisResult, Value};
use tokio::task::unconstrained;
use tokio::time::{MissedTickBehavior, interval, sleep, sleep_until, timeout};

use super::Shared;
use super::push_queue::PushQueue;
use crate::backoff::Backoff;
use crate::dial::{Connection, Dialer, PushHandler};
use crate::error::RedisError;
use crate::health::Health;
use crate::redirect::is_of_slots;
use crate::wire::{RedisCommand, text};

/// The task of a PUB/SUB connection.
pub(super) struct ReaderTask {
    pub(super) dialer: Dialer,
    pub(super) shared: Arc<Shared>,
    pub(super) health: Arc<Health>,
    pub(super) backoff: Backoff,
}

/// Why a connection ended.
enum End {
    /// The handle was dropped.
    Closed,
    Lost(RedisError),
}

/// The replies to commands in flight. Confirmations are pushes. In a Cluster the replies are read as well, because
/// each name may be refused by itself.
type PendingReplies = Pin<Box<dyn Future<Output = RedisResult<Replies>> + Send>>;

/// Names that were sent, each with a command of its own, and the replies.
#[derive(Default)]
struct Replies {
    names: Vec<Arc<str>>,
    replies: Vec<Value>,
}

impl ReaderTask {
    pub(super) async fn run(mut self) {
        self.reconnect_until_closed().await;
        self.health.connection_removed();
    }

    /// Connects again and again until the handle is dropped.
    async fn reconnect_until_closed(&mut self) {
        while self.wait_for_shards().await {
            let (sender, mut pushes) = PushQueue::pair();
            let must_wait = match self.dial(Arc::new(sender)).await {
                Ok(connection) => {
                    let began = Instant::now();
                    self.health.connection_up();
                    let end = self.serve(connection, &mut pushes).await;
                    self.shared.drain_queue(&mut pushes);
                    self.shared.connection_lost();
                    let End::Lost(error) = end else { return self.health.connection_closed() };
                    self.health.connection_lost();
                    self.health.report_error(error);
                    self.shared.redirects.request_refresh();
                    self.backoff.ended(began.elapsed())
                }
                Err(error) => {
                    self.health.report_error(error);
                    self.shared.redirects.request_refresh();
                    true
                }
            };
            self.shared.expire_waiters();
            if must_wait {
                self.wait().await;
            }
        }
    }

    /// Waits while shards are behind, because messages of a new connection would only wait as well. Returns whether
    /// the handle is still there.
    async fn wait_for_shards(&self) -> bool {
        while !self.is_closed() && self.shared.message_handler.is_congested() {
            sleep(CONGESTION_PAUSE).await;
            self.shared.expire_waiters();
        }
        !self.is_closed()
    }

    /// Whether the handle was dropped.
    fn is_closed(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }

    /// Connects, and expires waiters until then.
    async fn dial(&self, pushed: PushHandler) -> Result<Connection, RedisError> {
        let mut dialing = self.dialer.dial(Vec::new(), pushed);
        loop {
            match timeout(self.dialer.io_timeout / 4, &mut dialing).await {
                Ok(dialed) => return dialed,
                Err(_) => self.shared.expire_waiters(),
            }
        }
    }

    /// Waits before the next try, and expires waiters until then.
    async fn wait(&mut self) {
        let end = tokio::time::Instant::now() + self.backoff.next();
        let mut until_moved = self.dialer.until_moved();
        while !self.is_closed() && tokio::time::Instant::now() < end {
            tokio::select! {
                () = sleep_until(end) => {}
                () = &mut until_moved => return,
                () = self.shared.woken.notified() => {}
                () = sleep(self.dialer.io_timeout / 4) => {}
            }
            self.shared.expire_waiters();
        }
    }

    async fn serve(&self, connection: Connection, pushes: &mut PushQueue) -> End {
        let mut pending_replies = FuturesUnordered::<PendingReplies>::new();
        let mut probe = interval(self.dialer.io_timeout);
        probe.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pushed_batch = Vec::new();
        let mut confirm_deadline = None;
        loop {
            if self.is_closed() {
                return End::Closed;
            }
            if confirm_deadline.is_some_and(|until| until <= Instant::now()) {
                confirm_deadline = None;
                self.shared.mark_unconfirmed_misrouted();
            }
            let due_at = self.send_due_changes(&connection, &mut pending_replies);
            // While shards are behind, pushes wait in the bounded queue, so the inboxes of the shards stay bounded
            // too.
            let is_held = self.shared.message_handler.is_congested() || self.shared.gate.is_shut();
            let pause = is_held.then_some(CONGESTION_PAUSE);
            let at_once = if self.shared.gate.is_watched() { 1 } else { PUSHES_AT_ONCE };
            let wake_at = pause.map_or(due_at, |pause| due_at.min(Instant::now() + pause));
            tokio::select! {
                _ = pushes.queue.recv_many(&mut pushed_batch, at_once), if pause.is_none() => {
                    for push in pushed_batch.drain(..) {
                        pushes.release(&push);
                        if push.kind == PushKind::Disconnection {
                            return End::Lost(self.lost("it closed a PUB/SUB connection"));
                        }
                        let is_misrouted = self.shared.handle_push(push);
                        if is_misrouted && !self.shared.redirects.is_cluster() {
                            return End::Lost(self.lost("it ended a subscription by itself"));
                        }
                        if is_misrouted && !pending_replies.is_empty() {
                            confirm_deadline = Some(Instant::now() + self.dialer.io_timeout);
                        }
                    }
                }
                Some(outcome) = pending_replies.next() => {
                    let replies = outcome.map_err(|error| self.dialer.broken(&error));
                    if let Err(error) = replies.and_then(|replies| self.handle_replies(replies)) {
                        return End::Lost(error);
                    }
                }
                () = pushes.overflow.notified() => {
                    return End::Lost(self.lost("it sends more than this node can take"));
                }
                _ = probe.tick() => start(&mut pending_replies, ping(connection.clone())),
                () = self.shared.woken.notified() => {}
                () = sleep_until(wake_at.into()) => {}
            }
        }
    }

    /// Subscribes to `names`, or unsubscribes from them.
    fn send_changes(
        &self,
        mut connection: Connection,
        names: Vec<Arc<str>>,
        is_desired: bool,
    ) -> PendingReplies {
        if self.shared.redirects.is_cluster() {
            let command = if is_desired { "SSUBSCRIBE" } else { "SUNSUBSCRIBE" };
            return send_each(connection, command, names);
        }
        Box::pin(async move {
            let names: Vec<&str> = names.iter().map(|name| &**name).collect();
            let sent = if is_desired {
                connection.subscribe(names).await
            } else {
                connection.unsubscribe(names).await
            };
            sent.map(|()| Replies::default())
        })
    }

    /// Finds names that were refused because their slots are elsewhere. An unsolicited push stands among the replies
    /// and shifts them; [`Shared::mark_unconfirmed_misrouted`] handles names without a reply.
    fn handle_replies(&self, Replies { names, replies }: Replies) -> Result<(), RedisError> {
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
            let mut table = self.shared.table.lock();
            for name in refused {
                table.mark_misrouted(name);
            }
            drop(table);
            self.shared.redirects.request_refresh();
        }
        Ok(())
    }

    fn lost(&self, why: &str) -> RedisError {
        self.dialer.unreachable(why)
    }

    /// Sends the changes that are due. Returns when to call it again at the latest.
    fn send_due_changes(
        &self,
        connection: &Connection,
        pending_replies: &mut FuturesUnordered<PendingReplies>,
    ) -> Instant {
        let now = Instant::now();
        self.shared.expire_waiters();
        let mut due = None;
        while pending_replies.len() < COMMANDS_MAX {
            let mut table = self.shared.table.lock();
            due = table.due(now);
            if due.is_none_or(|due| due > now) {
                break;
            }
            let changes = table.next_changes(now, NAMES_MAX);
            drop(table);
            due = None;
            for (names, is_desired) in [(changes.subscribe, true), (changes.unsubscribe, false)] {
                if !names.is_empty() {
                    start(
                        pending_replies,
                        self.send_changes(connection.clone(), names, is_desired),
                    );
                }
            }
        }
        let expire_at = now + self.dialer.io_timeout / 4;
        due.map_or(expire_at, |due| due.min(expire_at))
    }
}

/// Hands a command to the connection, which the first poll does. It happens here so that no later command overtakes
/// this one, and no name is unsubscribed after it was subscribed again. The queue of the connection has room for all
/// commands in flight, so this does not wait.
fn start(pending_replies: &mut FuturesUnordered<PendingReplies>, pending: PendingReplies) {
    let mut pending: PendingReplies = Box::pin(unconstrained(pending));
    match (&mut pending).now_or_never() {
        Some(outcome) => pending_replies.push(Box::pin(ready(outcome))),
        None => pending_replies.push(pending),
    }
}

/// One command for each name, because a command may name one slot only and would be refused as a whole.
fn send_each(
    mut connection: Connection,
    command: &'static str,
    names: Vec<Arc<str>>,
) -> PendingReplies {
    let mut commands = Pipeline::with_capacity(names.len());
    for name in &names {
        let command = RedisCommand::of(&[command.as_bytes(), name.as_bytes()]);
        commands.add_command(command.into_cmd());
    }
    Box::pin(async move {
        let replies = connection.send_packed_commands(&commands, 0, names.len()).await?;
        Ok(Replies { names, replies })
    })
}

/// Checks that the connection lives: it is answered in time or fails.
fn ping(mut connection: Connection) -> PendingReplies {
    Box::pin(async move {
        let ping = RedisCommand::of(&[b"PING"]).into_cmd();
        connection.send_packed_command(&ping).await.map(|_| Replies::default())
    })
}

/// Names in one command.
const NAMES_MAX: usize = 1024;
/// Commands in flight.
const COMMANDS_MAX: usize = 16;
/// Pushes taken at once.
const PUSHES_AT_ONCE: usize = 256;
/// How often to check whether shards have caught up. Shards send no signal, because it would cost time for every
/// message of an inbox.
const CONGESTION_PAUSE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests;
