//! The subscriptions of a client: its positions, how it recovers, when it subscribes again.
//! In: results, pushes, its program's wishes → out: subscribe commands, what the client saw.
//! Pure. Never: whether a recovery was right; that is the checkers' question.
//! Changed here: what an SDK does about a subscription.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use fanwire_auth::{HmacAlgorithm, Lifetime, SubscriptionToken, sign_hmac_subscription};
use fanwire_protocol::fossil;
use fanwire_protocol::{
    Command, FilterNode, Publication, Push, SubRefreshRequest, SubRefreshResult, SubscribeRequest,
    SubscribeResult, UnsubscribeRequest,
};

use super::frames::{Claim, Seen};
use super::maps::MapCopy;
use super::{Action, PendingKind, SimulatedClient, Timer, see, unix_at};
use crate::chance::SeededRandom;
use crate::plan::{SECRET, SeedPlan};

/// A subscription that the program of a client wants.
#[derive(Clone, Debug, Default)]
pub struct WantedSubscription {
    pub state: SubscriptionState,
    /// Requested with the connect command.
    pub is_server_side: bool,
    /// Value of the tag `kind` that it wants; "" = all publications.
    pub filter: String,
    /// Needs a token of its own; then it was issued at this Unix second.
    pub token: Option<u64>,
    /// Seconds of that token; 0 = it never ends.
    lifetime: u64,
    /// The end of the last token that the server has accepted, in Unix seconds.
    pub accepted_until: Option<u64>,
    /// Where it is in the stream, or was.
    pub position: Option<Claim>,
    /// It asks for deltas.
    wants_deltas: bool,
    /// The data of its last publication.
    base: Bytes,
    /// Of a map channel: its entries.
    pub map: Option<MapCopy>,
    /// A backend ordered it, so it ends with its connection.
    is_ordered: bool,
    attempts: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubscriptionState {
    /// The client wants it, and has not asked.
    #[default]
    Wanted,
    Asked,
    On,
    /// The client does not want it now, or the server ended it for good.
    Off,
}

/// The subscriptions of a client.
pub(super) fn draw(
    plan: &SeedPlan,
    random: &mut SeededRandom,
) -> BTreeMap<String, WantedSubscription> {
    let mut subscriptions = BTreeMap::new();
    for channel in plan.channel_names() {
        if !random.percent(plan.subscribed) {
            continue;
        }
        let is_private = channel.starts_with('$');
        let is_map = channel.starts_with("map:");
        let is_server_side =
            !is_private && !is_map && !plan.tuning.has_subscribe_hook && random.percent(25);
        let is_filtered = channel.starts_with("cache:") && !is_server_side && random.percent(60);
        let subscription = WantedSubscription {
            is_server_side,
            filter: if is_filtered { random.pick(&["a", "b"]).to_string() } else { String::new() },
            token: is_private.then_some(0),
            lifetime: plan.tuning.subscription_lifetime,
            wants_deltas: plan.tuning.has_deltas && !is_map && random.percent(60),
            map: is_map.then(MapCopy::default),
            ..WantedSubscription::default()
        };
        subscriptions.insert(channel, subscription);
    }
    subscriptions
}

impl WantedSubscription {
    /// Makes it one that is requested with the connect command. Returns whether the server permits that.
    pub(super) fn can_be_requested(&mut self) -> bool {
        self.is_server_side = true;
        self.filter.clear();
        self.token.is_none() && self.map.is_none()
    }

    /// Where it wants to continue.
    pub fn claim(&self) -> Option<Claim> {
        self.position.clone()
    }

    pub(super) fn request(&self, channel: &str, user: &str) -> SubscribeRequest {
        let claim = self.claim();
        let filter = FilterNode {
            key: "kind".to_owned(),
            cmp: "eq".to_owned(),
            val: self.filter.clone(),
            ..FilterNode::default()
        };
        let mut request = SubscribeRequest {
            channel: channel.to_owned(),
            token: self.token_for(channel, user),
            recover: claim.is_some(),
            offset: claim.as_ref().map_or(0, |it| it.offset),
            epoch: claim.as_ref().map(|it| it.epoch.clone()).unwrap_or_default(),
            recoverable: true,
            join_leave: true,
            delta: if self.wants_deltas { "fossil".to_owned() } else { String::new() },
            tf: (!self.filter.is_empty()).then_some(filter),
            ..SubscribeRequest::default()
        };
        if let Some(map) = &self.map {
            map.ask(&mut request, claim.as_ref());
        }
        request
    }

    /// Its token, if it needs one.
    fn token_for(&self, channel: &str, user: &str) -> String {
        let Some(issued_at) = self.token else { return String::new() };
        let ends = self.lifetime > 0;
        let lifetime = if ends { Lifetime::Seconds(self.lifetime) } else { Lifetime::Never };
        let token = SubscriptionToken { user, channel, issued_at, lifetime, ..Default::default() };
        let text = sign_hmac_subscription(SECRET, HmacAlgorithm::Hs256, &token);
        text.expect("it has a secret and a channel")
    }

    /// Makes the data of a publication that came as a patch of the last one. One that does not fit leaves what no backend published.
    fn apply_delta(&mut self, publication: &mut Publication) {
        if publication.delta {
            let mut whole = Vec::new();
            let applied = fossil::apply(&self.base, &publication.data, DATA_MAX, &mut whole);
            publication.data = if applied.is_ok() { whole.into() } else { "no patch".into() };
        }
        if self.wants_deltas {
            self.base = publication.data.clone();
        }
    }

    /// The program of the client gets a token of this time, or keeps a newer one.
    fn renew_token(&mut self, unix: u64) {
        self.token = self.token.map(|issued_at| issued_at.max(unix - unix % 5));
    }

    /// The server has accepted the token of this time.
    fn accept_token(&mut self, issued_at: Option<u64>) {
        let issued_at = issued_at.filter(|_| self.lifetime > 0);
        self.accepted_until = issued_at.map(|issued_at| issued_at + self.lifetime);
    }

    /// The subscription ended; the client wants it again.
    fn end(&mut self) {
        self.state = SubscriptionState::Wanted;
        if self.map.as_mut().is_some_and(|map| !map.end()) {
            self.position = None;
        }
    }
}

impl SimulatedClient {
    /// Commands for all subscriptions that the client wants and has not asked for.
    pub(super) fn subscribe_commands(&mut self, now: Duration) -> Vec<Command> {
        let wanted =
            |it: &WantedSubscription| it.state == SubscriptionState::Wanted && !it.is_server_side;
        let all = self.subscriptions.iter();
        let channels: Vec<String> =
            all.filter(|(_, it)| wanted(it)).map(|(channel, _)| channel.clone()).collect();
        channels.into_iter().map(|channel| self.subscribe_command(&channel, now)).collect()
    }

    fn subscribe_command(&mut self, channel: &str, now: Duration) -> Command {
        let unix = unix_at(now);
        let subscription = self.subscriptions.get_mut(channel).expect("it is wanted");
        subscription.state = SubscriptionState::Asked;
        subscription.renew_token(unix);
        let claim = subscription.claim();
        let subscribe = subscription.request(channel, &self.user);
        let kind = PendingKind::Subscribe { channel: channel.to_owned(), claim };
        let id = self.remember(kind, now);
        Command { id, subscribe: Some(subscribe), ..Command::default() }
    }

    pub(super) fn subscribe_again(&mut self, channel: &str, now: Duration) -> Vec<Action> {
        let state = self.subscriptions.get(channel).map(|it| it.state);
        if state != Some(SubscriptionState::Wanted) {
            return Vec::new();
        }
        let command = self.subscribe_command(channel, now);
        vec![self.send(&[command])]
    }

    pub(super) fn subscribed(
        &mut self,
        channel: &str,
        claim: Option<Claim>,
        asked_at: Duration,
        mut result: SubscribeResult,
    ) -> Vec<Action> {
        let filter =
            self.subscriptions.get(channel).map(|it| it.filter.clone()).unwrap_or_default();
        let mut own = Vec::new();
        let copy = self.subscriptions.get_mut(channel).and_then(|it| it.map.as_mut());
        if copy.is_some_and(|copy| !copy.read(&result)) {
            let command = self.subscribe_command(channel, asked_at);
            return vec![self.send(&[command])];
        }
        if let Some(subscription) = self.subscriptions.get_mut(channel) {
            subscription.state = SubscriptionState::On;
            subscription.attempts = 0;
            subscription.accept_token(subscription.token);
            result.publications.iter_mut().for_each(|it| subscription.apply_delta(it));
            own = numbers(&result);
            if result.positioned || subscription.map.is_some() {
                let newest = result.publications.last().map_or(result.offset, |it| it.offset);
                let epoch = result.epoch.clone();
                subscription.position = Some(Claim { offset: newest, epoch });
            }
        }
        self.own_seen.extend(own);
        let mut actions = self.schedule_sub_refresh(channel, result.expires, result.ttl);
        let channel = channel.to_owned();
        actions.push(see(Seen::Subscribed { channel, claim, filter, asked_at, result }));
        actions
    }

    fn schedule_sub_refresh(&self, channel: &str, expires: bool, ttl: u32) -> Vec<Action> {
        if !expires || self.is_lazy {
            return Vec::new();
        }
        let after = Duration::from_secs(u64::from(ttl)).mul_f64(0.8);
        vec![Action::After(after, Timer::SubRefresh(self.connection, channel.to_owned()))]
    }

    /// It is time for another token of a subscription.
    pub(super) fn refresh_subscription(&mut self, channel: String, now: Duration) -> Vec<Action> {
        let Some(subscription) = self.subscriptions.get_mut(&channel) else { return Vec::new() };
        if subscription.state != SubscriptionState::On {
            return Vec::new();
        }
        subscription.renew_token(unix_at(now));
        let token = subscription.token_for(&channel, &self.user);
        let channel_name = channel.clone();
        let sub_refresh =
            Some(SubRefreshRequest { channel: channel_name, token, ..Default::default() });
        let issued_at = subscription.token;
        let id = self.remember(PendingKind::SubRefresh { channel, issued_at }, now);
        vec![self.send(&[Command { id, sub_refresh, ..Command::default() }])]
    }

    pub(super) fn subscription_refreshed(
        &mut self,
        channel: &str,
        issued_at: Option<u64>,
        result: &SubRefreshResult,
    ) -> Vec<Action> {
        // The result for an expired token is empty: nothing is renewed.
        if let Some(subscription) = self.subscriptions.get_mut(channel)
            && subscription.state == SubscriptionState::On
            && result.expires
        {
            subscription.accept_token(issued_at);
        }
        self.schedule_sub_refresh(channel, result.expires, result.ttl)
    }

    pub(super) fn subscribe_failed(
        &mut self,
        channel: &str,
        code: u32,
        is_temporary: bool,
    ) -> Vec<Action> {
        let seen = see(Seen::SubscribeFailed { channel: channel.to_owned(), code });
        let Some(subscription) = self.subscriptions.get_mut(channel) else { return vec![seen] };
        subscription.attempts += 1;
        if let Some(map) = &mut subscription.map {
            *map = MapCopy::default(); // 112: it begins again
            subscription.position = None;
        }
        if !is_temporary && ![TOKEN_EXPIRED, UNRECOVERABLE].contains(&code) {
            subscription.state = SubscriptionState::Off;
            return vec![seen];
        }
        if code == TOKEN_EXPIRED {
            subscription.token = subscription.token.map(|issued_at| issued_at + 5);
        }
        subscription.state = SubscriptionState::Wanted;
        let most = (200_u64 << subscription.attempts.min(5)).min(5000);
        let after = self.random.between_ms(50, most);
        let again = Timer::Resubscribe(self.connection, channel.to_owned());
        vec![seen, Action::After(after, again)]
    }

    /// A push of the server.
    pub(super) fn pushed(&mut self, push: Push) -> Vec<Action> {
        let channel = push.channel;
        if let Some(mut publication) = push.r#pub {
            if let Some(subscription) = self.subscriptions.get_mut(&channel) {
                subscription.apply_delta(&mut publication);
            }
            if let Some(number) = crate::truth::number_of(&publication) {
                self.own_seen.push(number);
            }
            let mut subscription = self.subscriptions.get_mut(&channel);
            if let Some(map) = subscription.as_mut().and_then(|it| it.map.as_mut()) {
                map.apply(&publication);
            }
            let position = subscription.and_then(|it| it.position.as_mut());
            if let Some(position) = position.filter(|_| publication.offset > 0) {
                position.offset = publication.offset;
                if position.epoch.is_empty() {
                    position.epoch = publication.epoch.clone(); // the first one of the stream
                }
            }
            return vec![see(Seen::Received { channel, publication })];
        }
        if let Some(unsubscribe) = push.unsubscribe {
            return self.unsubscribed(channel, unsubscribe.code);
        }
        if let Some(join) = push.join {
            let client = join.info.map(|info| info.client).unwrap_or_default();
            return vec![see(Seen::Joined { channel, client })];
        }
        if let Some(leave) = push.leave {
            let client = leave.info.map(|info| info.client).unwrap_or_default();
            return vec![see(Seen::Parted { channel, client })];
        }
        if let Some(subscribe) = push.subscribe {
            let result = SubscribeResult {
                positioned: subscribe.positioned,
                recoverable: subscribe.recoverable,
                offset: subscribe.offset,
                epoch: subscribe.epoch,
                ..SubscribeResult::default()
            };
            let ordered = || WantedSubscription {
                is_server_side: true,
                is_ordered: true,
                ..WantedSubscription::default()
            };
            self.subscriptions.entry(channel.clone()).or_insert_with(ordered);
            return self.subscribed(&channel, None, Duration::ZERO, result);
        }
        if let Some(refresh) = push.refresh {
            return self.schedule_refresh(refresh.expires, refresh.ttl);
        }
        Vec::new()
    }

    fn unsubscribed(&mut self, channel: String, code: u32) -> Vec<Action> {
        let at = self.subscriptions.get(&channel).and_then(WantedSubscription::claim);
        let mut actions = vec![see(Seen::Unsubscribed { channel: channel.clone(), code, at })];
        let Some(subscription) = self.subscriptions.get_mut(&channel) else { return actions };
        if subscription.state == SubscriptionState::Asked {
            return actions; // it was about the subscription before
        }
        if code < 2500 {
            subscription.state = SubscriptionState::Off;
            return actions;
        }
        subscription.end();
        if self.is_unidirectional {
            actions.extend(self.go_away(400));
            return actions;
        }
        if code == SUBSCRIPTION_EXPIRED {
            subscription.token = subscription.token.map(|issued_at| issued_at + 5);
        }
        let after = self.random.between_ms(1, 200);
        actions.push(Action::After(after, Timer::Resubscribe(self.connection, channel)));
        actions
    }

    /// The connection is gone: what the program wants is asked for on the next one.
    pub(super) fn end_subscriptions(&mut self) {
        for subscription in self.subscriptions.values_mut() {
            if subscription.state != SubscriptionState::Off {
                subscription.end();
            }
        }
        self.subscriptions.retain(|_, it| !it.is_ordered);
    }

    /// The program ends a subscription, or wants one again that it ended.
    pub(super) fn change_subscriptions(&mut self, now: Duration) -> Vec<Action> {
        let own = self.subscriptions.iter().filter(|(_, it)| !it.is_server_side);
        let channels: Vec<String> = own.map(|(channel, _)| channel.clone()).collect();
        if channels.is_empty() {
            return Vec::new();
        }
        let channel = self.random.pick(&channels).clone();
        let subscription = self.subscriptions.get_mut(&channel).expect("it was chosen");
        match subscription.state {
            SubscriptionState::On => {
                let unsubscribe = Some(UnsubscribeRequest { channel: channel.clone() });
                let id = self.remember(PendingKind::Unsubscribe(channel), now);
                let command = Command { id, unsubscribe, ..Command::default() };
                vec![self.send(&[command])]
            }
            SubscriptionState::Off => {
                subscription.state = SubscriptionState::Wanted;
                self.subscribe_again(&channel, now)
            }
            SubscriptionState::Wanted | SubscriptionState::Asked => Vec::new(),
        }
    }

    /// The program ends subscriptions and begins them again in one frame.
    pub(super) fn begin_subscriptions_again(&mut self, now: Duration) -> Vec<Action> {
        let is_chosen = |it: &WantedSubscription| {
            it.state == SubscriptionState::On && !it.is_server_side && it.map.is_none()
        };
        let on = self.subscriptions.iter().filter(|(_, it)| is_chosen(it));
        let channels: Vec<String> = on.map(|(channel, _)| channel.clone()).collect();
        let mut commands = Vec::new();
        for channel in channels {
            let unsubscribe = Some(UnsubscribeRequest { channel: channel.clone() });
            let id = self.remember(PendingKind::Unsubscribe(channel.clone()), now);
            commands.push(Command { id, unsubscribe, ..Command::default() });
            commands.push(self.subscribe_command(&channel, now));
        }
        if commands.is_empty() {
            return Vec::new();
        }
        vec![self.send(&commands)]
    }
}

fn numbers(result: &SubscribeResult) -> Vec<u64> {
    result.publications.iter().filter_map(crate::truth::number_of).collect()
}

/// Bytes of a publication.
const DATA_MAX: usize = 1000;
const TOKEN_EXPIRED: u32 = 109;
/// The copy of a map cannot be continued.
const UNRECOVERABLE: u32 = 112;
const SUBSCRIPTION_EXPIRED: u32 = 2501;
