//! What the server API orders for connections that are there: subscriptions and lifetimes, told to the hubs of all shards.
//! In: targets and orders → out: notices in every inbox, orders for other nodes, or the error of what makes no sense.
//! Uses: `router`, `registry`, the cluster, channel rules, the clock. Never: sessions; how a hub obeys lives in `hub/control_commands.rs`.
//! Change here: what is checked before an order goes out.

use std::sync::Arc;
use std::time::Instant;

use fanwire_broker::{Answer, ClientId};
use fanwire_protocol::{Disconnect, ErrorCode};

use super::Node;
use crate::cluster::ControlCommand;
use crate::control::{ConnectionSelector, Renewal, ServerSubscribe, ServerSubscription};
use crate::notice::Notice;

impl Node {
    /// Subscribes the connections of `target`, on every node, that are not subscribed to the channel. Answers when those of
    /// this node are, so that what is published then reaches them.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name, a namespace of maps or shared polls, or an end in the past; 100 when broker
    /// or presence failed for a connection of this node, which stays unsubscribed, or when the other nodes could not be told.
    pub fn subscribe(
        &self,
        target: ConnectionSelector,
        subscription: ServerSubscription,
        now: Instant,
    ) -> Answer<(), ErrorCode> {
        if let Err(error) = self.check_subscription(&subscription, now) {
            return Answer::now(Err(error));
        }
        let told = self.cluster.command(ControlCommand::subscribe(&target, &subscription));
        let (promise, answer) = Answer::later();
        self.send_subscribe(target, ServerSubscribe::new(subscription, Some(promise)));
        told.and(answer)
    }

    fn check_subscription(
        &self,
        subscription: &ServerSubscription,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let namespace = self.channels.resolve_trusted(&subscription.channel)?;
        let is_over = |end| end <= self.clock.unix(now);
        if subscription.expire_at.is_some_and(is_over) || !namespace.is_of_streams() {
            Err(ErrorCode::BAD_REQUEST)
        } else {
            Ok(())
        }
    }

    pub(super) fn send_subscribe(&self, target: ConnectionSelector, command: ServerSubscribe) {
        self.router.send_to_all_shards(&Notice::Subscribe { target, command: Arc::new(command) });
    }

    /// Gives the connections of `target`, on every node, another lifetime; one that is over already disconnects them.
    ///
    /// # Errors
    /// 100 when the other nodes could not be told; those of this node have it by then.
    pub fn refresh(&self, target: ConnectionSelector, renewal: Renewal) -> Answer<(), ErrorCode> {
        let told = self.cluster.command(ControlCommand::refresh(&target, &renewal));
        self.router.send_to_all_shards(&Notice::Refresh { target, renewal });
        told
    }

    /// Makes a connection the only one of its user: the others are closed, whichever of this node connected later stays.
    /// Of two that connect to two nodes at one moment both may be closed. When the other nodes could not be told, this
    /// connection is closed so that it comes again, which tells them again.
    pub(crate) fn supersede(&self, user: &Arc<str>, newest: ClientId) {
        let others = ConnectionSelector {
            user: user.as_ref().to_owned(),
            whitelist: vec![newest.to_string()],
            ..ConnectionSelector::default()
        };
        let told = self
            .cluster
            .command(ControlCommand::disconnect(&others, &Disconnect::CONNECTION_LIMIT));
        self.registry.supersede(user, newest);
        self.router.send_to_all_shards(&Notice::Supersede { user: Arc::clone(user) });
        let (router, user) = (Arc::clone(&self.router), Arc::clone(user));
        told.then(move |told| {
            if told.is_err() {
                let (user, client) = (user.as_ref().to_owned(), newest.to_string());
                let target = ConnectionSelector { user, client, ..ConnectionSelector::default() };
                router.send_to_all_shards(&Notice::Disconnect {
                    target,
                    disconnect: Disconnect::SERVER_ERROR,
                });
            }
        });
    }

    /// The connection of a user that closed the others.
    pub(crate) fn newest_of(&self, user: &str) -> Option<ClientId> {
        self.registry.newest_of(user)
    }
}
