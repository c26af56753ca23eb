//! Events of sessions, as the flight recorder of their shard keeps them.
//! In: what happens to a session, `now` → out: stored events; a text for the log; logs for the server API and for files.
//! Uses: the recorder, the session, Unix time of the node. Never: decides, sends.
//! Changed here: what is recorded. How it is stored is in the crate `recorder`.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use fanwire_policy::DEBUG_FOR_TARGET;
use fanwire_policy::recovery::Unrecovered;
use fanwire_protocol::{Disconnect, UnsubscribeCode};
use fanwire_recorder::{
    ConnectionFacts, FlightEvent, FlightEventKind, FlightLog, StoredEvent, log_file,
};
use fanwire_telemetry::excerpt;
use prost::Message as _;
use tracing::field::display;

use crate::broadcast::Broadcast;
use crate::index::SubscriptionKey;
use crate::node::questions::{ConnectionLogRecord, NodeLogs};
use crate::node::{Node, RefusalLevel};
use crate::refusal::{Refusal, cause_of_disconnect};
use crate::session::{ConnectionKey, Session};
use crate::session_table::SessionTable;

/// Begins the log of a session whose user is known.
pub(crate) fn begin(
    node: &Node,
    session_table: &mut SessionTable,
    key: ConnectionKey,
    now: Instant,
) {
    let bytes_max = node.diagnostics().recorder_bytes_max();
    let Some(session) = session_table.session(key).filter(|_| bytes_max > 0) else { return };
    let facts = facts(session, None);
    session_table.recorder.begin(key.index, facts, node.clock().unix_ms(now), bytes_max);
    count(session_table);
}

/// A connect that is refused.
pub(crate) struct ConnectAttempt<'a> {
    /// Index of the connection.
    pub(crate) index: u32,
    /// The user that its token names; "" if it names none.
    pub(crate) claimed_user: &'a str,
    pub(crate) now: Instant,
}

/// Begins the log of a client whose connect is refused before its user is known. Returns whether it began one.
pub(crate) fn begin_refused(
    node: &Node,
    session_table: &mut SessionTable,
    ConnectAttempt { index, claimed_user, now }: ConnectAttempt<'_>,
) -> bool {
    let bytes_max = node.diagnostics().recorder_bytes_max();
    if bytes_max == 0 || session_table.recorder.log(index).is_some() {
        return false;
    }
    let Some(session) = session_table.at(index) else { return false };
    let mut facts = facts(session, None);
    if facts.user.is_empty() {
        facts.user = claimed_user.into();
    }
    let now_ms = node.clock().unix_ms(now);
    session_table.recorder.begin_refused(index, facts, now_ms, bytes_max);
    count(session_table);
    true
}

/// Sets the gauges of the recorder.
fn count(session_table: &SessionTable) {
    let SessionTable { recorder, counters, .. } = session_table;
    let (logs, _) = recorder.counts();
    counters.recorded_connections.set(logs as u64);
    counters.recorder_bytes.set(recorder.bytes() as u64);
}

/// Keeps the log of a session on the debug list, which its `address` may be, too.
pub(crate) fn keep_listed(
    node: &Node,
    session_table: &mut SessionTable,
    key: ConnectionKey,
    address: IpAddr,
    now: Instant,
) {
    let Some(session) = session_table.session(key) else { return };
    let list = node.diagnostics().debug_list();
    if list.is_used() && list.lists(&session.user, "", Some(address)) {
        let id = session.id;
        let user = excerpt(&session.user);
        let facts = facts(session, Some(address));
        tracing::debug!(target: DEBUG_FOR_TARGET, %id, user, %address, "address");
        session_table.recorder.keep(key.index, || facts, node.clock().unix_ms(now));
    }
}

/// A session is connected.
pub(crate) fn connected(node: &Node, session_table: &mut SessionTable, index: u32, now: Instant) {
    let Some(session) = session_table.at(index) else { return };
    let app = session.app.clone();
    let connect = FlightEvent::new(FlightEventKind::Connect, &app.name);
    let connect = FlightEvent { detail: &app.version, ..connect };
    store(node, session_table, index, connect, now);
}

/// A recovery that a subscribe requested.
pub(crate) struct RecoveryEvent {
    pub(crate) outcome: Result<(), Unrecovered>,
    /// The offset that the client has.
    pub(crate) from: u64,
    /// The offset of the channel.
    pub(crate) to: u64,
}

/// A session is subscribed.
pub(crate) fn subscribed(
    node: &Node,
    session_table: &mut SessionTable,
    key: SubscriptionKey<'_>,
    recovery: Option<RecoveryEvent>,
    now: Instant,
) {
    let event = match recovery {
        None => FlightEvent::new(FlightEventKind::Subscribe, key.channel),
        Some(RecoveryEvent { outcome: Ok(()), from, to }) => {
            let event = FlightEvent::new(FlightEventKind::Recover, key.channel);
            FlightEvent { numbers: [from, to], ..event }
        }
        Some(RecoveryEvent { outcome: Err(cause), from, to }) => {
            let event = FlightEvent::new(FlightEventKind::Unrecovered, key.channel);
            FlightEvent { numbers: [from, to], detail: cause.name(), ..event }
        }
    };
    store(node, session_table, key.connection, event, now);
}

/// A subscription ended, by the client or with a code of the server.
pub(crate) fn unsubscribed(
    node: &Node,
    session_table: &mut SessionTable,
    key: SubscriptionKey<'_>,
    code: Option<UnsubscribeCode>,
    now: Instant,
) {
    let event = FlightEvent::new(FlightEventKind::Unsubscribe, key.channel);
    let code = code.map_or(0, |code| code.code);
    store(node, session_table, key.connection, FlightEvent { code, ..event }, now);
}

/// A command of a session was refused.
pub(crate) fn refused(
    node: &Node,
    session_table: &mut SessionTable,
    index: u32,
    refused: &Refusal,
    now: Instant,
) {
    let Refusal { code, command, cause, error, .. } = refused;
    let text = if cause.is_empty() { error } else { cause };
    let event = FlightEvent::new(FlightEventKind::Refuse, text);
    let event = FlightEvent { code: *code, detail: command, ..event };
    store(node, session_table, index, event, now);
}

/// A pong arrived. The time of its ping follows from that of the next one.
pub(crate) fn pong(
    node: &Node,
    session_table: &mut SessionTable,
    key: ConnectionKey,
    now: Instant,
) {
    let Some(session) = session_table.session(key) else { return };
    let interval = node.options().client.ping_interval;
    let next_ping = node.clock().instant(session.beat_at);
    let pinged_at = next_ping.and_then(|next_ping| next_ping.checked_sub(interval));
    let Some(pinged_at) = pinged_at else { return };
    let round_trip = now.saturating_duration_since(pinged_at);
    session_table.counters.ping_pong.observe(round_trip);
    let round_trip = round_trip.as_millis().try_into().unwrap_or(u32::MAX);
    session_table.recorder.ping(key.index, round_trip, node.clock().unix_ms(now));
}

/// A session ends.
pub(crate) fn closed(
    node: &Node,
    session_table: &mut SessionTable,
    key: ConnectionKey,
    disconnect: &Disconnect,
    now: Instant,
) {
    if session_table.session(key).is_none() {
        return;
    }
    let cause = cause_of_disconnect(disconnect.code);
    let text = if cause.is_empty() { &*disconnect.reason } else { cause };
    let event = FlightEvent::new(FlightEventKind::Close, text);
    let event = FlightEvent { code: disconnect.code.into(), ..event };
    debug(node, session_table, key.index, &event, now);
    let log = session_table.recorder.end(key.index, event, node.clock().unix_ms(now));
    // Anybody can cause any number of refused connects, which have no client id; log lines have their users and addresses.
    let log = log.filter(|log| log.facts().client != 0);
    if let Some((log, keep)) = log.zip(node.diagnostics().keep_closed_log.as_ref()) {
        keep(encode_closed(log, &node.options().name));
    }
    count(session_table);
}

/// Whether commands and events of some connection are logged.
pub(crate) fn logs_commands(node: &Node) -> bool {
    node.diagnostics().debug_list().is_used() || logs_all()
}

/// Whether those of all connections are: at `log.level: debug`.
fn logs_all() -> bool {
    RefusalLevel::of_debug().is_some()
}

/// A command of a client.
pub(crate) struct NamedCommand<'a> {
    pub(crate) command: &'a str,
    /// "" if it has none.
    pub(crate) channel: &'a str,
}

/// A command of a client begins. It is logged and not recorded.
pub(crate) fn command(
    node: &Node,
    session_table: &SessionTable,
    index: u32,
    named: &NamedCommand<'_>,
) {
    let NamedCommand { command, channel } = *named;
    let list = node.diagnostics().debug_list();
    let Some(session) = session_table.at(index) else { return };
    let address = session_table.recorder.log(index).and_then(|log| log.facts().address);
    if logs_all() || list.lists(&session.user, channel, address) {
        let Session { id, user, .. } = session;
        let user = excerpt(user);
        let channel = excerpt(channel);
        let address = address.map(display);
        tracing::debug!(target: DEBUG_FOR_TARGET, %id, user, address, command, channel, "command");
    }
}

/// Stores an event.
fn store(
    node: &Node,
    session_table: &mut SessionTable,
    index: u32,
    event: FlightEvent<'_>,
    now: Instant,
) {
    debug(node, session_table, index, &event, now);
    session_table.recorder.record(index, event, node.clock().unix_ms(now));
    count(session_table);
}

/// Logs an event of a listed subject, and keeps the log of its connection.
fn debug(
    node: &Node,
    session_table: &mut SessionTable,
    index: u32,
    event: &FlightEvent<'_>,
    now: Instant,
) {
    let list = node.diagnostics().debug_list();
    if !logs_commands(node) {
        return;
    }
    let Some(session) = session_table.at(index) else { return };
    let address = session_table.recorder.log(index).and_then(|log| log.facts().address);
    let channel = Words::of(event).channel.unwrap_or_default();
    let is_listed = list.lists(&session.user, channel, address);
    if !is_listed && !logs_all() {
        return;
    }
    let id = session.id;
    let user = excerpt(&session.user);
    let facts = facts(session, address);
    let text = excerpt(event.text);
    let detail = excerpt(event.detail);
    let printable = FlightEvent { text: &text, detail: &detail, ..*event };
    let Words { channel, command, cause, app, version, from, to, queued_bytes, ms } =
        Words::of(&printable);
    let code = Some(event.code).filter(|code| *code > 0);
    let address = address.map(display);
    tracing::debug!(
        target: DEBUG_FOR_TARGET,
        %id, user, address, channel, command, code, cause, app, version, from, to, ms, queued_bytes, "{}", event.kind.name()
    );
    if is_listed {
        session_table.recorder.keep(index, || facts, node.clock().unix_ms(now));
    }
}

/// The fields of an event by their names in the server API.
#[derive(Default)]
struct Words<'a> {
    channel: Option<&'a str>,
    command: Option<&'a str>,
    cause: Option<&'a str>,
    app: Option<&'a str>,
    version: Option<&'a str>,
    from: Option<u64>,
    to: Option<u64>,
    ms: Option<u64>,
    queued_bytes: Option<u64>,
}

impl<'a> Words<'a> {
    fn of(event: &FlightEvent<'a>) -> Self {
        let FlightEvent { kind, numbers: [first, second], text, detail, .. } = *event;
        let text = Some(text);
        let detail = Some(detail).filter(|detail| !detail.is_empty());
        let first = Some(first);
        let second = Some(second);
        let none = Self::default();
        match kind {
            FlightEventKind::Connect => Self { app: text, version: detail, ..none },
            FlightEventKind::Subscribe | FlightEventKind::Unsubscribe => {
                Self { channel: text, ..none }
            }
            FlightEventKind::Recover | FlightEventKind::Unrecovered => {
                Self { channel: text, cause: detail, from: first, to: second, ..none }
            }
            FlightEventKind::Refuse => Self { cause: text, command: detail, ..none },
            FlightEventKind::Ping => Self { ms: first, ..none },
            FlightEventKind::Stall => Self { ms: first, queued_bytes: second, ..none },
            FlightEventKind::Close => Self { cause: text, ..none },
        }
    }
}

/// Logs what becomes of a broadcast for each listed subscriber, and for a listed channel how many subscribers this shard has.
pub(crate) fn deliveries(node: &Node, session_table: &SessionTable, broadcast: &Broadcast) {
    let list = node.diagnostics().debug_list();
    if !list.is_used() {
        return;
    }
    let subscribers = session_table.subscribers();
    let Some(index) = subscribers.find(broadcast.channel()) else { return };
    let all = &subscribers.channel_subscribers(index).list;
    let channel = excerpt(broadcast.channel());
    let offset = broadcast.publication().offset;
    if list.lists("", broadcast.channel(), None) {
        let subscribers = all.len();
        tracing::debug!(target: DEBUG_FOR_TARGET, channel, offset, subscribers, "delivery");
    }
    for subscriber in all {
        let connection = subscriber.connection;
        let Some(session) = session_table.at(connection) else { continue };
        let address = session_table.recorder.log(connection).and_then(|log| log.facts().address);
        if !list.lists(&session.user, "", address) {
            continue;
        }
        let id = session.id;
        let user = excerpt(&session.user);
        let address = address.map(display);
        let subscription = session.subscription(subscriber.subscription());
        let outcome = if broadcast.excluded() == Some(session.client_id()) {
            "excluded"
        } else if !subscription.wants(&broadcast.publication().tags) {
            "filtered"
        } else {
            "delivered"
        };
        tracing::debug!(
            target: DEBUG_FOR_TARGET,
            %id, user, address, channel, offset, outcome, "delivery"
        );
    }
}

fn facts(session: &Session, address: Option<IpAddr>) -> ConnectionFacts {
    ConnectionFacts {
        client: session.id.as_u128(),
        user: session.user.clone(),
        address,
        transport: session.app.transport,
    }
}

/// The last events of a connection that ends with a code whose cause is the client or its network, for the log.
pub(crate) fn summary(session_table: &SessionTable, index: u32, code: u16) -> Option<String> {
    if !SUMMARISED.contains(&code) {
        return None;
    }
    let log = session_table.recorder.log(index)?;
    let events: Vec<_> = log.events().collect();
    // Writing to a String does not fail.
    let mut text = String::new();
    for stored in &events[events.len().saturating_sub(SUMMARY_EVENTS)..] {
        let StoredEvent { after_ms, count, event } = *stored;
        let FlightEvent { kind, code, numbers: [first, second], text: about, detail } = event;
        let after = Duration::from_millis(after_ms).as_secs_f64();
        let separator = if text.is_empty() { "" } else { "; " };
        let _ = write!(text, "{separator}+{after:.1}s {}", kind.name());
        let _ = match kind {
            FlightEventKind::Recover | FlightEventKind::Unrecovered => {
                write!(text, " {} {first}–{second} {detail}", excerpt(about))
            }
            FlightEventKind::Ping => write!(text, " {first} ms"),
            FlightEventKind::Stall => write!(text, " {first} ms, {second} bytes queued"),
            FlightEventKind::Refuse => write!(text, " {detail} {code}"),
            _ => write!(text, " {}", excerpt(about)),
        };
        let _ = if count > 1 { write!(text, " ({count} times)") } else { Ok(()) };
    }
    if let Some((since_ms, queued_bytes)) = log.stall() {
        let after = Duration::from_millis(since_ms).as_secs_f64();
        let _ = write!(text, "; +{after:.1}s stall until now, {queued_bytes} bytes queued");
    }
    Some(text)
}

/// The log of a connection that ended and the name of its node, as bytes for a file.
fn encode_closed(log: &FlightLog, node: &str) -> Vec<u8> {
    let logs = NodeLogs { node: node.to_owned(), logs: vec![ConnectionLogRecord::of(log)] };
    log_file::encode(&logs.encode_to_vec())
}

/// Passes the logs in the bytes of a file to `each`, with the names of their nodes. Returns how many bytes are damaged.
pub fn read_closed_logs(file: &[u8], mut each: impl FnMut(&str, ConnectionLogRecord)) -> usize {
    log_file::read(file, |record| {
        // With its checksum a record is what some version has written.
        let NodeLogs { node, logs } = NodeLogs::decode(record).unwrap_or_default();
        logs.into_iter().for_each(|log| each(&node, log));
    })
}

/// Codes whose log line has the last events: slow, lost position, no pong.
const SUMMARISED: [u16; 3] = [3008, 3010, 3012];
const SUMMARY_EVENTS: usize = 8;

#[cfg(test)]
mod tests;
