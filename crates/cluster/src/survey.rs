//! Surveys: questions to all other nodes, whose answers become one.
//! In: answers of nodes, the time → out: the sum of all answers, or an error; how long each took.
//! Uses: the table of nodes, under its lock. Never: the bus.
//! Change here: what an answer adds. What can be asked is in `lib.rs`.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fanwire_broker::Promise;
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

/// A running survey: counts or connections collected from all nodes.
pub(crate) struct Survey {
    pub(crate) kind: SurveyKind,
    /// Uids that have not answered.
    pub(crate) awaited: BTreeSet<String>,
    pub(crate) found: SurveyResult,
    pub(crate) until: Instant,
    pub(crate) promise: Promise<SurveyResult, ErrorCode>,
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
    /// The survey was sent, or could not be. Returns it when no answer is outstanding.
    pub(crate) fn asked(&mut self, number: u64, is_asked: bool) -> Option<Survey> {
        let survey = self.surveys.get(&number)?;
        let is_over = !is_asked || survey.awaited.is_empty();
        is_over.then(|| self.surveys.remove(&number)).flatten()
    }

    /// Adds the answer of a node. Returns the survey when it was the last one.
    pub(crate) fn answered(
        &mut self,
        from: &str,
        answer: message::SurveyChannels,
        now: Instant,
    ) -> Option<Survey> {
        let survey = self.surveys.get_mut(&answer.survey)?;
        if survey.awaited.remove(from) {
            for (name, count) in answer.channels {
                *survey.found.counts.entry(name).or_default() += count;
            }
            survey.found.page.connections.extend(answer.connections);
            survey.found.page.next = answer.next;
            survey.found.diagnostics.extend(answer.diagnostics);
        }
        if !survey.awaited.is_empty() {
            return None;
        }
        let survey = self.surveys.remove(&answer.survey)?;
        let remaining = survey.until.saturating_duration_since(now);
        self.times.surveys[survey.kind as usize].observe(SURVEY_TIME.saturating_sub(remaining));
        Some(survey)
    }

    /// A node left with its channels: no survey waits for it any more. Returns the surveys that waited for it alone.
    pub(crate) fn done_with(&mut self, uid: &str) -> Vec<Survey> {
        for survey in self.surveys.values_mut() {
            survey.awaited.remove(uid);
        }
        self.take_surveys(|survey| survey.awaited.is_empty())
    }

    pub(crate) fn take_surveys(&mut self, which: impl Fn(&Survey) -> bool) -> Vec<Survey> {
        self.surveys.extract_if(|_, survey| which(survey)).map(|(_, survey)| survey).collect()
    }
}

impl Survey {
    pub(crate) fn end(self) {
        self.promise.keep(Ok(self.found));
    }

    pub(crate) fn fail(self) {
        self.promise.keep(Err(ErrorCode::INTERNAL));
    }
}

/// Time limit of a survey (server API §3 channels).
pub(crate) const SURVEY_TIME: Duration = Duration::from_secs(10);
