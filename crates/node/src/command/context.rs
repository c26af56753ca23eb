//! The context of one command: its session, the node, the time, and how an outcome becomes the reply.
//! In: outcomes and refusals, or the answers of a pending command → out: a reply, nothing yet, or the disconnect.
//! Uses: `session_table`, the node. Never: a command by its name; sends by itself.
//! Changed here: what a command may use, and replies. The steps of a command are in `command.rs`, the rates in `rates.rs`.

use std::time::Instant;

use bytes::Bytes;
use fanwire_auth::KeyLookup;
use fanwire_broker::Answer;
use fanwire_policy::NodeSettings;
use fanwire_policy::channel::Who;
use fanwire_policy::hooks::{CommandDecision, Rejection};
use fanwire_policy::options::Namespace;
use fanwire_protocol::{Disconnect, ErrorCode, Reply};

use super::effects::Effects;
use crate::counters::CommandKind;
use crate::deadlines;
use crate::encode_job::{EncodeJob, Encoded, ReplySource};
use crate::flight_log::{self, ConnectAttempt};
use crate::index::SubscriptionIndex;
use crate::map::paging::{PageRead, PendingPage};
use crate::node::Node;
use crate::notice::Notice;
use crate::pending::{
    Awaited, AwaitedResult, Outcome, Part, PendingChannel, PendingSubscribe, Ticket,
};
use crate::refusal::{CommandError, Consequence};
use crate::session::{CommandSource, ConnectionKey, Phase, Session};
use crate::session_effects;
use crate::session_table::SessionTable;

/// The context of one command: its session, the node and the time. The session exists as long as the context.
pub(crate) struct CommandContext<'a> {
    pub(crate) node: &'a Node,
    pub(crate) settings: &'a NodeSettings,
    pub(crate) session_table: &'a mut SessionTable,
    pub(crate) key: ConnectionKey,
    pub(crate) now: Instant,
    /// Identifies the wait that the command may start.
    ticket: Ticket,
    /// The result of the key lookup, if the token has a published key that was available without waiting.
    pub(super) key_lookup: Option<KeyLookup>,
    /// The decision of a hook about this command, when it begins again.
    pub(super) decision: Option<Result<CommandDecision, Rejection>>,
    /// `None` for a command of the server API.
    pub(crate) command: Option<CommandKind>,
    pub(crate) effects: Effects,
}

/// The outcome of a command that never waits: a reply (its id is added later), or a refusal.
pub(super) type ReplyResult = Result<Reply, CommandError>;

/// The outcome of any command, or its pending step.
pub(super) type StepResult = Result<CommandStep, CommandError>;

/// The state of a command.
#[derive(Debug)]
pub(super) enum CommandStep {
    Done(Outcome),
    /// The broker or presence will answer.
    Later(Answer<Outcome, ErrorCode>),
    /// A subscribe waits for its channels.
    Enter(Box<PendingSubscribe>),
    /// A page of a subscribe that takes several requests is read.
    Page(Box<PendingPage>, Answer<PageRead, ErrorCode>),
    /// Such a page is read behind everything that is in the inbox of the shard now.
    PageBehindInbox(Box<PendingPage>, Answer<PageRead, ErrorCode>),
    /// A hook decides; then the command begins again.
    Ask(Answer<CommandDecision, Rejection>),
}

impl CommandStep {
    /// Converts a ready or pending answer into an outcome.
    pub(super) fn of<T: Send + 'static>(
        answer: Answer<T, ErrorCode>,
        outcome: impl FnOnce(T) -> Outcome + Send + 'static,
    ) -> StepResult {
        match answer.ready() {
            Ok(result) => Ok(Self::Done(outcome(result?))),
            Err(later) => Ok(Self::Later(later.map(|result| result.map(outcome)))),
        }
    }
}

impl<'a> CommandContext<'a> {
    pub(crate) fn new(
        node: &'a Node,
        settings: &'a NodeSettings,
        session_table: &'a mut SessionTable,
        key: ConnectionKey,
        now: Instant,
    ) -> Self {
        let ticket = session_table.pending.ticket();
        Self {
            node,
            settings,
            session_table,
            key,
            now,
            ticket,
            key_lookup: None,
            decision: None,
            command: None,
            effects: Effects::default(),
        }
    }
}

impl<'a> CommandContext<'a> {
    pub(super) fn suspend(&mut self, id: u32, work: Awaited) {
        self.session_table.pending.suspend(self.key, self.ticket, id, work);
    }

    /// Keeps a command until its decision arrives. The session does not wait for an rpc, as far as `client.concurrency` allows:
    /// replies have ids, and the session does not change.
    pub(super) fn wait_for_decision(&mut self, id: u32, command: Bytes) {
        let others_max = self.settings.options.client.concurrency.saturating_sub(1);
        if self.command != Some(CommandKind::Rpc) || others_max == 0 {
            return self.suspend(id, Awaited::CommandDecision(command));
        }
        let calls = &mut self.session_table.pending.calls;
        if !calls.add(self.key, self.ticket, command.clone(), others_max) {
            self.suspend(id, Awaited::Call(command));
        }
    }

    /// An answer for the pending command arrived.
    pub(crate) fn arrived(
        &mut self,
        id: u32,
        outcome: Result<Outcome, ErrorCode>,
    ) -> Result<Option<Reply>, Disconnect> {
        match outcome {
            Ok(Outcome::ReplySource(found)) if found.is_large() => {
                self.offload(id, found, Awaited::Reply(self.command));
                Ok(None)
            }
            Ok(Outcome::ReplySource(mut found)) => {
                let saved = found.shape(self.session().encoding);
                self.session_table.counters.count_deltas(saved);
                self.reply(id, Ok(found.replies().0))
            }
            Ok(Outcome::Reply(reply)) => self.reply(id, Ok(reply)),
            Err(code) => self.reply(id, Err(code.into())),
        }
    }

    /// Offloads the encoding of a large reply; the session waits for it and continues with `work`.
    pub(super) fn offload(&mut self, id: u32, source: ReplySource, work: Awaited) {
        let (promise, answer) = Answer::later();
        let encoding = self.session().encoding;
        let early = self.soon(answer, Part::Encoded);
        debug_assert!(early.is_none(), "nobody has begun yet");
        self.suspend(id, work);
        let interest = self.session_table.pending.interest(self.key);
        self.effects.reply.encode_job = Some(EncodeJob { source, id, encoding, promise, interest });
    }

    /// A worker has encoded the reply.
    pub(crate) fn encoded(
        &mut self,
        id: u32,
        encoded: Result<Encoded, ErrorCode>,
    ) -> Result<Option<Reply>, Disconnect> {
        match encoded.map(|encoded| encoded.messages) {
            Ok(Some(messages)) => self.effects.reply.messages = messages,
            Ok(None) => return self.reply(id, Err(Disconnect::INAPPROPRIATE_PROTOCOL.into())),
            Err(code) => return self.reply(id, Err(code.into())),
        }
        Ok(None)
    }

    /// Converts an outcome into the reply; `send` has none, only a disconnect.
    pub(super) fn reply(
        &mut self,
        id: u32,
        done: ReplyResult,
    ) -> Result<Option<Reply>, Disconnect> {
        let reply = self.outcome(id, done)?;
        Ok(reply.filter(|_| self.command != Some(CommandKind::Send)))
    }

    fn outcome(&mut self, id: u32, done: ReplyResult) -> Result<Option<Reply>, Disconnect> {
        let error = match done {
            Ok(mut reply) => {
                reply.id = id; // in place: a reply is large
                return Ok(Some(reply));
            }
            Err(error) => error,
        };
        self.note_refusal(&error);
        match error.into_consequence(self.settings.options.client.explains_disconnects) {
            Consequence::Disconnect(disconnect) => Err(disconnect),
            Consequence::Application(error) => {
                self.refuse(error.code);
                Ok(Some(Reply { id, error: Some(*error), ..Reply::default() }))
            }
            Consequence::Error(code) => {
                self.refuse(code.code);
                if code == ErrorCode::TOO_MANY_REQUESTS
                    && let Err(disconnect) = self.refused()
                {
                    return self.outcome(id, Err(disconnect.into()));
                }
                Ok(Some(Reply { id, error: Some(code.into()), ..Reply::default() }))
            }
        }
    }

    /// Counts an error reply; the session of a refused connect runs nothing after it.
    fn refuse(&mut self, code: u32) {
        if self.session().phase == Phase::Open {
            self.session_mut().phase = Phase::Refused; // only `connect` comes before that phase ends
        }
        self.session_table.counters.count_error(code);
    }

    /// Records a refusal, and leaves it among the effects, to be logged with the address of its client.
    fn note_refusal(&mut self, error: &CommandError) {
        let mut refused = error.refused(self.command);
        refused.claimed_user = std::mem::take(&mut self.effects.log.claimed_user);
        if self.command == Some(CommandKind::Connect) {
            let index = self.key.index;
            let now = self.now;
            let connect = ConnectAttempt { index, claimed_user: &refused.claimed_user, now };
            self.effects.log.begins |=
                flight_log::begin_refused(self.node, self.session_table, connect);
        }
        flight_log::refused(self.node, self.session_table, self.key.index, &refused, self.now);
        self.effects.log.refused = Some(Box::new(refused));
    }

    /// The result, if it is ready; a pending one will come through the shard's inbox.
    pub(super) fn soon<T: Clone + Send + 'static, E: Send + 'static>(
        &self,
        answer: Answer<T, E>,
        part: impl FnOnce(Result<T, E>) -> Part + Send + 'static,
    ) -> Option<Result<T, E>> {
        match answer.ready() {
            Ok(result) => return Some(result),
            Err(later) => self.behind_inbox(later, part),
        }
        None
    }

    /// The result will come through the shard's inbox, behind everything that is there now.
    pub(super) fn behind_inbox<T: Clone + Send + 'static, E: Send + 'static>(
        &self,
        answer: Answer<T, E>,
        part: impl FnOnce(Result<T, E>) -> Part + Send + 'static,
    ) {
        let key = self.key;
        let ticket = self.ticket;
        let inbox = self.node.inbox(self.session_table.shard);
        answer.then(move |result| {
            inbox.push(Notice::AwaitedResult(Box::new(AwaitedResult {
                key,
                ticket,
                part: part(result),
            })));
        });
    }

    pub(super) fn session(&self) -> &Session {
        self.session_table.session(self.key).expect(LIVES)
    }

    pub(super) fn session_mut(&mut self) -> &mut Session {
        self.session_table.session_mut(self.key).expect(LIVES)
    }

    /// Whether the client sends nothing but its connect request.
    pub(super) fn is_unidirectional(&self) -> bool {
        self.session().command_source == CommandSource::None
    }

    pub(super) fn key_lookup(&self) -> Option<&KeyLookup> {
        self.key_lookup.as_ref()
    }

    /// Unix time in seconds.
    pub(super) fn unix(&self) -> u64 {
        self.node.clock().unix(self.now)
    }

    pub(super) fn insecure(&self) -> bool {
        self.settings.options.client.insecure
    }

    /// The namespace of a channel name from this client.
    pub(super) fn resolve(&self, channel: &str) -> Result<&'a Namespace, ErrorCode> {
        self.settings.channels.resolve_for(&self.session().user, channel)
    }

    /// The requesting user, for permission rules.
    pub(super) fn who(&self) -> Who<'_> {
        Who { user: &self.session().user, insecure: self.insecure() }
    }

    /// Whether a hook refreshes subscriptions to channels of this namespace.
    pub(super) fn refreshes_subscriptions(&self, namespace: &Namespace) -> bool {
        let hook = self.node.hooks().sub_refresh.as_ref();
        hook.is_some_and(|hook| hook.applies(&(&namespace.sub_refresh_proxy).into()))
    }

    /// The session's subscription to a channel.
    pub(super) fn subscription_to(&self, channel: &str) -> Option<SubscriptionIndex> {
        self.session_table.subscription_to(self.key.index, channel)
    }

    /// How many subscribes of the session are in progress.
    pub(super) fn reservation_count(&self) -> usize {
        self.session_table.pending.reservations.count(self.key.index)
    }

    /// Sets the session's timer, after a change of its deadlines.
    pub(super) fn schedule(&mut self) {
        deadlines::schedule(self.node, self.session_table, self.key.index);
    }

    /// Undoes a pending subscribe to these channels.
    pub(super) fn abandon(&self, channels: &[PendingChannel]) {
        session_effects::abandon(self.node, self.session_table.shard, self.session(), channels);
    }
}

const LIVES: &str = "a session lives as long as its context";
