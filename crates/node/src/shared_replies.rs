//! Encoded replies to recoveries of one shard: after an outage, most clients ask for the same publications of a channel.
//! In: the reply to a subscribe → out: its encoded message, made once for equal replies.
//! Uses: the encoders of `fanwire_protocol`. Never: sessions; it is for subscriptions without a filter of their own.
//! Changed here: which replies are shared, and how long they are kept.

use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_protocol::{Encoding, Publication, Reply, SubscribeResult, encode_reply};

/// The replies that were needed last, the newest at the end.
#[derive(Debug, Default)]
pub(crate) struct SharedReplies(Vec<SharedReply>);

#[derive(Debug)]
struct SharedReply {
    channel: Box<str>,
    encoding: Encoding,
    id: u32,
    /// Everything but the publications.
    result: SubscribeResult,
    /// How many publications follow `result.offset`, and the offset of the last one. Within one epoch these are the same
    /// publications.
    publications: (usize, u64),
    message: Bytes,
    used_at: Instant,
}

/// The reply to a subscribe, without its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubscribeReply<'a> {
    pub(crate) channel: &'a str,
    pub(crate) encoding: Encoding,
    /// Id of the command.
    pub(crate) id: u32,
}

impl SharedReplies {
    /// Whether other clients are likely to ask for the same, and the reply is long enough.
    pub(crate) fn is_shared(result: &SubscribeResult) -> bool {
        result.recovered && result.publications.len() >= PUBLICATIONS_MIN
    }

    /// The message with the reply to a subscribe, of a result that [is shared](Self::is_shared).
    ///
    /// # Errors
    /// The result, when it has a payload that the encoding does not have.
    pub(crate) fn message(
        &mut self,
        wanted: SubscribeReply<'_>,
        mut result: SubscribeResult,
        now: Instant,
    ) -> Result<Bytes, Box<SubscribeResult>> {
        let SubscribeReply { channel, encoding, id } = wanted;
        let count = result.publications.len();
        let last = result.publications.last().map_or(0, |last| last.offset);
        let publications = std::mem::take(&mut result.publications);
        let place = self.0.iter().position(|one| {
            (one.id, one.encoding, one.publications) == (id, encoding, (count, last))
                && *one.channel == *channel
                && one.result == result
        });
        let shared = if let Some(place) = place {
            SharedReply { used_at: now, ..self.0.remove(place) }
        } else {
            let (message, result) = encode(encoding, id, result, publications)?;
            self.0.drain(..(self.0.len() + 1).saturating_sub(REPLIES_MAX));
            let channel = channel.into();
            let publications = (count, last);
            let used_at = now;
            SharedReply { channel, encoding, id, result, publications, message, used_at }
        };
        let message = shared.message.clone();
        self.0.push(shared);
        Ok(message)
    }

    /// Drops the replies that were not needed for a while.
    pub(crate) fn drop_unused(&mut self, now: Instant) {
        self.0.retain(|one| now.saturating_duration_since(one.used_at) < UNUSED_MAX);
        self.0.shrink_to(self.0.len());
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The message, and the result without publications.
fn encode(
    encoding: Encoding,
    id: u32,
    result: SubscribeResult,
    publications: Vec<Publication>,
) -> Result<(Bytes, SubscribeResult), Box<SubscribeResult>> {
    let subscribe = Some(SubscribeResult { publications, ..result });
    let reply = Reply { id, subscribe, ..Reply::default() };
    let mut message = Vec::new();
    let encoded = encode_reply(encoding, &reply, &mut message);
    let mut result = reply.subscribe.expect("set above");
    match encoded {
        Ok(()) => {
            result.publications = Vec::new();
            message.shrink_to_fit();
            Ok((message.into(), result))
        }
        Err(_) => Err(Box::new(result)),
    }
}

/// Fewer publications are encoded about as quickly as they are found here.
const PUBLICATIONS_MIN: usize = 16;
/// Replies that are kept: each has at most the bytes that are encoded in a turn (`encode_job.rs`).
const REPLIES_MAX: usize = 8;
/// A reply that was not needed for so long is dropped: the clients are back.
const UNUSED_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
