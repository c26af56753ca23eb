//! Channels with subscribers: the question of one node to the others, and its pages.
//! In: a glob and a position in the order of names → out: which of a node's channels belong to the answer.
//! Pure. Never: where channels are kept.
//! Change here: what a page is. `message.rs` encodes the question between nodes.

use std::collections::BTreeMap;

use crate::message::Survey;

/// Subscribers by channel.
pub type SurveyChannels = BTreeMap<String, u32>;

/// The channels that match, in the order of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelQuery {
    /// A glob; "" = all.
    pub pattern: String,
    /// Only names that come after this one; "" = all.
    pub after: String,
    /// Channels of a page. A result has one more when there are more.
    pub limit: usize,
}

impl From<&str> for ChannelQuery {
    fn from(pattern: &str) -> Self {
        Self { pattern: pattern.to_owned(), after: String::new(), limit: usize::MAX }
    }
}

impl ChannelQuery {
    /// Adds a channel that matches, if it belongs to the page or is the first after it.
    pub fn add(&self, channels: &mut SurveyChannels, name: &str, subscribers: u32) {
        let is_full = channels.len() > self.limit;
        let is_before_last =
            || channels.last_key_value().is_some_and(|(last, _)| name < last.as_str());
        if name > self.after.as_str() && (!is_full || is_before_last()) {
            channels.insert(name.to_owned(), subscribers);
            self.cut(channels);
        }
    }

    /// Removes what is behind the first channel after the page.
    pub fn cut(&self, channels: &mut SurveyChannels) {
        while channels.len().saturating_sub(1) > self.limit {
            channels.pop_last();
        }
    }

    pub(crate) fn survey(self, number: u64) -> Survey {
        let Self { pattern, after, limit } = self;
        // A node of a version without pages answers with all channels.
        Survey { number, pattern, after, limit: u32::try_from(limit).unwrap_or(0) }
    }
}

impl From<Survey> for ChannelQuery {
    fn from(Survey { pattern, after, limit, .. }: Survey) -> Self {
        let limit = if limit == 0 { usize::MAX } else { limit as usize };
        Self { pattern, after, limit }
    }
}
