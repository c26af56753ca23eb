//! Surveys: questions to all other nodes, whose answers become one.
//! In: answers of nodes, the time → out: the sum of all answers with the nodes that sent none; how long each took.
//! Uses: the table of nodes, under its lock. Never: the bus.
//! Change here: what an answer adds, how long a node has time. What can be asked is in `lib.rs`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fanwire_broker::{BrokerError, Promise};
use fanwire_protocol::ErrorCode;
use fanwire_telemetry::Histogram;

use crate::message;
use crate::{ConnectionPage, DiagnosticAnswer, NodeTable, SurveyChannels};

/// Times of messages between nodes, written under the lock of the table.
#[derive(Debug, Default)]
pub struct ClusterTimes {
    /// Time from the publication of this node's state to its own subscription: the delay of PUB/SUB, without another clock.
    pub pub_sub_lag: Histogram,
    /// Times from the question to the last answer, in the order of [`SurveyKind::ALL`].
    pub surveys: [Histogram; SurveyKind::ALL.len()],
}

/// The subject of a survey, as a label of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurveyKind {
    Channels,
    Users,
    Connections,
    Diagnostics,
}

impl SurveyKind {
    /// Every kind, in the order of the enum.
    pub const ALL: [Self; 4] = [Self::Channels, Self::Users, Self::Connections, Self::Diagnostics];

    /// The label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Channels => "channels",
            Self::Users => "users",
            Self::Connections => "connections",
            Self::Diagnostics => "diagnostics",
        }
    }
}

/// The merged answers of the nodes that were reached, and the names of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surveyed<T> {
    pub found: T,
    /// Names of the nodes that did not answer. What they have is not in `found`.
    pub missing: Vec<String>,
}

impl<T> Surveyed<T> {
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

/// A running survey: counts or connections collected from all nodes.
pub(crate) struct Survey {
    pub(crate) kind: SurveyKind,
    /// Names of the nodes that have not answered, by uid.
    pub(crate) awaited: BTreeMap<String, String>,
    /// Names of nodes that the survey does not wait for any more.
    pub(crate) missing: Vec<String>,
    pub(crate) found: SurveyResult,
    pub(crate) asked_at: Instant,
    /// Nodes that are to receive the question, this one included if it is for all.
    pub(crate) receivers: usize,
    /// How many of them did not, as far as the bus says.
    pub(crate) unreached: usize,
    pub(crate) promise: Promise<Surveyed<SurveyResult>, ErrorCode>,
}

/// The result of a survey.
#[derive(Debug, Default)]
pub(crate) struct SurveyResult {
    /// Subscribers by channel, or connections by user.
    pub(crate) counts: SurveyChannels,
    pub(crate) page: ConnectionPage,
    pub(crate) diagnostics: Vec<DiagnosticAnswer>,
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
        answer: message::SurveyChannels,
        now: Instant,
    ) -> Option<Survey> {
        let survey = self.surveys.get_mut(&answer.survey)?;
        if survey.awaited.remove(from).is_some() {
            for (name, count) in answer.channels {
                *survey.found.counts.entry(name).or_default() += count;
            }
            survey.found.page.connections.extend(answer.connections);
            survey.found.page.next = answer.next;
            survey.found.diagnostics.extend(answer.diagnostics);
        }
        let survey = self.take_survey(answer.survey)?;
        let time = now.saturating_duration_since(survey.asked_at);
        self.times.surveys[survey.kind as usize].observe(time);
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
            survey.missing.extend(survey.awaited.extract_if(.., is_late).map(|(_, name)| name));
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
        let silent = self.awaited.len() + self.missing.len();
        self.awaited.is_empty() || silent <= self.unreached
    }

    pub(crate) fn end(self) {
        let Self { mut missing, awaited, found, promise, .. } = self;
        missing.extend(awaited.into_values());
        missing.sort_unstable();
        promise.keep(Ok(Surveyed { found, missing }));
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
