//! What is read of a channel: a page of its history, its members, how many they are; equal reads at one time share a script.
//! In: what is asked for, the line of its channel → out: the answer, for each who asked.
//! Uses: lines, commands, flights. Never: changes anything others see; writes are not shared.
//! Change here: what may be read, and which reads are equal. Who shares one is in `flight.rs`, the commands in `stream.rs` and `members.rs`.

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

/// What every read needs.
struct ReadSettings {
    keys: Keys,
    health: Arc<Health>,
    unpublished_ttl: Duration,
}

/// What a read is sent with.
struct ReadContext {
    connection: CommandConnection,
    settings: Arc<ReadSettings>,
    /// By the Redis of that line. A page of history is the same at any time.
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

    /// A read of history that is begun when it is called.
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
        let (pages, context) = (Arc::clone(&self.pages), self.context(connection, 0));
        let page = HistoryPage { channel: channel.into(), query, retention };
        move |done| pages.ask(page, context, done)
    }

    /// Members at a time in milliseconds of the Redis.
    pub(crate) fn members(
        &self,
        connection: CommandConnection,
        channel: &str,
        now_ms: u64,
        done: impl FnOnce(Result<Vec<Arc<ClientInfo>>, Failure>) + Send + 'static,
    ) {
        self.members.ask(Members(channel.into()), self.context(connection, now_ms), done);
    }

    /// How many they are then.
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

/// Stored publications of a channel. A subscriber that comes back from another place asks for another page, which is another read.
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
            let read = |reply| stream::read_slice(reply, (keys, &channel), query.reverse, health);
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
            done(reply.and_then(|reply| members::listed(reply, (keys, &channel), health)));
        });
    }
}

/// How many members a channel has. It may take several scripts, one after the other.
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
        members::count(connection, (settings.keys.clone(), self.0.to_string()), now_ms, done);
    }
}
