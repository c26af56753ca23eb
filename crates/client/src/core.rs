//! The client as a state machine: a connection, its calls, its subscriptions (client protocol §5–§11, §15, §21, §22).
//! Calls of the application, messages of the server, tokens and the time → [`Output`]s: what to send, open, close, ask and report.
//! Uses messages of the protocol; never sockets, a clock or tokio: time is a parameter, chance a seed.
//! Changed here: the states of a connection. Subscriptions are `subscriptions` and `server_side`, ids of commands `commands`.

mod backoff;
mod commands;
mod orders;
mod server_side;
mod subscriptions;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use fanwire_protocol::{
    Command, ConnectRequest, ConnectResult, Disconnect, Encoding, ErrorCode, MessageReplies,
    ProtocolError, RefreshRequest, Reply,
};

use self::commands::Purpose;
pub(crate) use self::orders::Output;
use self::orders::{Orders, Refresh};
use self::server_side::ServerSideSubscription;
use self::subscriptions::Subscriptions;
use crate::{ClientConfig, ClientError, ClientEvent, GetTokenError, SubscriptionConfig, code};

/// The state of one client.
pub(crate) struct ClientCore {
    config: ClientConfig,
    phase: ConnectPhase,
    /// Connection token; "" for none yet.
    token: String,
    refresh: Refresh,
    /// Failed attempts to connect since the last connection.
    attempts: u32,
    orders: Orders,
    /// Calls that wait for the connection, the oldest first.
    waiting: VecDeque<WaitingCall>,
    subscriptions: Subscriptions,
    server_side: BTreeMap<String, ServerSideSubscription>,
}

/// A state of the connection. Outside of `Disconnected` and `Connected` the client is connecting.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ConnectPhase {
    Disconnected,
    /// The next attempt is made at this time.
    Delayed {
        until: Instant,
    },
    /// The application was asked for a token.
    Token {
        request: u64,
    },
    /// The transport opens.
    Opening {
        deadline: Instant,
    },
    /// The connect command was sent.
    Handshake,
    Connected(Pings),
}

/// Pings of the server.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pings {
    /// Time that may pass without a message; `None`: for ever.
    patience: Option<Duration>,
    deadline: Option<Instant>,
    needs_pong: bool,
}

/// A call that waits for the connection.
struct WaitingCall {
    call: u64,
    command: Command,
    deadline: Instant,
}

impl ClientCore {
    /// A disconnected client.
    pub(crate) fn new(config: ClientConfig, seed: u64, now: Instant) -> Self {
        Self {
            phase: ConnectPhase::Disconnected,
            token: config.token.clone(),
            refresh: Refresh::None,
            attempts: 0,
            orders: Orders::new(&config, seed, now),
            waiting: VecDeque::new(),
            subscriptions: Subscriptions::new(&config),
            server_side: BTreeMap::new(),
            config,
        }
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.config.encoding
    }

    /// Begins to connect, if disconnected.
    pub(crate) fn connect(&mut self, now: Instant) {
        self.orders.now = now;
        if self.phase != ConnectPhase::Disconnected {
            return;
        }
        self.attempts = 0;
        self.connecting(code::CALLED, "connect called");
        self.attempt();
    }

    /// Ends the connection and does not connect again.
    pub(crate) fn disconnect(&mut self) {
        self.end(code::CALLED, "disconnect called");
    }

    /// Sends a command and reports its reply under the number `call`; while connecting, it waits.
    pub(crate) fn call(&mut self, call: u64, command: Command, now: Instant) {
        self.orders.now = now;
        match self.phase {
            ConnectPhase::Disconnected => self.orders.finish(call, Err(ClientError::Disconnected)),
            ConnectPhase::Connected(_) => self.submit(call, command),
            _ => {
                let deadline = self.orders.after(self.config.timeout);
                self.waiting.push_back(WaitingCall { call, command, deadline });
            }
        }
    }

    /// Adds a subscription that is not subscribed yet. A channel has one; the caller checks that.
    pub(crate) fn add_subscription(&mut self, channel: String, config: SubscriptionConfig) {
        self.subscriptions.add(channel, config);
    }

    /// Ends a subscription and forgets its position.
    pub(crate) fn remove_subscription(&mut self, channel: &str, now: Instant) {
        self.orders.now = now;
        self.subscriptions.remove(channel, &mut self.orders);
    }

    /// Subscribes, if unsubscribed.
    pub(crate) fn subscribe(&mut self, channel: &str, now: Instant) {
        self.orders.now = now;
        self.subscriptions.subscribe(channel, &mut self.orders);
    }

    /// Unsubscribes. The position stays, so a later subscribe recovers.
    pub(crate) fn unsubscribe(&mut self, channel: &str, now: Instant) {
        self.orders.now = now;
        self.subscriptions.unsubscribe(channel, &mut self.orders);
    }

    /// Keeps commands back until it is switched off, so that they go in one message.
    pub(crate) fn set_batching(&mut self, is_on: bool) {
        self.orders.commands.set_batching(is_on);
    }

    /// The transport is open.
    pub(crate) fn opened(&mut self, now: Instant) {
        self.orders.now = now;
        if !matches!(self.phase, ConnectPhase::Opening { .. }) {
            return;
        }
        self.phase = ConnectPhase::Handshake;
        let connect = ConnectRequest {
            token: self.token.clone(),
            data: self.config.data.clone(),
            name: self.config.name.clone(),
            version: self.config.version.clone(),
            subs: self.server_side_positions(),
            ..ConnectRequest::default()
        };
        let command = Command { connect: Some(connect), ..Command::default() };
        if self.orders.send(command, Purpose::Connect).is_err() {
            self.end(code::BAD_PROTOCOL, "the data of the connect is not JSON");
        }
    }

    /// The transport could not be opened.
    pub(crate) fn failed(&mut self, error: ClientError, now: Instant) {
        self.orders.now = now;
        if matches!(self.phase, ConnectPhase::Opening { .. }) {
            self.orders.event(ClientEvent::Error(error));
            self.reconnect(code::TRANSPORT_CLOSED, "transport closed");
        }
    }

    /// The transport was closed by the server with a code, or is lost.
    pub(crate) fn closed(&mut self, close_code: Option<u16>, reason: &str, now: Instant) {
        self.orders.now = now;
        if self.phase == ConnectPhase::Disconnected {
            return;
        }
        let Some(close_code) = close_code.filter(|code| *code >= 3000 || *code == TOO_BIG) else {
            return self.reconnect(code::TRANSPORT_CLOSED, "transport closed");
        };
        if close_code == TOO_BIG {
            return self.end(code::MESSAGE_SIZE_LIMIT, "message size limit");
        }
        if close_code == Disconnect::STATE_INVALIDATED.code {
            self.invalidate_state();
        }
        let disconnect = Disconnect { code: close_code, reason: reason.to_owned().into() };
        if disconnect.reconnects() {
            self.reconnect(close_code.into(), reason);
        } else {
            self.end(close_code.into(), reason);
        }
    }

    /// One message of the server, which took `wire_bytes` on the wire.
    pub(crate) fn received(&mut self, message: &[u8], wire_bytes: usize, now: Instant) {
        self.orders.now = now;
        if let ConnectPhase::Connected(pings) = &mut self.phase {
            pings.deadline = pings.patience.map(|patience| self.orders.after(patience));
        }
        let mut replies = MessageReplies::new(self.encoding(), message);
        let mut bytes_left = message.len();
        while matches!(self.phase, ConnectPhase::Handshake | ConnectPhase::Connected(_)) {
            let Some(reply) = replies.next() else { return };
            let share = (bytes_left - replies.bytes_left()) * wire_bytes / message.len().max(1);
            bytes_left = replies.bytes_left();
            match reply {
                Ok(reply) => self.reply(reply, share),
                Err(error) => {
                    self.orders.event(ClientEvent::Error(ClientError::Protocol(error.to_string())));
                    self.end(code::BAD_PROTOCOL, "bad protocol");
                }
            }
        }
    }

    /// The application's answer to [`Output::GetToken`].
    pub(crate) fn token(
        &mut self,
        request: u64,
        result: Result<String, GetTokenError>,
        now: Instant,
    ) {
        self.orders.now = now;
        if self.phase == (ConnectPhase::Token { request }) {
            return self.first_token(result);
        }
        if self.refresh == (Refresh::Token { request }) {
            return self.next_token(result);
        }
        self.subscriptions.token(request, result, &mut self.orders);
    }

    /// Does what is due at this time.
    pub(crate) fn handle_time(&mut self, now: Instant) {
        self.orders.now = now;
        match self.phase {
            ConnectPhase::Delayed { until } if until <= now => self.attempt(),
            ConnectPhase::Opening { deadline } if deadline <= now => {
                self.failed(ClientError::Timeout, now);
            }
            ConnectPhase::Connected(Pings { deadline: Some(deadline), .. }) if deadline <= now => {
                self.reconnect(code::NO_PING, "no ping");
            }
            _ => {}
        }
        if let Refresh::At(at) = self.refresh
            && at <= now
        {
            let request = self.orders.ask_for_token(None);
            self.refresh = Refresh::Token { request };
        }
        while let Some(purpose) = self.orders.commands.take_expired(now) {
            self.reply_is_late(purpose);
        }
        while let Some(call) = self.waiting.pop_front_if(|call| call.deadline <= now) {
            self.orders.finish(call.call, Err(ClientError::Timeout));
        }
        if self.subscriptions.due().is_some_and(|due| due <= now) {
            self.subscriptions.handle_time(&mut self.orders);
        }
    }

    /// The next time at which `handle_time` has something to do.
    pub(crate) fn poll_deadline(&self) -> Option<Instant> {
        let of_phase = match self.phase {
            ConnectPhase::Delayed { until } => Some(until),
            ConnectPhase::Opening { deadline } => Some(deadline),
            ConnectPhase::Connected(pings) => pings.deadline,
            ConnectPhase::Disconnected | ConnectPhase::Token { .. } | ConnectPhase::Handshake => {
                None
            }
        };
        let of_refresh = match self.refresh {
            Refresh::At(at) => Some(at),
            _ => None,
        };
        let of_waiting = self.waiting.front().map(|call| call.deadline);
        let all = [
            of_phase,
            of_refresh,
            of_waiting,
            self.orders.commands.deadline(),
            self.subscriptions.due(),
        ];
        all.into_iter().flatten().min()
    }

    /// The next order to the shell. Commands of all inputs since the last `None` go in one message.
    pub(crate) fn poll_output(&mut self) -> Option<Output> {
        self.orders.take()
    }

    /// Begins an attempt: with a token, if there is a callback for it.
    fn attempt(&mut self) {
        if self.token.is_empty() && self.config.get_token.is_some() {
            let request = self.orders.ask_for_token(None);
            self.phase = ConnectPhase::Token { request };
        } else {
            self.phase = ConnectPhase::Opening { deadline: self.orders.after(self.config.timeout) };
            self.orders.push(Output::Open);
        }
    }

    fn first_token(&mut self, result: Result<String, GetTokenError>) {
        match result {
            Ok(token) if !token.is_empty() => {
                self.token = token;
                self.attempt();
            }
            Ok(_) | Err(GetTokenError::Unauthorized) => {
                self.end(code::UNAUTHORIZED, "unauthorized");
            }
            Err(error) => {
                self.orders.event(ClientEvent::Error(ClientError::Token(error.to_string())));
                self.reconnect(code::TRANSPORT_CLOSED, "no token");
            }
        }
    }

    fn next_token(&mut self, result: Result<String, GetTokenError>) {
        match result {
            Ok(token) if !token.is_empty() => {
                self.token.clone_from(&token);
                let refresh = Some(RefreshRequest { token });
                self.refresh = Refresh::Sent;
                let command = Command { refresh, ..Command::default() };
                self.orders.send(command, Purpose::Refresh).expect("no payload inside");
            }
            Ok(_) | Err(GetTokenError::Unauthorized) => {
                self.end(code::UNAUTHORIZED, "unauthorized");
            }
            Err(error) => {
                self.orders.event(ClientEvent::Error(ClientError::Token(error.to_string())));
                self.refresh = Refresh::again(self.orders.now);
            }
        }
    }

    fn reply(&mut self, mut reply: Reply, wire_bytes: usize) {
        if reply.id == 0 {
            return match reply.push.take() {
                Some(push) => self.push(push, wire_bytes),
                None => self.ping(),
            };
        }
        let Some(purpose) = self.orders.commands.take(reply.id) else { return };
        let error = reply.error.take();
        match purpose {
            Purpose::Connect => match error {
                None => self.connected(reply.connect.unwrap_or_default()),
                Some(error) => self.connect_failed(error),
            },
            Purpose::Subscribe(attempt) => match error {
                None => {
                    let result = reply.subscribe.unwrap_or_default();
                    self.subscriptions.subscribed(&attempt, result, wire_bytes, &mut self.orders);
                }
                Some(error) => {
                    self.subscriptions.subscribe_failed(&attempt, error, &mut self.orders)
                }
            },
            Purpose::Unsubscribe if error.is_some() => {
                self.reconnect(code::UNSUBSCRIBE_ERROR, "unsubscribe error");
            }
            Purpose::Unsubscribe => {}
            Purpose::Refresh => match error {
                None => {
                    let result = reply.refresh.unwrap_or_default();
                    self.refresh = self.refresh_after(result.expires, result.ttl);
                }
                Some(error) => self.refresh_failed(error),
            },
            Purpose::SubRefresh(channel) => {
                self.subscriptions.sub_refreshed(
                    &channel,
                    error.map_or(Ok(reply.sub_refresh), Err),
                    &mut self.orders,
                );
            }
            Purpose::Call(call) => {
                let result =
                    error.map_or(Ok(Box::new(reply)), |error| Err(ClientError::Server(error)));
                self.orders.finish(call, result);
            }
        }
    }

    fn reply_is_late(&mut self, purpose: Purpose) {
        match purpose {
            Purpose::Connect => {
                self.orders.event(ClientEvent::Error(ClientError::Timeout));
                self.reconnect(code::TRANSPORT_CLOSED, "no reply to connect");
            }
            Purpose::Subscribe(_) => {
                self.reconnect(code::SUBSCRIBE_TIMEOUT, "subscribe timeout");
            }
            Purpose::Unsubscribe => {
                self.reconnect(code::UNSUBSCRIBE_ERROR, "unsubscribe error");
            }
            Purpose::Refresh => self.refresh = Refresh::again(self.orders.now),
            Purpose::SubRefresh(channel) => {
                self.subscriptions.sub_refresh_later(&channel, &mut self.orders)
            }
            Purpose::Call(call) => self.orders.finish(call, Err(ClientError::Timeout)),
        }
    }

    fn ping(&mut self) {
        if let ConnectPhase::Connected(Pings { needs_pong: true, .. }) = self.phase {
            self.orders.commands.push_without_reply(Command::default()).expect("no payload inside");
        }
    }

    fn connected(&mut self, result: ConnectResult) {
        self.attempts = 0;
        let patience = (result.ping > 0).then(|| {
            Duration::from_secs(result.ping.into()).saturating_add(self.config.ping_delay_max)
        });
        let deadline = patience.map(|patience| self.orders.after(patience));
        self.phase = ConnectPhase::Connected(Pings { patience, deadline, needs_pong: result.pong });
        self.refresh = self.refresh_after(result.expires, result.ttl);
        let ConnectResult { client, version, data, subs, .. } = result;
        self.orders.event(ClientEvent::Connected { client, version, data });
        self.server_side_subscribed(subs);
        for call in std::mem::take(&mut self.waiting) {
            self.submit(call.call, call.command);
        }
        self.subscriptions.connected(&mut self.orders);
    }

    fn connect_failed(&mut self, error: ProtocolError) {
        let wants_token =
            error.code == ErrorCode::TOKEN_EXPIRED.code && self.config.get_token.is_some();
        if !wants_token && !is_temporary(&error) {
            return self.end(error.code, &error.message);
        }
        if wants_token {
            self.token.clear();
        }
        self.orders.event(ClientEvent::Error(ClientError::Server(error)));
        self.reconnect(code::TRANSPORT_CLOSED, "connect error");
    }

    fn refresh_failed(&mut self, error: ProtocolError) {
        if is_temporary(&error) {
            self.orders.event(ClientEvent::Error(ClientError::Server(error)));
            self.refresh = Refresh::again(self.orders.now);
        } else {
            self.end(error.code, &error.message);
        }
    }

    /// The renewal of a connection token that expires in `ttl` seconds.
    fn refresh_after(&self, expires: bool, ttl: u32) -> Refresh {
        if expires && self.config.get_token.is_some() {
            Refresh::before(ttl, self.orders.now)
        } else {
            Refresh::None
        }
    }

    /// Loses the connection and tries again after a delay.
    fn reconnect(&mut self, code: u32, reason: &str) {
        let was_connected = matches!(self.phase, ConnectPhase::Connected(_));
        let config = &self.config;
        let min = config.reconnect_delay_min;
        let max = config.reconnect_delay_max;
        let until = self.orders.next_attempt(self.attempts, min, max);
        self.attempts = self.attempts.saturating_add(1);
        self.lose_transport(ConnectPhase::Delayed { until });
        if was_connected {
            self.connecting(code, reason);
        }
        self.subscriptions.connection_lost(&mut self.orders);
    }

    fn end(&mut self, code: u32, reason: &str) {
        if self.phase == ConnectPhase::Disconnected {
            return;
        }
        self.lose_transport(ConnectPhase::Disconnected);
        for call in std::mem::take(&mut self.waiting) {
            self.orders.finish(call.call, Err(ClientError::Disconnected));
        }
        self.orders.event(ClientEvent::Disconnected { code, reason: reason.to_owned() });
        self.subscriptions.connection_lost(&mut self.orders);
    }

    fn lose_transport(&mut self, next: ConnectPhase) {
        let is_transport_there = matches!(
            self.phase,
            ConnectPhase::Opening { .. } | ConnectPhase::Handshake | ConnectPhase::Connected(_)
        );
        self.phase = next;
        self.refresh = Refresh::None;
        if is_transport_there {
            self.orders.push(Output::Close);
        }
        for purpose in self.orders.commands.clear() {
            if let Purpose::Call(call) = purpose {
                self.orders.finish(call, Err(ClientError::ConnectionLost));
            }
        }
    }

    fn submit(&mut self, call: u64, command: Command) {
        let is_send = command.send.is_some();
        let pushed = if is_send {
            self.orders.commands.push_without_reply(command)
        } else {
            self.orders.send(command, Purpose::Call(call))
        };
        match pushed {
            Err(_) => self.orders.finish(call, Err(ClientError::NotJson)),
            Ok(()) if is_send => self.orders.finish(call, Ok(Box::default())),
            Ok(()) => {}
        }
    }

    fn connecting(&mut self, code: u32, reason: &str) {
        self.orders.event(ClientEvent::Connecting { code, reason: reason.to_owned() });
    }
}

/// Whether the client tries again after this error: codes below 100 are those of SDKs.
fn is_temporary(error: &ProtocolError) -> bool {
    error.temporary || error.code < 100
}

/// Close code of RFC 6455 §7.4.1 for a message that is too big.
const TOO_BIG: u16 = 1009;

#[cfg(test)]
mod tests;
