//! What is read of a channel: a page of its history, its members, how many they are; equal reads at one time share a script.
//! In: what is asked for, the line of its channel → out: the answer, for each who asked.
//! Uses: lines, commands, flights. Never: changes anything others see; writes are not shared.
//! Change here: what may be read, and which reads are equal. Who shares one is in `flight.rs`, the commands in `stream.rs` and `members.rs`.

use std::sync::Arc;
use std::time::Duration;

use fanwire_broker::{PresenceStats, Query, Retention, StreamSlice};
use fanwire_protocol::ClientInfo;

use super::error::Failure;
use super::flight::{Flights, Read};
use super::health::Health;
use super::keys::Keys;
use super::line::Line;
use super::{members, stream};

/// All reads of an engine.
pub(crate) struct Reads {
    reader: Arc<Reader>,
    pages: Arc<Flights<Page>>,
    members: Flights<Members>,
    counts: Flights<Count>,
}

/// What every read needs.
struct Reader {
    keys: Keys,
    health: Arc<Health>,
    unpublished_ttl: Duration,
}

/// What a read is sent with.
struct Means {
    line: Line,
    reader: Arc<Reader>,
    /// By the Redis of that line. A page of history is the same at any time.
    now_ms: u64,
}

impl Reads {
    pub(crate) fn new(keys: Keys, health: Arc<Health>, unpublished_ttl: Duration) -> Self {
        Self {
            pages: Arc::new(Flights::new(Arc::clone(&health))),
            members: Flights::new(Arc::clone(&health)),
            counts: Flights::new(Arc::clone(&health)),
            reader: Arc::new(Reader { keys, health, unpublished_ttl }),
        }
    }

    /// A read of history that is begun when it is called.
    pub(crate) fn page<F>(
        &self,
        line: Line,
        channel: &str,
        query: Query,
        retention: Retention,
    ) -> impl FnOnce(F) + use<F>
    where
        F: FnOnce(Result<StreamSlice, Failure>) + Send + 'static,
    {
        let (pages, means) = (Arc::clone(&self.pages), self.means(line, 0));
        let page = Page { channel: channel.into(), query, retention };
        move |done| pages.ask(page, means, done)
    }

    /// Members at a time in milliseconds of the Redis.
    pub(crate) fn members(
        &self,
        line: Line,
        channel: &str,
        now_ms: u64,
        done: impl FnOnce(Result<Vec<Arc<ClientInfo>>, Failure>) + Send + 'static,
    ) {
        self.members.ask(Members(channel.into()), self.means(line, now_ms), done);
    }

    /// How many they are then.
    pub(crate) fn count(
        &self,
        line: Line,
        channel: &str,
        now_ms: u64,
        done: impl FnOnce(Result<PresenceStats, Failure>) + Send + 'static,
    ) {
        self.counts.ask(Count(channel.into()), self.means(line, now_ms), done);
    }

    fn means(&self, line: Line, now_ms: u64) -> Means {
        Means { line, reader: Arc::clone(&self.reader), now_ms }
    }
}

/// Stored publications of a channel. A subscriber that comes back from another place asks for another page, which is another read.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Page {
    channel: Box<str>,
    query: Query,
    retention: Retention,
}

impl Read for Page {
    type Means = Means;
    type Found = StreamSlice;

    fn send(&self, means: Means, done: impl FnOnce(Result<StreamSlice, Failure>) + Send + 'static) {
        let Means { line, reader, .. } = means;
        let Self { channel, query, retention } = self.clone();
        let ttl = reader.unpublished_ttl;
        let command = stream::history(&reader.keys, &channel, query, retention, ttl);
        line.send(command, move |reply| {
            let Reader { keys, health, .. } = &*reader;
            let read = |reply| stream::stretch(reply, (keys, &channel), query.reverse, health);
            done(reply.and_then(read));
        });
    }
}

/// The members of a channel.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Members(Box<str>);

impl Read for Members {
    type Means = Means;
    type Found = Vec<Arc<ClientInfo>>;

    fn send(&self, means: Means, done: impl FnOnce(Result<Self::Found, Failure>) + Send + 'static) {
        let Means { line, reader, now_ms } = means;
        let command = members::list(&reader.keys, &self.0, now_ms);
        let channel = self.0.clone();
        line.send(command, move |reply| {
            let Reader { keys, health, .. } = &*reader;
            done(reply.and_then(|reply| members::listed(reply, (keys, &channel), health)));
        });
    }
}

/// How many members a channel has. It may take several scripts, one after the other.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Count(Box<str>);

impl Read for Count {
    type Means = Means;
    type Found = PresenceStats;

    fn send(&self, means: Means, done: impl FnOnce(Result<Self::Found, Failure>) + Send + 'static) {
        let Means { line, reader, now_ms } = means;
        members::count(line, (reader.keys.clone(), self.0.to_string()), now_ms, done);
    }
}
