//! An engine in Redis in a takeover: both programs are subscribed to the same channels, and change places at one message.
//! In: the node and its Redis, the link → out: the old program's connections stop at a mark, the new one's begin behind it.
//! Uses the link and the order of a Redis. Never: the sockets of clients.
//! Changed here: what both programs tell each other about Redis. What passes on a connection is decided in `redis`.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_node::Node;
use fanwire_redis::Redis;
use serde::{Deserialize, Serialize};

use super::link::{MessageKind, ProgramLink};

/// A node and its Redis.
pub(crate) struct RedisSide {
    pub(crate) redis: Arc<Redis>,
    pub(crate) node: Arc<Node>,
}

/// The message of the old program.
#[derive(Serialize, Deserialize)]
struct SubscribedChannels {
    /// The value of the mark that it will publish.
    mark: String,
    /// Channels with subscribers.
    channels: Vec<String>,
}

impl RedisSide {
    /// The old program: lets both stop at one message, when no client subscribes any more. Blocks.
    ///
    /// # Errors
    /// The new program does not answer, or Redis does not.
    pub(super) fn stop(&self, link: &mut ProgramLink) -> io::Result<()> {
        let value = format!("{:016x}", rand::random::<u64>());
        let channels = self.node.channels().occupied();
        let mark = self.redis.takeover_mark(self.node.uid(), &value);
        let message = SubscribedChannels { mark: value, channels };
        link.send(MessageKind::Channels, &serde_json::to_vec(&message)?, &[])?;
        link.expect(MessageKind::Subscribed)?;
        if !self.redis.stop_at(&mark, &[]) {
            return Err(no_answer());
        }
        self.redis.publish_mark(&mark);
        self.wait_for_mark()
    }

    /// The new program: subscribes to the channels of the old one, which it returns. Blocks.
    ///
    /// # Errors
    /// The old program has another engine or has ended, or Redis does not answer.
    pub(super) fn subscribe(&self, link: &mut ProgramLink) -> io::Result<Vec<String>> {
        let payload = link.expect(MessageKind::Channels)?;
        let SubscribedChannels { mark, channels } = serde_json::from_slice(&payload)?;
        let mark = self.redis.takeover_mark(self.node.uid(), &mark);
        if !self.redis.stop_at(&mark, &channels) {
            return Err(no_answer());
        }
        link.send(MessageKind::Subscribed, &[], &[])?;
        Ok(channels)
    }

    /// The new program, with all connections in shards that stand still: forgets the channels that none of them has. Blocks.
    ///
    /// # Errors
    /// The mark has not come: it may have another Redis.
    pub(super) fn complete(&self, channels: &[String]) -> io::Result<()> {
        self.wait_for_mark()?;
        self.node.channels().unsubscribe_vacant(channels);
        Ok(())
    }

    fn wait_for_mark(&self) -> io::Result<()> {
        let has_come = self.redis.wait_for_mark(Instant::now() + MARK_MAX);
        if has_come { Ok(()) } else { Err(no_answer()) }
    }
}

fn no_answer() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "Redis does not answer, or is another one")
}

/// The longest time from the publication of the mark until it has come on all connections.
const MARK_MAX: Duration = Duration::from_secs(2);
