//! Describes connections for the server API (server API §3 connections, snapshot).
//! In: a selector or a range, a list → out: a record in the list for each connected session of it.
//! Uses: `session_table`. Never: sends to clients.
//! Change here: what a record says of a connection.

use std::net::SocketAddr;

use fanwire_cluster::{ConnectionRecord, ConnectionSelector};

use super::Hub;
use crate::connection_list::ConnectionList;
use crate::outbox::Outbox;
use crate::session::Session;

impl Hub {
    pub(super) fn list_connections(
        &self,
        target: &ConnectionSelector,
        list: &ConnectionList,
        out: &impl Outbox,
    ) {
        for key in self.matching(target) {
            if list.exceeds_limit() {
                return;
            }
            if let Some(session) = self.session_table.session(key) {
                list.add(session.client(), self.record(session, out.address(key)));
            }
        }
    }

    /// Lists connected sessions from an index on. A page that is full ends before the next index.
    pub(super) fn list_page(&self, from: u32, limit: u32, list: &ConnectionList) {
        let mut listed = 0;
        for index in from..self.session_table.index_end() {
            if listed >= limit {
                return list.end_before(index.into());
            }
            let session = self.session_table.at(index).filter(|session| session.is_connected());
            if let Some(session) = session {
                list.add(session.client(), self.record(session, None));
                listed += 1;
            }
        }
    }

    fn record(&self, session: &Session, address: Option<SocketAddr>) -> ConnectionRecord {
        let subscriptions = session.subscriptions.iter().filter(|one| !one.is_tile);
        let subscribers = self.session_table.subscribers();
        let channel = |index| subscribers.channel_subscribers(index).channel.as_ref().to_owned();
        ConnectionRecord {
            app_name: session.app.name.as_ref().to_owned(),
            app_version: session.app.version.as_ref().to_owned(),
            transport: session.app.transport.to_owned(),
            protocol: session.encoding.name().to_owned(),
            connected_at_ms: session.connected_at_ms(),
            channels: subscriptions.map(|one| channel(one.channel)).collect(),
            labels: session.app.labels.as_ref().clone(),
            user: session.user.as_ref().to_owned(),
            address: address.map(|address| address.ip().to_string()).unwrap_or_default(),
        }
    }
}
