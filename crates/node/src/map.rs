//! Map channels inside a shard: the phases of a subscribe, its end, the form of entries with deltas (protocol §27).
//! In: requests and what was read for them, results → out: the next step of a subscribe, results as clients receive them.
//! Uses: values of `broker` and `protocol`. Never: sessions, brokers, clocks; `command/map/` calls these with what it reads.
//! Changed here: the list of modules.

pub(crate) mod deltas;
pub(crate) mod live;
pub(crate) mod paging;

use fanwire_policy::filter::SubscriptionFilter;
use fanwire_protocol::Publication;

/// `type` of requests that change a map, and of all results of map subscriptions.
pub(crate) const MAP: i32 = 1;

/// Removes what a filter drops, and the times, which are for the nodes.
pub(crate) fn retain_wanted(
    publications: &mut Vec<Publication>,
    filter: Option<&SubscriptionFilter>,
) {
    publications.retain(|one| filter.is_none_or(|filter| filter.matches(&one.tags)));
    publications.iter_mut().for_each(|one| one.time = 0);
}
