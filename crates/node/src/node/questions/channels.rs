//! The channels with subscribers, on all nodes.
//! In: a glob, a page → out: each channel that matches with its number of subscribers.
//! Uses: the registry. Never: shards, sessions.
//! Changed here: what the list of channels says.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fanwire_broker::Answer;
use fanwire_cluster::{Question, SurveyKind};
use fanwire_policy::Glob;
use fanwire_policy::tiles::is_tile;
use fanwire_protocol::ErrorCode;

use super::{Ask, NameRange};
use crate::node::Node;

/// Asks for the channels that match, in the order of names. 107 for an invalid glob.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ChannelQuestion {
    /// A glob (`*`, `?`, `[a-z]`, `[!a]`, `{a,b}`); "" = all.
    #[prost(string, tag = "2")]
    pub pattern: String,
    /// Only names that come after this one; "" = all.
    #[prost(string, tag = "3")]
    pub after: String,
    /// Channels of a page; 0 = all. An answer has one more when there are more.
    #[prost(uint32, tag = "4")]
    pub limit: u32,
}

/// Channels with their subscribers.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ChannelCounts {
    #[prost(btree_map = "string, uint32", tag = "2")]
    pub channels: BTreeMap<String, u32>,
}

impl From<&str> for ChannelQuestion {
    fn from(pattern: &str) -> Self {
        Self { pattern: pattern.to_owned(), ..Self::default() }
    }
}

impl ChannelQuestion {
    fn range(&self) -> NameRange<'_> {
        let limit = if self.limit == 0 { usize::MAX } else { self.limit as usize };
        NameRange { after: &self.after, limit }
    }
}

impl Question for ChannelQuestion {
    type Answer = ChannelCounts;
    const TAG: u32 = 6;
    const KIND: SurveyKind = SurveyKind::Channels;

    fn merge(&self, all: &mut ChannelCounts, one: ChannelCounts, _: Duration) {
        for (channel, subscribers) in one.channels {
            *all.channels.entry(channel).or_default() += subscribers;
        }
        self.range().cut(&mut all.channels);
    }
}

impl Ask for ChannelQuestion {
    const IS_FOR_SHARDS: bool = false;

    fn begin(&self, node: &Node, _: Instant) -> Result<ChannelCounts, ErrorCode> {
        let glob = Glob::new(&self.pattern).ok_or(ErrorCode::BAD_REQUEST)?;
        let range = self.range();
        let mut channels = BTreeMap::new();
        node.registry().each_channel(|channel, subscribers| {
            if glob.matches(channel) && !is_tile(channel) && range.has(channel, &channels) {
                channels.insert(channel.to_owned(), subscribers);
                range.cut(&mut channels);
            }
        });
        Ok(ChannelCounts { channels })
    }
}

impl Node {
    /// The channels that match, each with its subscribers on all nodes.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask); 100 when a node is missing.
    pub fn list_channels(
        &self,
        question: impl Into<ChannelQuestion>,
        now: Instant,
    ) -> Answer<BTreeMap<String, u32>, ErrorCode> {
        self.ask(question.into(), now).map(|all| Ok(all?.complete()?.channels))
    }
}
