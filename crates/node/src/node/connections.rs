//! Commands for existing connections, from the server API and from this node: subscriptions, lifetimes, views, ends.
//! In: selectors and commands → out: notices in the inboxes of shards, commands for other nodes, or the error of an invalid command.
//! Uses: `router`, `registry`, the cluster, channel rules, the clock. Never: sessions; `hub/control_commands.rs` executes the commands.
//! Changed here: checks before a command is sent.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fanwire_area::View;
use fanwire_broker::{Answer, ClientId, Renewal};
use fanwire_cluster::{
    Cluster, ConnectionSelector, ControlCommand, EmulationCommand, ServerSubscribe,
    ServerSubscription, ViewCommand,
};
use fanwire_protocol::{Disconnect, ErrorCode, UnsubscribeCode};
use uuid::Uuid;

use super::Rebalancing;
use super::channels::{Channels, temporary};
use crate::notice::Notice;

/// Commands for the connections of this node and, where a method says so, of every node.
pub struct ConnectionCommands<'a> {
    pub(super) channels: &'a Channels,
    pub(super) cluster: &'a Cluster,
    pub(super) rebalancing: &'a Rebalancing,
}

impl<'a> ConnectionCommands<'a> {
    /// Clients that this node sends away to others.
    pub fn rebalancing(&self) -> &'a Rebalancing {
        self.rebalancing
    }

    /// Sets what a subscriber of a channel with places sees, if it is connected to this node.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name or view, or a channel without places.
    pub fn set_view(&self, client: ClientId, channel: &str, view: View) -> Result<(), ErrorCode> {
        let settings = self.channels.settings.read();
        let grid =
            settings.channels.resolve_trusted(channel)?.grid().ok_or(ErrorCode::BAD_REQUEST)?;
        grid.change(&view, &[]).map_err(|_| ErrorCode::BAD_REQUEST)?;
        let notice = Notice::View { client, channel: channel.into(), view };
        self.channels.router.send_to_shards(channel, &notice);
        Ok(())
    }

    /// Sets a view as [`set_view`](Self::set_view) does, for a client that may be connected to any node.
    ///
    /// # Errors
    /// The errors of `set_view`; 100 when the command did not reach all nodes. This node has it by then.
    pub fn set_view_on_every_node(
        &self,
        client: ClientId,
        channel: &str,
        view: View,
    ) -> Answer<(), ErrorCode> {
        if let Err(error) = self.set_view(client, channel, view) {
            return Answer::now(Err(error));
        }
        self.cluster.command(ControlCommand::View(ViewCommand {
            client: client.to_string(),
            channel: channel.to_owned(),
            view: view.to_json(),
        }))
    }

    /// Disconnects the connections of `target`, on every shard of every node.
    ///
    /// # Errors
    /// 100 when the command did not reach all nodes; the shards of this node have it by then.
    pub fn disconnect(
        &self,
        target: ConnectionSelector,
        disconnect: Disconnect,
    ) -> Answer<(), ErrorCode> {
        let sent = self.cluster.command(ControlCommand::disconnect(&target, &disconnect));
        self.channels
            .router
            .send_to_all_shards(&Notice::Disconnect { target: target.into(), disconnect });
        sent
    }

    /// Ends the subscriptions of `target` to `channel`, or to all channels (then no name is checked), on every node.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name; 100 when the command did not reach all nodes; the shards of this
    /// node have it by then.
    pub fn unsubscribe(
        &self,
        target: ConnectionSelector,
        channel: Option<&str>,
    ) -> Answer<(), ErrorCode> {
        if let Some(Err(error)) = channel.map(|channel| self.channels.check(channel)) {
            return Answer::now(Err(error));
        }
        let sent = self.cluster.command(ControlCommand::unsubscribe(&target, channel));
        self.end_subscription(target, channel, UnsubscribeCode::SERVER);
        sent
    }

    /// Ends the subscriptions of `target` to `channel`, or to all channels, on this node.
    pub fn end_subscription(
        &self,
        target: ConnectionSelector,
        channel: Option<&str>,
        code: UnsubscribeCode,
    ) {
        let channel = channel.map(Into::into);
        self.channels.router.send_to_all_shards(&Notice::Unsubscribe {
            target: target.into(),
            channel,
            code,
        });
    }
    /// Subscribes the connections of `target`, on every node, that are not subscribed to the channel. Answers when
    /// those of this node are subscribed, so that they receive what is published then.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 invalid name, a namespace of maps or shared polls, or an end in the past; 100 when
    /// broker or presence failed for a connection of this node, which stays unsubscribed, or when the command did not
    /// reach all nodes.
    pub fn subscribe(
        &self,
        target: ConnectionSelector,
        subscription: ServerSubscription,
        now: Instant,
    ) -> Answer<(), ErrorCode> {
        if let Err(error) = self.check_subscription(&subscription, now) {
            return Answer::now(Err(error));
        }
        let sent = self.cluster.command(ControlCommand::subscribe(&target, &subscription));
        let (promise, answer) = Answer::later();
        self.send_subscribe(target, ServerSubscribe::new(subscription, Some(promise)));
        sent.and(answer)
    }

    fn check_subscription(
        &self,
        subscription: &ServerSubscription,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let settings = self.channels.settings.read();
        let namespace = settings.channels.resolve_trusted(&subscription.channel)?;
        let is_over = |end| end <= self.channels.clock.unix(now);
        if subscription.expire_at.is_some_and(is_over) || !namespace.is_of_streams() {
            Err(ErrorCode::BAD_REQUEST)
        } else {
            Ok(())
        }
    }

    pub(super) fn send_subscribe(&self, target: ConnectionSelector, command: ServerSubscribe) {
        self.channels.router.send_to_all_shards(&Notice::Subscribe {
            target: target.into(),
            command: Arc::new(command),
        });
    }

    /// Sets the lifetime of the connections of `target`, on every node; one in the past disconnects them.
    ///
    /// # Errors
    /// 100 when the command did not reach all nodes; the connections of this node have it by then.
    pub fn refresh(&self, target: ConnectionSelector, renewal: Renewal) -> Answer<(), ErrorCode> {
        let sent = self.cluster.command(ControlCommand::refresh(&target, &renewal));
        self.channels
            .router
            .send_to_all_shards(&Notice::Refresh { target: target.into(), renewal });
        sent
    }

    /// Makes a connection the only one of its user and closes the others, except a newer one on this node.
    /// Of two simultaneous connects to two nodes both may be closed. When the command did not reach all nodes, this
    /// connection is closed, so that its client reconnects and repeats it.
    pub(crate) fn supersede(&self, user: &Arc<str>, newest: ClientId) {
        let others = ConnectionSelector {
            user: user.as_ref().to_owned(),
            whitelist: vec![newest.to_string()],
            ..ConnectionSelector::default()
        };
        let sent = self
            .cluster
            .command(ControlCommand::disconnect(&others, &Disconnect::CONNECTION_LIMIT));
        self.channels.registry.supersede(user, newest);
        self.channels.router.send_to_all_shards(&Notice::Supersede { user: Arc::clone(user) });
        let router = Arc::clone(&self.channels.router);
        let user = Arc::clone(user);
        sent.then(move |sent| {
            if sent.is_err() {
                let user = user.as_ref().to_owned();
                let client = newest.to_string();
                let target = ConnectionSelector { user, client, ..ConnectionSelector::default() };
                router.send_to_all_shards(&Notice::Disconnect {
                    target: target.into(),
                    disconnect: Disconnect::SERVER_ERROR,
                });
            }
        });
    }

    /// Passes on commands of a client whose transport does not carry any to the node that has its session (protocol §24).
    /// Returns whether there is such a node; it ignores an unknown session.
    ///
    /// # Errors
    /// 100 when the other node could not be reached.
    pub fn emulate(&self, node: &str, session: &str, data: Bytes) -> Answer<bool, ErrorCode> {
        if node == self.cluster.uid() {
            self.receive_emulated(session, data);
            return Answer::now(Ok(true));
        }
        let command = EmulationCommand { session: session.to_owned(), data };
        let sent = self.cluster.emulate(node, command);
        sent.map(|nodes| nodes.map(|nodes| nodes > 0)).map_err(temporary)
    }

    /// Passes commands to a session of this node; those of an unknown session are dropped.
    pub fn receive_emulated(&self, session: &str, data: Bytes) {
        let parts = session.split_once('.');
        let ids = parts.and_then(|(client, secret)| {
            Some((ClientId::parse(client)?, Uuid::try_parse(secret).ok()?))
        });
        if let Some((client, secret)) = ids {
            self.channels.router.send_to_all_shards(&Notice::Commands { client, secret, data });
        }
    }
}
