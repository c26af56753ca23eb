//! The `history` command (protocol §18): stored publications of a channel, and the top of its stream.
//! In: a HistoryRequest → out: a HistoryResult, or why not.
//! Uses: channel rules, the broker through the node. Never: subscriptions, except to see whether there is one.
//! Change here: order of the checks and how long a page is. How streams are read lives in `broker/`, the reply is made
//! in `encode_job.rs`.

use fanwire_protocol::HistoryRequest;

use super::{Begun, CommandContext, CommandStep, named};
use crate::channel::may_read_history;
use crate::encode_job::ReplySource;
use crate::node::Page;

pub(super) fn handle(context: &mut CommandContext<'_>, request: HistoryRequest) -> Begun {
    let HistoryRequest { channel, limit, since, reverse } = request;
    named(&channel)?;
    let namespace = context.resolve(&channel)?;
    may_read_history(context.who(), namespace, context.place_of(&channel).is_some())?;
    let limit = page_length(limit, context.node.options().client.history_max_publication_limit);
    let page = Page { limit, since, reverse };
    let read = context.node.read(&channel, &page, namespace.retention(), context.now);
    CommandStep::of(read, |stretch| ReplySource::StreamSlice(stretch).into())
}

/// Below zero asks for all, which is as much as `max` allows; `max` 0 allows any length.
fn page_length(limit: i32, max: usize) -> Option<usize> {
    let max = (max > 0).then_some(max);
    let Ok(limit) = usize::try_from(limit) else { return max };
    Some(max.map_or(limit, |max| limit.min(max)))
}
