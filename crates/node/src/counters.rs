//! Counters of a hub for the metrics endpoint.
//! In: one writer, the hub's own thread → out: numbers any thread reads with relaxed order.
//! Uses: atomics. Never: locks, or labels without bound (channels and users are never counted by name).
//! Changed here: which numbers exist. Their names for Prometheus live in `metrics`.

use fanwire_auth::{Fault, TokenError};
use fanwire_policy::recovery::Unrecovered;
use fanwire_protocol::{Disconnect, ErrorCode, Request};
use fanwire_telemetry::{Counter, Histogram};

use crate::client_apps::ClientApp;
use crate::delta::Saved;

/// The numbers of one hub. Gauges go up and down, the rest only up.
#[derive(Debug, Default)]
pub struct HubCounters {
    /// Gauge: sessions, connected or not yet.
    pub sessions: Counter,
    /// Gauge: sessions whose connect succeeded.
    pub connections: Counter,
    /// Gauge: subscriptions of all sessions.
    pub subscriptions: Counter,
    /// Gauge: logs of the flight recorder, those of ended connections included.
    pub recorded_connections: Counter,
    /// Gauge: bytes of these logs.
    pub recorder_bytes: Counter,
    /// Connects that succeeded.
    pub connections_accepted: Counter,
    /// Subscriptions that succeeded, server-side ones too.
    pub subscriptions_accepted: Counter,
    /// Subscriptions that recovered.
    pub recoveries: Counter,
    /// Subscriptions that requested recovery and did not recover, in the order of [`Unrecovered::ALL`].
    pub failed_recoveries: [Counter; Unrecovered::ALL.len()],
    /// Publications sent in subscribe results.
    pub recovered_publications: Counter,
    /// Subscriptions that lost their position in the stream and were ended for it (2500, 3010).
    pub lost_positions: Counter,
    /// Broadcasts that had a subscriber here.
    pub broadcasts: Counter,
    /// Publications handed to subscribers.
    pub deliveries: Counter,
    /// Deliveries as deltas, including those in subscribe results.
    pub deltas: Counter,
    /// Bytes that deltas saved, before any compression.
    pub delta_saved_bytes: Counter,
    /// Publications not delivered because of tag filters.
    pub filtered_publications: Counter,
    /// Time from a ping to its pong.
    pub ping_pong: Histogram,
    /// Gauges: connected clients by transport, then by SDK.
    clients: [[Counter; SDKS.len() + 1]; TRANSPORTS.len() + 1],
    /// Pings sent, of both kinds.
    pub pings: Counter,
    /// Subscriptions ended by the server with an unsubscribe push.
    pub server_unsubscribes: Counter,
    /// Deliveries by number of the namespace.
    pub namespaces: Box<[DeliveryCounters]>,
    /// Commands refused by the rate of commands.
    pub limited_commands: Counter,
    /// Publishes refused by the rate of their namespace.
    pub limited_publishes: Counter,
    /// Subscribes refused by the rate of their namespace.
    pub limited_subscribes: Counter,
    commands: [Counter; CommandKind::ALL.len()],
    token_refusals: [Counter; TokenErrorKind::ALL.len()],
    /// One cell per row of the table, and one for all other codes.
    errors: [Counter; ErrorCode::ALL.len() + 1],
    /// One cell per row of the table, and one for all other codes.
    disconnects: [Counter; Disconnect::ALL.len() + 1],
}

/// Live publications of one namespace that were handed to subscribers.
#[derive(Debug, Default)]
pub struct DeliveryCounters {
    pub publications: Counter,
    /// Bytes of their payloads, before any compression.
    pub bytes: Counter,
}

impl DeliveryCounters {
    pub(crate) fn count(&self, deliveries: u64, payload_bytes: usize) {
        self.publications.add(deliveries);
        self.bytes.add(deliveries * payload_bytes as u64);
    }
}

impl HubCounters {
    /// With a cell for each namespace.
    pub(crate) fn of_namespaces(count: usize) -> Self {
        let namespaces = (0..count).map(|_| DeliveryCounters::default()).collect();
        Self { namespaces, ..Self::default() }
    }

    /// Connected clients by transport and SDK.
    pub fn clients(&self) -> impl Iterator<Item = ([&'static str; 2], u64)> {
        let name =
            |names: &[&'static str], index: usize| names.get(index).copied().unwrap_or(OTHER);
        self.clients.iter().enumerate().flat_map(move |(transport, sdks)| {
            sdks.iter().enumerate().map(move |(sdk, count)| {
                ([name(&TRANSPORTS, transport), name(&SDKS, sdk)], count.value())
            })
        })
    }

    /// The gauge of a client.
    pub(crate) fn clients_like(&self, app: &ClientApp) -> &Counter {
        let index = |names: &[&str], name: &str| names.iter().position(|known| *known == name);
        let transport = index(&TRANSPORTS, app.transport).unwrap_or(TRANSPORTS.len());
        &self.clients[transport][index(&SDKS, &app.name).unwrap_or(SDKS.len())]
    }

    /// Commands received, by kind.
    pub fn commands(&self) -> impl Iterator<Item = (CommandKind, u64)> {
        CommandKind::ALL.into_iter().zip(self.commands.iter().map(Counter::value))
    }

    /// Error replies by code; `None` counts the codes that are not in the table.
    pub fn errors(&self) -> impl Iterator<Item = (Option<u32>, u64)> {
        let codes = ErrorCode::ALL.iter().map(|row| Some(row.code)).chain([None]);
        codes.zip(self.errors.iter().map(Counter::value))
    }

    /// Clients that were disconnected by the server, by close code; `None` counts the codes that are not in the table.
    pub fn disconnects(&self) -> impl Iterator<Item = (Option<u16>, u64)> {
        let codes = Disconnect::ALL.iter().map(|row| Some(row.code)).chain([None]);
        codes.zip(self.disconnects.iter().map(Counter::value))
    }

    /// Tokens of clients that were refused, by cause.
    pub fn token_refusals(&self) -> impl Iterator<Item = (TokenErrorKind, u64)> {
        TokenErrorKind::ALL.into_iter().zip(self.token_refusals.iter().map(Counter::value))
    }

    pub(crate) fn count_token_refusal(&self, cause: TokenErrorKind) {
        let row = TokenErrorKind::ALL.into_iter().zip(&self.token_refusals);
        row.filter(|(one, _)| *one == cause).for_each(|(_, counter)| counter.add(1));
    }

    pub(crate) fn count_command(&self, kind: CommandKind) {
        self.commands[kind as usize].add(1);
    }

    /// Counts deltas, and the bytes that they saved.
    pub(crate) fn count_deltas(&self, Saved { deltas, bytes }: Saved) {
        self.deltas.add(deltas);
        self.delta_saved_bytes.add(bytes);
    }

    pub(crate) fn count_error(&self, code: u32) {
        let row = ErrorCode::ALL.iter().position(|row| row.code == code);
        self.errors[row.unwrap_or(ErrorCode::ALL.len())].add(1);
    }

    pub(crate) fn count_disconnect(&self, code: u16) {
        let row = Disconnect::ALL.iter().position(|row| row.code == code);
        self.disconnects[row.unwrap_or(Disconnect::ALL.len())].add(1);
    }
}

/// Makes the enum, its list and its names from one row per kind of command.
macro_rules! command_kinds {
    ($($kind:ident = $name:literal,)+) => {
        /// A client command, as a label of metrics.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum CommandKind { $($kind),+ }

        impl CommandKind {
            /// Every kind, in the order of the enum.
            pub const ALL: [Self; [$(Self::$kind),+].len()] = [$(Self::$kind),+];

            /// The name of the command on the wire.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),+ }
            }
        }

        impl From<&Request> for CommandKind {
            fn from(request: &Request) -> Self {
                match request { $(command_kinds!(@pattern $kind) => Self::$kind),+ }
            }
        }
    };
    (@pattern Pong) => { Request::Pong };
    (@pattern Unknown) => { Request::Unknown };
    (@pattern $kind:ident) => { Request::$kind(_) };
}

command_kinds! {
    Connect = "connect",
    Subscribe = "subscribe",
    Unsubscribe = "unsubscribe",
    Publish = "publish",
    Presence = "presence",
    PresenceStats = "presence_stats",
    History = "history",
    Rpc = "rpc",
    Send = "send",
    Refresh = "refresh",
    SubRefresh = "sub_refresh",
    Pong = "pong",
    Unknown = "unknown",
}

/// Why a token of a client was refused, as a label of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenErrorKind {
    /// Expired, or not valid yet.
    Expired,
    /// The token is for another user, client or channel.
    Foreign,
    /// The server API revoked the token, or all older ones of its user.
    Revoked,
    /// The key cannot be fetched now.
    Unavailable,
    /// No key is configured.
    Disabled,
    /// The token is invalid.
    Invalid(Fault),
}

impl TokenErrorKind {
    /// Every cause.
    pub const ALL: [Self; 13] = [
        Self::Expired,
        Self::Foreign,
        Self::Revoked,
        Self::Unavailable,
        Self::Disabled,
        Self::Invalid(Fault::Format),
        Self::Invalid(Fault::Extension),
        Self::Invalid(Fault::Algorithm),
        Self::Invalid(Fault::Key),
        Self::Invalid(Fault::Signature),
        Self::Invalid(Fault::Audience),
        Self::Invalid(Fault::Issuer),
        Self::Invalid(Fault::Claims),
    ];

    /// The label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Foreign => "foreign",
            Self::Revoked => "revoked",
            Self::Unavailable => "unavailable",
            Self::Disabled => "disabled",
            Self::Invalid(fault) => fault.name(),
        }
    }
}

impl From<TokenError> for TokenErrorKind {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Expired => Self::Expired,
            TokenError::Pending | TokenError::Unavailable => Self::Unavailable,
            TokenError::Disabled => Self::Disabled,
            TokenError::Invalid(fault) => Self::Invalid(fault),
        }
    }
}

/// Transports with a label of their own (protocol §24).
pub(crate) const TRANSPORTS: [&str; 7] =
    ["websocket", "http_stream", "sse", "uni_websocket", "uni_http_stream", "uni_sse", "uni_grpc"];
/// The names that SDKs send, which have a label of their own. Other names are chosen by clients.
const SDKS: [&str; 7] = ["js", "go", "dart", "swift", "java", "python", "csharp"];
/// The label of all others, as Centrifugo calls it.
const OTHER: &str = "unregistered";

#[cfg(test)]
mod tests;
