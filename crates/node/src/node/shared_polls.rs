//! Shared poll channels of a node: their values, and the calls of backends for them (protocol §28).
//! In: keys that clients track, answers of the hook, values that the server API publishes, `now` → out: calls of the hook, updates in
//! the inboxes of shards.
//! Uses: the table of polls behind one lock, the router. Never: sessions; which client tracks a key is in `session_table/trackers.rs`.
//! Changed here: what happens around a poll. When a key is polled, and which answer counts, is in `policy/shared_poll/`.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use fanwire_broker::{Answer, ClientId, PublishOptions, Retention};
use fanwire_policy::CurrentSettings;
use fanwire_policy::channel::{NamespaceId, check_data};
use fanwire_policy::hooks::{Hook, PollEvent};
use fanwire_policy::options::{Namespace, NamespacePollOptions, ProxyRoute, SubscriptionType};
use fanwire_policy::shared_poll::{
    DirectPublish, KeyUpdate, PollAnswer, PollCounts, PollEffect, PollMode, PollRequest, PollTable,
    RequestId, TrackedItem,
};
use fanwire_protocol::{ErrorCode, Publication};
use parking_lot::Mutex;

use super::channels::CheckedChannel;
use super::maps::is_key;
use super::{Channels, Node};
use crate::broadcast::Broadcast;
use crate::deliver::BroadcastRouter;

/// The shared poll channels of a node.
pub struct SharedPolls {
    table: Mutex<PollTable>,
    /// Answers that the next run takes.
    returned: Mutex<Vec<PollReturn>>,
    /// Keys that clients track no longer, which the next run takes.
    untracked: Mutex<Vec<Untracked>>,
    /// Calls the backend; `None`: every call fails.
    hook: Option<Hook<PollEvent, PollAnswer>>,
    settings: Arc<CurrentSettings>,
    router: Arc<BroadcastRouter>,
    /// The epoch of versionless channels, whose versions this node counts.
    epoch: String,
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// Keys that clients of a channel track no longer.
struct Untracked {
    channel: Arc<str>,
    keys: Vec<Arc<str>>,
}

/// The answer to a call; `None` if it failed.
struct PollReturn {
    channel: Arc<str>,
    id: RequestId,
    answer: Option<PollAnswer>,
}

impl SharedPolls {
    pub(super) fn new(
        hook: Option<Hook<PollEvent, PollAnswer>>,
        settings: Arc<CurrentSettings>,
        router: Arc<BroadcastRouter>,
        epoch: String,
    ) -> Arc<Self> {
        let table = {
            let options = &settings.read().options.shared_poll;
            PollTable::new(options.calls_max(), options.values_memory_max)
        };
        let polls = Arc::new(Self {
            table: Mutex::new(table),
            returned: Mutex::default(),
            untracked: Mutex::default(),
            hook,
            settings,
            router: Arc::clone(&router),
            epoch,
            waker: OnceLock::new(),
        });
        let weak = Arc::downgrade(&polls);
        router.take_values(Box::new(move |channel, value, now| {
            if let Some(polls) = weak.upgrade() {
                polls.take_published(channel, value, now);
            }
        }));
        polls
    }

    /// Sets the function that is called when [`run`](Self::run) has to be called before the time that it returned. It may be called
    /// on any thread, and must be short.
    ///
    /// # Panics
    /// If it is called twice.
    pub fn wake_with(&self, waker: impl Fn() + Send + Sync + 'static) {
        assert!(self.waker.set(Box::new(waker)).is_ok(), "polls have one driver");
    }

    /// Takes what has come since the last run, and calls backends where it is time to. Returns the time of the next run; `None` = when
    /// something changes.
    pub fn run(self: &Arc<Self>, now: Instant) -> Option<Instant> {
        let returned = std::mem::take(&mut *self.returned.lock());
        let untracked = std::mem::take(&mut *self.untracked.lock());
        let mut requests = Vec::new();
        let mut table = self.table.lock();
        for Untracked { channel, keys } in untracked {
            table.with(&channel, now, |polled| keys.iter().for_each(|key| polled.untrack(key)));
        }
        for PollReturn { channel, id, answer } in returned {
            let effects = table.answer(&channel, id, answer, now);
            self.send(&channel, effects, now);
        }
        while let Some(request) = table.poll(now) {
            requests.push(request);
        }
        let next = table.deadline();
        drop(table);
        for (channel, request) in requests {
            self.ask(channel, request);
        }
        next
    }

    /// Counts of all channels since the start.
    pub fn counts(&self) -> PollCounts {
        self.table.lock().counts()
    }

    /// The epoch that a subscriber of a channel learns.
    pub(crate) fn epoch(&self, channel: &str, options: &NamespacePollOptions) -> String {
        let table = self.table.lock();
        table.epoch(channel).unwrap_or_else(|| self.first_epoch(options)).to_owned()
    }

    /// A client tracks keys, or those that it tracks with other versions. Returns the values that it lacks and that are known.
    pub(crate) fn track(
        &self,
        channel: &str,
        items: &[(TrackedItem<'_>, bool)],
        options: &NamespacePollOptions,
        now: Instant,
    ) -> Vec<KeyUpdate> {
        let mut table = self.table.lock();
        table.begin(channel, options.of_channel(), self.first_epoch(options));
        let known = table.with(channel, now, |polled| {
            let mut known = Vec::new();
            for (item, is_new) in items {
                known.extend(polled.track(item.key, item.version, now));
                if !is_new {
                    polled.untrack(item.key);
                }
            }
            known
        });
        drop(table);
        self.wake();
        known.unwrap_or_default()
    }

    /// Clients track keys no longer; a key stands here once for each. The next run takes them.
    pub(crate) fn untrack(&self, channel: &Arc<str>, keys: Vec<Arc<str>>) {
        if !keys.is_empty() {
            self.untracked.lock().push(Untracked { channel: Arc::clone(channel), keys });
            self.wake();
        }
    }

    /// A push with a value that is known, for a client that tracks its key later than others.
    pub(crate) fn broadcast(
        &self,
        channel: &str,
        update: KeyUpdate,
        receiver: ClientId,
        now: Instant,
    ) -> Option<Arc<Broadcast>> {
        self.router.make_update(Some(receiver), channel, publication(update), now)
    }

    /// A value that the server API has published, on this node or another one.
    fn take_published(&self, channel: &str, value: Publication, now: Instant) {
        let Publication { key, data, version, epoch, .. } = value;
        let publish = DirectPublish { key, data, version, epoch };
        let mut table = self.table.lock();
        let effects = table.with(channel, now, |polled| polled.publish(publish, now));
        self.send(channel, effects.unwrap_or_default(), now);
        drop(table);
        self.wake();
    }

    /// Sends effects to the shards with subscribers. The caller holds the lock of the table, so that their order is kept.
    fn send(&self, channel: &str, effects: Vec<PollEffect>, now: Instant) {
        for effect in effects {
            match effect {
                PollEffect::EpochChanged => self.router.end_all_subscriptions(channel),
                PollEffect::Updated(update) => {
                    self.router.send_update(channel, publication(update), now);
                }
                PollEffect::Removed(key) => {
                    let key = key.as_ref().to_owned();
                    let removal = Publication { key, removed: true, ..Publication::default() };
                    self.router.send_update(channel, removal, now);
                }
            }
        }
    }

    fn ask(self: &Arc<Self>, channel: Arc<str>, request: PollRequest) {
        let PollRequest { id, keys } = request;
        let polls = Arc::clone(self);
        let name = Arc::clone(&channel);
        let take = move |answer: Option<PollAnswer>| {
            polls.returned.lock().push(PollReturn { channel: name, id, answer });
            polls.wake();
        };
        let settings = self.settings.read();
        let namespace = settings.channels.resolve_trusted(&channel).ok();
        let Some(hook) = &self.hook else { return take(None) };
        let Some(namespace) = namespace else { return take(None) };
        let route = ProxyRoute {
            proxy: Some(namespace.shared_poll.proxy().into()),
            ..ProxyRoute::default()
        };
        let answer = hook.call(PollEvent { channel, keys }, route);
        answer.then(move |answer| take(answer.ok().flatten()));
    }

    fn first_epoch(&self, options: &NamespacePollOptions) -> &str {
        match options.mode {
            PollMode::Versionless => &self.epoch,
            PollMode::Versioned => "",
        }
    }

    fn wake(&self) {
        if let Some(wake) = self.waker.get() {
            wake();
        }
    }
}

impl Node {
    /// Its shared poll channels.
    pub fn shared_polls(&self) -> &Arc<SharedPolls> {
        &self.shared_polls
    }
}

impl Channels {
    /// Publishes a value of a shared poll channel for the server API, on all nodes.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name or key, version 0, a namespace of another type, or data of another format than the
    /// namespace demands; 108 unless `shared_poll.publish_enabled`; 100 broker failure.
    pub fn publish_value(
        &self,
        channel: &str,
        publish: DirectPublish,
        now: Instant,
    ) -> Answer<(), ErrorCode> {
        let namespace = match self.check_value(channel, &publish) {
            Ok(namespace) => namespace,
            Err(error) => return Answer::now(Err(error)),
        };
        let DirectPublish { key, data, version, epoch } = publish;
        let value = Publication { key, data, version, epoch, ..Publication::default() };
        let channel = CheckedChannel { name: channel, namespace, retention: Retention::default() };
        let published = self.publish_checked(channel, value, &PublishOptions::default(), now);
        published.map(|position| position.map(drop))
    }

    fn check_value(
        &self,
        channel: &str,
        publish: &DirectPublish,
    ) -> Result<NamespaceId, ErrorCode> {
        let settings = self.settings.read();
        let rules = settings.channels.trusted_rules(channel)?;
        let namespace = &rules.namespace;
        if !is_polled(namespace) || !is_key(&publish.key) || publish.version == 0 {
            return Err(ErrorCode::BAD_REQUEST);
        }
        if !namespace.shared_poll.publish_enabled {
            return Err(ErrorCode::NOT_AVAILABLE);
        }
        check_data(namespace.publication_data_format, &publish.data)?;
        Ok(rules.id)
    }
}

/// Whether the channels of a namespace are shared polls.
pub(crate) fn is_polled(namespace: &Namespace) -> bool {
    namespace.subscription_type == SubscriptionType::SharedPoll
}

fn publication(update: KeyUpdate) -> Publication {
    let KeyUpdate { key, data, version } = update;
    Publication { key: key.as_ref().to_owned(), data, version, ..Publication::default() }
}
