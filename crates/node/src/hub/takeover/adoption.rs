//! Puts a session that another program saved into the tables of a shard, and into the registry of the node.
//! In: a record → out: the same session; nothing is sent, reported, joined or stored.
//! Uses: `session_record`, the tables, the registry. Never: presence, hooks; others know of the session already.
//! Changed here: the order in which an adopted session enters the tables, and which records are refused.

use std::collections::HashSet;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use fanwire_area::Tile;
use fanwire_policy::channel::NamespaceId;
use fanwire_policy::tiles::tile_channel;
use fanwire_policy::{InNamespace, NamespaceAction, NodeSettings, SavedRates};
use uuid::Uuid;

use crate::clock::Moment;
use crate::deadlines;
use crate::flight_log;
use crate::index::SubscriptionKey;
use crate::node::Node;
use crate::session::{ConnectionInfo, ConnectionKey, NO_EXPIRY, Phase, SubscriptionGrant};
use crate::session_record::{RatesRecord, SavedSubscription, SessionRecord, ViewRecord, moment};
use crate::session_table::{NewSubscription, SessionTable};

/// A record whose values are all possible.
pub(super) struct CheckedRecord {
    record: SessionRecord,
    phase: Phase,
    connection: ConnectionInfo,
    id: Uuid,
    secret: Option<Box<Uuid>>,
    subscriptions: Vec<SavedSubscription>,
    rates: Option<SavedRates>,
}

impl CheckedRecord {
    /// `None` if a value is impossible, or a channel does not exist by these settings.
    pub(super) fn new(mut record: SessionRecord, settings: &NodeSettings) -> Option<Self> {
        let phase = record.connection.phase()?;
        let connection = mem::take(&mut record.connection).info()?;
        let id = Uuid::from_slice(&record.id).ok()?;
        let secret = match record.secret.as_slice() {
            [] => None,
            bytes => Some(Box::new(Uuid::from_slice(bytes).ok()?)),
        };
        let written = mem::take(&mut record.subscriptions).into_iter();
        let subscriptions = written.map(|one| one.checked()).collect::<Option<_>>()?;
        let rates = record.rates.take().map(|rates| saved_rates(rates, settings));
        let checked = Self { record, phase, connection, id, secret, subscriptions, rates };
        checked.has_possible_channels(settings).then_some(checked)
    }

    /// Whether its channels exist, each once, and no session that is not connected has one.
    fn has_possible_channels(&self, settings: &NodeSettings) -> bool {
        let own = self.subscriptions.iter().map(|one| one.channel.clone());
        let viewed = self.record.views.iter().flat_map(|view| {
            let tiles = view.tiles.iter().map(Tile::from);
            tiles.map(|tile| tile_channel(&view.channel, tile))
        });
        let mut names = HashSet::new();
        let are_distinct = own.chain(viewed).all(|name| names.insert(name));
        let exists =
            |one: &SavedSubscription| settings.channels.resolve_trusted(&one.channel).is_ok();
        are_distinct
            && self.subscriptions.iter().all(exists)
            && (names.is_empty() || self.phase == Phase::Connected)
    }
}

/// Rates of namespaces that do not exist any more are left out.
fn saved_rates(record: RatesRecord, settings: &NodeSettings) -> SavedRates {
    let RatesRecord { commands, refusals, namespaces } = record;
    let namespaces = namespaces.into_iter().filter_map(|one| {
        let number = settings.names().iter().position(|name| *name == one.namespace)?;
        let namespace = NamespaceId(number as u16);
        let action =
            if one.is_of_subscribes { InNamespace::Subscribe } else { InNamespace::Publish };
        Some((NamespaceAction { namespace, action }, one.nanos))
    });
    SavedRates { commands, refusals, namespaces: namespaces.collect() }
}

/// The connection of a session on its way into the tables.
pub(super) struct Adoption<'a> {
    pub(super) node: &'a Node,
    pub(super) table: &'a mut SessionTable,
    pub(super) key: ConnectionKey,
    pub(super) now: Instant,
}

impl Adoption<'_> {
    /// Adds the session at an index without one.
    pub(super) fn adopt(mut self, checked: CheckedRecord) {
        let CheckedRecord { mut record, phase, connection, id, secret, subscriptions, rates } =
            checked;
        let now = self.node.clock().moment(self.now);
        let renew_at = moment(now, record.timers.renewal);
        let views = mem::take(&mut record.views);
        let beat_at = moment(now, record.timers.beat);
        self.table.open(self.key, connection, self.node.hooks().decide(), beat_at);
        self.set_values(record, now);
        let session = self.table.session_mut(self.key).expect(OPEN);
        session.id = id;
        session.secret = secret;
        session.phase = phase;
        if phase == Phase::Connected {
            self.connect();
        }
        for subscription in subscriptions {
            self.subscribe(subscription, renew_at);
        }
        views.into_iter().for_each(|view| self.view(view));
        if let Some(rates) = rates {
            self.table.limits.restore(self.key.index, &rates, self.node.clock().nanos(self.now));
        }
        deadlines::schedule(self.node, self.table, self.key.index);
    }

    /// Sets what the record has of the session itself.
    fn set_values(&mut self, record: SessionRecord, now: Moment) {
        let session = self.table.session_mut(self.key).expect(OPEN);
        let SessionRecord { user, info, timers, context, app, grant, .. } = record;
        session.user = user.into();
        session.info = info;
        session.expire_at = record.expire_at.unwrap_or(NO_EXPIRY);
        session.set_connected_at(record.connected_at_ms);
        session.awaits_pong = timers.awaits_pong;
        session.pong_by = if timers.is_held {
            now.after(self.node.options().client.pong_timeout) // as when the shell reads it again
        } else {
            moment(now, timers.pong)
        };
        session.grant = grant.map(|grant| Box::new(grant.into()));
        if let Some(context) = context {
            context.restore(Arc::make_mut(session.context.get_or_insert_default()));
        }
        self.table.set_app(self.key.index, &app.name, &app.version, app.labels);
    }

    /// The user and the node have the connection from now on.
    fn connect(&mut self) {
        let user = &self.table.session(self.key).expect(OPEN).user;
        let shared = self.node.registry().enter(user, NO_LIMIT).expect("there is no limit");
        self.table.enter(self.key.index, shared);
        flight_log::begin(self.node, self.table, self.key, self.now);
    }

    fn subscribe(&mut self, saved: SavedSubscription, renew_at: Moment) {
        let index = self.key.index;
        let shard = self.table.shard;
        let SavedSubscription { server_side, visibility, terms, .. } = saved;
        let channel = self.node.channels().join(&saved.channel, shard);
        let subscription = NewSubscription { server_side, is_tile: false, terms };
        let own = self.table.add_subscription(index, &channel, subscription);
        if let Some(position) = saved.position {
            let first = deadlines::first_position(self.node, shard, position, self.now);
            self.table.track_position(index, own, first);
        }
        if saved.may_have_gap {
            let check_at = deadlines::gap_check(self.node, self.now);
            self.table.report_possible_gap(&channel, check_at);
        }
        if let Some(state) = saved.delta {
            self.table.agree(index, own, state);
        }
        if visibility.present {
            self.table.appeared(index, own, || renew_at);
        }
        if visibility.has_entries {
            self.table.has_entries(index, own, || renew_at);
        }
        if visibility.wants_join_leave {
            self.table.want_join_leave(index, own);
        }
        let session = self.table.session_mut(self.key).expect(OPEN);
        session.subscription_mut(own).announced = visibility.announced;
    }

    /// The client sees these tiles of a spatial channel.
    fn view(&mut self, view: ViewRecord) {
        let channel: Arc<str> = view.channel.into();
        let tiles: Vec<Tile> = view.tiles.iter().map(Into::into).collect();
        let own = self.table.subscription_to(self.key.index, &channel);
        let viewer = self.table.session(self.key).zip(own);
        let filter = viewer.and_then(|(session, own)| session.subscription(own).filter().cloned());
        for tile in &tiles {
            let name = tile_channel(&channel, *tile);
            let shared = self.node.channels().join(&name, self.table.shard);
            let terms = SubscriptionGrant::filtering(None, filter.clone());
            let subscription = NewSubscription { server_side: false, is_tile: true, terms };
            self.table.add_subscription(self.key.index, &shared, subscription);
        }
        let key = SubscriptionKey { connection: self.key.index, channel: &channel };
        self.table.restore_view(key, &tiles);
    }
}

const NO_LIMIT: usize = 0;
const OPEN: &str = "the session was opened";
