//! Growing messages of the server API: what of a namespace decides about them, and what their publications carry.
//! In: fragments of messages → out: what came of them, from the broker.
//! Uses: the rules of namespaces, the broker. Never: texts; `growing.rs` of `broker` has the rules of a fragment.
//! Changed here: which channels have growing messages, and the tags of their publications.

use std::time::Instant;

use fanwire_broker::{Answer, Append, AppendError, Appended, Fragment};
use fanwire_policy::options::{DataFormat, Namespace};
use fanwire_protocol::{ErrorCode, Publication};

use super::{Channels, temporary};

impl Channels {
    /// Appends to the growing message `key` of a channel; without a fragment, publishes its text that waits. Each
    /// publication has the tag `key`, and the last one `final`.
    ///
    /// # Errors
    /// 102 unknown namespace; 107 impossible name, a namespace of maps or shared polls, or a string where the namespace
    /// demands objects; 108 no history there; 100 broker failure.
    pub fn append(
        &self,
        channel: &str,
        key: &str,
        fragment: Option<Fragment>,
        now: Instant,
    ) -> Answer<Result<Appended, AppendError>, ErrorCode> {
        let settings = self.settings();
        let checked = settings.channels.trusted_rules(channel).and_then(|rules| {
            let namespace = &rules.namespace;
            let is_string = fragment.as_ref().is_some_and(|fragment| fragment.field.is_empty());
            let needs_object = namespace.publication_data_format == DataFormat::JsonObject;
            if !namespace.is_of_streams() || is_string && needs_object {
                return Err(ErrorCode::BAD_REQUEST);
            }
            let retention = namespace.retention();
            if retention.keeps_history() {
                Ok((rules, retention))
            } else {
                Err(ErrorCode::NOT_AVAILABLE)
            }
        });
        let (rules, retention) = match checked {
            Ok(checked) => checked,
            Err(error) => return Answer::now(Err(error)),
        };
        let mut tags = std::collections::BTreeMap::from([("key".to_owned(), key.to_owned())]);
        if fragment.as_ref().is_some_and(|fragment| fragment.is_final) {
            tags.insert("final".to_owned(), "true".to_owned());
        }
        let bytes = fragment.as_ref().map_or(0, |fragment| fragment.text.len());
        let append = Append {
            key: key.to_owned(),
            fragment,
            publication: Publication { tags, time: self.time(now), ..Publication::default() },
            delta: rules.namespace.allows_delta(Namespace::FOSSIL),
            limits: rules.namespace.append,
        };
        self.count_publication(channel, rules.id, bytes);
        self.broker.append(channel, append, retention, now).map_err(temporary)
    }
}
