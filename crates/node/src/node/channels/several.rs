//! Several publications for one channel, all of them or none.
//! In: payloads and `now` → out: their positions.
//! Uses: the checks and the ports of `channels`. Never: sessions, HTTP.
//! Changed here: what is checked before the first one. `channels.rs` publishes one.

use std::time::Instant;

use bytes::Bytes;
use fanwire_broker::{Answer, Position, PublishOptions};
use fanwire_policy::channel::check_data;
use fanwire_protocol::{ErrorCode, Publication};

use super::Channels;

impl Channels {
    /// Publishes payloads in their order, after a check of all of them. Publications of others may come between them. Empty
    /// without payloads.
    ///
    /// # Errors
    /// The errors of [`publish`](Self::publish). With an engine that can fail, some may have been published.
    pub fn publish_several(
        &self,
        channel: &str,
        payloads: Vec<Bytes>,
        now: Instant,
    ) -> Answer<Vec<Position>, ErrorCode> {
        let settings = self.settings();
        let checked = settings.channels.resolve_trusted(channel).and_then(|namespace| {
            let mut payloads = payloads.iter();
            payloads.try_for_each(|data| check_data(namespace.publication_data_format, data))
        });
        if let Err(error) = checked {
            return Answer::now(Err(error));
        }
        let publish = |data| {
            let publication = Publication { data, ..Publication::default() };
            self.publish(channel, publication, PublishOptions::default(), now)
        };
        Answer::all(payloads.into_iter().map(publish).collect())
    }
}
