//! One command of one session, from its first check to its reply: executed at once, or waiting for answers.
//! In: a command, or the answers of a pending one → out: a reply, nothing yet, or the disconnect.
//! Uses: the commands by their names, `session_table`, the node. Never: sends by itself.
//! Change here: the steps that all commands share. The rates are in `rates.rs`, messages of many commands in `command.rs`.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fanwire_auth::KeyLookup;
use fanwire_broker::Answer;
use fanwire_protocol::{Command, DecodeError, Disconnect, ErrorCode, Reply, Request};
use fanwire_telemetry::{RefusalEvent, excerpt};

use super::subscribe::Finished;
use super::{
    connect, credentials, history, presence, presence_stats, publish, refresh, rpc, send,
    server_subscribe, sub_refresh, subscribe, unsubscribe,
};
use crate::broadcast::Broadcast;
use crate::channel::Who;
use crate::counters::CommandKind;
use crate::encode_job::{EncodeJob, Encoded, ReplySource};
use crate::hooks::{Decision, Rejection};
use crate::node::Node;
use crate::notice::Notice;
use crate::options::Namespace;
use crate::pending::{
    Awaited, AwaitedResult, Outcome, Part, PendingSubscribe, SubscribeOrigin, Ticket,
};
use crate::refusal::{Consequence, Refusal, Refused};
use crate::session::{ConnectionKey, Phase, Session, Uplink};
use crate::session_table::{EndedPlace, SessionTable};
use crate::settings::NodeSettings;
use crate::subscribers::CatchUp;

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
    key_lookup: Option<KeyLookup>,
    /// The decision of a hook about this command, when it begins again.
    pub(super) decision: Option<Result<Decision, Rejection>>,
    /// `None` for a command of the server API.
    pub(crate) command: Option<CommandKind>,
    /// Work after the reply.
    pub(crate) backlog: Backlog,
}

/// Work that a command leaves besides its reply: publications buffered while the session subscribed, by the places of
/// its subscriptions, and a job too long for a turn.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// The reply and the messages after it, when a worker encoded them.
    pub(crate) messages: Vec<Bytes>,
    /// The reply must be encoded by a worker.
    pub(crate) encode_job: Option<EncodeJob>,
    /// Pushes of this connection alone, before the others.
    pub(crate) pushes: Vec<Reply>,
    pub(crate) deliveries: Vec<(usize, Arc<Broadcast>)>,
    /// Subscriptions that lost their position during the wait.
    pub(crate) lost: Vec<usize>,
    /// Subscriptions that ended, one after the other.
    pub(crate) ended: Vec<EndedPlace>,
    /// Bytes of payloads that were searched for patches.
    pub(crate) compared: usize,
    /// The command was refused, and is to be logged.
    pub(crate) refused: Option<Box<Refused>>,
}

impl Backlog {
    pub(super) fn add(&mut self, place: usize, caught_up: CatchUp) {
        let CatchUp { broadcasts, has_lost, .. } = caught_up;
        self.deliveries.extend(broadcasts.into_iter().map(|broadcast| (place, broadcast)));
        if has_lost {
            self.lost.push(place);
        }
    }
}

/// The outcome of a command that never waits: a reply (its id is added later), or a refusal.
pub(super) type Done = Result<Reply, Refusal>;

/// The outcome of any command, or its pending step.
pub(super) type Begun = Result<CommandStep, Refusal>;

/// The state of a command.
#[derive(Debug)]
pub(super) enum CommandStep {
    Done(Outcome),
    /// The broker or presence will answer.
    Later(Answer<Outcome, ErrorCode>),
    /// A subscribe waits for its channels.
    Enter(Box<PendingSubscribe>),
    /// A hook decides; then the command begins again.
    Ask(Answer<Decision, Rejection>),
}

impl CommandStep {
    /// Converts a ready or pending answer into an outcome.
    pub(super) fn of<T: Send + 'static>(
        answer: Answer<T, ErrorCode>,
        outcome: impl FnOnce(T) -> Outcome + Send + 'static,
    ) -> Begun {
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
        let ticket = session_table.pending_mut().ticket();
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
            backlog: Backlog::default(),
        }
    }
}

impl<'a> CommandContext<'a> {
    /// Executes one command as far as possible now. `None` when it has no reply, or none yet. `bytes` are its
    /// encoding, kept while it waits.
    pub(crate) fn take(
        &mut self,
        command: Result<Command, DecodeError>,
        bytes: impl FnOnce() -> Bytes,
    ) -> Result<Option<Reply>, Disconnect> {
        let Ok(command) = command else {
            self.command = Some(CommandKind::Unknown);
            let cause = if self.is_unidirectional() { NO_CONNECT_REQUEST } else { NO_COMMAND };
            return self.reply(0, Err(Refusal::disconnect(Disconnect::BAD_REQUEST, cause)));
        };
        let (id, request) = command.into_request();
        let kind = CommandKind::from(&request);
        self.command = Some(kind);
        self.session_table.counters().count_command(kind);
        if let Err(refusal) = self.check_order(id, &request) {
            return self.reply(id, Err(refusal));
        }
        if request == Request::Pong {
            return match self.pong() {
                Ok(()) => Ok(None),
                Err(refusal) => self.reply(id, Err(refusal)),
            };
        }
        if let Err(refusal) = self.limit(&request) {
            return self.reply(id, Err(refusal));
        }
        match credentials::lookup_key(self, &request) {
            Ok(lookup) => self.key_lookup = lookup,
            Err(later) => {
                if self.soon(later, |_| Part::Key).is_none() {
                    self.park(id, Awaited::Key(bytes()));
                    return Ok(None);
                }
            }
        }
        self.begin(id, request, bytes)
    }

    /// Executes a kept command after the key of its token was fetched, or the fetch failed.
    pub(crate) fn begin_kept(&mut self, bytes: &Bytes) -> Result<Option<Reply>, Disconnect> {
        let Session { encoding, uplink, .. } = *self.session();
        let command = uplink.commands(encoding, bytes).next();
        let Some(Ok(command)) = command else { return Err(Disconnect::BAD_REQUEST) };
        let (id, request) = command.into_request();
        self.begin(id, request, || bytes.clone())
    }

    /// Executes a kept command about which a hook has decided.
    pub(crate) fn begin_decided(
        &mut self,
        bytes: &Bytes,
        decision: Result<Decision, Rejection>,
    ) -> Result<Option<Reply>, Disconnect> {
        self.decision = Some(decision);
        self.begin_kept(bytes)
    }

    fn begin(
        &mut self,
        id: u32,
        request: Request,
        bytes: impl FnOnce() -> Bytes,
    ) -> Result<Option<Reply>, Disconnect> {
        self.command = Some(CommandKind::from(&request));
        match self.dispatch(request) {
            Ok(CommandStep::Ask(answer)) => {
                let bytes = bytes();
                let part = |decision| Part::Decision(Box::new(decision));
                if let Some(decision) = self.soon(answer, part) {
                    return self.begin_decided(&bytes, decision);
                }
                self.park(id, Awaited::Decision(bytes));
                Ok(None)
            }
            Ok(step) => self.step(id, step),
            Err(refusal) => self.reply(id, Err(refusal)),
        }
    }

    pub(super) fn step(&mut self, id: u32, step: CommandStep) -> Result<Option<Reply>, Disconnect> {
        let work = match step {
            CommandStep::Done(outcome) => return self.arrived(id, Ok(outcome)),
            CommandStep::Enter(pending_subscribe) if pending_subscribe.is_complete() => {
                return self.finish(id, *pending_subscribe);
            }
            CommandStep::Enter(pending_subscribe) => Awaited::Enter(pending_subscribe),
            CommandStep::Ask(_) => unreachable!("only a command of a client asks a hook"),
            CommandStep::Later(answer) => {
                match self.soon(answer, |outcome| Part::Outcome(Box::new(outcome))) {
                    Some(result) => return self.arrived(id, result), // it came between two looks
                    None => Awaited::Reply(self.command),
                }
            }
        };
        self.park(id, work);
        Ok(None)
    }

    fn park(&mut self, id: u32, work: Awaited) {
        self.session_table.pending_mut().park(self.key, self.ticket, id, work);
    }

    /// Finishes a subscribe whose answers have all arrived.
    pub(crate) fn finish(
        &mut self,
        id: u32,
        pending_subscribe: PendingSubscribe,
    ) -> Result<Option<Reply>, Disconnect> {
        let (channels, then, encoded) = pending_subscribe.into_parts();
        let finished = match &then {
            SubscribeOrigin::Subscribe(lifetime) => {
                subscribe::finish(self, id, channels, encoded, *lifetime)
            }
            SubscribeOrigin::Connect(terms) => connect::finish(self, channels, encoded, terms),
            SubscribeOrigin::ControlCommand(lifetime, command) => {
                match server_subscribe::finish(self, channels, encoded, *lifetime, command) {
                    Ok(Some(finished)) => Ok(finished),
                    Ok(None) => return Ok(None),
                    Err(refusal) => Err(refusal),
                }
            }
        };
        match finished {
            Ok(Finished::Reply(reply)) => self.reply(id, Ok(reply)),
            Ok(Finished::Encoded(messages)) => {
                self.backlog.messages = messages;
                Ok(None)
            }
            Ok(Finished::Large(found, channels)) => {
                let pending_subscribe = Box::new(PendingSubscribe::without_results(channels, then));
                self.offload(id, found, Awaited::Enter(pending_subscribe));
                Ok(None)
            }
            Err(refusal) => self.reply(id, Err(refusal)),
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
            Ok(Outcome::ReplySource(found)) => self.reply(id, Ok(found.replies().0)),
            Ok(Outcome::Reply(reply)) => self.reply(id, Ok(reply)),
            Err(code) => self.reply(id, Err(code.into())),
        }
    }

    /// Offloads the encoding of a large reply; the session waits for it and continues with `work`.
    fn offload(&mut self, id: u32, found: ReplySource, work: Awaited) {
        let (promise, answer) = Answer::later();
        let encoding = self.session().encoding;
        let early = self.soon(answer, Part::Encoded);
        debug_assert!(early.is_none(), "nobody has begun yet");
        self.park(id, work);
        let interest = self.session_table.pending_mut().interest(self.key);
        self.backlog.encode_job = Some(EncodeJob::new(found, (id, encoding), promise, interest));
    }

    /// A worker has encoded the reply.
    pub(crate) fn encoded(
        &mut self,
        id: u32,
        encoded: Result<Encoded, ErrorCode>,
    ) -> Result<Option<Reply>, Disconnect> {
        match encoded.map(|encoded| encoded.messages) {
            Ok(Some(messages)) => self.backlog.messages = messages,
            Ok(None) => return self.reply(id, Err(Disconnect::INAPPROPRIATE_PROTOCOL.into())),
            Err(code) => return self.reply(id, Err(code.into())),
        }
        Ok(None)
    }

    /// Converts an outcome into the reply.
    pub(super) fn reply(&mut self, id: u32, done: Done) -> Result<Option<Reply>, Disconnect> {
        let refusal = match done {
            Ok(mut reply) => {
                reply.id = id; // in place: a reply is large
                return Ok(Some(reply));
            }
            Err(refusal) => refusal,
        };
        self.note_refusal(&refusal);
        match refusal.into_consequence() {
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
                    return self.reply(id, Err(disconnect.into()));
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
        self.session_table.counters().count_error(code);
    }

    /// Leaves a refusal in the backlog if it is to be logged.
    fn note_refusal(&mut self, refusal: &Refusal) {
        let name = self.command.map_or("", CommandKind::name);
        let kind = format!("{name} {}", refusal.code());
        let refused = refusal.refused(self.command, None);
        let user = excerpt(&self.session().user);
        let event = RefusalEvent {
            kind: &kind,
            cause: &excerpt(&refused.cause),
            user: &user,
            address: None,
        };
        if let Some(level) = self.node.log_level(event, self.now) {
            self.backlog.refused = Some(Box::new(refusal.refused(self.command, level.count())));
        }
    }

    /// The result, if it is ready; a pending one will come through the shard's inbox.
    pub(super) fn soon<T: Clone + Send + 'static, E: Send + 'static>(
        &self,
        answer: Answer<T, E>,
        part: impl FnOnce(Result<T, E>) -> Part + Send + 'static,
    ) -> Option<Result<T, E>> {
        let later = match answer.ready() {
            Ok(result) => return Some(result),
            Err(later) => later,
        };
        let (key, ticket) = (self.key, self.ticket);
        let inbox = self.node.inbox(self.session_table.shard());
        later.then(move |result| {
            inbox.push(Notice::AwaitedResult(Box::new(AwaitedResult {
                key,
                ticket,
                part: part(result),
            })));
        });
        None
    }

    /// The life cycle of protocol §5.2–5.6: connect first, once, and nothing after a refused one; ids.
    fn check_order(&self, id: u32, request: &Request) -> Result<(), Refusal> {
        let is_connect = matches!(request, Request::Connect(_));
        let may_lack_id =
            matches!(request, Request::Send(_) | Request::Pong) || self.is_unidirectional();
        let cause = match self.session().phase {
            Phase::Open if !is_connect => "the first command must be connect",
            Phase::Refused => "connect was refused",
            Phase::Connected if is_connect => "the client is connected already",
            Phase::Open | Phase::Connected if id == 0 && !may_lack_id => "the command has no id",
            Phase::Open | Phase::Connected => return Ok(()),
        };
        Err(Refusal::disconnect(Disconnect::BAD_REQUEST, cause))
    }

    /// The answer to a ping; an unsolicited one is an error (protocol §6).
    fn pong(&mut self) -> Result<(), Refusal> {
        let session = self.session_mut();
        if session.frame_ping || !session.awaits_pong {
            return Err(Refusal::disconnect(Disconnect::BAD_REQUEST, "a pong without a ping"));
        }
        session.awaits_pong = false; // its timer stays: it fires once for nothing, which is cheaper than moving it now
        Ok(())
    }

    fn dispatch(&mut self, request: Request) -> Begun {
        let done = match request {
            Request::Connect(request) => return connect::handle(self, request),
            Request::Subscribe(request) => return subscribe::handle(self, request),
            Request::Publish(request) => return publish::handle(self, request),
            Request::Presence(request) => return presence::handle(self, request),
            Request::PresenceStats(request) => return presence_stats::handle(self, request),
            Request::History(request) => return history::handle(self, request),
            Request::Rpc(request) => return rpc::handle(self, request),
            Request::Unsubscribe(request) => unsubscribe::handle(self, request),
            Request::Send(request) => send::handle(self, request),
            Request::Refresh(request) => refresh::handle(self, request),
            Request::SubRefresh(request) => sub_refresh::handle(self, request),
            Request::Pong | Request::Unknown => {
                Err(Refusal::disconnect(Disconnect::BAD_REQUEST, UNKNOWN_COMMAND))
            }
        };
        done.map(|reply| CommandStep::Done(reply.into()))
    }

    pub(super) fn session(&self) -> &Session {
        self.session_table.session(self.key).expect(LIVES)
    }

    pub(super) fn session_mut(&mut self) -> &mut Session {
        self.session_table.session_mut(self.key).expect(LIVES)
    }

    /// Whether the client sends nothing but its connect request.
    pub(super) fn is_unidirectional(&self) -> bool {
        self.session().uplink == Uplink::None
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

    /// The index of the session's subscription to a channel.
    pub(super) fn place_of(&self, channel: &str) -> Option<usize> {
        self.session_table.place_of(self.key.index, channel)
    }
}

const NO_COMMAND: &str = "the message is not a command in the JSON or Protobuf protocol";
const NO_CONNECT_REQUEST: &str = "the first message is not a connect request in JSON or Protobuf";
const UNKNOWN_COMMAND: &str = "the command has none of the known requests";

const LIVES: &str = "a session lives as long as its context";
