//! A client that behaves as the SDKs do: it connects, subscribes, keeps positions, recovers, refreshes, and comes back after a pause.
//! In: frames, ends of connections, timers → out: frames to send, timers to set, what the client saw.
//! Pure: time is a parameter, chance its own. Never: the truth; checkers compare what it saw with that.
//! Changed here: the life of a connection. Subscriptions are `client/subscriptions.rs`, what is sent and seen `client/frames.rs`.

mod frames;
mod maps;
mod pending;
mod questions;
mod subscriptions;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use fanwire_auth::{ConnectionToken, HmacAlgorithm, Lifetime, sign_hmac_connection};
use fanwire_protocol::{
    Command, Connect, ConnectRequest, ConnectResult, Disconnect, PublishRequest, RefreshRequest,
    Reply, RpcRequest,
};
use prost::Message as _;

use crate::chance::SeededRandom;
use crate::plan::{CLOSED, Habits, SECRET, SeedPlan, UNIX_MS};
use crate::truth::{data_of, key_of};
pub use frames::{Claim, HistoryPage, Seen};
use frames::{EMPTY_REPLY, decoded, framed};
use maps::MAP;
pub use maps::MapCopy;
pub use pending::{Pending, PendingKind};
pub use subscriptions::{SubscriptionState, WantedSubscription};

pub struct SimulatedClient {
    pub number: usize,
    pub user: String,
    pub random: SeededRandom,
    pub state: ClientState,
    /// The connection that it opened last.
    pub connection: u64,
    /// The last connection whose connect was refused.
    refused: u64,
    pub subscriptions: BTreeMap<String, WantedSubscription>,
    pub token: ClientToken,
    pub id: String,
    pub is_lazy: bool,
    /// It sends one connect request, and nothing else.
    pub is_unidirectional: bool,
    habits: Habits,
    lifetime: u64,
    /// Tries since it was connected last.
    attempts: u32,
    next_id: u32,
    /// Commands that are not answered, by id.
    pub pending: BTreeMap<u32, Pending>,
    heard_at: Duration,
    silence_max: Duration,
    next_publication: u64,
    /// Publications of its own that have come back.
    own_seen: Vec<u64>,
    asks_for_closed: bool,
    has_deltas: bool,
    /// When a call was answered last.
    called_at: Duration,
    /// It publishes nothing until then.
    pub quiet_until: Duration,
    /// The end of the last token that the server has accepted, in Unix seconds.
    pub accepted_until: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientState {
    /// It waits before it connects again.
    Waiting,
    Connecting,
    Connected,
    /// A code told it not to come back, or its program ended it.
    Ended(u16),
}

/// Its connection token.
#[derive(Clone, Debug, Default)]
pub struct ClientToken {
    text: String,
    /// Unix seconds.
    pub issued_at: u64,
    pub expire_at: u64,
}

/// Timers of a client. Those with a connection are void after it.
#[derive(Clone, Debug)]
pub enum Timer {
    Connect,
    Silence(u64),
    Refresh(u64),
    Resubscribe(u64, String),
    SubRefresh(u64, String),
    /// Its program does something.
    Habit,
    /// Its program logs in again though the user is blocked.
    TryAgain,
}

/// What a client does.
#[derive(Debug)]
pub enum Action {
    Open,
    Send { connection: u64, frame: Bytes },
    Close { connection: u64 },
    After(Duration, Timer),
    See(Box<Seen>),
}

impl SimulatedClient {
    pub fn new(number: usize, plan: &SeedPlan, mut random: SeededRandom) -> Self {
        let is_unidirectional =
            random.fork("unidirectional", 0).percent(plan.tuning.unidirectional);
        let is_lazy = random.percent(plan.habits.lazy) || is_unidirectional;
        let asks_for_closed = plan.tuning.has_subscribe_hook && random.percent(50);
        let mut subscriptions = subscriptions::draw(plan, &mut random);
        if is_unidirectional {
            subscriptions.retain(|_, it| it.can_be_requested());
        }
        Self {
            number,
            user: format!("u{}", number % 5),
            random,
            state: ClientState::Waiting,
            connection: 0,
            refused: 0,
            subscriptions,
            token: ClientToken::default(),
            id: String::new(),
            is_lazy,
            is_unidirectional,
            habits: plan.habits,
            lifetime: plan.tuning.token_lifetime,
            attempts: 0,
            next_id: 0,
            pending: BTreeMap::new(),
            heard_at: Duration::ZERO,
            silence_max: plan.tuning.ping_interval + Duration::from_secs(10),
            next_publication: 0,
            own_seen: Vec::new(),
            asks_for_closed,
            has_deltas: plan.tuning.has_deltas,
            called_at: Duration::ZERO,
            quiet_until: Duration::ZERO,
            accepted_until: 0,
        }
    }

    /// Its connection is open: it sends the connect command, and perhaps all subscribes behind it in the same frame.
    pub fn opened(&mut self, connection: u64, now: Duration) -> Vec<Action> {
        let unix = unix_at(now);
        self.connection = connection;
        self.state = ClientState::Connecting;
        self.heard_at = now;
        self.pending.clear();
        self.next_id = 0;
        self.own_seen.clear();
        if self.token.expire_at < unix + 2 || !self.is_lazy && self.token.expire_at < unix + 5 {
            self.renew_token(unix);
        }
        let mut connect = ConnectRequest { token: self.token.text.clone(), ..Default::default() };
        for (channel, subscription) in &self.subscriptions {
            if subscription.is_server_side {
                connect.subs.insert(channel.clone(), subscription.request(channel, &self.user));
            }
        }
        if self.asks_for_closed {
            connect.subs.insert(format!("stream:{}", CLOSED), Default::default());
        }
        let id = self.remember(PendingKind::Connect, now);
        let silence = Action::After(self.silence_max, Timer::Silence(connection));
        if self.is_unidirectional {
            let frame = connect.encode_to_vec().into();
            return vec![Action::Send { connection, frame }, silence];
        }
        let mut commands = vec![Command { id, connect: Some(connect), ..Command::default() }];
        if self.random.percent(50) {
            commands.extend(self.subscribe_commands(now));
        }
        vec![self.send(&commands), silence]
    }

    fn send(&self, commands: &[Command]) -> Action {
        Action::Send { connection: self.connection, frame: framed(commands) }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.state, ClientState::Connecting | ClientState::Connected)
    }

    fn renew_token(&mut self, unix: u64) {
        let token = ConnectionToken {
            user: &self.user,
            issued_at: unix,
            lifetime: Lifetime::Seconds(self.lifetime),
            ..ConnectionToken::default()
        };
        let signed = sign_hmac_connection(SECRET, HmacAlgorithm::Hs256, &token);
        let text = signed.expect("it has a secret");
        self.token = ClientToken { text, issued_at: unix, expire_at: unix + self.lifetime };
    }

    /// A frame of the server.
    pub fn receive(
        &mut self,
        connection: u64,
        message: Bytes,
        now: Duration,
        busy: bool,
    ) -> Vec<Action> {
        if connection != self.connection || !self.is_open() {
            return Vec::new();
        }
        self.heard_at = now;
        if *message == EMPTY_REPLY {
            let pong = (!self.is_unidirectional).then(|| self.send(&[Command::default()]));
            return pong.into_iter().collect();
        }
        let Some(reply) = decoded(message) else {
            return vec![see(Seen::Garbage)];
        };
        if reply.id > 0 {
            let Some(pending) = self.pending.remove(&reply.id) else {
                return vec![see(Seen::Unasked(reply.id))];
            };
            return self.answered(pending, reply, now, busy);
        }
        let Some(mut push) = reply.push else { return Vec::new() };
        match push.connect.take().zip(self.pending.remove(&CONNECT_ID)) {
            Some((connect, pending)) => {
                let Connect { client, subs, expires, ttl, .. } = connect;
                let result = ConnectResult { client, subs, expires, ttl, ..Default::default() };
                self.connected(result, pending.sent_at, now)
            }
            None => self.pushed(push),
        }
    }

    fn answered(
        &mut self,
        pending: Pending,
        reply: Reply,
        now: Duration,
        busy: bool,
    ) -> Vec<Action> {
        let waited = now.saturating_sub(pending.sent_at);
        let error = reply.error.map(|error| (error.code, error.temporary));
        match pending.kind {
            PendingKind::Connect => match reply.connect {
                Some(result) => self.connected(result, pending.sent_at, now),
                None => self.refused(error.map_or(0, |(code, _)| code)),
            },
            PendingKind::Subscribe { channel, claim } => match reply.subscribe {
                Some(result) => self.subscribed(&channel, claim, pending.sent_at, result),
                None => {
                    let (code, is_temporary) = error.unwrap_or_default();
                    self.subscribe_failed(&channel, code, is_temporary)
                }
            },
            PendingKind::Refresh => match reply.refresh {
                Some(result) => {
                    self.accepted_until = self.token.expire_at;
                    self.schedule_refresh(result.expires, result.ttl)
                }
                None => Vec::new(),
            },
            PendingKind::History(channel, page) => {
                let asked_at = pending.sent_at;
                let read = |result| see(Seen::Read { channel, asked_at, page, result });
                reply.history.map(read).into_iter().collect()
            }
            PendingKind::Presence(channel) => {
                let asked_at = pending.sent_at;
                let ids = reply.presence.map(|it| it.presence.into_keys().collect());
                let members = |ids| see(Seen::Members { channel, asked_at, ids });
                ids.map(members).into_iter().collect()
            }
            PendingKind::SubRefresh { channel, issued_at } => {
                let refreshed = |result| self.subscription_refreshed(&channel, issued_at, &result);
                reply.sub_refresh.map_or_else(Vec::new, refreshed)
            }
            PendingKind::Publish { channel, number } => {
                let is_done = error.is_none();
                let was_seen = self.own_seen.contains(&number);
                vec![see(Seen::Published { channel, number, is_done, was_seen })]
            }
            PendingKind::Call(millis) => {
                let is_done = error.is_none();
                self.called_at = now;
                vec![see(Seen::Called { millis, waited, is_done, busy })]
            }
            PendingKind::Unsubscribe(channel) => {
                if let Some(subscription) = self.subscriptions.get_mut(&channel)
                    && subscription.state == SubscriptionState::On
                {
                    subscription.state = SubscriptionState::Off; // else it is asked for again
                }
                vec![see(Seen::Left(channel))]
            }
        }
    }

    fn connected(
        &mut self,
        result: ConnectResult,
        asked_at: Duration,
        now: Duration,
    ) -> Vec<Action> {
        self.state = ClientState::Connected;
        self.attempts = 0;
        self.accepted_until = self.token.expire_at;
        self.id = result.client.clone();
        let connection = self.connection;
        let channels: Vec<String> = result.subs.keys().cloned().collect();
        let mut actions = vec![see(Seen::Connected { connection, id: result.client, channels })];
        actions.extend(self.schedule_refresh(result.expires, result.ttl));
        for (channel, result) in result.subs {
            let claim = self.subscriptions.get(&channel).and_then(WantedSubscription::claim);
            actions.extend(self.subscribed(&channel, claim, asked_at, result));
        }
        let commands = self.subscribe_commands(now);
        if !commands.is_empty() {
            actions.push(self.send(&commands));
        }
        actions.push(Action::After(self.random.between_ms(100, 3000), Timer::Habit));
        actions
    }

    /// The SDK asks for another token a while before the old one ends; one that is lazy does not.
    fn schedule_refresh(&mut self, expires: bool, ttl: u32) -> Vec<Action> {
        if !expires || self.is_lazy {
            return Vec::new();
        }
        let after = Duration::from_secs(u64::from(ttl)).mul_f64(0.8);
        vec![Action::After(after, Timer::Refresh(self.connection))]
    }

    /// The connect was answered with an error.
    fn refused(&mut self, code: u32) -> Vec<Action> {
        if code == TOKEN_EXPIRED {
            self.token.expire_at = 0;
        }
        let connection = self.connection;
        self.refused = connection;
        let mut actions = vec![see(Seen::Refused(code)), Action::Close { connection }];
        actions.extend(self.come_back());
        actions
    }

    /// Its connection ended, with the code of the server or without one.
    pub fn closed(&mut self, connection: u64, disconnect: Option<&Disconnect>) -> Vec<Action> {
        let code = disconnect.map_or(0, |disconnect| disconnect.code);
        let is_final = (3500..4000).contains(&code) || (4500..5000).contains(&code);
        if is_final && connection == self.refused {
            return vec![see(Seen::Refused(code.into()))];
        }
        if connection != self.connection || !self.is_open() {
            return Vec::new();
        }
        if self.is_unidirectional && self.state == ClientState::Connecting && code == EXPIRED {
            return self.refused(TOKEN_EXPIRED); // there is no command that an error could answer
        }
        let mut actions = vec![self.see_end(code)];
        if is_final {
            self.pending.clear();
            self.end_subscriptions();
            self.state = ClientState::Ended(code);
            if code == Disconnect::PERMISSION_DENIED.code && self.habits.insists {
                actions.push(Action::After(self.random.between_ms(500, 9000), Timer::TryAgain));
            }
            return actions;
        }
        if code == EXPIRED {
            self.token.expire_at = 0;
        }
        actions.extend(self.come_back());
        actions
    }

    /// Waits with full jitter, longer after each failure.
    fn come_back(&mut self) -> Vec<Action> {
        self.state = ClientState::Waiting;
        self.pending.clear();
        self.end_subscriptions();
        self.attempts += 1;
        let most = (200_u64 << self.attempts.min(5)).min(5000);
        vec![Action::After(self.random.between_ms(50, most), Timer::Connect)]
    }

    pub fn timer(&mut self, timer: Timer, now: Duration, busy: bool) -> Vec<Action> {
        let is_connected = |connection| {
            self.connection == connection && matches!(self.state, ClientState::Connected)
        };
        match timer {
            Timer::Connect if self.state == ClientState::Waiting => vec![Action::Open],
            Timer::Connect => Vec::new(),
            Timer::Silence(connection) => self.watch_silence(connection, now),
            Timer::Refresh(connection) if is_connected(connection) => {
                self.renew_token(unix_at(now));
                let refresh = Some(RefreshRequest { token: self.token.text.clone() });
                let id = self.remember(PendingKind::Refresh, now);
                vec![self.send(&[Command { id, refresh, ..Command::default() }])]
            }
            Timer::Resubscribe(connection, channel) if is_connected(connection) => {
                self.subscribe_again(&channel, now)
            }
            Timer::SubRefresh(connection, channel) if is_connected(connection) => {
                self.refresh_subscription(channel, now)
            }
            Timer::Refresh(_) | Timer::Resubscribe(..) | Timer::SubRefresh(..) => Vec::new(),
            Timer::Habit if self.state == ClientState::Connected && busy => self.act(now),
            Timer::TryAgain if matches!(self.state, ClientState::Ended(_)) => self.log_in_again(),
            Timer::Habit | Timer::TryAgain => Vec::new(),
        }
    }

    /// Closes a connection that carries no pings.
    fn watch_silence(&mut self, connection: u64, now: Duration) -> Vec<Action> {
        if connection != self.connection || !self.is_open() {
            return Vec::new();
        }
        let over = self.heard_at + self.silence_max;
        if now < over {
            return vec![Action::After(over - now, Timer::Silence(connection))];
        }
        let mut actions = self.hang_up();
        actions.extend(self.come_back());
        actions
    }

    /// Closes its connection.
    fn hang_up(&mut self) -> Vec<Action> {
        let connection = self.connection;
        let seen = self.see_end(0);
        self.state = ClientState::Waiting;
        self.pending.clear();
        self.end_subscriptions();
        vec![seen, Action::Close { connection }]
    }

    fn see_end(&self, code: u16) -> Action {
        let unanswered = self.pending.len();
        see(Seen::Disconnected { connection: self.connection, code, unanswered })
    }

    /// Its program does something, or not.
    fn act(&mut self, now: Duration) -> Vec<Action> {
        let habits = self.habits;
        let mut actions = vec![Action::After(self.random.between_ms(300, 4000), Timer::Habit)];
        if self.random.percent(habits.reconnects / 4) {
            let away = *self.random.pick(&[300, 2000, 9000]);
            return self.go_away(away);
        }
        if self.is_unidirectional {
            return actions;
        }
        if now >= self.quiet_until && self.random.percent(habits.publishes) {
            actions.extend(self.publish(now));
        }
        if !self.is_calling(now) && self.random.percent(habits.calls) {
            actions.push(self.call_three_times(now));
        }
        if self.random.percent(habits.questions) {
            actions.extend(self.ask(now));
        }
        if self.random.percent(habits.resubscribes) {
            actions.extend(self.change_subscriptions(now));
        }
        actions
    }

    /// At the end everybody stays: from now on it refreshes its tokens, or has one for longer.
    pub fn stay(&mut self) -> Vec<Action> {
        if !std::mem::take(&mut self.is_lazy) {
            return Vec::new();
        }
        if self.is_unidirectional {
            self.lifetime = 3600;
            self.token.expire_at = 0;
            return if self.is_open() { self.go_away(400) } else { Vec::new() };
        }
        let mut timers = vec![Timer::Refresh(self.connection)];
        let private = self.subscriptions.iter().filter(|(_, it)| it.accepted_until.is_some());
        let refresh = |channel: &String| Timer::SubRefresh(self.connection, channel.clone());
        timers.extend(private.map(|(channel, _)| refresh(channel)));
        timers.into_iter().map(|timer| Action::After(Duration::ZERO, timer)).collect()
    }

    /// Its program connects again, or ends subscriptions and begins them again at once.
    pub fn rush(&mut self, leaves: bool, now: Duration) -> Vec<Action> {
        if self.state != ClientState::Connected {
            return Vec::new();
        }
        if leaves { self.go_away(400) } else { self.begin_subscriptions_again(now) }
    }

    /// Closes its connection, and opens another one within so many milliseconds.
    fn go_away(&mut self, away: u64) -> Vec<Action> {
        let mut actions = self.hang_up();
        actions.push(Action::After(self.random.between_ms(10, away), Timer::Connect));
        actions
    }

    fn publish(&mut self, now: Duration) -> Vec<Action> {
        let on = |(channel, it): (&String, &WantedSubscription)| {
            (it.state == SubscriptionState::On).then(|| channel.clone())
        };
        let channels: Vec<String> = self.subscriptions.iter().filter_map(on).collect();
        if channels.is_empty() {
            return Vec::new();
        }
        let channel = self.random.pick(&channels).clone();
        self.next_publication += 1;
        let number = (self.number as u64 + 1) * 1_000_000 + self.next_publication;
        let data = data_of(number, self.has_deltas);
        let mut publish = PublishRequest { channel: channel.clone(), data, ..Default::default() };
        if channel.starts_with("map:") {
            publish.r#type = MAP;
            publish.key = key_of(number);
        }
        let id = self.remember(PendingKind::Publish { channel, number }, now);
        let command = Command { id, publish: Some(publish), ..Command::default() };
        vec![self.send(&[command])]
    }

    /// Whether a call of the client is not answered, or was a moment ago, so that others may wait for it.
    pub fn is_calling(&self, now: Duration) -> bool {
        let is_call = |pending: &Pending| matches!(pending.kind, PendingKind::Call(_));
        self.pending.values().any(is_call) || self.called_at + AFTER_CALL > now
    }

    /// Its user may connect again after a block has ended.
    pub fn log_in_again(&mut self) -> Vec<Action> {
        self.state = ClientState::Waiting;
        vec![Action::After(self.random.between_ms(50, 2000), Timer::Connect)]
    }

    /// A fast call, a slow one, and a fast one that waits for either of them.
    fn call_three_times(&mut self, now: Duration) -> Action {
        let mut commands = Vec::new();
        for millis in CALL_MILLIS {
            let id = self.remember(PendingKind::Call(millis), now);
            let rpc = RpcRequest { data: "1".into(), method: millis.to_string() };
            commands.push(Command { id, rpc: Some(rpc), ..Command::default() });
        }
        self.send(&commands)
    }

    fn remember(&mut self, kind: PendingKind, sent_at: Duration) -> u32 {
        self.next_id += 1;
        self.pending.insert(self.next_id, Pending { sent_at, kind });
        self.next_id
    }
}

/// The Unix second of a time of the simulation, for everybody with a good clock.
pub fn unix_at(now: Duration) -> u64 {
    UNIX_MS / 1000 + now.as_secs()
}

fn see(seen: Seen) -> Action {
    Action::See(Box::new(seen))
}

/// Milliseconds that the backend takes for the calls of a client.
pub const CALL_MILLIS: [u64; 3] = [100, 9000, 100];
/// What waited for a call has its effect within this time.
const AFTER_CALL: Duration = Duration::from_secs(3);
/// The id of the first command.
const CONNECT_ID: u32 = 1;
const TOKEN_EXPIRED: u32 = 109;
const EXPIRED: u16 = 3005;
