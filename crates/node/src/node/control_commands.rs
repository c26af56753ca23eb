//! Control commands of the server API for existing connections: subscriptions and lifetimes, sent to the hubs of all shards.
//! In: selectors and commands → out: notices in every inbox, commands for other nodes, or the error of an invalid command.
//! Uses: `router`, `registry`, the cluster, channel rules, the clock. Never: sessions; `hub/control_commands.rs` executes the commands.
//! Change here: checks before a command is sent.

use std::sync::Arc;
use std::time::Instant;

use fanwire_broker::{Answer, ClientId};
use fanwire_protocol::{Disconnect, ErrorCode};

use super::Node;
use crate::notice::Notice;
use fanwire_cluster::ControlCommand;
use fanwire_cluster::{ConnectionSelector, Renewal, ServerSubscribe, ServerSubscription};

impl Node {
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
        let settings = self.settings();
        let namespace = settings.channels.resolve_trusted(&subscription.channel)?;
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

    /// Sets the lifetime of the connections of `target`, on every node; one in the past disconnects them.
    ///
    /// # Errors
    /// 100 when the command did not reach all nodes; the connections of this node have it by then.
    pub fn refresh(&self, target: ConnectionSelector, renewal: Renewal) -> Answer<(), ErrorCode> {
        let sent = self.cluster.command(ControlCommand::refresh(&target, &renewal));
        self.router.send_to_all_shards(&Notice::Refresh { target, renewal });
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
        self.registry.supersede(user, newest);
        self.router.send_to_all_shards(&Notice::Supersede { user: Arc::clone(user) });
        let (router, user) = (Arc::clone(&self.router), Arc::clone(user));
        sent.then(move |sent| {
            if sent.is_err() {
                let (user, client) = (user.as_ref().to_owned(), newest.to_string());
                let target = ConnectionSelector { user, client, ..ConnectionSelector::default() };
                router.send_to_all_shards(&Notice::Disconnect {
                    target,
                    disconnect: Disconnect::SERVER_ERROR,
                });
            }
        });
    }

    /// The newest connection of a user, which closed the others.
    pub(crate) fn newest_of(&self, user: &str) -> Option<ClientId> {
        self.registry.newest_of(user)
    }
}
