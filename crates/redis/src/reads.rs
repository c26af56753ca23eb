//! Reads of a channel: a page of its history, its members, their number. Equal reads at one time share a script.
//! In: a read, the connection of its channel → out: the answer, for each caller.
//! Uses: command connections, commands, singleflight. Never: changes data; writes are not shared.
//! Changed here: which reads exist, and which are equal. Sharing is in `singleflight.rs`, the commands in `stream.rs` and `members.rs`.

use std::sync::Arc;
use std::time::Duration;

use fanwire_broker::{PresenceStats, Query, Retention, StreamSlice};
use fanwire_protocol::ClientInfo;

use super::command_connection::CommandConnection;
use super::error::Failure;
use super::health::Health;
use super::keys::Keys;
use super::singleflight::{SharedRead, Singleflight};
use super::{members, stream};

/// All reads of an engine.
pub(crate) struct Reads {
    settings: Arc<ReadSettings>,
    pages: Arc<Singleflight<HistoryPage>>,
    members: Singleflight<Members>,
    counts: Singleflight<Count>,
}

/// The same for all reads.
struct ReadSettings {
    keys: Keys,
    health: Arc<Health>,
    unpublished_ttl: Duration,
}

/// Given to a read when it is sent.
struct ReadContext {
    connection: CommandConnection,
    settings: Arc<ReadSettings>,
    /// Time on the clock of that Redis, in milliseconds. Unused by a page of history.
    now_ms: u64,
}

impl Reads {
    pub(crate) fn new(keys: Keys, health: Arc<Health>, unpublished_ttl: Duration) -> Self {
        Self {
            pages: Arc::new(Singleflight::new(Arc::clone(&health))),
            members: Singleflight::new(Arc::clone(&health)),
            counts: Singleflight::new(Arc::clone(&health)),
            settings: Arc::new(ReadSettings { keys, health, unpublished_ttl }),
        }
    }

    /// A read of history that is sent when the returned function is called.
    pub(crate) fn page<F>(
        &self,
        connection: CommandConnection,
        channel: &str,
        query: Query,
        retention: Retention,
    ) -> impl FnOnce(F) + use<F>
    where
        F: FnOnce(Result<StreamSlice, Failure>) + Send + 'static,
    {
        let pages = Arc::clone(&self.pages);
        let context = self.context(connection, 0);
        let page = HistoryPage { channel: channel.into(), query, retention };
        move |done| pages.ask(page, context, done)
    }

    /// The members at `now_ms`, in Unix milliseconds of the Redis.
    pub(crate) fn members(
        &self,
        connection: CommandConnection,
        channel: &str,
        now_ms: u64,
        done: impl FnOnce(Result<Vec<Arc<ClientInfo>>, Failure>) + Send + 'static,
    ) {
        self.members.ask(Members(channel.into()), self.context(connection, now_ms), done);
    }

    /// The number of members and users at `now_ms`.
    pub(crate) fn count(
        &self,
        connection: CommandConnection,
        channel: &str,
        now_ms: u64,
        done: impl FnOnce(Result<PresenceStats, Failure>) + Send + 'static,
    ) {
        self.counts.ask(Count(channel.into()), self.context(connection, now_ms), done);
    }

    fn context(&self, connection: CommandConnection, now_ms: u64) -> ReadContext {
        ReadContext { connection, settings: Arc::clone(&self.settings), now_ms }
    }
}

/// Stored publications of a channel. Subscribers that return with different positions ask for different pages, so they
/// do not share a read.
#[derive(Clone, PartialEq, Eq, Hash)]
struct HistoryPage {
    channel: Box<str>,
    query: Query,
    retention: Retention,
}

impl SharedRead for HistoryPage {
    type Context = ReadContext;
    type Output = StreamSlice;

    fn send(
        &self,
        context: ReadContext,
        done: impl FnOnce(Result<StreamSlice, Failure>) + Send + 'static,
    ) {
        let ReadContext { connection, settings, .. } = context;
        let Self { channel, query, retention } = self.clone();
        let ttl = settings.unpublished_ttl;
        let command = stream::history(&settings.keys, &channel, query, retention, ttl);
        connection.send(command, move |reply| {
            let ReadSettings { keys, health, .. } = &*settings;
            let read = |reply| stream::read_slice(reply, keys, &channel, query.reverse, health);
            done(reply.and_then(read));
        });
    }
}

/// The members of a channel.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Members(Box<str>);

impl SharedRead for Members {
    type Context = ReadContext;
    type Output = Vec<Arc<ClientInfo>>;

    fn send(
        &self,
        context: ReadContext,
        done: impl FnOnce(Result<Self::Output, Failure>) + Send + 'static,
    ) {
        let ReadContext { connection, settings, now_ms } = context;
        let command = members::list(&settings.keys, &self.0, now_ms);
        let channel = self.0.clone();
        connection.send(command, move |reply| {
            let ReadSettings { keys, health, .. } = &*settings;
            done(reply.and_then(|reply| members::listed(reply, keys, &channel, health)));
        });
    }
}

/// The number of members of a channel. It may take several scripts, one after the other.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Count(Box<str>);

impl SharedRead for Count {
    type Context = ReadContext;
    type Output = PresenceStats;

    fn send(
        &self,
        context: ReadContext,
        done: impl FnOnce(Result<Self::Output, Failure>) + Send + 'static,
    ) {
        let ReadContext { connection, settings, now_ms } = context;
        members::count(connection, settings.keys.clone(), self.0.to_string(), now_ms, done);
    }
}
