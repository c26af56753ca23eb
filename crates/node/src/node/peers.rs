//! The node in a cluster: sends its state and executes commands of other nodes.
//! In: messages from the bus → out: notices for this node's shards, answers to surveys, the states of all nodes.
//! Uses: `cluster`, the router. Never: the bus itself.
//! Change here: how a command of another node is executed. `fanwire_cluster` defines the messages.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use bytes::Bytes;
use fanwire_area::View;
use fanwire_broker::{Answer, Bus, ClientId};
use fanwire_protocol::ErrorCode;
use uuid::Uuid;

use super::backends::temporary;
use super::{Counts, Node};
use crate::notice::Notice;
use fanwire_cluster::ServerSubscribe;
use fanwire_cluster::{
    ControlCommand, EmulationCommand, NodeState, OccupancyReport, Task, ViewCommand,
};

impl Node {
    /// The id of this node among the others.
    pub fn uid(&self) -> &str {
        self.cluster.uid()
    }

    /// Makes the node part of a cluster whose nodes communicate through `bus`; before the first connection, and once.
    ///
    /// # Panics
    /// At the second call.
    pub fn join_cluster(&self, bus: Arc<dyn Bus>) {
        self.cluster.join(bus);
    }

    /// Announces this node, so that each other node sends its state, and repeats that every few seconds. Call once
    /// this node receives messages; earlier it would miss the answers.
    pub fn introduce(&self, now: Instant) {
        self.cluster.introduce(now, || self.state(now));
    }

    /// Tells the other nodes that this one stops.
    pub fn leave_cluster(&self) {
        self.cluster.leave();
    }

    /// Sends a message about occupied channels to one node or to all; every node receives the latter, this one too.
    pub fn send_occupancy(&self, to: Option<&str>, report: OccupancyReport) {
        self.cluster.send_occupancy(to, report);
    }

    /// Has all occupied channels told again to the backend of events, after the events that exist by now.
    ///
    /// # Errors
    /// 100 when the request did not reach all nodes.
    pub fn recount_channels(&self) -> Answer<(), ErrorCode> {
        let report = OccupancyReport { wants_recount: true, ..OccupancyReport::default() };
        match &self.hooks().occupancy {
            Some(receive) if !self.is_in_cluster() => receive(self.uid().to_owned(), report),
            _ => return self.cluster.command(ControlCommand::Occupancy(report)),
        }
        Answer::now(Ok(()))
    }

    /// Whether this node is part of a cluster.
    pub fn is_in_cluster(&self) -> bool {
        self.cluster.has_bus()
    }

    /// Handles a message from the bus. Returns false for garbage and for messages of another version.
    pub fn handle_message(&self, message: &[u8], now: Instant) -> bool {
        match self.cluster.handle_message(message, now) {
            Task::Nothing => {}
            Task::Refuse => return false,
            Task::Introduce(uid) => {
                drop(self.cluster.publish_state(Some(&uid), || self.state(now)))
            }
            Task::Answer { to, survey, pattern } => {
                self.cluster.answer(&to, survey, self.own_channels(&pattern).unwrap_or_default());
            }
            Task::AnswerUsers { to, survey } => self.answer_users(to, survey),
            Task::AnswerConnections { to, survey, target, range } => {
                let own = self.own_connections(target, range);
                self.answer_connections(to, survey, own);
            }
            Task::ReceiveOccupancy { from, report } => {
                if let Some(receive) = &self.hooks().occupancy {
                    receive(from, report);
                }
            }
            Task::Execute(command) => self.execute(command),
        }
        true
    }

    fn execute(&self, command: ControlCommand) {
        match command {
            ControlCommand::Disconnect(command) | ControlCommand::DisconnectSelected(command) => {
                if let Some((target, disconnect)) = command.into_parts() {
                    self.router.send_to_all_shards(&Notice::Disconnect { target, disconnect });
                }
            }
            ControlCommand::Unsubscribe(command) | ControlCommand::UnsubscribeSelected(command) => {
                let (target, channel) = command.into_parts();
                self.send_unsubscribe(target, channel.as_deref());
            }
            ControlCommand::Subscribe(command) | ControlCommand::SubscribeSelected(command) => {
                let (target, subscription) = command.into_parts();
                self.send_subscribe(target, ServerSubscribe::new(subscription, None));
            }
            ControlCommand::Refresh(command) | ControlCommand::RefreshSelected(command) => {
                let (target, renewal) = command.into_parts();
                self.router.send_to_all_shards(&Notice::Refresh { target, renewal });
            }
            ControlCommand::View(ViewCommand { client, channel, view }) => {
                let client = ClientId::parse(&client);
                if let (Some(client), Ok(view)) = (client, View::from_json(view.as_bytes())) {
                    // The calling node has checked it.
                    let _ = self.set_view(client, &channel, view);
                }
            }
            ControlCommand::Emulation(EmulationCommand { session, data }) => {
                self.receive_emulated(&session, data);
            }
            ControlCommand::State(_)
            | ControlCommand::Leaving(_)
            | ControlCommand::Survey(_)
            | ControlCommand::UserSurvey(_)
            | ControlCommand::ConnectionSurvey(_)
            | ControlCommand::SurveyChannels(_)
            | ControlCommand::Occupancy(_) => {
                unreachable!("the cluster keeps these to itself")
            }
        }
    }

    /// Passes on commands of a client whose transport does not carry any to the node that has its session (protocol §24).
    /// Returns whether there is such a node; it ignores an unknown session.
    ///
    /// # Errors
    /// 100 when the other node could not be reached.
    pub fn emulate(&self, node: &str, session: &str, data: Bytes) -> Answer<bool, ErrorCode> {
        if node == self.uid() {
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
            self.router.send_to_all_shards(&Notice::Commands { client, secret, data });
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
            revocations: self.revocation_position(),
            event_seq: self.event_seq.load(Relaxed),
        }
    }

    /// Messages of other nodes that were not understood.
    pub fn refused_messages(&self) -> u64 {
        self.cluster.refused()
    }
}
