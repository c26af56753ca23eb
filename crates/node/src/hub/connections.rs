//! Describes connections for the server API (server API §3 connections).
//! In: a selector, a list → out: a record in the list for each connected session that it matches.
//! Uses: `session_table`. Never: sends to clients.
//! Change here: what a record says of a connection.

use fanwire_cluster::{ConnectionRecord, ConnectionSelector};

use super::Hub;
use crate::connection_list::ConnectionList;
use crate::session::Session;

impl Hub {
    pub(super) fn list_connections(&self, target: &ConnectionSelector, list: &ConnectionList) {
        for key in self.matching(target) {
            if list.exceeds_limit() {
                return;
            }
            if let Some(session) = self.session_table.session(key) {
                list.add(session.client(), self.record(session));
            }
        }
    }

    fn record(&self, session: &Session) -> ConnectionRecord {
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
        }
    }
}
