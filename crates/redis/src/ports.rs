//! The ports of broker, presence, bus, revocations and statuses, implemented by the Redis engine.
//! In: calls of the node → out: answers that come later, from the task of a connection.
//! Uses: connections, commands. Never: blocks, waits.
//! Changed here: which command answers which call. The contract of the ports is in `fanwire_broker`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::map::MapBroker;
use fanwire_broker::{
    Answer, Append, AppendError, Appended, Broker, BrokerError, Bus, Change, Position, Presence,
    PresencePage, PresenceStats, PublishOptions, Query, Retention, RevocationChange,
    RevocationCursor, RevocationListener, RevocationPage, RevocationStore, StreamSlice,
    SuppressedCounts, Suppression, UserStatus, UserStatusChange, UserStatusStore,
};
use fanwire_protocol::{ClientInfo, Publication};

use super::error::Failure;
use super::location::Location;
use super::revocations::Existing;
use super::wire::{RedisCommand, number};
use super::{Redis, growing, members, revocations, statuses, stream};

impl Broker for Redis {
    fn publish(
        &self,
        channel: &str,
        publication: Publication,
        options: &PublishOptions,
        retention: Retention,
        _now: Instant,
    ) -> Answer<Position> {
        let (done, answer) = later();
        let command = stream::publish(&self.keys, channel, publication, options, retention);
        let health = Arc::clone(&self.health);
        let receipt = options.receipt;
        self.command_connection(channel).send(command, move |reply| {
            done(reply.and_then(|reply| stream::read_published(reply, receipt, &health)));
        });
        answer
    }

    fn append(
        &self,
        channel: &str,
        append: Append,
        retention: Retention,
        now: Instant,
    ) -> Answer<Result<Appended, AppendError>> {
        let (done, answer) = later();
        let now_ms = self.ms(channel, now);
        let command = growing::append(&self.keys, channel, &append, retention, now_ms);
        self.command_connection(channel)
            .send(command, |reply| done(reply.and_then(growing::read_appended)));
        answer
    }

    fn history(
        &self,
        channel: &str,
        query: Query,
        retention: Retention,
        _now: Instant,
    ) -> Answer<StreamSlice> {
        if !retention.keeps_history() {
            return Answer::now(Ok(StreamSlice::default()));
        }
        let (done, answer) = later();
        self.page(channel, query, retention)(done);
        answer
    }

    fn follow(
        &self,
        channel: &str,
        query: Option<Query>,
        retention: Retention,
        _now: Instant,
    ) -> Answer<StreamSlice> {
        let (done, answer) = later();
        let query = query.filter(|_| retention.keeps_history());
        let read = query.map(|query| self.page(channel, query, retention));
        let (pubsub, name) = self.pubsub_connection(channel);
        pubsub.when_subscribed(&name, move |subscribed| match (subscribed, read) {
            (Ok(continuity), Some(read)) => {
                read(move |slice: Result<StreamSlice, Failure>| {
                    // After a break, publications that came after this read may be lost, and the waiting subscriber
                    // does not get the gap report because it is not subscribed yet.
                    done(if continuity.is_unbroken() { slice } else { Err(Failure::Unavailable) });
                })
            }
            (Ok(_), None) => done(Ok(StreamSlice::default())),
            (Err(failure), _) => done(Err(failure)),
        });
        answer
    }

    fn publish_join_leave(&self, channel: &str, change: Change, info: ClientInfo) -> Answer<()> {
        self.send_simple(channel, stream::announce(&self.keys, channel, change, info))
    }

    fn remove_history(&self, channel: &str, _now: Instant) -> Answer<()> {
        self.send_simple(channel, stream::remove(&self.keys, channel))
    }

    fn subscribe(&self, channel: &str) {
        let (pubsub, name) = self.pubsub_connection(channel);
        pubsub.subscribe(&name);
    }

    fn unsubscribe(&self, channel: &str) {
        let (pubsub, name) = self.pubsub_connection(channel);
        pubsub.unsubscribe(&name);
        self.map_sweeps.lock().unfollow(channel);
    }

    /// Redis expires streams by itself.
    fn sweep(&self, now: Instant) {
        self.sweep_maps(now);
    }

    fn maps(self: Arc<Self>) -> Option<Arc<dyn MapBroker>> {
        Some(self)
    }

    fn history_bytes(&self) -> usize {
        0
    }

    fn suppressed_of(&self, receipt: u64) -> Vec<Suppression> {
        self.health.suppressed().of_receipt(receipt)
    }

    fn suppressed(&self) -> SuppressedCounts {
        self.health.suppressed().counts()
    }
}

impl Presence for Redis {
    fn add(&self, channel: &str, info: ClientInfo, ttl: Duration, now: Instant) -> Answer<()> {
        let now_ms = self.ms(channel, now);
        self.send_simple(channel, members::add(&self.keys, channel, &info, ttl, now_ms))
    }

    fn remove(&self, channel: &str, client: &str) -> Answer<()> {
        self.send_simple(channel, members::remove(&self.keys, channel, client))
    }

    fn members(&self, channel: &str, now: Instant) -> Answer<Vec<Arc<ClientInfo>>> {
        let (done, answer) = later();
        let connection = self.command_connection(channel).clone();
        let now_ms = self.ms(channel, now);
        self.reads.members(connection, channel, now_ms, done);
        answer
    }

    fn page(&self, channel: &str, cursor: u64, limit: usize, now: Instant) -> Answer<PresencePage> {
        let (done, answer) = later();
        let command = members::page(&self.keys, channel, cursor, limit, self.ms(channel, now));
        let keys = self.keys.clone();
        let health = Arc::clone(&self.health);
        let name = channel.to_owned();
        self.command_connection(channel).send(command, move |reply| {
            done(reply.and_then(|reply| members::read_page(reply, &keys, &name, &health)));
        });
        answer
    }

    fn stats(&self, channel: &str, now: Instant) -> Answer<PresenceStats> {
        let (done, answer) = later();
        let connection = self.command_connection(channel).clone();
        let now_ms = self.ms(channel, now);
        self.reads.count(connection, channel, now_ms, done);
        answer
    }

    /// Redis expires members by itself, by its own clock, which is read here.
    fn sweep(&self, _now: Instant) {
        self.sync_clock();
    }
}

/// Messages between nodes go through the first Redis, or the first Cluster.
impl Bus for Redis {
    /// PUBLISH and SPUBLISH return the number of connections that got the message. Each node has one connection for
    /// this name, in a Cluster to the master of the slot, which is the master that gets this command.
    fn send(&self, to: Option<&str>, message: Bytes) -> Answer<usize> {
        let name = self.keys.node_channel(to);
        let command =
            RedisCommand::of(&[self.keys.publish().as_bytes(), name.as_bytes(), &message]);
        let (done, answer) = later();
        let subscribed = |reply| number(reply).and_then(|count| count.try_into().ok());
        self.stores[0].command_connection(Location::of_name(&name)).send(command, move |reply| {
            done(reply.and_then(|reply| subscribed(reply).ok_or(Failure::Refused)));
        });
        answer
    }
}

impl Redis {
    fn change_revocations(
        &self,
        change: &RevocationChange,
        existing: Existing,
        now: Instant,
    ) -> Answer<()> {
        let (done, answer) = later();
        let location = Location::of_name(&self.keys.of_revocations(revocations::CHANGES));
        let now_ms = self.stores[0].ms(location, now);
        let command = revocations::change(&self.keys, change, existing, now_ms);
        self.stores[0].command_connection(location).send(command, |reply| done(reply.map(drop)));
        answer
    }
}

/// Blocks and revocations are in the first Redis, or the first Cluster.
impl RevocationStore for Redis {
    fn listen(&self, listener: RevocationListener) {
        self.message_handler.set_revocation_listener(listener);
        let name = self.keys.of_revocations(revocations::CHANGES);
        self.stores[0].pubsub_connection(Location::of_name(&name)).subscribe(&name);
    }

    fn change(&self, change: &RevocationChange, now: Instant) -> Answer<()> {
        self.change_revocations(change, Existing::Replaced, now)
    }

    fn restore(&self, change: &RevocationChange, now: Instant) -> Answer<()> {
        self.change_revocations(change, Existing::Stays, now)
    }

    fn page(&self, from: RevocationCursor) -> Answer<RevocationPage> {
        let (done, answer) = later();
        let name = self.keys.of_revocations(revocations::CHANGES);
        let location = Location::of_name(&name);
        let stores = Arc::clone(&self.stores);
        let keys = self.keys.clone();
        let health = Arc::clone(&self.health);
        let pubsub = self.stores[0].pubsub_connection(location);
        // A loss of the subscription after this is reported as a gap.
        pubsub.when_subscribed(&name, move |subscribed| match subscribed {
            Ok(_) => {
                // Before the first map of a Cluster is known, no connection is the right one.
                let connection = stores[0].command_connection(location);
                connection.send(revocations::page(&keys, from), move |reply| {
                    let page = |reply| revocations::read_page(reply, from, &keys, &health);
                    done(reply.and_then(page));
                });
            }
            Err(failure) => done(Err(failure)),
        });
        answer
    }
}

/// The status of a user is where a channel of that name is.
impl UserStatusStore for Redis {
    fn update(&self, users: &[String], change: &UserStatusChange, _unix: u64) -> Answer<()> {
        let update =
            |user: &String| self.send_simple(user, statuses::update(&self.keys, user, change));
        Answer::all(users.iter().map(update).collect()).map(|all| all.map(drop))
    }

    fn remove(&self, users: &[String]) -> Answer<()> {
        let remove = |user: &String| self.send_simple(user, statuses::remove(&self.keys, user));
        Answer::all(users.iter().map(remove).collect()).map(|all| all.map(drop))
    }

    fn read(&self, users: &[String], _unix: u64) -> Answer<Vec<UserStatus>> {
        let read = |user: &String| {
            let (done, answer) = later();
            let command = statuses::read(&self.keys, user);
            self.command_connection(user)
                .send(command, |reply| done(reply.and_then(statuses::status)));
            answer
        };
        Answer::all(users.iter().map(read).collect())
    }

    /// Redis expires them.
    fn sweep(&self, _unix: u64) {}
}

impl Redis {
    /// A read of history that is sent when the returned function is called.
    fn page<F>(&self, channel: &str, query: Query, retention: Retention) -> impl FnOnce(F) + use<F>
    where
        F: FnOnce(Result<StreamSlice, Failure>) + Send + 'static,
    {
        self.reads.page(self.command_connection(channel).clone(), channel, query, retention)
    }

    /// A command whose reply has no content.
    pub(super) fn send_simple(&self, channel: &str, command: RedisCommand) -> Answer<()> {
        let (done, answer) = later();
        self.command_connection(channel).send(command, |reply| done(reply.map(drop)));
        answer
    }
}

/// A pending answer and the function that completes it. Callers see every failure as `BrokerError::Unavailable`.
pub(super) fn later<T: Send + 'static>()
-> (impl FnOnce(Result<T, Failure>) + Send + 'static, Answer<T>) {
    let (promise, answer) = Answer::later();
    let done = |result: Result<T, Failure>| {
        promise.keep(result.map_err(|_| BrokerError::Unavailable));
    };
    (done, answer)
}
