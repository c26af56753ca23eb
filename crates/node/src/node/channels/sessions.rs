//! The calls of broker, presence and registry for a session, after the permission checks.
//! In: channels, values, `now` → out: answers, ready or pending; errors as clients receive them.
//! Uses: the ports, the registry, the router. Never: rules; the caller has checked them.
//! Changed here: how the ports are called. Their contracts are in the crate `broker`.

use std::sync::Arc;
use std::time::Instant;

use fanwire_broker::{
    Answer, Change, Position, PresenceStats, PublishOptions, Query, Retention, StreamSlice,
};
use fanwire_policy::channel::{NamespaceId, NamespaceRules};
use fanwire_protocol::{ClientInfo, ErrorCode, Publication, StreamPosition};

use super::{Channels, temporary};
use crate::notice::Notice;
use crate::registry::ShardId;
use crate::subscribers::PositionCheck;

/// A channel where a publication passed the checks of its namespace.
pub(crate) struct CheckedChannel<'a> {
    pub(crate) name: &'a str,
    pub(crate) namespace: NamespaceId,
    pub(crate) retention: Retention,
}

impl<'a> CheckedChannel<'a> {
    /// A channel of a namespace of streams.
    pub(crate) fn of_stream(name: &'a str, rules: &NamespaceRules) -> Self {
        Self { name, namespace: rules.id, retention: rules.namespace.retention() }
    }
}

/// A page of history, as requested by clients and the server API (protocol §18).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Most publications; `None` = all, 0 = only the top of the stream.
    pub limit: Option<usize>,
    /// Only publications after this position, with `reverse` those before it. An empty epoch is that of any stream.
    pub since: Option<StreamPosition>,
    /// Newest first.
    pub reverse: bool,
}

impl Channels {
    /// The members of a channel, after the permission check.
    ///
    /// # Errors
    /// 100 when the store failed.
    pub(crate) fn members(
        &self,
        channel: &str,
        now: Instant,
    ) -> Answer<Vec<Arc<ClientInfo>>, ErrorCode> {
        self.presence.members(channel, now).map_err(temporary)
    }

    /// The number of members of a channel, after the permission check.
    ///
    /// # Errors
    /// 100 when the store failed.
    pub(crate) fn member_stats(
        &self,
        channel: &str,
        now: Instant,
    ) -> Answer<PresenceStats, ErrorCode> {
        self.presence.stats(channel, now).map_err(temporary)
    }

    /// Adds a member to a channel, or renews it.
    ///
    /// # Errors
    /// 100 when the store failed.
    pub(crate) fn appear(
        &self,
        channel: &str,
        info: ClientInfo,
        now: Instant,
    ) -> Answer<(), ErrorCode> {
        self.presence.add(channel, info, self.presence_ttl, now).map_err(temporary)
    }

    /// Removes a member. When the store is not available, the member stays until it expires.
    pub(crate) fn disappear(&self, channel: &str, client: &str) {
        drop(self.presence.remove(channel, client));
    }

    /// Publishes a join or leave. It is lost when the broker is not available.
    pub(crate) fn announce(&self, channel: &str, change: Change, info: ClientInfo) {
        drop(self.broker.publish_join_leave(channel, change, info));
    }

    /// Publishes after the checks.
    ///
    /// # Errors
    /// 100 when the broker failed.
    pub(crate) fn publish_checked(
        &self,
        channel: CheckedChannel<'_>,
        mut publication: Publication,
        options: &PublishOptions,
        now: Instant,
    ) -> Answer<Position, ErrorCode> {
        let CheckedChannel { name, namespace, retention } = channel;
        publication.time = self.time(now);
        self.count_publication(name, namespace, publication.data.len());
        self.broker.publish(name, publication, options, retention, now).map_err(temporary)
    }

    /// Counts a publication, and logs it if its channel is on the debug list.
    pub(in crate::node) fn count_publication(
        &self,
        channel: &str,
        namespace: NamespaceId,
        bytes: usize,
    ) {
        self.hot_channels.count_publication(channel);
        self.debug_list.log_publication(channel, bytes);
        self.usage.count_publication(namespace, bytes);
    }

    /// The time that a publication carries, in Unix milliseconds; 0 for none.
    pub(super) fn time(&self, now: Instant) -> i64 {
        if self.sets_times { self.clock.unix_ms(now).try_into().unwrap_or(0) } else { 0 }
    }

    /// Reads history after the permission check.
    ///
    /// # Errors
    /// 107, 112 and 100 of [`history`](Self::history).
    pub(crate) fn read(
        &self,
        channel: &str,
        page: &Page,
        retention: Retention,
        now: Instant,
    ) -> Answer<StreamSlice, ErrorCode> {
        let since = page.since.as_ref();
        if page.reverse && since.is_some_and(|since| since.offset == 0) {
            return Answer::now(Err(ErrorCode::BAD_REQUEST));
        }
        let query = Query {
            limit: page.limit,
            since: since.map(|since| since.offset),
            reverse: page.reverse,
        };
        let (from, epoch) =
            since.map_or_else(Default::default, |since| (since.offset, since.epoch.clone()));
        let reverse = page.reverse;
        self.broker.history(channel, query, retention, now).map(move |read| {
            let mut slice = without_times(read.map_err(temporary)?);
            if !slice.continues(from, &epoch) {
                return Err(ErrorCode::UNRECOVERABLE_POSITION);
            }
            // A page backwards begins with the publication before `from`, which does not exist.
            if reverse && from.saturating_sub(1) > slice.top.offset {
                slice.publications.clear();
            }
            Ok(slice)
        })
    }

    /// The starting position of a new subscriber, which has joined the channel already.
    ///
    /// # Errors
    /// 100 when the broker failed.
    pub(crate) fn follow(
        &self,
        channel: &str,
        query: Option<Query>,
        retention: Retention,
        now: Instant,
    ) -> Answer<StreamSlice, ErrorCode> {
        self.broker
            .follow(channel, query, retention, now)
            .map(|read| read.map(without_times).map_err(temporary))
    }

    /// Reads the top of a channel's stream.
    ///
    /// # Errors
    /// 102 and 107 when no namespace has the channel any more; 100 when the broker failed.
    pub(crate) fn top(&self, channel: &str, now: Instant) -> Answer<StreamSlice, ErrorCode> {
        let settings = self.settings();
        match settings.channels.resolve_trusted(channel) {
            Ok(namespace) => {
                let retention = namespace.retention();
                self.broker.history(channel, Query::TOP, retention, now).map_err(temporary)
            }
            Err(error) => Answer::now(Err(error)),
        }
    }

    /// Sends the top of a channel's stream, which was at `known` before, to every shard with
    /// subscribers: behind the publications up to it when the broker answers at once, else when the answer comes.
    /// When the broker fails after a possible gap, the gap is reported again; else the next check is early enough.
    pub(crate) fn send_position(
        &self,
        channel: &Arc<str>,
        known: Position,
        may_have_gap: bool,
        read: Answer<StreamSlice, ErrorCode>,
    ) {
        let router = Arc::clone(&self.router);
        let name = Arc::clone(channel);
        let send = move |read: Result<StreamSlice, ErrorCode>, is_in_order| {
            let channel = Arc::clone(&name);
            let notice = match read {
                Ok(StreamSlice { top, .. }) => {
                    let has_lost_end = top.epoch == known.epoch && top.offset < known.offset;
                    let check = PositionCheck { top, is_in_order, has_lost_end };
                    Notice::Position { channel, check }
                }
                Err(ErrorCode::INTERNAL) if may_have_gap => Notice::PossibleGap(channel),
                Err(_) => return,
            };
            router.send_to_shards(&name, &notice);
        };
        match read.ready() {
            Ok(read) => send(read, true),
            Err(later) => later.then(move |read| send(read, false)),
        }
    }

    /// Adds a subscriber of `channel` on `shard`; returns the shared copy of the name.
    pub(crate) fn join(&self, channel: &str, shard: ShardId) -> Arc<str> {
        let settings = self.settings();
        let namespace = || settings.channels.namespace_id(channel);
        self.registry.join(channel, shard, namespace, || self.broker.subscribe(channel))
    }

    /// Removes a subscriber of `channel` on `shard`.
    pub(crate) fn leave(&self, channel: &str, shard: ShardId) {
        self.registry.leave(channel, shard, || self.broker.unsubscribe(channel));
    }
}

/// Publication times are for the nodes, not for clients.
fn without_times(mut slice: StreamSlice) -> StreamSlice {
    slice.publications.iter_mut().for_each(|publication| publication.time = 0);
    slice
}
