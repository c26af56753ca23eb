//! The node in a cluster: sends its state and executes commands of other nodes.
//! In: messages from the bus → out: notices for this node's shards, answers to questions, the states of all nodes.
//! Uses: `cluster`, the router. Never: the bus itself.
//! Changed here: how a command of another node is executed. `fanwire_cluster` defines the messages.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use fanwire_area::View;
use fanwire_broker::{Answer, ClientId, OccupancyReport};
use fanwire_cluster::{
    ControlCommand, EmulationCommand, NodeState, PeersError, ServerSubscribe, Task, ViewCommand,
};
use fanwire_protocol::{ErrorCode, UnsubscribeCode};

use super::questions::answer_any;
use super::{Counts, Node};
use crate::notice::Notice;

impl Node {
    /// Announces this node, so that each other node sends its state, and repeats that every few seconds. Call once
    /// this node receives messages; earlier it would miss the answers.
    pub fn introduce(&self, now: Instant) {
        self.cluster.introduce(now, || self.state(now));
    }

    /// Sends all occupied channels to the backend of events again, after the events that exist by now.
    ///
    /// # Errors
    /// 100 when the request did not reach all nodes.
    pub fn recount_channels(&self) -> Answer<(), ErrorCode> {
        let report = OccupancyReport { wants_recount: true, ..OccupancyReport::default() };
        match &self.hooks().occupancy {
            Some(receive) if !self.cluster.has_bus() => {
                receive(self.cluster.uid().to_owned(), report)
            }
            _ => return self.cluster.command(ControlCommand::Occupancy(report)),
        }
        Answer::now(Ok(()))
    }

    /// Handles a message from the bus. Returns false for garbage and for messages of another version.
    pub fn handle_message(&self, message: &[u8], now: Instant) -> bool {
        match self.cluster.handle_message(message, now) {
            Task::Nothing => {}
            Task::Refuse => return false,
            Task::Introduce(uid) => {
                drop(self.cluster.publish_state(Some(&uid), || self.state(now)));
                for command in self.diagnostics.debug_list().commands() {
                    self.cluster.catch_up(&uid, ControlCommand::DebugFor(command));
                }
            }
            Task::IntroduceAgain => self.introduce(now),
            Task::Answer(question) => {
                if !answer_any(self, &question, now) {
                    self.cluster.refuse();
                    return false;
                }
            }
            Task::ReceiveOccupancy { from, report } => {
                if let Some(receive) = &self.hooks().occupancy {
                    receive(from, report);
                }
            }
            Task::LearnUsage { from, report } => {
                self.channels.usage.learn(from, report, self.clock(), now);
            }
            Task::Execute(command) => self.execute(command),
        }
        true
    }

    fn execute(&self, command: ControlCommand) {
        match command {
            ControlCommand::Disconnect(command) | ControlCommand::DisconnectSelected(command) => {
                if let Some((target, disconnect)) = command.into_parts() {
                    self.channels.router.send_to_all_shards(&Notice::Disconnect {
                        target: target.into(),
                        disconnect,
                    });
                }
            }
            ControlCommand::Unsubscribe(command) | ControlCommand::UnsubscribeSelected(command) => {
                let (target, channel) = command.into_parts();
                self.connections().end_subscription(
                    target,
                    channel.as_deref(),
                    UnsubscribeCode::SERVER,
                );
            }
            ControlCommand::Subscribe(command) | ControlCommand::SubscribeSelected(command) => {
                let (target, subscription) = command.into_parts();
                self.connections().send_subscribe(target, ServerSubscribe::new(subscription, None));
            }
            ControlCommand::Refresh(command) | ControlCommand::RefreshSelected(command) => {
                let (target, renewal) = command.into_parts();
                self.channels
                    .router
                    .send_to_all_shards(&Notice::Refresh { target: target.into(), renewal });
            }
            ControlCommand::View(ViewCommand { client, channel, view }) => {
                let client = ClientId::parse(&client);
                if let (Some(client), Ok(view)) = (client, View::from_json(view.as_bytes())) {
                    // The calling node has checked it.
                    let _ = self.connections().set_view(client, &channel, view);
                }
            }
            ControlCommand::Emulation(EmulationCommand { session, data }) => {
                self.connections().receive_emulated(&session, data);
            }
            ControlCommand::DebugFor(command) => {
                // The calling node has refused one that does not fit.
                let _ = self.diagnostics.debug_list().apply(&command);
            }
            ControlCommand::SendAway(command) => self.rebalancing.execute(&command),
            ControlCommand::State(_)
            | ControlCommand::Leaving(_)
            | ControlCommand::Answer(_)
            | ControlCommand::Occupancy(_)
            | ControlCommand::Usage(_) => {
                unreachable!("the cluster keeps these to itself")
            }
        }
    }

    /// The last states of all nodes, this one first.
    pub fn nodes(&self, now: Instant) -> Vec<NodeState> {
        std::iter::once(self.state(now)).chain(self.cluster.peers()).collect()
    }

    pub(super) fn state(&self, now: Instant) -> NodeState {
        let Counts { connections, users, channels, subscriptions, .. } = self.counts();
        NodeState {
            uid: self.cluster.uid().to_owned(),
            name: self.options.name.clone(),
            version: self.options.version.clone(),
            connections: connections as u64,
            users: users as u64,
            channels: channels as u64,
            subscriptions: subscriptions as u64,
            uptime_seconds: now.saturating_duration_since(self.started_at).as_secs(),
            metrics: self.summaries.last(),
            revocations: self.revocations.position(),
            event_seq: self.event_seq.load(Relaxed),
            leaving: self.rebalancing.left(),
            cannot_receive: false, // the cluster knows it
        }
    }
}

/// Returns the other nodes for the program that goes on as this one. `None` while this node stores blocks and revocations again
/// that the engine has lost, because a new program does not know them.
pub fn save_peers(node: &Node, now: Instant) -> Option<Vec<u8>> {
    let has_all = !node.revocations.must_restore();
    let rebalance = node.rebalancing.save(now);
    has_all.then(|| node.cluster.save(node.revocations.position(), rebalance))
}

/// Goes on with the nodes that another program saved, and with its rebalance.
///
/// # Errors
/// Those of a record that does not fit. Then nothing has changed.
pub fn take_over_peers(node: &Node, saved: &[u8], now: Instant) -> Result<(), PeersError> {
    let own = node.revocations.position();
    let begun = node.cluster.take_over(saved, own.as_ref(), now)?;
    node.rebalancing.take_over(begun, now);
    Ok(())
}
