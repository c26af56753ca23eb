//! The `history` command (protocol §18): stored publications of a channel, and the top of its stream.
//! In: a HistoryRequest → out: a HistoryResult, or an error.
//! Uses: channel rules, the broker through the node. Never: subscriptions, except whether there is one.
//! Changed here: order of the checks and the length of a page. `broker/` reads streams, `encode_job.rs` makes the reply.

use fanwire_policy::channel::may_read_history;
use fanwire_policy::filter::Filter;
use fanwire_protocol::{ErrorCode, HistoryRequest};

use super::{CommandContext, CommandStep, StepResult, named};
use crate::encode_job::ReplySource;
use crate::node::Page;
use crate::refusal::CommandError;

pub(super) fn handle(context: &mut CommandContext<'_>, request: HistoryRequest) -> StepResult {
    let HistoryRequest { channel, limit, since, reverse } = request;
    named(&channel)?;
    let namespace = context.resolve(&channel)?;
    may_read_history(context.who(), namespace, context.subscription_to(&channel).is_some())?;
    if reverse && since.as_ref().is_some_and(|since| since.offset == 0) {
        return Err(CommandError::error(ErrorCode::BAD_REQUEST, BEFORE_THE_FIRST));
    }
    let max = context.settings.options.client.history_max_publication_limit;
    let limit = page_length(limit, max);
    let filter = server_filter(context, &channel).filter(|_| limit != Some(0));
    // What the filter hides does not count for the page.
    let read_limit = if filter.is_some() { page_length(-1, max) } else { limit };
    let page = Page { limit: read_limit, since, reverse };
    let read = context.node.channels().read(&channel, &page, namespace.retention(), context.now);
    CommandStep::of(read, move |mut slice| {
        if let Some(filter) = filter {
            slice.publications.retain(|publication| filter.matches(&publication.tags));
            slice.publications.truncate(limit.unwrap_or(usize::MAX));
        }
        ReplySource::StreamSlice(slice).into()
    })
}

/// The filter that the server set for the subscription of the client. Its own does not apply here.
fn server_filter(context: &CommandContext<'_>, channel: &str) -> Option<Filter> {
    let own = context.subscription_to(channel)?;
    context.session().subscription(own).filter()?.of_server.clone()
}

const BEFORE_THE_FIRST: &str = "no publication is before offset 0, which since names with reverse";

/// Negative: all, up to `max`; `max` 0 is no limit.
fn page_length(limit: i32, max: usize) -> Option<usize> {
    let max = (max > 0).then_some(max);
    let Ok(limit) = usize::try_from(limit) else { return max };
    Some(max.map_or(limit, |max| limit.min(max)))
}
