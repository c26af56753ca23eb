//! Subscriptions that the application made (client protocol §8, §9, §11, §15).
//! Calls, replies and pushes of a channel → commands, and events of its subscription.
//! Uses `core` and its commands, and the delta decoder; never sockets or a clock.
//! Changed here: the states of a subscription. Those that the server made are `server_side`.

use std::collections::BTreeMap;
use std::time::Instant;

use fanwire_protocol::{
    Command, Encoding, ErrorCode, ProtocolError, Publication, StreamPosition, SubRefreshRequest,
    SubRefreshResult, SubscribeRequest, SubscribeResult, Unsubscribe, UnsubscribeCode,
    UnsubscribeRequest,
};

use super::commands::{Attempt, Purpose};
use super::is_temporary;
use super::orders::{Orders, Refresh};
use crate::delta::DeltaDecoder;
use crate::{
    ClientConfig, ClientError, GetTokenError, SubscribedContext, SubscriptionConfig,
    SubscriptionEvent, code,
};

/// The state of one subscription.
pub(super) struct ChannelSubscription {
    config: SubscriptionConfig,
    phase: SubscriptionPhase,
    /// Subscription token; "" for none yet.
    token: String,
    /// Position to recover from.
    position: Option<StreamPosition>,
    /// The decoder of payloads, if delta was agreed to.
    deltas: Option<DeltaDecoder>,
    refresh: Refresh,
    /// Failed attempts since the last success.
    attempts: u32,
}

/// A state of a subscription. Outside of `Unsubscribed` and `Subscribed` it is subscribing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SubscriptionPhase {
    Unsubscribed,
    /// There is no connection.
    Offline,
    /// The next attempt is made at this time.
    Delayed {
        until: Instant,
    },
    /// The application was asked for a token.
    Token {
        request: u64,
    },
    /// The command with this number was sent.
    Sent {
        number: u64,
    },
    Subscribed,
}

impl ChannelSubscription {
    fn new(config: SubscriptionConfig) -> Self {
        Self {
            phase: SubscriptionPhase::Unsubscribed,
            token: config.token.clone(),
            position: config.since.clone(),
            deltas: None,
            refresh: Refresh::None,
            attempts: 0,
            config,
        }
    }

    fn is_subscribing(&self) -> bool {
        !matches!(self.phase, SubscriptionPhase::Unsubscribed | SubscriptionPhase::Subscribed)
    }

    /// The server may have this subscription.
    fn is_known_to_server(&self) -> bool {
        matches!(self.phase, SubscriptionPhase::Sent { .. } | SubscriptionPhase::Subscribed)
    }

    fn request(&self, channel: &str) -> SubscribeRequest {
        let position = self.position.clone();
        let recover = position.is_some();
        let StreamPosition { offset, epoch } = position.unwrap_or_default();
        SubscribeRequest {
            channel: channel.to_owned(),
            token: self.token.clone(),
            data: self.config.data.clone(),
            positioned: self.config.positioned,
            recoverable: self.config.recoverable,
            join_leave: self.config.join_leave,
            delta: if self.config.delta { "fossil".to_owned() } else { String::new() },
            tf: self.config.filter.clone(),
            recover,
            epoch,
            offset,
            ..SubscribeRequest::default()
        }
    }

    /// The time at which something is to be done.
    fn due(&self) -> Option<Instant> {
        match (self.phase, self.refresh) {
            (SubscriptionPhase::Delayed { until }, _) => Some(until),
            (SubscriptionPhase::Subscribed, Refresh::At(at)) => Some(at),
            _ => None,
        }
    }
}

/// The subscriptions of the application, by their channels.
pub(super) struct Subscriptions {
    all: BTreeMap<String, ChannelSubscription>,
    encoding: Encoding,
    message_size_max: usize,
    /// The client is connected.
    is_online: bool,
    /// Earliest time at which a subscription has something to do.
    due: Option<Instant>,
}

impl Subscriptions {
    pub(super) fn new(config: &ClientConfig) -> Self {
        Self {
            all: BTreeMap::new(),
            encoding: config.encoding,
            message_size_max: config.message_size_max,
            is_online: false,
            due: None,
        }
    }

    pub(super) fn contains(&self, channel: &str) -> bool {
        self.all.contains_key(channel)
    }

    /// The next time at which `handle_time` has something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Adds a subscription that is not subscribed yet. A channel has one; the caller checks that.
    pub(super) fn add(&mut self, channel: String, config: SubscriptionConfig) {
        self.all.insert(channel, ChannelSubscription::new(config));
    }

    /// Ends a subscription and forgets its position.
    pub(super) fn remove(&mut self, channel: &str, orders: &mut Orders) {
        self.unsubscribe(channel, orders);
        self.all.remove(channel);
    }

    /// Subscribes, if unsubscribed.
    pub(super) fn subscribe(&mut self, channel: &str, orders: &mut Orders) {
        let Some(subscription) = self.all.get_mut(channel) else { return };
        if subscription.phase != SubscriptionPhase::Unsubscribed {
            return;
        }
        subscription.phase = SubscriptionPhase::Offline;
        subscription.attempts = 0;
        orders.subscribing(channel, code::CALLED, "subscribe called");
        self.attempt_subscribe(channel, orders);
    }

    /// Unsubscribes. The position stays, so a later subscribe recovers.
    pub(super) fn unsubscribe(&mut self, channel: &str, orders: &mut Orders) {
        self.end(channel, code::CALLED, "unsubscribe called", orders);
    }

    /// Subscribes all channels after a connect.
    pub(super) fn connected(&mut self, orders: &mut Orders) {
        self.is_online = true;
        let waiting = self.all.iter().filter(|(_, it)| it.is_subscribing());
        let channels: Vec<String> = waiting.map(|(channel, _)| channel.clone()).collect();
        for channel in channels {
            self.attempt_subscribe(&channel, orders);
        }
    }

    /// The connection is lost: what was subscribed is subscribing now.
    pub(super) fn connection_lost(&mut self, orders: &mut Orders) {
        self.is_online = false;
        let mut lost = Vec::new();
        for (channel, subscription) in &mut self.all {
            if subscription.phase == SubscriptionPhase::Unsubscribed {
                continue;
            }
            if subscription.phase == SubscriptionPhase::Subscribed {
                lost.push(channel.clone());
            }
            subscription.phase = SubscriptionPhase::Offline;
            subscription.refresh = Refresh::None;
        }
        self.due = None;
        for channel in lost {
            orders.subscribing(&channel, code::TRANSPORT_CLOSED, "transport closed");
        }
    }

    /// The server invalidated the state of the client: tokens and positions are no longer valid.
    pub(super) fn invalidate(&mut self) {
        for subscription in self.all.values_mut() {
            invalidate(subscription);
        }
    }

    /// Begins an attempt, if there is a connection: with a token, if there is a callback for it.
    fn attempt_subscribe(&mut self, channel: &str, orders: &mut Orders) {
        if !self.is_online {
            return;
        }
        let Some(subscription) = self.all.get(channel) else { return };
        if subscription.token.is_empty() && subscription.config.get_token.is_some() {
            let request = orders.ask_for_token(Some(channel.to_owned()));
            self.set_phase(channel, SubscriptionPhase::Token { request });
            return;
        }
        let subscribe = Some(subscription.request(channel));
        let number = orders.next_number();
        let command = Command { subscribe, ..Command::default() };
        let purpose = Purpose::Subscribe(Attempt { channel: channel.to_owned(), number });
        self.set_phase(channel, SubscriptionPhase::Sent { number });
        if orders.send(command, purpose).is_err() {
            self.set_phase(channel, SubscriptionPhase::Offline);
            self.end(channel, NOT_JSON, "the data of the subscribe is not JSON", orders);
        }
    }

    pub(super) fn token(
        &mut self,
        request: u64,
        result: Result<String, GetTokenError>,
        orders: &mut Orders,
    ) {
        let first = SubscriptionPhase::Token { request };
        let next = Refresh::Token { request };
        let mut all = self.all.iter_mut();
        let Some((channel, subscription)) =
            all.find(|(_, it)| it.phase == first || it.refresh == next)
        else {
            return;
        };
        let channel = channel.clone();
        match result {
            Ok(token) if !token.is_empty() => {
                subscription.token.clone_from(&token);
                if subscription.phase == first {
                    return self.attempt_subscribe(&channel, orders);
                }
                subscription.refresh = Refresh::Sent;
                let request =
                    SubRefreshRequest { channel: channel.clone(), token, ..Default::default() };
                let command = Command { sub_refresh: Some(request), ..Command::default() };
                let purpose = Purpose::SubRefresh(channel);
                orders.send(command, purpose).expect("no payload inside");
            }
            Ok(_) | Err(GetTokenError::Unauthorized) => {
                self.end(&channel, code::UNAUTHORIZED, "unauthorized", orders);
            }
            Err(error) => {
                let is_first = subscription.phase == first;
                let error = ClientError::Token(error.to_string());
                orders.subscription_event(&channel, SubscriptionEvent::Error(error));
                if is_first {
                    self.subscribe_later(&channel, orders);
                } else {
                    self.sub_refresh_later(&channel, orders);
                }
            }
        }
    }

    pub(super) fn subscribed(
        &mut self,
        attempt: &Attempt,
        result: SubscribeResult,
        wire_bytes: usize,
        orders: &mut Orders,
    ) {
        let encoding = self.encoding;
        let message_size_max = self.message_size_max;
        let Some(subscription) = self.waiting_for(attempt) else { return };
        subscription.phase = SubscriptionPhase::Subscribed;
        subscription.attempts = 0;
        subscription.position = result.recoverable.then(|| position_of(&result));
        subscription.deltas = result.delta.then(|| DeltaDecoder::new(encoding, message_size_max));
        let has_callback = subscription.config.get_token.is_some();
        if result.expires && has_callback {
            subscription.refresh = Refresh::before(result.ttl, orders.now);
        }
        let channel = &attempt.channel;
        self.schedule(channel);
        let subscribed = subscribed_context(&result);
        orders.subscription_event(channel, SubscriptionEvent::Subscribed(subscribed));
        let share = wire_bytes / result.publications.len().max(1);
        for publication in result.publications {
            self.publication(channel, publication, share, orders);
        }
    }

    pub(super) fn subscribe_failed(
        &mut self,
        attempt: &Attempt,
        error: ProtocolError,
        orders: &mut Orders,
    ) {
        let Some(subscription) = self.waiting_for(attempt) else { return };
        let channel = &attempt.channel;
        subscription.phase = SubscriptionPhase::Offline; // the server does not have it
        let wants_token =
            error.code == ErrorCode::TOKEN_EXPIRED.code && subscription.config.get_token.is_some();
        if wants_token {
            subscription.token.clear();
        }
        if wants_token || is_temporary(&error) {
            let error = ClientError::Server(error);
            orders.subscription_event(channel, SubscriptionEvent::Error(error));
            self.subscribe_later(channel, orders);
        } else {
            self.end(channel, error.code, &error.message, orders);
        }
    }

    pub(super) fn sub_refreshed(
        &mut self,
        channel: &str,
        result: Result<Option<SubRefreshResult>, ProtocolError>,
        orders: &mut Orders,
    ) {
        let Some(subscription) = self.all.get_mut(channel) else { return };
        if subscription.refresh != Refresh::Sent {
            return;
        }
        match result.map(Option::unwrap_or_default) {
            Ok(result) if result.expires => {
                subscription.refresh = Refresh::before(result.ttl, orders.now);
                self.schedule(channel);
            }
            Ok(_) => subscription.refresh = Refresh::None,
            Err(error) if is_temporary(&error) => {
                let event = SubscriptionEvent::Error(ClientError::Server(error));
                orders.subscription_event(channel, event);
                self.sub_refresh_later(channel, orders);
            }
            Err(error) => self.end(channel, error.code, &error.message, orders),
        }
    }

    pub(super) fn sub_refresh_later(&mut self, channel: &str, orders: &mut Orders) {
        let Some(subscription) = self.all.get_mut(channel) else { return };
        if subscription.phase == SubscriptionPhase::Subscribed {
            subscription.refresh = Refresh::again(orders.now);
            self.schedule(channel);
        }
    }

    /// The server ended a subscription.
    pub(super) fn unsubscribed(&mut self, channel: &str, push: Unsubscribe, orders: &mut Orders) {
        let Some(subscription) = self.all.get_mut(channel) else { return };
        let Unsubscribe { code, reason } = push;
        let is_final = code < UnsubscribeCode::INSUFFICIENT_STATE.code;
        if subscription.phase == SubscriptionPhase::Subscribed {
            subscription.phase = SubscriptionPhase::Offline; // the server does not have it any more
        } else if !is_final {
            return; // it ended an earlier one: a subscribe is on its way
        }
        if is_final {
            return self.end(channel, code, &reason, orders);
        }
        if code == UnsubscribeCode::STATE_INVALIDATED.code {
            invalidate(subscription);
        }
        if code == UnsubscribeCode::SUBSCRIPTION_EXPIRED.code
            && subscription.config.get_token.is_some()
        {
            subscription.token.clear();
        }
        subscription.refresh = Refresh::None;
        orders.subscribing(channel, code, &reason);
        self.attempt_subscribe(channel, orders);
    }

    /// A publication of a subscription; those of channels that are not subscribed are dropped.
    pub(super) fn publication(
        &mut self,
        channel: &str,
        mut publication: Publication,
        wire_bytes: usize,
        orders: &mut Orders,
    ) {
        let Some(subscription) = self.all.get_mut(channel) else { return };
        if subscription.phase != SubscriptionPhase::Subscribed {
            return;
        }
        let decoded = match &mut subscription.deltas {
            Some(deltas) => deltas.decode(&mut publication),
            None => Ok(()),
        };
        if let Err(error) = decoded {
            return self.delta_failed(channel, error, orders);
        }
        if let Some(position) = &mut subscription.position {
            advance(position, &publication);
        }
        let event = SubscriptionEvent::Publication { publication, wire_bytes };
        orders.subscription_event(channel, event);
    }

    /// Subscribes again: the first publication is a whole one then, and recovery brings this one.
    fn delta_failed(&mut self, channel: &str, error: String, orders: &mut Orders) {
        orders.subscription_event(channel, SubscriptionEvent::Error(ClientError::Delta(error)));
        self.send_unsubscribe(channel, orders);
        self.set_phase(channel, SubscriptionPhase::Offline);
        orders.subscribing(channel, code::BAD_PROTOCOL, "a delta does not fit");
        self.subscribe_later(channel, orders);
    }

    pub(super) fn handle_time(&mut self, orders: &mut Orders) {
        let is_due = |it: &ChannelSubscription| it.due().is_some_and(|due| due <= orders.now);
        let due = self.all.iter().filter(|(_, it)| is_due(it));
        let channels: Vec<String> = due.map(|(channel, _)| channel.clone()).collect();
        for channel in channels {
            let Some(subscription) = self.all.get(&channel) else { continue };
            if subscription.phase == SubscriptionPhase::Subscribed {
                let request = orders.ask_for_token(Some(channel.clone()));
                if let Some(subscription) = self.all.get_mut(&channel) {
                    subscription.refresh = Refresh::Token { request };
                }
            } else {
                self.attempt_subscribe(&channel, orders);
            }
        }
        let rest = self.all.values().filter_map(ChannelSubscription::due);
        self.due = rest.min();
    }

    fn subscribe_later(&mut self, channel: &str, orders: &mut Orders) {
        let Some(subscription) = self.all.get_mut(channel) else { return };
        let config = &subscription.config;
        let min = config.resubscribe_delay_min;
        let max = config.resubscribe_delay_max;
        let until = orders.next_attempt(subscription.attempts, min, max);
        subscription.attempts = subscription.attempts.saturating_add(1);
        self.set_phase(channel, SubscriptionPhase::Delayed { until });
    }

    fn end(&mut self, channel: &str, code: u32, reason: &str, orders: &mut Orders) {
        let Some(subscription) = self.all.get(channel) else { return };
        if subscription.phase == SubscriptionPhase::Unsubscribed {
            return;
        }
        if subscription.is_known_to_server() {
            self.send_unsubscribe(channel, orders);
        }
        self.set_phase(channel, SubscriptionPhase::Unsubscribed);
        let reason = reason.to_owned();
        orders.subscription_event(channel, SubscriptionEvent::Unsubscribed { code, reason });
    }

    fn send_unsubscribe(&mut self, channel: &str, orders: &mut Orders) {
        let unsubscribe = Some(UnsubscribeRequest { channel: channel.to_owned() });
        let command = Command { unsubscribe, ..Command::default() };
        orders.send(command, Purpose::Unsubscribe).expect("no payload inside");
    }

    fn set_phase(&mut self, channel: &str, phase: SubscriptionPhase) {
        if let Some(subscription) = self.all.get_mut(channel) {
            subscription.phase = phase;
            if phase != SubscriptionPhase::Subscribed {
                subscription.refresh = Refresh::None;
            }
        }
        self.schedule(channel);
    }

    /// Remembers the time at which this subscription has something to do.
    fn schedule(&mut self, channel: &str) {
        let due = self.all.get(channel).and_then(ChannelSubscription::due);
        self.due = [self.due, due].into_iter().flatten().min();
    }

    /// The subscription of a subscribe command, if it still waits for this reply.
    fn waiting_for(&mut self, attempt: &Attempt) -> Option<&mut ChannelSubscription> {
        let subscription = self.all.get_mut(&attempt.channel)?;
        let phase = SubscriptionPhase::Sent { number: attempt.number };
        (subscription.phase == phase).then_some(subscription)
    }
}

/// Forgets the token, and sets a position that no stream has, so that the reply says that nothing was recovered.
fn invalidate(subscription: &mut ChannelSubscription) {
    subscription.token.clear();
    if subscription.position.is_some() {
        subscription.position = Some(no_position());
    }
}

/// A position that no stream has (client protocol §9).
pub(super) fn no_position() -> StreamPosition {
    StreamPosition { offset: 0, epoch: "_".to_owned() }
}

pub(super) fn position_of(result: &SubscribeResult) -> StreamPosition {
    StreamPosition { offset: result.offset, epoch: result.epoch.clone() }
}

/// Moves a position to a publication. Only a position without an epoch takes that of the publication.
pub(super) fn advance(position: &mut StreamPosition, publication: &Publication) {
    if publication.offset > 0 {
        position.offset = publication.offset;
    }
    if position.epoch.is_empty() {
        position.epoch.clone_from(&publication.epoch);
    }
}

pub(super) fn subscribed_context(result: &SubscribeResult) -> SubscribedContext {
    SubscribedContext {
        recoverable: result.recoverable,
        positioned: result.positioned,
        was_recovering: result.was_recovering,
        recovered: result.recovered,
        position: (result.recoverable || result.positioned).then(|| position_of(result)),
        data: result.data.clone(),
    }
}

/// Code of a subscription whose data no JSON connection can send: that of a bad request.
const NOT_JSON: u32 = ErrorCode::BAD_REQUEST.code;
