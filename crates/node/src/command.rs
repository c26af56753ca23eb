//! Client commands: one file per command, and the rules that all of them share (protocol §5: life cycle, order, ids).
//! In: one command of a session, or a control command for it → out: a reply, nothing yet, or one disconnect.
//! Uses: the commands by their names, `session_table`, `pending`. Never: sends by itself; a command returns its reply or refusal.
//! Changed here: rules for every command. Each command has a file; `hub/receive.rs` reads messages of many commands.

mod connect;
mod context;
mod credentials;
mod effects;
mod filters;
mod history;
mod hook;
mod lifetime;
pub(crate) mod map;
mod presence;
mod presence_stats;
mod publish;
mod rates;
mod refresh;
mod rpc;
mod send;
mod server_subscribe;
mod sub_refresh;
mod subscribe;
mod track;
mod unsubscribe;

use std::sync::Arc;

use bytes::Bytes;
use fanwire_broker::Renewal;
use fanwire_cluster::ServerSubscribe;
use fanwire_policy::hooks::{CommandDecision, Rejection};
use fanwire_protocol::{Command, DecodeError, Disconnect, ErrorCode, Refresh, Reply, Request};

use crate::counters::CommandKind;
use crate::flight_log::{self, NamedCommand};
use crate::map::MAP;
use crate::map::paging::{PageRead, PendingPage};
use crate::pending::{Awaited, Part, PendingSubscribe, SubscribeOrigin};
use crate::refusal::{CommandError, channel_of};
use crate::session::{Phase, Session};
pub(crate) use context::CommandContext;
use context::{CommandStep, ReplyResult, StepResult};
pub(crate) use effects::Effects;
use subscribe::Finished;

/// Subscribes a connected session that does not wait, for the server API.
///
/// # Errors
/// The disconnect of a session that cannot have one more subscription.
pub(crate) fn subscribe_by_server(
    context: &mut CommandContext<'_>,
    command: &Arc<ServerSubscribe>,
) -> Result<Option<Reply>, Disconnect> {
    match server_subscribe::begin(context, command) {
        Ok(Some(step)) => context.step(NO_COMMAND, step),
        Ok(None) => Ok(None),
        Err(disconnect) => context.reply(NO_COMMAND, Err(disconnect.into())),
    }
}

/// Sets the lifetime of a connected session, for the server API. `None` when the lifetime is over already.
pub(crate) fn refresh_by_server(
    context: &mut CommandContext<'_>,
    renewal: &Renewal,
) -> Option<Refresh> {
    server_subscribe::refresh(context, renewal).ok()
}

impl CommandContext<'_> {
    /// Executes one command as far as possible now. `None` when it has no reply, or none yet. `bytes` are its
    /// encoding, kept while it waits.
    pub(crate) fn take(
        &mut self,
        command: Result<Command, DecodeError>,
        bytes: impl FnOnce() -> Bytes,
    ) -> Result<Option<Reply>, Disconnect> {
        let Ok(command) = command else {
            self.command = Some(CommandKind::Unknown);
            let cause = if self.is_unidirectional() { NO_CONNECT_REQUEST } else { NOT_A_COMMAND };
            return self.reply(0, Err(CommandError::disconnect(Disconnect::BAD_REQUEST, cause)));
        };
        let (id, request) = command.into_request();
        let kind = CommandKind::from(&request);
        self.command = Some(kind);
        self.session_table.counters.count_command(kind);
        if flight_log::logs_commands(self.node) {
            let channel = channel_of(&request).unwrap_or_default();
            let named = NamedCommand { command: kind.name(), channel };
            flight_log::command(self.node, self.session_table, self.key.index, &named);
        }
        if let Err(error) = self.check_order(id, &request) {
            return self.reply(id, Err(error));
        }
        if request == Request::Pong {
            return match self.pong() {
                Ok(()) => Ok(None),
                Err(error) => self.reply(id, Err(error)),
            };
        }
        if let Err(error) = self.limit(&request) {
            return self.reply(id, Err(error));
        }
        match credentials::lookup_key(self, &request) {
            Ok(lookup) => self.key_lookup = lookup,
            Err(later) => {
                if self.soon(later, |_| Part::Key).is_none() {
                    self.suspend(id, Awaited::Key(bytes()));
                    return Ok(None);
                }
            }
        }
        self.begin(id, request, bytes)
    }

    /// Executes a kept command after the key of its token was fetched, or the fetch failed.
    pub(crate) fn begin_kept(&mut self, bytes: &Bytes) -> Result<Option<Reply>, Disconnect> {
        let Session { encoding, command_source, .. } = *self.session();
        let command = command_source.commands(encoding, bytes).next();
        let Some(Ok(command)) = command else { return Err(Disconnect::BAD_REQUEST) };
        let (id, request) = command.into_request();
        self.begin(id, request, || bytes.clone())
    }

    /// Executes a kept command about which a hook has decided.
    pub(crate) fn begin_decided(
        &mut self,
        bytes: &Bytes,
        decision: Result<CommandDecision, Rejection>,
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
                let part = |decision| Part::CommandDecision(Box::new(decision));
                if let Some(decision) = self.soon(answer, part) {
                    return self.begin_decided(&bytes, decision);
                }
                self.wait_for_decision(id, bytes);
                Ok(None)
            }
            Ok(step) => self.step(id, step),
            Err(error) => self.reply(id, Err(error)),
        }
    }

    fn step(&mut self, id: u32, step: CommandStep) -> Result<Option<Reply>, Disconnect> {
        let work = match step {
            CommandStep::Done(outcome) => return self.arrived(id, Ok(outcome)),
            CommandStep::Enter(pending_subscribe) if pending_subscribe.is_complete() => {
                return self.finish(id, *pending_subscribe);
            }
            CommandStep::Enter(pending_subscribe) => Awaited::Enter(pending_subscribe),
            CommandStep::Page(page, answer) => {
                match self.soon(answer, |read| Part::Page(Box::new(read))) {
                    Some(read) => return self.page_read(id, *page, read),
                    None => Awaited::Page(page),
                }
            }
            CommandStep::PageBehindInbox(page, answer) => {
                self.behind_inbox(answer, |read| Part::Page(Box::new(read)));
                Awaited::Page(page)
            }
            CommandStep::Ask(_) => unreachable!("only a command of a client asks a hook"),
            CommandStep::Later(answer) => {
                match self.soon(answer, |outcome| Part::Outcome(Box::new(outcome))) {
                    Some(result) => return self.arrived(id, result), // it came between two looks
                    None => Awaited::Reply(self.command),
                }
            }
        };
        self.suspend(id, work);
        Ok(None)
    }

    /// Continues a subscribe that takes several requests.
    pub(crate) fn page_read(
        &mut self,
        id: u32,
        page: PendingPage,
        read: Result<PageRead, ErrorCode>,
    ) -> Result<Option<Reply>, Disconnect> {
        self.command = Some(CommandKind::Subscribe);
        match map::subscribe::page_read(self, page, read) {
            Ok(step) => self.step(id, step),
            Err(error) => self.reply(id, Err(error)),
        }
    }

    /// Finishes a subscribe whose answers have all arrived.
    pub(crate) fn finish(
        &mut self,
        id: u32,
        pending_subscribe: PendingSubscribe,
    ) -> Result<Option<Reply>, Disconnect> {
        let (channels, mut then, encoded) = pending_subscribe.into_parts();
        let finished = match &mut then {
            SubscribeOrigin::Subscribe(lifetime) => {
                subscribe::finish(self, id, channels, encoded, *lifetime)
            }
            SubscribeOrigin::Connect(terms) => connect::finish(self, channels, encoded, terms),
            SubscribeOrigin::ControlCommand(lifetime, command) => {
                match server_subscribe::finish(self, channels, encoded, *lifetime, command) {
                    Ok(Some(finished)) => Ok(finished),
                    Ok(None) => return Ok(None),
                    Err(error) => Err(error),
                }
            }
        };
        match finished {
            Ok(Finished::Reply(reply)) => self.reply(id, Ok(reply)),
            Ok(Finished::Encoded(messages)) => {
                self.effects.reply.messages = messages;
                Ok(None)
            }
            Ok(Finished::Large(found, channels)) => {
                let pending_subscribe = Box::new(PendingSubscribe::without_results(channels, then));
                self.offload(id, found, Awaited::Enter(pending_subscribe));
                Ok(None)
            }
            Err(error) => self.reply(id, Err(error)),
        }
    }

    /// The life cycle of protocol §5.2–5.6: connect first, once, and nothing after a refused one; ids.
    fn check_order(&self, id: u32, request: &Request) -> Result<(), CommandError> {
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
        Err(CommandError::disconnect(Disconnect::BAD_REQUEST, cause))
    }

    /// The answer to a ping; an unsolicited one is an error (protocol §6).
    fn pong(&mut self) -> Result<(), CommandError> {
        let session = self.session_mut();
        if session.frame_ping || !session.awaits_pong {
            return Err(CommandError::disconnect(Disconnect::BAD_REQUEST, "a pong without a ping"));
        }
        session.awaits_pong = false; // its timer stays: it fires once for nothing, which is cheaper than moving it now
        flight_log::pong(self.node, self.session_table, self.key, self.now);
        Ok(())
    }

    /// Runs the command from its first line. A command that asks a hook runs again from its first line when the hook has
    /// decided: until it has asked, it may only check, and count what [`limit_in`](Self::limit_in) counts once; what it sets
    /// in the session must be the same at the second run. `tests/it/begun_again.rs` plays each command both ways.
    fn dispatch(&mut self, request: Request) -> StepResult {
        let done = match request {
            Request::Connect(request) => return connect::handle(self, request),
            Request::Subscribe(request) if map::is_meant(&request) => {
                return map::subscribe::handle(self, request);
            }
            Request::Subscribe(request) => return subscribe::handle(self, request),
            Request::Publish(request) if request.r#type == MAP => {
                return map::publish::handle(self, request);
            }
            Request::Publish(request) => return publish::handle(self, request),
            Request::Presence(request) => return presence::handle(self, request),
            Request::PresenceStats(request) => return presence_stats::handle(self, request),
            Request::History(request) => return history::handle(self, request),
            Request::Rpc(request) => return rpc::handle(self, request),
            Request::Send(request) => return send::handle(self, request),
            Request::Unsubscribe(request) => unsubscribe::handle(self, request),
            Request::Refresh(request) => refresh::handle(self, request),
            Request::SubRefresh(request) => sub_refresh::handle(self, request),
            Request::Pong | Request::Unknown => {
                Err(CommandError::disconnect(Disconnect::BAD_REQUEST, UNKNOWN_COMMAND))
            }
        };
        done.map(|reply| CommandStep::Done(reply.into()))
    }
}

/// Every command on a channel must name one (protocol §5.5).
fn named(channel: &str) -> Result<(), CommandError> {
    if channel.is_empty() {
        return Err(CommandError::disconnect(
            Disconnect::BAD_REQUEST,
            "the command names no channel",
        ));
    }
    Ok(())
}

/// The id of pushes, which answer no command.
pub(crate) const NO_COMMAND: u32 = 0;

const NOT_A_COMMAND: &str = "the message is not a command in the JSON or Protobuf protocol";
const NO_CONNECT_REQUEST: &str = "the first message is not a connect request in JSON or Protobuf";
const UNKNOWN_COMMAND: &str = "the command has none of the known requests";
