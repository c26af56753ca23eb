//! Map channels of a node: what the server API does with them, over the engine's `MapBroker`.
//! In: channels, changes, queries and `now` → out: outcomes, pages, counts, or an error.
//! Uses: channel rules, the port of maps. Never: sessions, HTTP.
//! Changed here: the checks before the engine. What an engine promises is in `broker/map.rs` of the crate `broker`.

use std::sync::Arc;
use std::time::Instant;

use fanwire_broker::map::{
    ChangesQuery, KeyMode, MapBroker, MapChannel, MapError, MapOutcome, MapPublish, MapRemoval,
    MapRetention, MapStats, PositionLost, StatePage, StateQuery,
};
use fanwire_broker::{Answer, BrokerError, StreamSlice};
use fanwire_policy::channel::{NamespaceId, check_data};
use fanwire_policy::options::DataFormat;
use fanwire_protocol::{ClientInfo, ErrorCode, Publication};

use super::channels::temporary;
use super::{Channels, Node};

/// The map channels of a node.
///
/// Each method fails with 102 for an unknown namespace; with 107 for an impossible name, or a namespace whose channels are no maps; with
/// 108 if the engine has no maps; with 100 if it fails.
#[derive(Clone, Copy)]
pub struct Maps<'a> {
    channels: &'a Channels,
}

/// The rules for a channel.
struct Resolved {
    namespace: NamespaceId,
    broker: Arc<dyn MapBroker>,
    retention: MapRetention,
    data_format: DataFormat,
    delta_publish: bool,
}

impl Resolved {
    fn channel<'a>(&self, name: &'a str) -> MapChannel<'a> {
        MapChannel { name, retention: self.retention }
    }
}

impl Node {
    /// Its map channels.
    pub fn maps(&self) -> Maps<'_> {
        Maps { channels: self.channels() }
    }
}

impl Channels {
    /// Reads the top of a channel's stream, which may be that of a map.
    ///
    /// # Errors
    /// Those of [`Maps::read_stream`] and [`Channels::top`].
    pub(crate) fn top_of_any(&self, channel: &str, now: Instant) -> Answer<StreamSlice, ErrorCode> {
        let settings = self.settings.read();
        let namespace = settings.channels.resolve_trusted(channel);
        if namespace.is_ok_and(|namespace| namespace.subscription_type.is_of_maps()) {
            return Maps { channels: self }.read_stream(channel, ChangesQuery::TOP, now);
        }
        self.top(channel, now)
    }

    /// Whether subscribers of a channel hold a state without a position: it is a map without a stream.
    pub(crate) fn has_state_without_position(&self, channel: &str) -> bool {
        let resolved = Maps { channels: self }.resolve(channel);
        resolved.is_ok_and(|resolved| !resolved.retention.has_stream())
    }
}

impl Maps<'_> {
    /// Sets a key for the server API. The change carries its time.
    ///
    /// # Errors
    /// Those of all methods; 107 for a text that is no [key](is_key), and for data of another format than the namespace
    /// demands.
    pub fn publish(
        &self,
        channel: &str,
        mut publish: MapPublish,
        now: Instant,
    ) -> Answer<Result<MapOutcome, MapError>, ErrorCode> {
        self.call(channel, |resolved| {
            let publication = &mut publish.publication;
            let checked = check_key(&publication.key)
                .and_then(|()| check_data(resolved.data_format, &publication.data));
            if let Err(error) = checked {
                return Answer::now(Err(error));
            }
            publish.delta |= resolved.delta_publish;
            self.prepare(channel, resolved.namespace, publication, now);
            resolved.broker.publish(resolved.channel(channel), publish, now).map_err(temporary)
        })
    }

    /// Removes a key for the server API.
    ///
    /// # Errors
    /// Those of all methods; 107 for a text that is no [key](is_key).
    pub fn remove(
        &self,
        channel: &str,
        mut removal: MapRemoval,
        now: Instant,
    ) -> Answer<Result<MapOutcome, MapError>, ErrorCode> {
        self.call(channel, |resolved| {
            if let Err(error) = check_key(&removal.publication.key) {
                return Answer::now(Err(error));
            }
            self.prepare(channel, resolved.namespace, &mut removal.publication, now);
            resolved.broker.remove(resolved.channel(channel), removal, now).map_err(temporary)
        })
    }

    /// Sets a key without data, for who is in a channel; if it exists, its lifetime starts again. Fails in silence: the next
    /// renewal repeats it.
    pub(crate) fn set_member(
        &self,
        channel: &str,
        key: String,
        info: Option<ClientInfo>,
        now: Instant,
    ) {
        let Ok(resolved) = self.resolve(channel) else { return };
        let mut publication = Publication { key, info, ..Publication::default() };
        self.prepare(channel, resolved.namespace, &mut publication, now);
        let key_mode = KeyMode::IfNew { refreshes: true };
        let publish = MapPublish { publication, key_mode, ..MapPublish::default() };
        drop(resolved.broker.publish(resolved.channel(channel), publish, now));
    }

    /// Removes a key. Fails in silence: then the entry expires.
    pub(crate) fn remove_member(&self, channel: &str, key: String, now: Instant) {
        let publication = Publication { key, ..Publication::default() };
        drop(self.remove(channel, MapRemoval { publication, ..MapRemoval::default() }, now));
    }

    /// Reads a page of entries for the server API.
    ///
    /// # Errors
    /// Those of all methods; 112 for a page of another epoch.
    pub fn read_state(
        &self,
        channel: &str,
        query: &StateQuery,
        now: Instant,
    ) -> Answer<StatePage, ErrorCode> {
        self.call(channel, |resolved| {
            let page = resolved.broker.read_state(resolved.channel(channel), query, now);
            page.map(recoverable)
        })
    }

    /// Reads changes for the server API.
    ///
    /// # Errors
    /// Those of all methods; 112 for a position of another epoch, or one behind which changes are no longer stored.
    pub fn read_stream(
        &self,
        channel: &str,
        query: ChangesQuery,
        now: Instant,
    ) -> Answer<StreamSlice, ErrorCode> {
        self.call(channel, |resolved| {
            let slice = resolved.broker.read_stream(resolved.channel(channel), query, now);
            slice.map(recoverable)
        })
    }

    /// Reads changes after the moment from which every later one reaches this node, or nothing; see [`MapBroker::follow`].
    ///
    /// # Errors
    /// Those of [`read_stream`](Self::read_stream).
    pub(crate) fn follow(
        &self,
        channel: &str,
        query: Option<ChangesQuery>,
        now: Instant,
    ) -> Answer<StreamSlice, ErrorCode> {
        self.call(channel, |resolved| {
            resolved.broker.follow(resolved.channel(channel), query, now).map(recoverable)
        })
    }

    /// Counts the entries of a channel.
    ///
    /// # Errors
    /// Those of all methods.
    pub fn stats(&self, channel: &str, now: Instant) -> Answer<MapStats, ErrorCode> {
        self.call(channel, |resolved| {
            resolved.broker.stats(resolved.channel(channel), now).map_err(temporary)
        })
    }

    /// Forgets the entries, the changes and the epoch of a channel.
    ///
    /// # Errors
    /// Those of all methods.
    pub fn clear(&self, channel: &str, now: Instant) -> Answer<(), ErrorCode> {
        self.call(channel, |resolved| {
            resolved.broker.clear(resolved.channel(channel), now).map_err(temporary)
        })
    }

    /// Calls `work` with what the rules say about a channel.
    fn call<T>(
        &self,
        channel: &str,
        work: impl FnOnce(&Resolved) -> Answer<T, ErrorCode>,
    ) -> Answer<T, ErrorCode> {
        match self.resolve(channel) {
            Ok(resolved) => work(&resolved),
            Err(error) => Answer::now(Err(error)),
        }
    }

    fn resolve(&self, channel: &str) -> Result<Resolved, ErrorCode> {
        let settings = self.channels.settings.read();
        let rules = settings.channels.trusted_rules(channel)?;
        let namespace = &rules.namespace;
        let retention = namespace.map_retention().ok_or(ErrorCode::BAD_REQUEST)?;
        let broker = Arc::clone(&self.channels.broker).maps().ok_or(ErrorCode::NOT_AVAILABLE)?;
        let data_format = namespace.publication_data_format;
        let delta_publish = namespace.delta_publish;
        Ok(Resolved { namespace: rules.id, broker, retention, data_format, delta_publish })
    }

    /// Counts a change like a publication, and adds its time.
    fn prepare(
        &self,
        channel: &str,
        namespace: NamespaceId,
        publication: &mut Publication,
        now: Instant,
    ) {
        publication.time = self.channels.clock.unix_ms(now).try_into().unwrap_or(0);
        self.channels.count_publication(channel, namespace, publication.data.len());
    }
}

fn check_key(key: &str) -> Result<(), ErrorCode> {
    if is_key(key) { Ok(()) } else { Err(ErrorCode::BAD_REQUEST) }
}

/// Whether a text can be a key of a map, a shared poll or a message that grows: it has 1 to 255 bytes.
pub fn is_key(text: &str) -> bool {
    (1..=255).contains(&text.len())
}

fn recoverable<T>(read: Result<Result<T, PositionLost>, BrokerError>) -> Result<T, ErrorCode> {
    let read = read.map_err(temporary)?;
    read.map_err(|PositionLost| ErrorCode::UNRECOVERABLE_POSITION)
}
