//! The other nodes of an installation: membership, control commands and surveys.
//! In: messages of other nodes, the time → out: control commands for this node's shards, states of all nodes, answers to questions.
//! Uses: a `Bus` to carry messages; Protobuf with a version byte in front. Never: sockets, channels, sessions.
//! Changed here: what nodes send each other. Publications travel through the broker, not here.

#![forbid(unsafe_code)]

mod control;
mod message;
mod question;
mod rebalance;
mod receipt;
mod revocation_sync;
mod saved;
mod survey;
mod unacknowledged;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::{Answer, Bus, OccupancyReport};
use fanwire_protocol::{ErrorCode, StreamPosition};
use hashbrown::HashMap;
use parking_lot::Mutex;

pub use control::{ConnectionSelector, ServerSubscribe, ServerSubscription};
use message::NodeMessage;
pub use message::{AddressConnections, UsageReport, UserPublications};
pub use message::{ControlCommand, EmulationCommand, SendAwayCommand, ViewCommand};
pub use message::{Metrics, NodeState};
pub use question::{Question, ReceivedQuestion, SurveyKind};
pub use rebalance::{ConnectionCounts, Departures, Rebalance, RebalanceOptions, RebalanceRecord};
pub use receipt::{Receipt, ReceiptRecord, Receipts};
pub use revocation_sync::{AfterPages, Received, RevocationSync};
pub use saved::PeersError;
use survey::{Answers, Survey};
pub use survey::{ClusterTimes, Surveyed};
use unacknowledged::{OtherNodes, ReceivedCommands, SettledPromise, UnacknowledgedCommands};

/// State of the other nodes. Without a bus there are none.
pub struct Cluster {
    uid: String,
    bus: OnceLock<Arc<dyn Bus>>,
    table: Arc<Mutex<NodeTable>>,
    refused: AtomicU64,
    has_left: AtomicBool,
}

#[derive(Default)]
struct NodeTable {
    /// Other nodes, by uid.
    peers: BTreeMap<String, Peer>,
    /// Nodes that sent commands, by uid. A node that has not sent its state yet may send some.
    senders: BTreeMap<String, CommandSender>,
    commands: UnacknowledgedCommands,
    surveys: HashMap<u64, Survey>,
    last_survey: u64,
    /// Time of the last periodic work.
    ticked_at: Option<Instant>,
    /// Time at which this node last sent its state to all; `None` before the first time.
    told_at: Option<Instant>,
    /// The last state was not delivered, as far as is known: silence of the others may be a fault of the bus.
    cannot_send: bool,
    /// This node did not receive its own last state: silence of the others may be its own fault.
    cannot_receive: bool,
    /// Last time a state was not delivered, this node did not receive its own, or its process had stood still.
    cut_at: Option<Instant>,
    /// First time that this node received its own state, since it last missed something.
    heard_at: Option<Instant>,
    /// It has received messages for so long since then that each live node is in the table.
    knows_others: bool,
    times: Arc<ClusterTimes>,
}

struct Peer {
    state: NodeState,
    received_at: Instant,
}

struct CommandSender {
    received_at: Instant,
    executed: ReceivedCommands,
}

/// Decodes a message and encodes it again; `None` for invalid bytes.
pub fn rewritten(bytes: &[u8]) -> Option<Bytes> {
    NodeMessage::decoded(bytes).map(|message| message.encoded())
}

/// Task of this node after a message of another node.
#[derive(Debug, PartialEq)]
pub enum Task {
    Nothing,
    /// The message was not understood.
    Refuse,
    /// A new node: send it the state of this node.
    Introduce(String),
    /// The others believe that this node receives nothing, and it does.
    IntroduceAgain,
    Execute(ControlCommand),
    Answer(ReceivedQuestion),
    /// A message about occupied channels, also of this node itself.
    ReceiveOccupancy {
        from: String,
        report: OccupancyReport,
    },
    LearnUsage {
        from: String,
        report: UsageReport,
    },
}

impl Cluster {
    pub fn new(uid: String) -> Self {
        Self {
            uid,
            bus: OnceLock::new(),
            table: Arc::default(),
            refused: AtomicU64::new(0),
            has_left: AtomicBool::new(false),
        }
    }

    pub fn uid(&self) -> &str {
        &self.uid
    }

    pub fn join(&self, bus: Arc<dyn Bus>) {
        assert!(self.bus.set(bus).is_ok(), "a node is in one cluster");
    }

    /// Messages that were not understood: garbage, or an unknown version.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Sends a control command to all other nodes; completes at once without a bus. It is sent again for a while to a
    /// node that did not receive it, for example while its connection is re-established.
    ///
    /// # Errors
    /// 100 when the bus did not accept it, or when some live node did not receive it.
    pub fn command(&self, command: ControlCommand) -> Answer<(), ErrorCode> {
        let Some(bus) = self.bus.get() else { return Answer::now(Ok(())) };
        let (promise, answer) = Answer::later();
        let mut table = self.table.lock();
        let number = table.commands.next();
        let message =
            NodeMessage { from: self.uid.clone(), command: Some(command), number }.encoded();
        table.commands.begin(number, message.clone(), promise);
        drop(table);
        self.give(bus.as_ref(), number, message);
        answer
    }

    /// Sends a command, for the first time or again.
    fn give(&self, bus: &dyn Bus, number: u64, message: Bytes) {
        let table = Arc::clone(&self.table);
        bus.send(None, message).then(move |reached| {
            let mut table = table.lock();
            let others = table.others();
            let settled = table.commands.reached(number, reached, others);
            drop(table);
            settled.into_iter().for_each(SettledPromise::keep);
        });
    }

    /// Sends a new node a command that the others have executed. A lost one is not repeated.
    pub fn catch_up(&self, uid: &str, command: ControlCommand) {
        drop(self.send(Some(uid), command));
    }

    fn send(&self, to: Option<&str>, command: ControlCommand) -> Answer<usize> {
        match self.bus.get() {
            Some(bus) => {
                let message =
                    NodeMessage { from: self.uid.clone(), command: Some(command), number: 0 };
                bus.send(to, message.encoded())
            }
            None => Answer::now(Ok(0)),
        }
    }

    /// Sends the state of this node to all: whenever its own subscription works again, so that answers arrive, then at each interval.
    pub fn introduce(&self, now: Instant, state: impl FnOnce() -> NodeState) {
        let mut table = self.table.lock();
        if let Some(told_at) = table.told_at {
            if table.cannot_receive {
                table.cut_at = Some(now);
            }
            let is_made_again = now.saturating_duration_since(told_at) < STATE_INTERVAL;
            if table.cannot_receive || is_made_again {
                table.heard_at = None; // it has missed states of the others
            }
        }
        let cannot_receive = table.cannot_receive;
        (table.told_at, table.cannot_send, table.cannot_receive) = (Some(now), true, true);
        drop(table);
        let table = Arc::clone(&self.table);
        let state = || NodeState { cannot_receive, ..state() };
        self.publish_state(None, state).then(move |told| match told {
            Ok(_) => table.lock().cannot_send = false,
            Err(_) => table.lock().cut_at = Some(now),
        });
    }

    /// Sends the state of this node to one node or to all; nothing after it has left.
    pub fn publish_state(
        &self,
        to: Option<&str>,
        state: impl FnOnce() -> NodeState,
    ) -> Answer<usize> {
        if self.bus.get().is_none() {
            return Answer::now(Ok(0));
        }
        let state = ControlCommand::State(state());
        // Checked last: another thread may call `leave` while this one counts.
        if self.has_left.load(Relaxed) { Answer::now(Ok(0)) } else { self.send(to, state) }
    }

    /// Tells the other nodes that this node stops. A node that misses this notices the silence. This node keeps
    /// receiving until it ends;
    /// it no longer answers new nodes, which would wait for it.
    pub fn leave(&self) {
        self.has_left.store(true, Relaxed);
        drop(self.send(None, ControlCommand::Leaving(message::Leaving {})));
    }

    /// Handles a message of another node.
    pub fn handle_message(&self, message: &[u8], now: Instant) -> Task {
        let Some(NodeMessage { from, command, number }) = NodeMessage::decoded(message) else {
            return self.refuse();
        };
        let Some(command) = command else {
            return self.handle_question(from, message);
        };
        if let ControlCommand::Occupancy(report) = command {
            return Task::ReceiveOccupancy { from, report };
        }
        let mut table = self.table.lock();
        if from == self.uid {
            let ControlCommand::State(state) = command else { return Task::Nothing };
            table.hear_own_state(now);
            return if state.cannot_receive { Task::IntroduceAgain } else { Task::Nothing };
        }
        match command {
            ControlCommand::State(state) => {
                let Some(peer) = table.peers.get_mut(&from) else {
                    table.peers.insert(from.clone(), Peer { state, received_at: now });
                    return Task::Introduce(from);
                };
                (peer.state, peer.received_at) = (state, now);
                Task::Nothing
            }
            ControlCommand::Leaving(_) => {
                table.peers.remove(&from);
                let done = table.done_with(&from);
                drop(table);
                done.into_iter().for_each(Survey::end);
                Task::Nothing
            }
            ControlCommand::Answer(answer) => {
                let Some(survey) = question::survey_number(&answer) else {
                    return self.refuse();
                };
                let done = table.answered(&from, survey, answer, now);
                drop(table);
                done.into_iter().for_each(Survey::end);
                Task::Nothing
            }
            ControlCommand::Usage(report) => Task::LearnUsage { from, report },
            command => {
                let is_new = number == 0 || table.is_new_command(from, number, now);
                if is_new { Task::Execute(command) } else { Task::Nothing }
            }
        }
    }

    fn handle_question(&self, from: String, message: &[u8]) -> Task {
        let is_own = from == self.uid;
        match ReceivedQuestion::in_message(from, message) {
            Some(_) if is_own => Task::Nothing,
            Some(question) => Task::Answer(question),
            None => self.refuse(),
        }
    }

    /// Counts a message that was not understood: a question that this version does not know, too.
    pub fn refuse(&self) -> Task {
        self.refused.fetch_add(1, Relaxed);
        Task::Refuse
    }

    /// Answers a question of another node. A lost answer makes this node a missing one there.
    pub fn answer(&self, question: &ReceivedQuestion, answer: &impl prost::Message) {
        let answer = question::numbered(question.survey, answer);
        drop(self.send(Some(&question.from), ControlCommand::Answer(answer)));
    }

    /// Sends commands of a client to the node that has its session. Returns the number of nodes with this uid.
    ///
    /// # Errors
    /// The bus did not accept them.
    pub fn emulate(&self, to: &str, command: EmulationCommand) -> Answer<usize> {
        self.send(Some(to), ControlCommand::Emulation(command))
    }

    /// Sends a message about occupied channels to one node or to all. A lost one is noticed by its receiver.
    pub fn send_occupancy(&self, to: Option<&str>, report: OccupancyReport) {
        drop(self.send(to, ControlCommand::Occupancy(report)));
    }

    /// Sends what clients of this node use to all other nodes. A lost one is not repeated.
    pub fn send_usage(&self, report: UsageReport) {
        drop(self.send(None, ControlCommand::Usage(report)));
    }

    /// Whether there may be other nodes.
    pub fn has_bus(&self) -> bool {
        self.bus.get().is_some()
    }

    /// Asks every other node, or the one with the uid `to`, and adds the answers to `own`. Nodes that could not be asked, or did
    /// not answer in time, are missing.
    ///
    /// # Errors
    /// 104 for a node that is not there; 111 when too many surveys run; the error of `own`.
    pub fn ask<Q: Question>(
        &self,
        question: Q,
        to: Option<&str>,
        own: Answer<Q::Answer, ErrorCode>,
        now: Instant,
    ) -> Answer<Surveyed<Q::Answer>, ErrorCode> {
        let mut table = self.table.lock();
        if to.is_some_and(|to| !table.peers.contains_key(to)) {
            return Answer::now(Err(ErrorCode::METHOD_NOT_FOUND));
        }
        let Some(bus) = self.bus.get() else {
            return own.map(|own| own.map(Surveyed::of_all));
        };
        if table.surveys.len() >= SURVEYS_MAX {
            return Answer::now(Err(ErrorCode::TOO_MANY_REQUESTS));
        }
        table.last_survey += 1;
        let number = table.last_survey;
        let message = question::encoded(&self.uid, number, &question);
        let asked = table.peers.iter().filter(|(uid, _)| to.is_none_or(|to| to == uid.as_str()));
        let awaited: BTreeMap<_, _> =
            asked.map(|(uid, peer)| (uid.clone(), peer.state.name.clone())).collect();
        let (promise, answer) = Answer::later();
        let finish = Box::new(move |answers: Answers| {
            own.then(move |own| promise.keep(own.map(|own| answers.merged(&question, own))));
        });
        let survey = Survey {
            kind: Q::KIND,
            receivers: awaited.len() + usize::from(to.is_none()),
            awaited,
            answers: Answers::default(),
            asked_at: now,
            unreached: 0,
            finish,
        };
        table.surveys.insert(number, survey);
        drop(table);
        let table = Arc::clone(&self.table);
        bus.send(to, message).then(move |reached| {
            let done = table.lock().asked(number, reached);
            done.into_iter().for_each(Survey::end);
        });
        answer
    }

    /// Forgets nodes that were silent for too long, ends surveys that took too long, repeats unacknowledged commands,
    /// and returns whether the state of this node is due again.
    pub fn tick(&self, now: Instant) -> bool {
        let mut table = self.table.lock();
        table.notice_standstill(now);
        table.forget_silent(now);
        table.complete(now);
        let done = table.give_up_late(now);
        let is_old = |told_at| now.saturating_duration_since(told_at) >= STATE_INTERVAL;
        let is_due = table.told_at.is_some_and(is_old);
        let mut commands = std::mem::take(&mut table.commands);
        let (again, over) = commands.due(now, |since| table.spoken_since(since));
        table.commands = commands;
        drop(table);
        done.into_iter().for_each(Survey::end);
        over.into_iter().for_each(SettledPromise::keep);
        if let Some(bus) = self.bus.get() {
            again
                .into_iter()
                .for_each(|(number, command)| self.give(bus.as_ref(), number, command));
        }
        is_due
    }

    /// The positions up to which the other nodes have blocks and revocations.
    pub fn revocation_positions(&self) -> Vec<StreamPosition> {
        let table = self.table.lock();
        table.peers.values().filter_map(|peer| peer.state.revocations.clone()).collect()
    }

    /// Times of messages between nodes.
    pub fn times(&self) -> Arc<ClusterTimes> {
        Arc::clone(&self.table.lock().times)
    }

    /// Names of the other nodes, sorted.
    pub fn peer_names(&self) -> Vec<String> {
        let table = self.table.lock();
        let mut names: Vec<_> = table.peers.values().map(|peer| peer.state.name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// The last states of the other nodes, by uid.
    pub fn peers(&self) -> Vec<NodeState> {
        self.table.lock().peers.values().map(|peer| peer.state.clone()).collect()
    }
}

impl NodeTable {
    /// This node received its own state.
    fn hear_own_state(&mut self, now: Instant) {
        self.heard_at.get_or_insert(now);
        if std::mem::take(&mut self.cannot_receive)
            && let Some(told_at) = self.told_at
        {
            let lag = now.saturating_duration_since(told_at);
            self.times.pub_sub_lag.observe(lag);
        }
    }

    /// Notices that the process stood still, and could hear no node.
    fn notice_standstill(&mut self, now: Instant) {
        let before = self.ticked_at.replace(now);
        if before.is_some_and(|at| now.saturating_duration_since(at) >= STANDSTILL) {
            self.cut_at = Some(now);
        }
    }

    /// Notices when this one has heard of every live node that it is there. A node that does not receive messages cannot answer an
    /// introduction, but it sends its state in each interval.
    fn complete(&mut self, now: Instant) {
        let has_time_passed = |at| now.saturating_duration_since(at) >= COMPLETE_AFTER;
        self.knows_others |= !self.cannot_receive && self.heard_at.is_some_and(has_time_passed);
    }

    /// Whether a command has not been executed yet.
    fn is_new_command(&mut self, from: String, number: u64, now: Instant) -> bool {
        let new = || CommandSender { received_at: now, executed: ReceivedCommands::default() };
        let sender = self.senders.entry(from).or_insert_with(new);
        sender.received_at = now;
        sender.executed.is_new(number)
    }

    fn others(&self) -> OtherNodes {
        // A message may have reached a node that counts as gone instead of one that receives nothing.
        let all_receive = self.peers.values().all(|peer| !peer.state.cannot_receive);
        OtherNodes { count: self.peers.len(), is_complete: self.knows_others && all_receive }
    }

    /// The nodes that sent something since then. All count if this node may not have received them: a node whose own
    /// subscription is down cannot tell dead nodes from silent ones.
    fn spoken_since(&self, since: Instant) -> OtherNodes {
        let is_unsure =
            self.cannot_send || self.cannot_receive || self.cut_at.is_some_and(|at| at >= since);
        let spoken = self.peers.values().filter(|peer| is_unsure || peer.received_at >= since);
        OtherNodes { count: spoken.count(), ..self.others() }
    }

    /// Forgets silent nodes. While this node cannot send, or does not receive its own messages, no node counts as silent, and
    /// each has the full time again afterwards.
    fn forget_silent(&mut self, now: Instant) {
        self.senders.retain(|uid, sender| {
            let age = now.saturating_duration_since(sender.received_at);
            self.peers.contains_key(uid) || age < SENDER_KEPT
        });
        if self.cannot_send {
            return;
        }
        let cut_at = self.cut_at;
        let is_silent = |peer: &Peer| {
            let since = cut_at.map_or(peer.received_at, |cut_at| cut_at.max(peer.received_at));
            now.saturating_duration_since(since) >= SILENCE_MAX
        };
        self.peers.retain(|_, peer| !is_silent(peer));
    }
}

/// Interval between states.
const STATE_INTERVAL: Duration = Duration::from_secs(3);
/// Every live node sends its state within this time: [`STATE_INTERVAL`] is looked at once a second.
const COMPLETE_AFTER: Duration = Duration::from_secs(4);
/// A node that is silent for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// A command that is sent again may wait in a connection, and come so long after the first time.
const SENDER_KEPT: Duration = Duration::from_secs(300);
/// Without periodic work for so long a process stood still.
const STANDSTILL: Duration = Duration::from_secs(5);
/// Concurrent surveys; each may hold the channels of all nodes.
const SURVEYS_MAX: usize = 64;

#[cfg(test)]
mod tests;
