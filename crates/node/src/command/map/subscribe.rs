//! The `subscribe` command for map channels: authorized once, then pages until the client is live (protocol §27).
//! In: a SubscribeRequest, or what was read for one → out: a page, a pending read, the switch to live, or an error.
//! Uses: `map::paging` for the phases, the node's maps to read. Never: permissions; those of `subscribe.rs` apply.
//! Changed here: what surrounds a page. The order of the phases is in `map/paging.rs`, the switch in `live.rs`.

use std::sync::Arc;

use fanwire_broker::map::MapRetention;
use fanwire_policy::InNamespace;
use fanwire_policy::options::Namespace;
use fanwire_protocol::{Disconnect, ErrorCode, SubscribeRequest, SubscribeResult};

use super::live::{TOO_SLOW, go_live};
use crate::command::hook::HookDecision;
use crate::command::subscribe::{Authorized, authorize, check_request, check_type};
use crate::command::{CommandContext, CommandStep, StepResult};
use crate::encode_job::ReplySource;
use crate::map::paging::{PageRead, PageRequest, PageStep, Paging, PendingPage, Phase};
use crate::map::retain_wanted;
use crate::map_release;
use crate::pending::{HeldChanges, Outcome, PagingGrant, Reservation, Visibility};
use crate::refusal::CommandError;
use crate::session::Lifetime;
use crate::subscribers::DeltaState;

/// Handles one request of a subscribe. A refused continuation ends it.
pub(in crate::command) fn handle(
    context: &mut CommandContext<'_>,
    request: SubscribeRequest,
) -> StepResult {
    end_overdue(context, &request);
    check_request(context, &request)?;
    let namespace = context.resolve(&request.channel)?;
    check_type(&request, namespace.subscription_type)?;
    let result = begin_or_continue(context, &request, namespace);
    let ends = |error: &CommandError| error.code() != ErrorCode::ALREADY_SUBSCRIBED.code;
    if result.as_ref().err().is_some_and(ends) {
        end(context, &request.channel);
    }
    result
}

/// Continues after a read.
pub(in crate::command) fn page_read(
    context: &mut CommandContext<'_>,
    page: PendingPage,
    read: Result<PageRead, ErrorCode>,
) -> StepResult {
    let channel = Arc::clone(&page.channel);
    let result = match read.and_then(|read| next_step(context, &page, read)) {
        Ok(step) => execute(context, page, step),
        Err(code) => Err(code.into()),
    };
    if result.is_err() {
        end(context, &channel);
    }
    result
}

fn begin_or_continue(
    context: &mut CommandContext<'_>,
    request: &SubscribeRequest,
    namespace: &Namespace,
) -> StepResult {
    let limit = namespace.map.page_size(request.limit);
    let page = PageRequest::read(request, limit)?;
    let index = context.key.index;
    let reservation = context.session_table.pending.reservations.find(index, &request.channel);
    if !page.begins(reservation.is_some())? {
        return proceed(context, &request.channel, page);
    }
    context.limit_in(InNamespace::Subscribe, &request.channel, namespace)?;
    let authorized = match authorize(context, request, namespace)? {
        HookDecision::Pending(answer) => return Ok(CommandStep::Ask(answer)),
        HookDecision::Made(authorized) => authorized.ok_or(ErrorCode::PERMISSION_DENIED)?,
    };
    reserve(context, request, namespace, authorized);
    if has_stream(namespace) {
        return proceed(context, &request.channel, page);
    }
    let channel = join(context, &request.channel);
    let answer = context.node.maps().follow(&channel, None, context.now);
    let page = Box::new(PendingPage { channel, request: page });
    Ok(CommandStep::PageBehindInbox(page, answer.map(|read| read.map(|_| PageRead::Followed))))
}

fn has_stream(namespace: &Namespace) -> bool {
    namespace.map_retention().is_some_and(MapRetention::has_stream)
}

/// Keeps what the client was granted until it is live.
fn reserve(
    context: &mut CommandContext<'_>,
    request: &SubscribeRequest,
    namespace: &Namespace,
    authorized: Authorized,
) {
    let Authorized { terms, lifetime, overrides, data, ignores_request } = authorized;
    let has_stream = has_stream(namespace);
    let has_deltas = request.tf.is_none() && namespace.allows_delta(&request.delta);
    let requested = Some(request).filter(|_| !ignores_request);
    let debounce = namespace.client_publish_debounce_interval;
    let grant = PagingGrant {
        terms,
        lifetime,
        visibility: Visibility::of(context, namespace, overrides, requested),
        // Without offsets a change may reach a client for the second time, behind a newer one: no value is a safe base.
        delta: has_deltas.then_some(if has_stream {
            DeltaState::HasStream
        } else {
            DeltaState::Full
        }),
        data,
        requested_data: request.data.clone(),
        live_changes_max: namespace.map.live_changes_max(),
        publish_debounce: u32::try_from(debounce.as_millis()).unwrap_or(u32::MAX),
        timeout: namespace.map.subscribe_catch_up_timeout,
    };
    let reservation = Reservation {
        channel: Arc::from(request.channel.as_str()),
        paging: Paging::new(has_stream, context.now),
        grant,
        held: HeldChanges::None,
    };
    context.session_table.pending.reservations.add(context.key.index, reservation);
}

/// Lets the changes of an ephemeral map reach the shard. Its inbox may have older ones, from a time before another subscriber left:
/// they are older than the first page, and must be gone before the buffer begins.
fn join(context: &mut CommandContext<'_>, channel: &str) -> Arc<str> {
    let index = context.key.index;
    let channel = context.node.channels().join(channel, context.session_table.shard);
    let reservations = &mut context.session_table.pending.reservations;
    let reservation = reservations.find(index, &channel).expect(RESERVED);
    reservation.channel = Arc::clone(&channel);
    reservation.held = HeldChanges::Joined;
    let timeout = reservation.grant.timeout;
    if !timeout.is_zero() {
        let due = context.node.clock().moment(context.now).after(timeout);
        context.session_table.timers.reservations.set(index, due);
    }
    channel
}

/// Buffers the changes of an ephemeral map before its first page is read: it has no stream in which they are found later.
fn hold_changes(context: &mut CommandContext<'_>, channel: &Arc<str>) {
    let pending = &mut context.session_table.pending;
    let reservation = pending.reservations.find(context.key.index, channel);
    if reservation.is_some_and(|reservation| reservation.held == HeldChanges::Joined) {
        let first = pending.begin_to_hold(channel);
        let reservation = pending.reservations.find(context.key.index, channel).expect(RESERVED);
        reservation.held = HeldChanges::From(first);
    }
}

/// Takes the first step of a request whose subscribe is authorized.
fn proceed(context: &mut CommandContext<'_>, channel: &str, request: PageRequest) -> StepResult {
    let index = context.key.index;
    let reservation =
        context.session_table.pending.reservations.find(index, channel).expect(RESERVED);
    if reservation.is_over(context.now) {
        return Err(CommandError::disconnect(Disconnect::SLOW, TOO_SLOW));
    }
    let step = reservation.paging.begin(&request)?;
    let expire_at = reservation.grant.lifetime.expire_at;
    let channel = Arc::clone(&reservation.channel);
    Lifetime::of(context, expire_at)?;
    execute(context, PendingPage { channel, request }, step)
}

/// The step after a read.
fn next_step(
    context: &mut CommandContext<'_>,
    page: &PendingPage,
    read: PageRead,
) -> Result<PageStep, ErrorCode> {
    if matches!(read, PageRead::Followed) {
        hold_changes(context, &page.channel);
    }
    let index = context.key.index;
    let reservation = context.session_table.pending.reservations.find(index, &page.channel);
    let paging = &mut reservation.ok_or(ErrorCode::PERMISSION_DENIED)?.paging;
    match read {
        PageRead::Followed => paging.begin(&page.request),
        PageRead::Entries(entries) => paging.entries_read(&page.request, entries),
        PageRead::Changes(changes) => paging.changes_read(&page.request, changes),
    }
}

fn execute(context: &mut CommandContext<'_>, page: PendingPage, step: PageStep) -> StepResult {
    let maps = context.node.maps();
    let now = context.now;
    match step {
        PageStep::ReadEntries(query) => {
            let answer = maps.read_state(&page.channel, &query, now);
            Ok(CommandStep::Page(Box::new(page), answer.map(|read| read.map(PageRead::Entries))))
        }
        PageStep::ReadChanges(query) => {
            let answer = maps.read_stream(&page.channel, query, now);
            Ok(CommandStep::Page(Box::new(page), answer.map(|read| read.map(PageRead::Changes))))
        }
        PageStep::Send(result) => send(context, &page.channel, result),
        PageStep::GoLive { since, entries } => go_live(context, &page, since, entries),
    }
}

/// Sends a page, without what the filter of the subscription drops.
fn send(
    context: &mut CommandContext<'_>,
    channel: &str,
    mut result: Box<SubscribeResult>,
) -> StepResult {
    let index = context.key.index;
    let reservation =
        context.session_table.pending.reservations.find(index, channel).expect(RESERVED);
    let filter = reservation.grant.terms.as_ref().and_then(|terms| terms.filter.as_deref());
    retain_wanted(&mut result.state, filter);
    retain_wanted(&mut result.publications, filter);
    let has_deltas = reservation.grant.delta.is_some();
    Ok(CommandStep::Done(Outcome::ReplySource(ReplySource::Missed(result, has_deltas))))
}

/// Ends the subscribes of the session that took too long, so that they do not count for its limit. One that the request continues
/// stays: its client has to learn it.
fn end_overdue(context: &mut CommandContext<'_>, request: &SubscribeRequest) {
    let index = context.key.index;
    let is_first = request.phase == Phase::State as i32 && request.cursor.is_empty();
    for other in context.session_table.pending.reservations.channels(index) {
        let reservation =
            context.session_table.pending.reservations.find(index, &other).expect(RESERVED);
        let is_continued = *other == *request.channel && !is_first;
        if reservation.is_over(context.now) && !is_continued {
            end(context, &other);
        }
    }
}

fn end(context: &mut CommandContext<'_>, channel: &str) {
    let index = context.key.index;
    map_release::end(context.node, context.session_table, index, channel);
}

const RESERVED: &str = "the subscribe was reserved";
