//! Events out: one target whose address can be read, and types that exist.
//! In: a filled `Config` → out: a remark for each mistake.
//! Uses the options as they are written. Never: connects; shows an address, which may have a password.
//! Changed here: which targets and types are right.

use fanwire_events::{EventType, EventsOptions};

use super::{Remark, Severity};
use crate::nearest::nearest;
use crate::options::Config;

pub(super) fn are_right(config: &Config) -> Vec<Remark> {
    let EventsOptions { http, redis_stream, types, .. } = &config.events;
    let mut found = Vec::new();
    if !redis_stream.address.is_empty() {
        if !http.endpoint.is_empty() {
            let reason = format!(
                "{ADDRESS} and {URL} are both set, but events go to one of them; leave one out"
            );
            found.push((Severity::Error, ADDRESS, reason));
        }
        if let Err(error) = redis_stream.options() {
            found.push((Severity::Error, ADDRESS, format!("{ADDRESS}: {error}")));
        }
    }
    let known = EventType::ALL.map(EventType::name);
    for name in types.iter().filter(|name| !known.contains(&name.as_str())) {
        let expected = match nearest(name, known.into_iter()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("expected some of {}", known.join(" ")),
        };
        found.push((Severity::Error, TYPES, format!("{TYPES} has {name:?}; {expected}")));
    }
    found
}

const ADDRESS: &str = "events.redis_stream.address";
const URL: &str = "events.http.endpoint";
const TYPES: &str = "events.types";

#[cfg(test)]
mod tests;
