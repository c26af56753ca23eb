//! The other nodes of an installation: membership, control commands and surveys.
//! In: messages of other nodes, the time → out: control commands for this node's shards, states of all nodes, answers to surveys.
//! Uses: a `Bus` to carry messages; Protobuf with a version byte in front. Never: sockets, channels, sessions.
//! Change here: what nodes send each other. Publications travel through the broker, not here.

#![forbid(unsafe_code)]

mod channels;
mod control;
mod diagnostics;
mod message;
mod node_answer;
mod occupancy;
mod receipt;
mod revocation_sync;
mod survey;
mod unacknowledged;
mod users;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::{Answer, Bus};
use fanwire_protocol::{ErrorCode, StreamPosition};
use hashbrown::HashMap;
use parking_lot::Mutex;

pub use channels::{ChannelQuery, SurveyChannels};
pub use control::{ConnectionSelector, Renewal, ServerSubscribe, ServerSubscription};
pub use diagnostics::{
    ConnectionLogQuery, ConnectionLogRecord, DebugForCommand, DiagnosticAnswer, DiagnosticQuestion,
    DiagnosticSurvey, HotEntry, HotRecord, LoggedEvent, ReceiptRecord,
};
use message::{ConnectionSurvey, NodeMessage};
pub use message::{ControlCommand, EmulationCommand, ViewCommand};
pub use message::{Metrics, NodeState};
pub use node_answer::{ConnectionList, DiagnosticList};
pub use occupancy::OccupancyReport;
pub use receipt::{Receipt, Receipts};
pub use revocation_sync::{AfterPages, Received, RevocationSync};
pub use survey::{ClusterTimes, SurveyKind, Surveyed};
use survey::{Survey, SurveyResult};
use unacknowledged::{ReceivedCommands, SettledPromise, UnacknowledgedCommands};
pub use users::{
    CONNECTIONS_MAX, ConnectionPage, ConnectionRange, ConnectionRecord, Connections, TokenRecord,
    UserSurvey,
};

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
    commands: UnacknowledgedCommands,
    surveys: HashMap<u64, Survey>,
    last_survey: u64,
    /// Time at which this node last sent its state to all; `None` before the first time.
    told_at: Option<Instant>,
    /// The last state was not delivered, as far as is known: silence of the others may be a fault of the bus.
    cannot_send: bool,
    /// This node did not receive its own last state: silence of the others may be its own fault.
    cannot_receive: bool,
    /// Last time a state was not delivered, or this node did not receive its own.
    cut_at: Option<Instant>,
    times: Arc<ClusterTimes>,
}

struct Peer {
    state: NodeState,
    received_at: Instant,
    executed: ReceivedCommands,
}

/// Decodes a message and encodes it again; `None` for invalid bytes.
pub fn rewritten(bytes: &[u8]) -> Option<Bytes> {
    NodeMessage::decoded(bytes).map(|message| message.encoded())
}

/// Task of this node after a message of another node.
#[derive(Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "moved once for each message, never stored")]
pub enum Task {
    Nothing,
    /// The message was not understood.
    Refuse,
    /// A new node: send it the state of this node.
    Introduce(String),
    Execute(ControlCommand),
    /// Another node asks for the channels that match a pattern.
    Answer {
        to: String,
        survey: u64,
        query: ChannelQuery,
    },
    /// A message about occupied channels, also of this node itself.
    ReceiveOccupancy {
        from: String,
        report: OccupancyReport,
    },
    /// Another node asks how many connections users have.
    AnswerUsers {
        to: String,
        survey: UserSurvey,
    },
    /// Another node asks for connections.
    AnswerConnections {
        to: String,
        survey: u64,
        target: ConnectionSelector,
        range: ConnectionRange,
    },
    /// Another node asks something for diagnosis.
    AnswerDiagnostics {
        to: String,
        survey: DiagnosticSurvey,
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
            let others = table.peers.len();
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

    /// Sends the state of this node to all: first when its own subscription works, so that answers arrive, then at
    /// each interval.
    pub fn introduce(&self, now: Instant, state: impl FnOnce() -> NodeState) {
        let mut table = self.table.lock();
        if table.told_at.is_some() && table.cannot_receive {
            table.cut_at = Some(now);
        }
        (table.told_at, table.cannot_send, table.cannot_receive) = (Some(now), true, true);
        drop(table);
        let table = Arc::clone(&self.table);
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
        match self.has_left.load(Relaxed) {
            true => Answer::now(Ok(0)),
            false => self.send(to, state),
        }
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
        let Some(NodeMessage { from, command: Some(command), number }) =
            NodeMessage::decoded(message)
        else {
            self.refused.fetch_add(1, Relaxed);
            return Task::Refuse;
        };
        if let ControlCommand::Occupancy(report) = command {
            return Task::ReceiveOccupancy { from, report };
        }
        let mut table = self.table.lock();
        if from == self.uid {
            if matches!(command, ControlCommand::State(_))
                && std::mem::take(&mut table.cannot_receive)
                && let Some(told_at) = table.told_at
            {
                let lag = now.saturating_duration_since(told_at);
                table.times.pub_sub_lag.observe(lag);
            }
            return Task::Nothing;
        }
        match command {
            ControlCommand::State(state) => {
                let Some(peer) = table.peers.get_mut(&from) else {
                    let peer =
                        Peer { state, received_at: now, executed: ReceivedCommands::default() };
                    table.peers.insert(from.clone(), peer);
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
            ControlCommand::Survey(survey) => {
                Task::Answer { to: from, survey: survey.number, query: survey.into() }
            }
            ControlCommand::UserSurvey(survey) => Task::AnswerUsers { to: from, survey },
            ControlCommand::DiagnosticSurvey(survey) => {
                Task::AnswerDiagnostics { to: from, survey }
            }
            ControlCommand::ConnectionSurvey(survey) => Task::AnswerConnections {
                to: from,
                survey: survey.number,
                target: survey.target.into(),
                range: ConnectionRange {
                    after: survey.after,
                    limit: (survey.limit as usize).min(CONNECTIONS_MAX),
                },
            },
            ControlCommand::SurveyChannels(answer) => {
                let done = table.answered(&from, answer, now);
                drop(table);
                done.into_iter().for_each(Survey::end);
                Task::Nothing
            }
            command => {
                let peer = table.peers.get_mut(&from).filter(|_| number > 0);
                let is_new = peer.is_none_or(|peer| peer.executed.is_new(number));
                if is_new { Task::Execute(command) } else { Task::Nothing }
            }
        }
    }

    /// Answers a survey of another node. A lost answer fails the survey there.
    pub fn answer(&self, to: &str, survey: u64, channels: SurveyChannels) {
        let answer = message::SurveyChannels { survey, channels, ..Default::default() };
        drop(self.send(Some(to), ControlCommand::SurveyChannels(answer)));
    }

    /// Answers a survey of connections.
    pub fn answer_connections(&self, to: &str, survey: u64, page: ConnectionPage) {
        let ConnectionPage { connections, next } = page;
        let channels = SurveyChannels::new();
        let answer =
            message::SurveyChannels { survey, channels, connections, next, ..Default::default() };
        drop(self.send(Some(to), ControlCommand::SurveyChannels(answer)));
    }

    /// Answers a survey for diagnosis.
    pub fn answer_diagnostics(&self, to: &str, survey: u64, answer: DiagnosticAnswer) {
        let diagnostics = Some(answer);
        let answer = message::SurveyChannels { survey, diagnostics, ..Default::default() };
        drop(self.send(Some(to), ControlCommand::SurveyChannels(answer)));
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

    /// Whether there may be other nodes.
    pub fn has_bus(&self) -> bool {
        self.bus.get().is_some()
    }

    /// Asks every other node for its channels and adds them to `own`. Nodes that could not be asked, or did not answer in time, are
    /// missing.
    ///
    /// # Errors
    /// 111 when too many surveys run.
    pub fn survey(
        &self,
        query: ChannelQuery,
        own: SurveyChannels,
        now: Instant,
    ) -> Answer<Surveyed<SurveyChannels>, ErrorCode> {
        let found = SurveyResult { counts: own, ..SurveyResult::default() };
        let question = |number| ControlCommand::Survey(query.survey(number));
        self.ask(SurveyKind::Channels, None, question, found, now)
            .map(|all| all.map(|all| all.map(|all| all.counts)))
    }

    /// Asks every other node for its connections of some users, and adds their numbers to `own`.
    ///
    /// # Errors
    /// The errors of [`survey`](Self::survey).
    pub fn count_users(
        &self,
        users: Vec<String>,
        own: SurveyChannels,
        now: Instant,
    ) -> Answer<Surveyed<SurveyChannels>, ErrorCode> {
        let found = SurveyResult { counts: own, ..SurveyResult::default() };
        let question =
            |number| ControlCommand::UserSurvey(UserSurvey { number, users, ..Default::default() });
        self.ask(SurveyKind::Users, None, question, found, now)
            .map(|all| all.map(|all| all.map(|all| all.counts)))
    }

    /// Asks every other node for the connections of a range that a selector matches.
    ///
    /// # Errors
    /// The errors of [`survey`](Self::survey).
    pub fn connections(
        &self,
        target: &ConnectionSelector,
        range: &ConnectionRange,
        now: Instant,
    ) -> Answer<Surveyed<Connections>, ErrorCode> {
        let (target, after, limit) = (target.into(), range.after.clone(), range.limit as u32);
        let question = |number| {
            ControlCommand::ConnectionSurvey(ConnectionSurvey { number, target, after, limit })
        };
        let all = self.ask(SurveyKind::Connections, None, question, SurveyResult::default(), now);
        all.map(|all| all.map(|all| all.map(|all| all.page.connections)))
    }

    /// Asks every other node a question for diagnosis. Returns their answers in no order.
    ///
    /// # Errors
    /// The errors of [`survey`](Self::survey).
    pub fn diagnose(
        &self,
        question: DiagnosticQuestion,
        now: Instant,
    ) -> Answer<Surveyed<Vec<DiagnosticAnswer>>, ErrorCode> {
        let question = |number| {
            let question = Some(question);
            ControlCommand::DiagnosticSurvey(DiagnosticSurvey { number, question })
        };
        let all = self.ask(SurveyKind::Diagnostics, None, question, SurveyResult::default(), now);
        all.map(|all| all.map(|all| all.map(|all| all.diagnostics)))
    }

    /// Asks another node for a page of its connections of all users.
    ///
    /// # Errors
    /// 104 for a node that is not there; those of [`survey`](Self::survey).
    pub fn page(
        &self,
        node: &str,
        page_start: u64,
        page_limit: u32,
        now: Instant,
    ) -> Answer<Surveyed<ConnectionPage>, ErrorCode> {
        if !self.table.lock().peers.contains_key(node) {
            return Answer::now(Err(ErrorCode::METHOD_NOT_FOUND));
        }
        let survey = UserSurvey { page_start, page_limit, ..UserSurvey::default() };
        let question = |number| ControlCommand::UserSurvey(UserSurvey { number, ..survey });
        let one =
            self.ask(SurveyKind::Connections, Some(node), question, SurveyResult::default(), now);
        one.map(|one| one.map(|one| one.map(|one| one.page)))
    }

    fn ask(
        &self,
        kind: SurveyKind,
        to: Option<&str>,
        question: impl FnOnce(u64) -> ControlCommand,
        found: SurveyResult,
        now: Instant,
    ) -> Answer<Surveyed<SurveyResult>, ErrorCode> {
        if self.bus.get().is_none() {
            return Answer::now(Ok(Surveyed { found, missing: Vec::new() }));
        }
        let mut table = self.table.lock();
        if table.surveys.len() >= SURVEYS_MAX {
            return Answer::now(Err(ErrorCode::TOO_MANY_REQUESTS));
        }
        let asked = table.peers.iter().filter(|(uid, _)| to.is_none_or(|to| to == uid.as_str()));
        let awaited: BTreeMap<_, _> =
            asked.map(|(uid, peer)| (uid.clone(), peer.state.name.clone())).collect();
        let receivers = awaited.len() + usize::from(to.is_none());
        let (promise, answer) = Answer::later();
        let survey = Survey {
            kind,
            awaited,
            missing: Vec::new(),
            found,
            asked_at: now,
            receivers,
            unreached: 0,
            promise,
        };
        table.last_survey += 1;
        let number = table.last_survey;
        table.surveys.insert(number, survey);
        drop(table);
        let table = Arc::clone(&self.table);
        self.send(to, question(number)).then(move |reached| {
            let done = table.lock().asked(number, reached);
            done.into_iter().for_each(Survey::end);
        });
        answer
    }

    /// Forgets nodes that were silent for too long, ends surveys that took too long, repeats unacknowledged commands,
    /// and returns whether the state of this node is due again.
    pub fn tick(&self, now: Instant) -> bool {
        let mut table = self.table.lock();
        table.forget_silent(now);
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
    /// How many nodes sent something since then. All count if this node may not have received them: a node whose own
    /// subscription is down cannot tell dead nodes from silent ones.
    fn spoken_since(&self, since: Instant) -> usize {
        let is_unsure =
            self.cannot_send || self.cannot_receive || self.cut_at.is_some_and(|at| at >= since);
        self.peers.values().filter(|peer| is_unsure || peer.received_at >= since).count()
    }

    /// Forgets silent nodes. While this node cannot send, or does not receive its own messages, no node counts as silent, and
    /// each has the full time again afterwards.
    fn forget_silent(&mut self, now: Instant) {
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
/// A node that is silent for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Concurrent surveys; each may hold the channels of all nodes.
const SURVEYS_MAX: usize = 64;

#[cfg(test)]
mod tests;
