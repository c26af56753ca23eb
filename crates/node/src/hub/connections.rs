//! Describes connections for the server API (server API §3 connections, snapshot).
//! In: a selector or a range, a list → out: a record in the list for each connected session of it.
//! Uses: `session_table`. Never: sends to clients.
//! Change here: what a record says of a connection.

use fanwire_cluster::{ConnectionList, ConnectionRecord, ConnectionSelector, TokenRecord};

use fanwire_auth::TokenId;
use fanwire_recorder::FlightLog;

use super::selection::matching;
use crate::outbox::Outbox;
use crate::session::{Session, Subscription};
use crate::session_table::SessionTable;

/// Lists the connected sessions that a selector matches.
pub(super) fn list(
    session_table: &SessionTable,
    target: &ConnectionSelector,
    list: &ConnectionList,
    out: &impl Outbox,
) {
    for key in matching(session_table, target) {
        let Some(session) = session_table.session(key) else { continue };
        let client = session.client();
        if list.wants(&client) {
            let address = out.address(key).map(|address| address.ip().to_string());
            let address = address.unwrap_or_default();
            let ping_ms = session_table.recorder.log(key.index).and_then(FlightLog::ping_ms);
            let record = record(session_table, session);
            list.add(client, ConnectionRecord { address, ping_ms, ..record });
        }
    }
}

/// Lists connected sessions from an index on. A page that is full ends before the next index.
pub(super) fn list_page(
    session_table: &SessionTable,
    from: u32,
    limit: u32,
    list: &ConnectionList,
) {
    let mut listed = 0;
    for index in from..session_table.index_end() {
        if listed >= limit {
            return list.end_before(index.into());
        }
        let session = session_table.at(index).filter(|session| session.is_connected());
        if let Some(session) = session {
            let user = session.user.as_ref().to_owned();
            list.add(session.client(), ConnectionRecord { user, ..record(session_table, session) });
            listed += 1;
        }
    }
}

fn record(session_table: &SessionTable, session: &Session) -> ConnectionRecord {
    let subscriptions = session.subscriptions.iter().filter(|one| !one.is_tile);
    let subscribers = session_table.subscribers();
    let channel = |index| subscribers.channel_subscribers(index).channel.as_ref().to_owned();
    let token_of = |one: &Subscription| {
        Some((channel(one.channel), token(one.terms.as_ref()?.token.as_deref()?)))
    };
    ConnectionRecord {
        app_name: session.app.name.as_ref().to_owned(),
        app_version: session.app.version.as_ref().to_owned(),
        transport: session.app.transport.to_owned(),
        protocol: session.encoding.name().to_owned(),
        connected_at_ms: session.connected_at_ms(),
        subscription_tokens: subscriptions.clone().filter_map(token_of).collect(),
        channels: subscriptions.map(|one| channel(one.channel)).collect(),
        labels: session.app.labels.as_ref().clone(),
        user: session.user.as_ref().to_owned(),
        meta: session.context.as_ref().map(|context| context.meta.clone()).unwrap_or_default(),
        address: String::new(),
        node: String::new(),
        ping_ms: None,
        token: session.grant.as_ref().and_then(|grant| grant.token.as_ref()).map(token),
    }
}

fn token(id: &TokenId) -> TokenRecord {
    TokenRecord { uid: id.uid.as_ref().to_owned(), issued_at: id.issued_at.into() }
}
