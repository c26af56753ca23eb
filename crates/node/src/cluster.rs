//! The other nodes of an installation: who is there, what they are told, what they are asked.
//! In: messages of other nodes, the time → out: unacknowledged for this node's shards, states of all nodes, answers to surveys.
//! Uses: a `Bus` to carry messages; Protobuf with a version byte in front. Never: sockets, channels, sessions.
//! Change here: what nodes tell each other. Publications travel through the broker, not here.

mod message;
mod unacknowledged;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::{Answer, Bus, Promise};
use fanwire_protocol::ErrorCode;
use hashbrown::HashMap;
use parking_lot::Mutex;

pub(crate) use message::ControlCommand;
use message::NodeMessage;
pub use message::{Metrics, NodeState};
use unacknowledged::{ReceivedCommands, SettledPromise, UnacknowledgedCommands};

/// What a node knows of the others. Alone until it gets a bus.
pub(crate) struct Cluster {
    uid: String,
    bus: OnceLock<Arc<dyn Bus>>,
    table: Arc<Mutex<NodeTable>>,
    refused: AtomicU64,
    has_left: AtomicBool,
}

#[derive(Default)]
struct NodeTable {
    /// By uid.
    peers: BTreeMap<String, Peer>,
    commands: UnacknowledgedCommands,
    surveys: HashMap<u64, Survey>,
    last_survey: u64,
    /// When all were told of this node last; `None` before the first time.
    told_at: Option<Instant>,
    /// They have not got it, as far as is known: then their silence may be the fault of the bus.
    is_untold: bool,
    /// This node has not heard that itself: then their silence may be its own fault.
    is_deaf: bool,
    /// When they were told last and did not get it, or this node did not hear what it had told before.
    cut_at: Option<Instant>,
}

struct Peer {
    state: NodeState,
    heard_at: Instant,
    executed: ReceivedCommands,
}

/// SurveyChannels of all nodes, being collected.
struct Survey {
    /// Uids that have not answered.
    awaited: BTreeSet<String>,
    found: SurveyChannels,
    until: Instant,
    promise: Promise<SurveyChannels, ErrorCode>,
}

/// A message that some node sent, as this one would send it; `None` for what is none.
pub(crate) fn rewritten(bytes: &[u8]) -> Option<Bytes> {
    NodeMessage::decoded(bytes).map(|message| message.encoded())
}

/// Subscribers by channel.
pub(crate) type SurveyChannels = BTreeMap<String, u32>;

/// What a message of another node asks of this one.
#[derive(Debug, PartialEq)]
pub(crate) enum Task {
    Nothing,
    /// It was not understood.
    Refuse,
    /// A node appeared: tell it of this one.
    Greet(String),
    Obey(ControlCommand),
    /// A node wants to know the channels that match a pattern.
    Answer {
        to: String,
        survey: u64,
        pattern: String,
    },
}

impl Cluster {
    pub(crate) fn new(uid: String) -> Self {
        Self {
            uid,
            bus: OnceLock::new(),
            table: Arc::default(),
            refused: AtomicU64::new(0),
            has_left: AtomicBool::new(false),
        }
    }

    pub(crate) fn uid(&self) -> &str {
        &self.uid
    }

    pub(crate) fn join(&self, bus: Arc<dyn Bus>) {
        assert!(self.bus.set(bus).is_ok(), "a node is in one cluster");
    }

    /// Messages that were not understood: garbage, or of a version this node does not know.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Tells every other node to do something; at once where there is no bus. A node that does not hear it, because its
    /// connection is just made anew, is told again for a while.
    ///
    /// # Errors
    /// 100 when the bus did not take it, and nobody heard of it; or when some node that is there did not hear it.
    pub(crate) fn command(&self, command: ControlCommand) -> Answer<(), ErrorCode> {
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

    /// Gives an order, for the first time or again.
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

    /// Tells everybody how this node is: the first time when it hears the others, who answer then, and whenever that is
    /// due.
    pub(crate) fn introduce(&self, now: Instant, state: impl FnOnce() -> NodeState) {
        let mut table = self.table.lock();
        if table.told_at.is_some() && table.is_deaf {
            table.cut_at = Some(now);
        }
        (table.told_at, table.is_untold, table.is_deaf) = (Some(now), true, true);
        drop(table);
        let table = Arc::clone(&self.table);
        self.publish_state(None, state).then(move |told| match told {
            Ok(_) => table.lock().is_untold = false,
            Err(_) => table.lock().cut_at = Some(now),
        });
    }

    /// Tells how this node is, to one that does not know it or to everybody; nobody any more once it has left.
    pub(crate) fn publish_state(
        &self,
        to: Option<&str>,
        state: impl FnOnce() -> NodeState,
    ) -> Answer<usize> {
        if self.bus.get().is_none() {
            return Answer::now(Ok(0));
        }
        let state = ControlCommand::State(state());
        // Asked last: another thread may let it leave while this one counts.
        match self.has_left.load(Relaxed) {
            true => Answer::now(Ok(0)),
            false => self.send(to, state),
        }
    }

    /// Tells the others that this node goes. One that does not hear it notices the silence. It hears them until it ends:
    /// whom it answered then, as one that is new, would wait for it.
    pub(crate) fn leave(&self) {
        self.has_left.store(true, Relaxed);
        drop(self.send(None, ControlCommand::Leaving(message::Leaving {})));
    }

    /// Takes a message of another node.
    pub(crate) fn hear(&self, message: &[u8], now: Instant) -> Task {
        let Some(NodeMessage { from, command: Some(command), number }) =
            NodeMessage::decoded(message)
        else {
            self.refused.fetch_add(1, Relaxed);
            return Task::Refuse;
        };
        let mut table = self.table.lock();
        if from == self.uid {
            table.is_deaf &= !matches!(command, ControlCommand::State(_));
            return Task::Nothing;
        }
        match command {
            ControlCommand::State(state) => {
                let Some(peer) = table.peers.get_mut(&from) else {
                    let peer = Peer { state, heard_at: now, executed: ReceivedCommands::default() };
                    table.peers.insert(from.clone(), peer);
                    return Task::Greet(from);
                };
                (peer.state, peer.heard_at) = (state, now);
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
                Task::Answer { to: from, survey: survey.number, pattern: survey.pattern }
            }
            ControlCommand::SurveyChannels(channels) => {
                let done = table.answered(&from, channels.survey, channels.channels);
                drop(table);
                done.into_iter().for_each(Survey::end);
                Task::Nothing
            }
            command => {
                let peer = table.peers.get_mut(&from).filter(|_| number > 0);
                let is_new = peer.is_none_or(|peer| peer.executed.is_new(number));
                if is_new { Task::Obey(command) } else { Task::Nothing }
            }
        }
    }

    /// Answers a survey of another node, which notices when it does not hear the answer.
    pub(crate) fn answer(&self, to: &str, survey: u64, channels: SurveyChannels) {
        drop(self.send(
            Some(to),
            ControlCommand::SurveyChannels(message::SurveyChannels { survey, channels }),
        ));
    }

    /// Asks every other node for its channels, which are added to `own`: all of them, or none.
    ///
    /// # Errors
    /// 100 when the others could not be asked, or one that was there did not answer in time; 111 when too many ask.
    pub(crate) fn survey(
        &self,
        pattern: &str,
        own: SurveyChannels,
        now: Instant,
    ) -> Answer<SurveyChannels, ErrorCode> {
        if self.bus.get().is_none() {
            return Answer::now(Ok(own));
        }
        let mut table = self.table.lock();
        let awaited: BTreeSet<_> = table.peers.keys().cloned().collect();
        if table.surveys.len() >= SURVEYS_MAX {
            return Answer::now(Err(ErrorCode::TOO_MANY_REQUESTS));
        }
        table.last_survey += 1;
        let number = table.last_survey;
        let (promise, answer) = Answer::later();
        let survey = Survey { awaited, found: own, until: now + SURVEY_TIME, promise };
        table.surveys.insert(number, survey);
        drop(table);
        let question = message::Survey { number, pattern: pattern.to_owned() };
        let table = Arc::clone(&self.table);
        self.send(None, ControlCommand::Survey(question)).then(move |asked| {
            let done = table.lock().asked(number, asked.is_ok());
            match (done, asked) {
                (Some(survey), Ok(_)) => survey.end(),
                (Some(survey), Err(_)) => survey.fail(),
                (None, _) => {}
            }
        });
        answer
    }

    /// Forgets nodes that were silent for too long, ends surveys that took too long, gives unacknowledged again that did not reach
    /// all, and says whether it is time to tell again how this node is.
    pub(crate) fn tick(&self, now: Instant) -> bool {
        let mut table = self.table.lock();
        let mut failed = table.forget_silent(now);
        failed.extend(table.take_surveys(|survey| survey.until <= now));
        let is_old = |told_at| now.saturating_duration_since(told_at) >= STATE_INTERVAL;
        let is_due = table.told_at.is_some_and(is_old);
        let mut commands = std::mem::take(&mut table.commands);
        let (again, over) = commands.due(now, |since| table.spoken_since(since));
        table.commands = commands;
        drop(table);
        failed.into_iter().for_each(Survey::fail);
        over.into_iter().for_each(SettledPromise::keep);
        if let Some(bus) = self.bus.get() {
            again
                .into_iter()
                .for_each(|(number, command)| self.give(bus.as_ref(), number, command));
        }
        is_due
    }

    /// The other nodes, as they last said, by uid.
    pub(crate) fn peers(&self) -> Vec<NodeState> {
        self.table.lock().peers.values().map(|peer| peer.state.clone()).collect()
    }
}

impl NodeTable {
    /// The nodes were asked, or could not be. Returns the survey when that is all there is to wait for.
    fn asked(&mut self, number: u64, is_asked: bool) -> Option<Survey> {
        let survey = self.surveys.get(&number)?;
        let is_over = !is_asked || survey.awaited.is_empty();
        is_over.then(|| self.surveys.remove(&number)).flatten()
    }

    /// Adds what a node found. Returns the survey when it was the last one.
    fn answered(&mut self, from: &str, number: u64, channels: SurveyChannels) -> Option<Survey> {
        let survey = self.surveys.get_mut(&number)?;
        if survey.awaited.remove(from) {
            for (channel, subscribers) in channels {
                *survey.found.entry(channel).or_default() += subscribers;
            }
        }
        if survey.awaited.is_empty() { self.surveys.remove(&number) } else { None }
    }

    /// A node went, with its channels: nobody waits for it any more. Returns the surveys that waited for it alone.
    fn done_with(&mut self, uid: &str) -> Vec<Survey> {
        for survey in self.surveys.values_mut() {
            survey.awaited.remove(uid);
        }
        self.take_surveys(|survey| survey.awaited.is_empty())
    }

    fn take_surveys(&mut self, which: impl Fn(&Survey) -> bool) -> Vec<Survey> {
        self.surveys.extract_if(|_, survey| which(survey)).map(|(_, survey)| survey).collect()
    }

    /// How many nodes said something since then. All count if this one may not have heard what they said: one that is deaf
    /// cannot tell who died.
    fn spoken_since(&self, since: Instant) -> usize {
        let is_unsure = self.is_untold || self.is_deaf || self.cut_at.is_some_and(|at| at >= since);
        self.peers.values().filter(|peer| is_unsure || peer.heard_at >= since).count()
    }

    /// Returns the surveys that wait for a node which is forgotten: what it had is not known. While this node cannot make
    /// itself heard, or does not hear itself, nobody counts as silent, and afterwards everybody has as long as ever to say
    /// something.
    fn forget_silent(&mut self, now: Instant) -> Vec<Survey> {
        if self.is_untold {
            return Vec::new();
        }
        let cut_at = self.cut_at;
        let is_silent = |peer: &Peer| {
            let since = cut_at.map_or(peer.heard_at, |cut_at| cut_at.max(peer.heard_at));
            now.saturating_duration_since(since) >= SILENCE_MAX
        };
        let silent: Vec<_> = (self.peers.iter())
            .filter(|(_, peer)| is_silent(peer))
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in &silent {
            self.peers.remove(uid);
        }
        self.take_surveys(|survey| silent.iter().any(|uid| survey.awaited.contains(uid)))
    }
}

impl Survey {
    fn end(self) {
        self.promise.keep(Ok(self.found));
    }

    fn fail(self) {
        self.promise.keep(Err(ErrorCode::INTERNAL));
    }
}

/// How often a node tells how it is.
const STATE_INTERVAL: Duration = Duration::from_secs(3);
/// A node that said nothing for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How long nodes have to answer a survey (server API §3 channels).
const SURVEY_TIME: Duration = Duration::from_secs(10);
/// Surveys under way at once; each may hold the channels of all nodes.
const SURVEYS_MAX: usize = 64;

#[cfg(test)]
mod tests;
