//! What clients ask: one file per command, and the rules all of them share (protocol §5: life cycle, order, ids).
//! In: one WebSocket message of a session → out: replies in order, or one disconnect.
//! Uses: `fanwire_protocol::Commands`, `roster`, the node. Never: sends by itself; a command returns its reply or refusal.
//! Change here: what holds for every command. A command lives in the file of its name.

mod connect;
mod credentials;
mod enter;
mod history;
mod lifetime;
mod presence;
mod presence_stats;
mod publish;
mod refresh;
mod rpc;
mod send;
mod sub_refresh;
mod subscribe;
mod unsubscribe;

use std::time::Instant;

use fanwire_protocol::{Command, Commands, DecodeError, Disconnect, ErrorCode, Reply, Request};

use crate::channel::Who;
use crate::counters::CommandKind;
use crate::hub::Hub;
use crate::limits::InNamespace;
use crate::node::Node;
use crate::options::Namespace;
use crate::outbox::Outbox;
use crate::roster::Roster;
use crate::session::{ConnectionKey, Phase, Session};

/// Processes one WebSocket message: its commands in order, each to completion.
///
/// It ends early with the first disconnect, and after a refused `connect`, whose reply is the last one (protocol §5.6).
pub(crate) fn receive(
    hub: &mut Hub,
    key: ConnectionKey,
    frame: &[u8],
    now: Instant,
    out: &mut impl Outbox,
) {
    let (_, roster) = hub.parts();
    let Some(encoding) = roster.session(key).map(|session| session.encoding) else { return };
    for command in Commands::new(encoding, frame) {
        let (node, roster) = hub.parts();
        let mut turn = Turn { node, roster, key, now };
        match turn.take(command) {
            Ok(reply) => reply.iter().for_each(|reply| hub.send(key, reply, out)),
            Err(disconnect) => hub.disconnect(key, &disconnect, out),
        }
        let (_, roster) = hub.parts();
        if roster.session(key).is_none_or(|session| session.phase == Phase::Refused) {
            return;
        }
    }
}

/// One command of one session: who asks, and when. The session is there as long as its turn lasts.
pub(crate) struct Turn<'a> {
    pub(crate) node: &'a Node,
    pub(crate) roster: &'a mut Roster,
    pub(crate) key: ConnectionKey,
    pub(crate) now: Instant,
}

/// What a command comes to: a reply (the id is added later), or no.
type Answer = Result<Reply, Refusal>;

/// Why a command was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Refusal {
    /// The client made a mistake it can live with: an error reply.
    Error(ErrorCode),
    /// The connection must end.
    Disconnect(Disconnect),
}

impl Turn<'_> {
    /// Takes one command to its end. `None` when it has no reply.
    fn take(&mut self, command: Result<Command, DecodeError>) -> Result<Option<Reply>, Disconnect> {
        let (id, request) = command.map_err(|_| Disconnect::BAD_REQUEST)?.into_request();
        self.roster.counters().count_command(CommandKind::from(&request));
        self.check_order(id, &request)?;
        if request == Request::Pong {
            return self.pong().map(|()| None);
        }
        let is_connect = matches!(request, Request::Connect(_));
        match self.limit(&request).and_then(|()| self.dispatch(request)) {
            Ok(reply) => Ok(Some(Reply { id, ..reply })),
            Err(Refusal::Disconnect(disconnect)) => Err(disconnect),
            Err(Refusal::Error(code)) => {
                if is_connect {
                    self.session_mut().phase = Phase::Refused;
                }
                self.roster.counters().count_error(code.code);
                if code == ErrorCode::TOO_MANY_REQUESTS {
                    self.refused()?;
                }
                Ok(Some(Reply { id, error: Some(code.into()), ..Reply::default() }))
            }
        }
    }

    /// The life cycle of protocol §5.2–5.6: connect first, once, and nothing after a refused one; ids.
    fn check_order(&self, id: u32, request: &Request) -> Result<(), Disconnect> {
        let is_connect = matches!(request, Request::Connect(_));
        let in_order = match self.session().phase {
            Phase::Open => is_connect,
            Phase::Refused => false,
            Phase::Connected => !is_connect,
        };
        let may_lack_id = matches!(request, Request::Send(_) | Request::Pong);
        if in_order && (id > 0 || may_lack_id) { Ok(()) } else { Err(Disconnect::BAD_REQUEST) }
    }

    /// The rate of all commands of the connection. What ends something, and what has no reply, always passes: a refused
    /// unsubscribe would leave client and server of different minds.
    fn limit(&mut self, request: &Request) -> Result<(), Refusal> {
        let passes = matches!(
            request,
            Request::Connect(_) | Request::Unsubscribe(_) | Request::Send(_) | Request::Unknown
        );
        let rate = self.node.options().client.command_rate;
        let (index, now) = (self.key.index, self.node.clock().nanos(self.now));
        if passes || self.roster.limits_mut().take_command(index, rate, now) {
            return Ok(());
        }
        self.roster.counters().limited_commands.add(1);
        Err(ErrorCode::TOO_MANY_REQUESTS.into())
    }

    /// The rates of publishes and subscribes in a namespace; refused ones count, too, because they cost as much.
    fn limit_in(
        &mut self,
        what: InNamespace,
        channel: &str,
        namespace: &Namespace,
    ) -> Result<(), Refusal> {
        let rate = match what {
            InNamespace::Publish => namespace.publish_rate,
            InNamespace::Subscribe => namespace.subscribe_rate,
        };
        if rate.limit == 0 {
            return Ok(());
        }
        let place = (self.node.rules().namespace_id(channel), what);
        let (index, now) = (self.key.index, self.node.clock().nanos(self.now));
        if self.roster.limits_mut().take_in(index, place, rate, now) {
            return Ok(());
        }
        let counters = self.roster.counters();
        match what {
            InNamespace::Publish => counters.limited_publishes.add(1),
            InNamespace::Subscribe => counters.limited_subscribes.add(1),
        }
        Err(ErrorCode::TOO_MANY_REQUESTS.into())
    }

    /// A rate refused something. Who goes on regardless is disconnected, with a code after which SDKs do not return.
    fn refused(&mut self) -> Result<(), Disconnect> {
        let rate = self.node.options().client.refusal_rate;
        let (index, now) = (self.key.index, self.node.clock().nanos(self.now));
        let may_stay = self.roster.limits_mut().take_refusal(index, rate, now);
        if may_stay { Ok(()) } else { Err(Disconnect::TOO_MANY_ERRORS) }
    }

    /// The answer to a ping; unasked it is an error (protocol §6).
    fn pong(&mut self) -> Result<(), Disconnect> {
        let session = self.session_mut();
        if session.frame_ping || !session.awaits_pong {
            return Err(Disconnect::BAD_REQUEST);
        }
        session.awaits_pong = false; // its timer stays: it fires once for nothing, which is cheaper than moving it now
        Ok(())
    }

    fn dispatch(&mut self, request: Request) -> Answer {
        match request {
            Request::Connect(request) => connect::handle(self, request),
            Request::Subscribe(request) => subscribe::handle(self, request),
            Request::Unsubscribe(request) => unsubscribe::handle(self, request),
            Request::Publish(request) => publish::handle(self, request),
            Request::Presence(request) => presence::handle(self, request),
            Request::PresenceStats(request) => presence_stats::handle(self, request),
            Request::History(request) => history::handle(self, request),
            Request::Rpc(request) => rpc::handle(self, request),
            Request::Send(request) => send::handle(self, request),
            Request::Refresh(request) => refresh::handle(self, request),
            Request::SubRefresh(request) => sub_refresh::handle(self, request),
            Request::Pong | Request::Unknown => Err(Disconnect::BAD_REQUEST.into()),
        }
    }

    fn session(&self) -> &Session {
        self.roster.session(self.key).expect(LIVES)
    }

    fn session_mut(&mut self) -> &mut Session {
        self.roster.session_mut(self.key).expect(LIVES)
    }

    /// Unix time in seconds.
    fn unix(&self) -> u64 {
        self.node.clock().unix(self.now)
    }

    fn insecure(&self) -> bool {
        self.node.options().client.insecure
    }

    /// The one who asks, for permission rules.
    fn who(&self) -> Who<'_> {
        Who { user: &self.session().user, insecure: self.insecure() }
    }

    /// Where the session keeps its subscription to a channel.
    fn place_of(&self, channel: &str) -> Option<usize> {
        self.roster.place_of(self.key.index, channel)
    }
}

/// Every command on a channel must name one (protocol §5.5).
fn named(channel: &str) -> Result<(), Refusal> {
    if channel.is_empty() { Err(Disconnect::BAD_REQUEST.into()) } else { Ok(()) }
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Self {
        Self::Error(code)
    }
}

impl From<Disconnect> for Refusal {
    fn from(disconnect: Disconnect) -> Self {
        Self::Disconnect(disconnect)
    }
}

const LIVES: &str = "a session lives as long as its turn";
