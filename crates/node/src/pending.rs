//! Sessions of a shard that wait for an answer of broker, presence, a key provider or a hook, with everything that arrives during the wait.
//! In: commands that cannot be answered yet, later frames and control commands of their sessions, broadcasts of channels that
//! sessions subscribe to → out: the same, when the answers are there.
//! Uses: values only. Never: sends. With the memory broker a session waits for its turn only, after many commands at once.
//! Changed here: what is kept for a waiting session. `hub/resume.rs` continues it.

mod calls;
mod channel_buffer;
mod reservations;
mod subscribe;

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use fanwire_broker::{Renewal, StreamSlice};
use fanwire_policy::hooks::{CommandDecision, Rejection};
use fanwire_protocol::{ErrorCode, Reply, UnsubscribeCode};
use hashbrown::HashMap;

use crate::broadcast::Broadcast;
use crate::counters::CommandKind;
use crate::encode_job::{Encoded, ReplySource};
use crate::map::paging::{PageRead, PendingPage};
use crate::session::ConnectionKey;
use calls::Calls;
pub(crate) use channel_buffer::BufferedMessages;
use channel_buffer::ChannelBuffer;
use fanwire_cluster::ServerSubscribe;
pub(crate) use reservations::{HeldChanges, PagingGrant, Reservation, Reservations};
pub(crate) use subscribe::{
    ConnectAttributes, GridView, OwnedPosition, PendingChannel, PendingSubscribe, SubscribeOrigin,
    SubscriptionStart, Tracking, Visibility,
};

/// The waiting sessions of one shard. A session waits for one command at most: later ones are deferred, so that each
/// is answered before the next begins, with every broker. Only calls of a backend may run next to each other.
#[derive(Debug, Default)]
pub(crate) struct PendingCommands {
    /// Waiting commands by connection index.
    pending: HashMap<u32, PendingCommand>,
    channel_buffers: HashMap<Arc<str>, ChannelBuffer>,
    /// Calls of backends for which sessions do not wait.
    pub(crate) calls: Calls,
    /// Subscribes that take several requests.
    pub(crate) reservations: Reservations,
    ticket: u64,
}

/// Identifies a wait, so that an answer to one that was given up is dropped.
pub(crate) type Ticket = u64;

/// A session whose command waits, with its deferred work.
#[derive(Debug)]
struct PendingCommand {
    generation: u32,
    state: State,
    deferred: VecDeque<Deferred>,
    /// Bytes of the deferred work.
    deferred_bytes: usize,
}

#[derive(Debug)]
enum State {
    Waits(CommandWait),
    /// Its deferred work is running.
    Resumes,
}

#[derive(Debug)]
struct CommandWait {
    ticket: Ticket,
    /// Id of the command.
    id: u32,
    work: Awaited,
    /// Exists for an encode job only.
    interest: Option<Arc<()>>,
}

/// Event that a session waits for.
#[derive(Debug)]
pub(crate) enum Awaited {
    /// The reply to a command.
    Reply(Option<CommandKind>),
    /// The key of the token in a command. Holds the bytes of the command, because its decoded form may be many times
    /// larger.
    Key(Bytes),
    /// The decision of a hook about a command, which is kept for the same reason.
    CommandDecision(Bytes),
    /// The decision of a hook about an rpc, or the end of another call of the session.
    Call(Bytes),
    /// All channels of a subscribe or a connect.
    Enter(Box<PendingSubscribe>),
    /// A page of a subscribe that takes several requests.
    Page(Box<PendingPage>),
    /// Its turn, after other connections: it ran many commands at once.
    Turn,
    /// Its own publications, which it receives before these replies to its publishes.
    OwnPublications(Vec<Reply>),
}

/// The outcome of a successful command.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "most are replies, and one is not boxed on its way")]
pub(crate) enum Outcome {
    Reply(Reply),
    /// The source of the reply, which may be large.
    ReplySource(ReplySource),
}

/// Work of a session that was deferred while it waited.
#[derive(Clone, Debug)]
pub(crate) enum Deferred {
    /// Commands of the client.
    Frame(Bytes),
    /// The rest of a message behind a pending command; nothing runs after a `connect` that is refused.
    Rest(Bytes),
    /// A control command, for one channel or all.
    Unsubscribe(Option<Arc<str>>, UnsubscribeCode),
    /// A control command.
    Subscribe(Arc<ServerSubscribe>),
    /// A control command that waits only for a pending connect.
    Refresh(Box<Renewal>),
}

/// More work was deferred than a waiting session may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeferLimitExceeded;

/// One of the results that a session waits for, in the inbox of its shard.
#[derive(Clone, Debug)]
pub struct AwaitedResult {
    pub(crate) key: ConnectionKey,
    pub(crate) ticket: Ticket,
    pub(crate) part: Part,
}

/// Which result it is; numbers count the channels of a pending subscribe.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Outcome(Box<Result<Outcome, ErrorCode>>),
    /// The reply, encoded by a worker.
    Encoded(Result<Encoded, ErrorCode>),
    /// The key was fetched, or the fetch failed.
    Key,
    CommandDecision(Box<Result<CommandDecision, Rejection>>),
    /// Other connections had their turn.
    Turn,
    Page(Box<Result<PageRead, ErrorCode>>),
    StreamSlice(usize, Result<StreamSlice, ErrorCode>),
    Presence(usize, Result<(), ErrorCode>),
}

impl From<Reply> for Outcome {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

impl From<ReplySource> for Outcome {
    fn from(source: ReplySource) -> Self {
        Self::ReplySource(source)
    }
}

impl AwaitedResult {
    /// Bytes of payloads that it keeps alive.
    pub(crate) fn payload_bytes(&self) -> usize {
        match &self.part {
            Part::Outcome(outcome) => match outcome.as_ref() {
                Ok(Outcome::ReplySource(source)) => source.payload_bytes(),
                Ok(Outcome::Reply(_)) | Err(_) => 0,
            },
            Part::Encoded(encoded) => {
                encoded.iter().flat_map(|one| &one.messages).flatten().map(Bytes::len).sum()
            }
            Part::Page(read) => read.as_ref().as_ref().map_or(0, PageRead::payload_bytes),
            Part::StreamSlice(_, slice) => slice.as_ref().map_or(0, StreamSlice::payload_bytes),
            Part::CommandDecision(decision) => {
                decision.as_ref().as_ref().map_or(0, CommandDecision::bytes)
            }
            Part::Key | Part::Turn | Part::Presence(..) => 0,
        }
    }
}

impl PendingCommands {
    /// A new ticket.
    pub(crate) fn ticket(&mut self) -> Ticket {
        self.ticket += 1;
        self.ticket
    }

    /// The session waits from now on.
    pub(crate) fn suspend(
        &mut self,
        key: ConnectionKey,
        ticket: Ticket,
        id: u32,
        mut work: Awaited,
    ) {
        if let Awaited::Enter(pending_subscribe) = &mut work {
            for pending_channel in &mut pending_subscribe.channels {
                pending_channel.held_from = self.begin_to_hold(&pending_channel.channel);
            }
        }
        let old = self.pending.remove(&key.index);
        let (deferred, deferred_bytes) =
            old.map(|old| (old.deferred, old.deferred_bytes)).unwrap_or_default();
        let generation = key.generation;
        let state = State::Waits(CommandWait { ticket, id, work, interest: None });
        let pending = PendingCommand { generation, state, deferred, deferred_bytes };
        self.pending.insert(key.index, pending);
    }

    /// A call of the session ended: if it waits for another one, it waits no longer, and its deferred work may run.
    pub(crate) fn wait_no_longer(&mut self, key: ConnectionKey) -> bool {
        let Some(pending) = self.pending.get_mut(&key.index) else { return false };
        let State::Waits(wait) = &pending.state else { return false };
        let Awaited::Call(command) = &wait.work else { return false };
        self.calls.add(key, wait.ticket, command.clone(), usize::MAX);
        pending.state = State::Resumes;
        true
    }

    /// A reference that ends when the waiting session no longer waits.
    pub(crate) fn interest(&mut self, key: ConnectionKey) -> Weak<()> {
        let wait = self.pending.get_mut(&key.index).and_then(PendingCommand::wait_mut);
        wait.map_or_else(Weak::new, |wait| Arc::downgrade(wait.interest.get_or_insert_default()))
    }

    /// If the session waits, defers `what` and returns true.
    ///
    /// # Errors
    /// It is too much, and the session must be ended. The first item is always accepted.
    pub(crate) fn defer(
        &mut self,
        key: ConnectionKey,
        what: impl FnOnce() -> Deferred,
    ) -> Result<bool, DeferLimitExceeded> {
        if self.pending.is_empty() {
            return Ok(false);
        }
        match self.pending.get_mut(&key.index) {
            Some(pending) if pending.waits_as(key) => pending.defer(what()).map(|()| true),
            _ => Ok(false),
        }
    }

    /// Buffers a broadcast for the sessions that subscribe to its channel.
    pub(crate) fn hold(&mut self, broadcast: &Arc<Broadcast>) {
        if self.channel_buffers.is_empty() {
            return;
        }
        if let Some(channel_buffer) = self.channel_buffers.get_mut(broadcast.channel().as_ref()) {
            channel_buffer.hold(broadcast);
        }
    }

    /// Publications of a channel may have been lost: sessions that subscribe to it check their positions afterwards.
    pub(crate) fn report_possible_gap(&mut self, channel: &str) {
        if let Some(channel_buffer) = self.channel_buffers.get_mut(channel) {
            channel_buffer.report_possible_gap();
        }
    }

    /// The event that a result belongs to, if the session still waits for it.
    pub(crate) fn awaiting(&mut self, arrival: &AwaitedResult) -> Option<&mut Awaited> {
        let pending = self.pending.get_mut(&arrival.key.index)?;
        let is_meant = pending.generation == arrival.key.generation;
        let wait = pending.wait_mut()?;
        (is_meant && wait.ticket == arrival.ticket).then_some(&mut wait.work)
    }

    /// All results arrived: returns the pending work, with the buffered publications of its channels.
    pub(crate) fn take_work(&mut self, key: ConnectionKey) -> Option<(u32, Awaited)> {
        let pending = self.pending.get_mut(&key.index)?;
        let before = std::mem::replace(&mut pending.state, State::Resumes);
        let State::Waits(CommandWait { id, mut work, .. }) = before else { return None };
        if let Awaited::Enter(pending_subscribe) = &mut work {
            for pending_channel in &mut pending_subscribe.channels {
                match self.end_to_hold(&pending_channel.channel, pending_channel.held_from) {
                    Ok(buffered) => pending_channel.buffered.append(buffered), // it may have waited before
                    Err(error) => pending_channel.fail(error),
                }
            }
        }
        Some((id, work))
    }

    /// The next deferred item of a session. `None` when it waits again, or nothing is left: then it is removed.
    pub(crate) fn next_deferred(&mut self, key: ConnectionKey) -> Option<Deferred> {
        let pending = self.pending.get_mut(&key.index)?;
        if matches!(pending.state, State::Waits(_)) {
            return None;
        }
        let next = pending.deferred.pop_front();
        match &next {
            Some(next) => pending.deferred_bytes -= next.bytes(),
            None => drop(self.pending.remove(&key.index)),
        }
        next
    }

    /// Puts an item back in front, of a session that waits again.
    pub(crate) fn put_back(&mut self, key: ConnectionKey, rest: Deferred) {
        if let Some(pending) = self.pending.get_mut(&key.index) {
            pending.deferred_bytes += rest.bytes();
            pending.deferred.push_front(rest);
        }
    }

    /// The sessions whose connect waits after authentication.
    pub(crate) fn connecting(&self) -> impl Iterator<Item = ConnectionKey> + '_ {
        let pending = self.pending.iter().filter(|(_, pending)| match &pending.state {
            State::Waits(CommandWait { work: Awaited::Enter(subscribe), .. }) => {
                subscribe.is_of_connect()
            }
            State::Waits(_) | State::Resumes => false,
        });
        pending
            .map(|(index, pending)| ConnectionKey { index: *index, generation: pending.generation })
    }

    /// Whether the session waits.
    pub(crate) fn waits(&self, key: ConnectionKey) -> bool {
        self.pending.get(&key.index).is_some_and(|pending| pending.waits_as(key))
    }

    /// Whether a command of the connection is not finished: it waits, a backend works on it, or it takes several requests.
    pub(crate) fn has_unfinished(&self, index: u32) -> bool {
        self.pending.contains_key(&index)
            || self.calls.has_some(index)
            || self.reservations.count(index) > 0
    }

    /// The session is gone. Returns its pending subscribe, to be abandoned.
    pub(crate) fn forget(&mut self, key: ConnectionKey) -> Option<Box<PendingSubscribe>> {
        self.calls.forget(key);
        if self.pending.is_empty() {
            return None;
        }
        let state = self.pending.remove(&key.index)?.state;
        let State::Waits(CommandWait { work: Awaited::Enter(pending_subscribe), .. }) = state
        else {
            return None;
        };
        for pending_channel in &pending_subscribe.channels {
            let _ = self.end_to_hold(&pending_channel.channel, pending_channel.held_from);
        }
        Some(pending_subscribe)
    }

    /// Buffers the publications of a channel from now on. Returns the number of the first one.
    pub(crate) fn begin_to_hold(&mut self, channel: &Arc<str>) -> u64 {
        self.channel_buffers.entry(Arc::clone(channel)).or_default().enter()
    }

    /// The publications buffered since a session started to wait.
    ///
    /// # Errors
    /// 100 when they exceeded the buffer.
    pub(crate) fn end_to_hold(
        &mut self,
        channel: &Arc<str>,
        from: u64,
    ) -> Result<BufferedMessages, ErrorCode> {
        let channel_buffer = self
            .channel_buffers
            .get_mut(channel)
            .expect("who waits for a channel is in its channel_buffer");
        let buffered = channel_buffer.leave(from);
        if channel_buffer.is_empty() {
            self.channel_buffers.remove(channel);
        }
        buffered
    }
}

impl PendingCommand {
    fn defer(&mut self, what: Deferred) -> Result<(), DeferLimitExceeded> {
        let bytes = self.deferred_bytes + what.bytes();
        if bytes > PUT_OFF_BYTES_MAX && !self.deferred.is_empty() {
            return Err(DeferLimitExceeded);
        }
        self.deferred_bytes = bytes;
        self.deferred.push_back(what);
        Ok(())
    }

    fn waits_as(&self, key: ConnectionKey) -> bool {
        self.generation == key.generation && matches!(self.state, State::Waits(_))
    }

    fn wait_mut(&mut self) -> Option<&mut CommandWait> {
        if let State::Waits(wait) = &mut self.state { Some(wait) } else { None }
    }
}

impl Deferred {
    /// Approximate bytes.
    fn bytes(&self) -> usize {
        let own = match self {
            Self::Frame(frame) | Self::Rest(frame) => frame.len(),
            Self::Unsubscribe(channel, _) => channel.as_ref().map_or(0, |channel| channel.len()),
            Self::Subscribe(order) => order.subscription().bytes(),
            Self::Refresh(renewal) => renewal.info.len(),
        };
        PUT_OFF_BYTES + own
    }
}

/// Bytes of deferred work per session; beyond it the session ends with 3013. The shell reads on only to the end of
/// the bytes it has read, but those may have been compressed, and the server API may send any number of commands.
const PUT_OFF_BYTES_MAX: usize = 2 << 20;
/// Bytes counted for each item, besides its contents.
const PUT_OFF_BYTES: usize = 128;

#[cfg(test)]
mod tests;
