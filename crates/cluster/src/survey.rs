//! Surveys: questions to all other nodes, whose answers become one.
//! In: answers of nodes, the time → out: the sum of all answers with the nodes that sent none; how long each took.
//! Uses: the table of nodes, under its lock. Never: the bus.
//! Changed here: how long a node has time. What can be asked, and what an answer adds, is in `node/questions/`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::BrokerError;
use fanwire_protocol::ErrorCode;
use fanwire_telemetry::Histogram;
use prost::Message as _;

use crate::{NodeTable, Question, SurveyKind};

/// Times of messages between nodes, written under the lock of the table.
#[derive(Debug, Default)]
pub struct ClusterTimes {
    /// Time from the publication of this node's state to its own subscription: the delay of PUB/SUB, without another clock.
    pub pub_sub_lag: Histogram,
    /// Times from the question to the last answer, in the order of [`SurveyKind::ALL`].
    pub surveys: [Histogram; SurveyKind::ALL.len()],
}

/// The merged answers of the nodes that were reached, and the names of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surveyed<T> {
    pub found: T,
    /// Names of the nodes that did not answer. What they have is not in `found`.
    pub missing: Vec<String>,
}

impl<T> Surveyed<T> {
    /// The answer of all nodes, none of which is missing.
    pub fn of_all(found: T) -> Self {
        Self { found, missing: Vec::new() }
    }

    /// Converts what was found.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Surveyed<U> {
        Surveyed { found: convert(self.found), missing: self.missing }
    }

    /// The merged answer, if all nodes answered.
    ///
    /// # Errors
    /// 100 when a node is missing.
    pub fn complete(self) -> Result<T, ErrorCode> {
        if self.missing.is_empty() { Ok(self.found) } else { Err(ErrorCode::INTERNAL) }
    }
}

/// A running survey.
pub(crate) struct Survey {
    pub(crate) kind: SurveyKind,
    /// Names of the nodes that have not answered, by uid.
    pub(crate) awaited: BTreeMap<String, String>,
    pub(crate) answers: Answers,
    pub(crate) asked_at: Instant,
    /// Nodes that are to receive the question, this one included if it is for all.
    pub(crate) receivers: usize,
    /// How many of them did not, as far as the bus says.
    pub(crate) unreached: usize,
    /// Merges the answers and sends the result.
    pub(crate) finish: Box<dyn FnOnce(Answers) + Send>,
}

/// The answers of the nodes. They are decoded when the last one is there, outside of the lock.
#[derive(Default)]
pub(crate) struct Answers {
    received: Vec<ReceivedAnswer>,
    /// Names of nodes that the survey does not wait for any more.
    missing: Vec<String>,
}

struct ReceivedAnswer {
    /// Name of the node.
    node: String,
    answer: Bytes,
    round_trip: Duration,
}

impl Answers {
    /// Adds the answers to that of this node. A node whose answer is garbage is missing.
    pub(crate) fn merged<Q: Question>(self, question: &Q, own: Q::Answer) -> Surveyed<Q::Answer> {
        let Self { received, mut missing } = self;
        let mut found = own;
        for ReceivedAnswer { node, answer, round_trip } in received {
            match Q::Answer::decode(answer) {
                Ok(answer) => question.merge(&mut found, answer, round_trip),
                Err(_) => missing.push(node),
            }
        }
        missing.sort_unstable();
        Surveyed { found, missing }
    }
}

impl NodeTable {
    /// The question was sent to `reached` nodes, or to none. Returns the survey when no answer is outstanding.
    pub(crate) fn asked(
        &mut self,
        number: u64,
        reached: Result<usize, BrokerError>,
    ) -> Option<Survey> {
        let survey = self.surveys.get_mut(&number)?;
        survey.unreached = match reached {
            Ok(count) => survey.receivers.saturating_sub(count),
            Err(_) => survey.receivers,
        };
        self.take_survey(number)
    }

    /// Adds the answer of a node. Returns the survey when no other answer is outstanding.
    pub(crate) fn answered(
        &mut self,
        from: &str,
        number: u64,
        answer: Bytes,
        now: Instant,
    ) -> Option<Survey> {
        let survey = self.surveys.get_mut(&number)?;
        let round_trip = now.saturating_duration_since(survey.asked_at);
        if let Some(node) = survey.awaited.remove(from) {
            survey.answers.received.push(ReceivedAnswer { node, answer, round_trip });
        }
        let survey = self.take_survey(number)?;
        self.times.surveys[survey.kind as usize].observe(round_trip);
        Some(survey)
    }

    /// A node left with its channels: no survey waits for it any more. Returns the surveys that waited for it alone.
    pub(crate) fn done_with(&mut self, uid: &str) -> Vec<Survey> {
        for survey in self.surveys.values_mut() {
            if survey.awaited.remove(uid).is_some() {
                // It may be the one that did not receive the question.
                survey.unreached = survey.unreached.saturating_sub(1);
            }
        }
        self.take_over()
    }

    /// Gives up nodes whose time is over, and those that were forgotten. Returns the surveys that end thereby.
    pub(crate) fn give_up_late(&mut self, now: Instant) -> Vec<Survey> {
        let Self { surveys, peers, .. } = self;
        for survey in surveys.values_mut() {
            let asked_at = survey.asked_at;
            let is_late = |uid: &String, _: &mut String| {
                peers.get(uid).is_none_or(|peer| waits_until(asked_at, peer.received_at) <= now)
            };
            let late = survey.awaited.extract_if(.., is_late);
            survey.answers.missing.extend(late.map(|(_, name)| name));
        }
        self.take_over()
    }

    fn take_over(&mut self) -> Vec<Survey> {
        self.surveys.extract_if(|_, survey| survey.is_over()).map(|(_, survey)| survey).collect()
    }

    fn take_survey(&mut self, number: u64) -> Option<Survey> {
        let is_over = self.surveys.get(&number)?.is_over();
        is_over.then(|| self.surveys.remove(&number)).flatten()
    }
}

impl Survey {
    /// Whether all have answered that received the question.
    fn is_over(&self) -> bool {
        let silent = self.awaited.len() + self.answers.missing.len();
        self.awaited.is_empty() || silent <= self.unreached
    }

    pub(crate) fn end(self) {
        let Self { awaited, mut answers, finish, .. } = self;
        answers.missing.extend(awaited.into_values());
        finish(answers);
    }
}

/// How long a survey that was sent at `asked_at` waits for a node from which this one heard last at `heard_at`: long for one
/// that is alive, and shortly for one that is probably dead.
fn waits_until(asked_at: Instant, heard_at: Instant) -> Instant {
    let of_silent = (asked_at + SILENT_NODE_TIME).max(heard_at + SIGN_OF_LIFE_TIME);
    of_silent.min(asked_at + SURVEY_TIME)
}

/// Time limit of a survey (server API §3 channels).
pub(crate) const SURVEY_TIME: Duration = Duration::from_secs(10);
/// The same for a node that gave no sign of life lately.
pub(crate) const SILENT_NODE_TIME: Duration = Duration::from_secs(1);
/// Nodes send their state every 3 to 4 s, so that one without a sign of life for longer than this is probably dead.
pub(crate) const SIGN_OF_LIFE_TIME: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
