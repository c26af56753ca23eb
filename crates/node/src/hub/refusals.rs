//! Log lines of a hub: refused commands and connections that the server ends, with client, user, address and cause.
//! In: a refusal or a close code, before the session is gone → out: a line at level info or debug.
//! Uses: the session, the throttle of the node. Never: a token, payloads, texts from outside that are not cut.
//! Changed here: the fields of these lines. Causes are in `refusal.rs`.

use std::net::SocketAddr;

use fanwire_protocol::Disconnect;
use fanwire_telemetry::{RefusalEvent, excerpt};

use super::Hub;
use crate::flight_log;
use crate::node::RefusalLevel;
use crate::outbox::Outbox;
use crate::refusal::{Refusal, cause_of_disconnect};
use crate::session::ConnectionKey;
use crate::session_table::SessionTable;

/// Writes one event with the same fields at level info, with the count of its kind, or at level debug.
macro_rules! at_level {
    ($count:expr, $($fields:tt)+) => {
        match $count {
            Some(count) => tracing::info!(count, $($fields)+),
            None => tracing::debug!($($fields)+),
        }
    };
}

impl Hub {
    /// Logs a refused command. Call before the session ends.
    pub(super) fn log_command(&self, key: ConnectionKey, refused: &Refusal, out: &impl Outbox) {
        let session_table = &self.session_table;
        let Refusal { command, code, error, cause, claimed_user, .. } = refused;
        let (client, user) = names(session_table, key);
        let user = user.or_else(|| Some(claimed_user.clone()).filter(|user| !user.is_empty()));
        let cause = excerpt(cause);
        let address = out.address(key);
        let event = RefusalEvent {
            kind: &format!("{command} {code}"),
            cause: &cause,
            user: user.as_deref().unwrap_or_default(),
            address: address.map(|peer| peer.ip()),
        };
        let Some(level) = self.now.and_then(|now| self.node.log().level(event, now)) else {
            return;
        };
        let channel = refused.channel.as_deref().map(excerpt);
        at_level!(
            level.count(),
            command,
            code,
            error = excerpt(error),
            cause,
            client,
            user,
            channel,
            address = address.map(display),
            "refused a command"
        );
    }

    /// Logs the end of a connection by the server. At level info, the server logs a shutdown once for all connections.
    pub(super) fn log_disconnect(
        &self,
        key: ConnectionKey,
        disconnect: &Disconnect,
        address: impl FnOnce() -> Option<SocketAddr>,
    ) {
        let session_table = &self.session_table;
        let code = disconnect.code;
        if session_table.session(key).is_none() {
            return;
        }
        let is_stop = code == Disconnect::SHUTDOWN.code;
        if is_stop && RefusalLevel::of_debug().is_none() {
            return;
        }
        let of_peer = address();
        let level = if is_stop {
            RefusalLevel::of_debug()
        } else {
            let (_, user) = names(session_table, key);
            let event = RefusalEvent {
                kind: &format!("disconnect {code}"),
                cause: cause_of_disconnect(code),
                user: user.as_deref().unwrap_or_default(),
                address: of_peer.map(|peer| peer.ip()),
            };
            self.now.and_then(|now| self.node.log().level(event, now))
        };
        let Some(level) = level else { return };
        let (client, user) = names(session_table, key);
        at_level!(
            level.count(),
            code,
            reason = excerpt(&disconnect.reason),
            cause = cause_of_disconnect(code),
            client,
            user,
            address = of_peer.map(display),
            events = flight_log::summary(session_table, key.index, code).map(display),
            "disconnected a client"
        );
    }
}

/// Client and user of a session; `None` before its connect.
fn names(session_table: &SessionTable, key: ConnectionKey) -> (Option<String>, Option<String>) {
    let session = session_table.session(key);
    let client = session.filter(|session| !session.id.is_nil()).map(|one| one.client());
    let user = session.filter(|session| !session.user.is_empty());
    (client, user.map(|session| excerpt(&session.user)))
}
