//! How a session enters channels (protocol §8, §9), for `subscribe` and the server-side subscriptions of `connect` alike.
//! In: channels that may be entered, what the client wishes → out: subscriptions and their results, all of them or none.
//! Uses: the roster, broker and presence through the node, `recovery`. Never: asks who may enter.
//! Change here: the order of entering, and what a subscribe result says about positions. Checks live in the commands; what
//! happens while broker, presence or the clerk keep a session waiting lives in `waiting.rs`.

use std::sync::Arc;

use bytes::Bytes;
use fanwire_auth::Overrides;
use fanwire_broker::{Position, Query, Stretch};
use fanwire_protocol::{Disconnect, ErrorCode, Reply, SubscribeRequest, SubscribeResult};

use super::{Refusal, Then, Turn};
use crate::channel::{has_presence_access, may_read_history};
use crate::delta;
use crate::errand::{self, Encoded, Found};
use crate::hub::{CatchUp, Mark};
use crate::options::{Namespace, RecoveryMode};
use crate::recovery::{self, Claim};
use crate::roster::Seat;
use crate::session::Terms;
use crate::waiting::{Held, Part};

/// A session on its way into channels: it is known to the registry, so broker and door serve it already, and it has asked
/// for everything it has to know. It hears nothing before the last answer is there.
#[derive(Debug)]
pub(crate) struct Entrance {
    pub(crate) entries: Vec<Entry>,
    /// Which command it is.
    then: Then,
    telling: Telling,
}

/// Who encodes what a session is told of the channels it enters.
#[derive(Debug)]
enum Telling {
    /// Its shard, in the turn in which it enters.
    Here,
    /// Somebody else, because it is large: no channel is entered before that has come.
    Elsewhere,
    Encoded(Result<Encoded, ErrorCode>),
}

/// One channel on the way in.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) channel: Arc<str>,
    server_side: bool,
    terms: Option<Box<Terms>>,
    tracking: Tracking,
    delta: Option<Mark>,
    visibility: Visibility,
    mode: RecoveryMode,
    claim: Option<OwnClaim>,
    /// What the result says of it, which is more than `claim` where nothing can be recovered.
    was_recovering: bool,
    /// Of the application, for the result.
    data: Bytes,
    stretch: Option<Result<Stretch, ErrorCode>>,
    appeared: Option<Result<(), ErrorCode>>,
    /// Both were there, and what they say is encoded elsewhere.
    large: Option<Large>,
    /// From where on the session is owed what the channel's room holds.
    pub(crate) held_from: u64,
    /// What was published while the session waited, and whether that is all.
    pub(crate) held: Held,
}

/// What an entry that waits for its large reply has to know when it is there.
#[derive(Debug)]
struct Large {
    top: Position,
    /// What became of its recovery, if it wants one.
    recovered: Option<bool>,
    /// Publications that it recovers.
    missed: usize,
}

/// How far a session is that enters channels. Results are in the order of its entries.
pub(super) enum Progress {
    Entered(Vec<SubscribeResult>),
    /// This is to be encoded elsewhere, and the entries to wait for it.
    Large(Vec<SubscribeResult>, Vec<Entry>),
    /// Entered, and these tell it so.
    Told(Vec<Bytes>),
}

/// What a command that enters channels comes to when their answers are all there.
#[expect(clippy::large_enum_variant, reason = "most are replies, and one is not boxed on its way")]
pub(super) enum Finished {
    Reply(Reply),
    /// What it is told is large, and to be encoded elsewhere.
    Large(Found, Vec<Entry>),
    /// It was, and this is it.
    Told(Vec<Bytes>),
}

/// What is known of a subscription before it is made.
pub(super) struct Wish<'a> {
    pub(super) channel: &'a str,
    pub(super) server_side: bool,
    pub(super) terms: Option<Box<Terms>>,
    pub(super) tracking: Tracking,
    /// It gets deltas, to begin with like this.
    pub(super) delta: Option<Mark>,
    pub(super) visibility: Visibility,
    /// The position the client names.
    pub(super) claim: Option<Claim<'a>>,
    /// It wants to go on from there.
    pub(super) recovers: bool,
    /// The client rather has error 112 than a subscription with a gap.
    pub(super) only_recovered: bool,
    /// What it is given if it recovers.
    pub(super) mode: RecoveryMode,
    pub(super) data: Bytes,
}

/// A claim of a session that may have to wait.
#[derive(Debug)]
struct OwnClaim {
    offset: u64,
    epoch: String,
    only_recovered: bool,
}

/// How a subscription follows the stream of its channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tracking {
    /// Gaps are noticed.
    positioned: bool,
    /// Gaps can be filled; implies `positioned`.
    recoverable: bool,
}

impl Tracking {
    /// As the namespace or a token forces it, or as the client wishes where it is allowed to or may read history anyway.
    pub(super) fn of(
        turn: &Turn<'_>,
        namespace: &Namespace,
        overrides: Overrides,
        request: Option<&SubscribeRequest>,
    ) -> Self {
        if !namespace.retention().keeps_history() {
            return Self::default();
        }
        let may_read = || may_read_history(turn.who(), namespace, true).is_ok();
        let wished = |wish: fn(&SubscribeRequest) -> bool, allowed: bool| {
            request.is_some_and(wish) && (allowed || may_read())
        };
        let recoverable = overrides.force_recovery.unwrap_or(namespace.force_recovery)
            || wished(|request| request.recoverable, namespace.allow_recovery);
        let positioned = recoverable
            || overrides.force_positioning.unwrap_or(namespace.force_positioning)
            || wished(|request| request.positioned, namespace.allow_positioning);
        Self { positioned, recoverable }
    }
}

/// How a subscription begins that gets deltas: when the client wishes and the namespace allows it. With a filter never:
/// what is skipped would be missing from the base of the next one (protocol §11).
pub(super) fn deltas(
    namespace: &Namespace,
    tracking: Tracking,
    request: &SubscribeRequest,
) -> Option<Mark> {
    let is_allowed = request.tf.is_none() && namespace.allows_delta(&request.delta);
    is_allowed.then_some(match tracking.positioned {
        true => Mark::AwaitsStream,
        false if namespace.keep_latest_publication => Mark::AwaitsLatest,
        false => Mark::Full,
    })
}

/// How a subscription is seen by others, and sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Visibility {
    /// It is in the presence of the channel.
    present: bool,
    /// Its join and its leave are announced.
    announced: bool,
    /// It hears of joins and leaves.
    hears: bool,
}

impl Visibility {
    /// As the namespace or a token says; joins and leaves are heard by force, or where the client wishes and may know.
    pub(super) fn of(
        turn: &Turn<'_>,
        namespace: &Namespace,
        overrides: Overrides,
        request: Option<&SubscribeRequest>,
    ) -> Self {
        let announced = overrides.join_leave.unwrap_or(namespace.join_leave);
        let wished = announced
            && request.is_some_and(|request| request.join_leave)
            && has_presence_access(turn.who(), namespace, true);
        let forced = overrides.force_push_join_leave.unwrap_or(namespace.force_push_join_leave);
        let present = overrides.presence.unwrap_or(namespace.presence);
        Self { present, announced, hears: forced || wished }
    }
}

/// The position that a request names, whether it wants to recover or not.
pub(super) fn claim(request: &SubscribeRequest) -> Claim<'_> {
    Claim { offset: request.offset, epoch: &request.epoch }
}

/// Begins to enter a channel: first the registry, so that everything published from now on is on its way to this shard;
/// then the look into the stream and the presence, at once. The session has a name by now.
pub(super) fn begin(
    turn: &mut Turn<'_>,
    namespace: &Namespace,
    wish: Wish<'_>,
    number: usize,
) -> Entry {
    let channel = turn.node.join(wish.channel, turn.roster.shard());
    let mode = wish.mode;
    let claim = effective_claim(&wish, namespace);
    let was_recovering = wish.recovers || claim.is_some();
    let limit = turn.node.options().client.recovery_max_publication_limit;
    let query = wish.tracking.positioned.then(|| {
        let is_filtered = wish.terms.as_ref().is_some_and(|terms| terms.filter.is_some());
        claim
            .as_ref()
            .map_or(Query::TOP, |claim| recovery::query(mode, claim.borrowed(), limit, is_filtered))
    });
    let follow = turn.node.follow(&channel, query, namespace.retention(), turn.now);
    let stretch = turn.soon(follow, move |result| Part::Stretch(number, result));
    let appeared = match wish.visibility.present {
        true => {
            let me = turn.session().info_as(wish.terms.as_deref());
            let appear = turn.node.appear(&channel, me, turn.now);
            turn.soon(appear, move |result| Part::Presence(number, result))
        }
        false => Some(Ok(())),
    };
    let Wish { server_side, terms, tracking, delta, visibility, data, .. } = wish;
    let (held_from, held) = (0, Held::default());
    Entry {
        channel,
        server_side,
        terms,
        tracking,
        delta,
        visibility,
        mode,
        claim,
        was_recovering,
        data,
        stretch,
        appeared,
        large: None,
        held_from,
        held,
    }
}

/// The claim of the client, or the one that the namespace makes for it. Only a stream can be refused for what is missing: a
/// cache that holds nothing yet would be refused for ever.
fn effective_claim(wish: &Wish<'_>, namespace: &Namespace) -> Option<OwnClaim> {
    let is_automatic = namespace.auto_cache_recover && wish.mode == RecoveryMode::Cache;
    if !wish.tracking.recoverable || !wish.recovers && !is_automatic {
        return None;
    }
    let Claim { offset, epoch } = wish.claim.unwrap_or(Claim { offset: 0, epoch: "" });
    let only_recovered = wish.only_recovered && wish.mode == RecoveryMode::Stream;
    Some(OwnClaim { offset, epoch: epoch.to_owned(), only_recovered })
}

impl OwnClaim {
    fn borrowed(&self) -> Claim<'_> {
        Claim { offset: self.offset, epoch: &self.epoch }
    }
}

impl Entrance {
    pub(super) fn new(entries: Vec<Entry>, then: Then) -> Self {
        Self { entries, then, telling: Telling::Here }
    }

    /// One that waits for its reply.
    pub(super) fn untold(entries: Vec<Entry>, then: Then) -> Self {
        Self { entries, then, telling: Telling::Elsewhere }
    }

    /// Its entries, which command it is, and the reply, if that was encoded elsewhere.
    pub(super) fn into_parts(self) -> (Vec<Entry>, Then, Option<Result<Encoded, ErrorCode>>) {
        let encoded = match self.telling {
            Telling::Encoded(encoded) => Some(encoded),
            Telling::Here | Telling::Elsewhere => None,
        };
        (self.entries, self.then, encoded)
    }

    /// Whether every answer has come.
    pub(crate) fn is_complete(&self) -> bool {
        match self.telling {
            Telling::Here => self.entries.iter().all(Entry::is_complete),
            Telling::Elsewhere => false,
            Telling::Encoded(_) => true,
        }
    }

    /// Whether it is the first one of its session.
    pub(crate) fn is_of_connect(&self) -> bool {
        matches!(self.then, Then::Connect { .. })
    }

    /// One more answer.
    pub(crate) fn arrive(&mut self, part: Part) {
        match part {
            Part::Stretch(number, result) => self.entries[number].stretch = Some(result),
            Part::Presence(number, result) => self.entries[number].appeared = Some(result),
            Part::Encoded(result) => self.telling = Telling::Encoded(result),
            Part::Outcome(_) | Part::Key | Part::Turn => {
                unreachable!("an entrance waits for none of these")
            }
        }
    }
}

impl Entry {
    fn is_complete(&self) -> bool {
        self.stretch.is_some() && self.appeared.is_some()
    }

    pub(super) fn gets_deltas(&self) -> bool {
        self.delta.is_some()
    }

    /// What became of its recovery, if there could be one.
    fn outcome(&self, result: &SubscribeResult) -> Option<bool> {
        self.claim.as_ref().map(|_| result.recovered)
    }

    /// What it says is encoded elsewhere; it is entered behind that.
    fn put_off(mut self, top: Position, mut result: SubscribeResult) -> (SubscribeResult, Self) {
        result.delta = self.gets_deltas();
        let (recovered, missed) = (self.outcome(&result), result.publications.len());
        self.large = Some(Large { top, recovered, missed });
        (result, self)
    }

    /// Whatever the answers say, this is not to be entered.
    pub(crate) fn fail(&mut self, error: ErrorCode) {
        self.stretch = Some(Err(error));
    }

    /// Undoes what `begin` did.
    pub(crate) fn abandon(self, turn: (&crate::node::Node, crate::notice::ShardId), client: &str) {
        let (node, shard) = turn;
        if self.visibility.present {
            node.disappear(&self.channel, client);
        }
        node.leave(&self.channel, shard);
    }

    /// The top of the stream, and what the result says about it and about what was missed.
    fn judge(&mut self) -> Result<(Position, SubscribeResult), ErrorCode> {
        self.appeared.take().expect(COMPLETE)?;
        let read = self.stretch.take().expect(COMPLETE)?;
        let Tracking { positioned, recoverable } = self.tracking;
        let (data, was_recovering) = (std::mem::take(&mut self.data), self.was_recovering);
        if !positioned {
            let result = SubscribeResult { data, was_recovering, ..Default::default() };
            return Ok((Position::default(), result));
        }
        let top = read.top;
        let claim = self.claim.as_ref();
        let filter = self.terms.as_ref().and_then(|terms| terms.filter.as_deref());
        let missed =
            claim.and_then(|claim| recovery::recover(self.mode, claim.borrowed(), read, filter));
        if missed.is_none() && claim.is_some_and(|claim| claim.only_recovered) {
            return Err(ErrorCode::UNRECOVERABLE_POSITION);
        }
        // A client that recovered moves on from its own position, publication by publication.
        let offset = match (&missed, claim) {
            (Some(_), Some(claim)) => claim.offset,
            _ => top.offset,
        };
        let result = SubscribeResult {
            positioned,
            recoverable,
            offset,
            epoch: top.epoch.to_string(),
            was_recovering,
            recovered: missed.is_some(),
            publications: missed.unwrap_or_default(),
            data,
            ..SubscribeResult::default()
        };
        Ok((top, result))
    }
}

/// Enters all channels, of which every answer is there. When what they say to their new subscriber is large, none is entered
/// before that is `encoded`, and what is published meanwhile is held as behind a slow broker.
///
/// # Errors
/// 100 when broker or presence failed, or nobody encoded; 112 when only a recovered subscription was wanted; the disconnect of
/// who cannot be told in its encoding. None is entered then.
pub(super) fn all(
    turn: &mut Turn<'_>,
    mut entries: Vec<Entry>,
    encoded: Option<Result<Encoded, ErrorCode>>,
) -> Result<Progress, Refusal> {
    if let Some(encoded) = encoded {
        return told(turn, entries, encoded).map(Progress::Told);
    }
    let judged: Result<Vec<_>, _> = entries.iter_mut().map(Entry::judge).collect();
    let judged = match judged {
        Ok(judged) => judged,
        Err(error) => {
            abandon(turn, entries);
            return Err(error.into());
        }
    };
    let is_large = errand::are_large(judged.iter().map(|(_, result)| &result.publications));
    let seats = entries.into_iter().zip(judged);
    if !is_large {
        let entered = seats.map(|(entry, (top, result))| tell(turn, entry, top, result));
        return Ok(Progress::Entered(entered.collect()));
    }
    let (results, entries) = seats.map(|(entry, (top, result))| entry.put_off(top, result)).unzip();
    Ok(Progress::Large(results, entries))
}

/// The large reply is there: the channels are entered with it, or left.
fn told(
    turn: &mut Turn<'_>,
    mut entries: Vec<Entry>,
    encoded: Result<Encoded, ErrorCode>,
) -> Result<Vec<Bytes>, Refusal> {
    // Something fails an entry for which more was published meanwhile than is held.
    let failed = entries.iter_mut().find_map(|entry| entry.stretch.take().and_then(Result::err));
    let messages = match failed.map_or(encoded, Err) {
        Ok(Encoded { messages: Some(messages), saved }) => {
            turn.roster.counters().count_deltas(saved);
            Ok(messages)
        }
        Ok(Encoded { messages: None, .. }) => Err(Disconnect::INAPPROPRIATE_PROTOCOL.into()),
        Err(error) => Err(error.into()),
    };
    match messages {
        Ok(messages) => {
            for mut entry in entries {
                let Large { top, recovered, missed } = entry.large.take().expect(COMPLETE);
                sit_down(turn, entry, top, missed);
                count(turn, recovered, missed);
            }
            Ok(messages)
        }
        Err(refusal) => {
            abandon(turn, entries);
            Err(refusal)
        }
    }
}

/// Enters a channel with a result that is told at once.
fn tell(
    turn: &mut Turn<'_>,
    entry: Entry,
    top: Position,
    mut result: SubscribeResult,
) -> SubscribeResult {
    if entry.gets_deltas() {
        result.delta = true;
        turn.backlog.compared += errand::payload_bytes(&result.publications);
        let saved = delta::shape_missed(turn.session().encoding, &mut result.publications);
        turn.roster.counters().count_deltas(saved);
    }
    let (missed, recovered) = (result.publications.len(), entry.outcome(&result));
    sit_down(turn, entry, top, missed);
    count(turn, recovered, missed);
    result
}

/// Takes a seat in a channel: what is published from now on is delivered, after what was held meanwhile, which is left to
/// the turn. Its join comes through the inbox, so after the reply, which tells so many publications as missed.
fn sit_down(turn: &mut Turn<'_>, entry: Entry, top: Position, missed: usize) {
    let Entry { channel, server_side, terms, tracking, delta, visibility, held, .. } = entry;
    let Held { broadcasts, is_doubted } = held;
    let (node, index) = (turn.node, turn.key.index);
    let place = turn.roster.sit_down(index, &channel, Seat { server_side, terms });
    let caught_up = match tracking.positioned {
        true => CatchUp::from(top, broadcasts),
        false => CatchUp::all(broadcasts),
    };
    if tracking.positioned {
        turn.roster.watch(node, index, place, caught_up.position, turn.now);
    }
    if tracking.positioned && is_doubted {
        turn.roster.doubt(&channel, node.clock().moment(turn.now));
    }
    match delta {
        // What it recovered is the base of the first one.
        Some(mark) => {
            turn.roster.agree(index, place, if missed > 0 { Mark::HasStream } else { mark })
        }
        // Those that agreed to deltas take no part in context.
        None if missed > 0 => turn.roster.recover(index, place),
        None => {}
    }
    turn.backlog.add(place, caught_up);
    if visibility.present {
        turn.roster.appeared(node, index, place, turn.now);
    }
    if visibility.hears {
        turn.roster.hear(index, place);
    }
    if visibility.announced {
        turn.roster.announce(node, index, place);
    }
}

/// Leaves all entries as if they had never begun.
pub(super) fn abandon(turn: &mut Turn<'_>, entries: Vec<Entry>) {
    let client = turn.session().client();
    for entry in entries {
        entry.abandon((turn.node, turn.roster.shard()), &client);
    }
}

/// Counts a subscription that was made; `recovered` says what became of its recovery, if it wanted one.
fn count(turn: &Turn<'_>, recovered: Option<bool>, missed: usize) {
    let counters = turn.roster.counters();
    counters.subscriptions_accepted.add(1);
    if let Some(recovered) = recovered {
        let outcome = if recovered { &counters.recoveries } else { &counters.failed_recoveries };
        outcome.add(1);
        counters.recovered_publications.add(missed as u64);
    }
}

const COMPLETE: &str = "every answer has come";

#[cfg(test)]
mod tests;
