//! What clients ask: one file per command, and the rules all of them share (protocol §5: life cycle, order, ids).
//! In: one WebSocket message of a session → out: replies in order, or one disconnect.
//! Uses: `fanwire_protocol::Commands`, `roster`, the node. Never: sends by itself; a command returns its reply or refusal.
//! Change here: what holds for every command. A command lives in the file of its name.

mod connect;
mod credentials;
mod enter;
mod history;
mod lifetime;
mod order;
mod presence;
mod presence_stats;
mod publish;
mod rates;
mod refresh;
mod rpc;
mod send;
mod sub_refresh;
mod subscribe;
mod turn;
mod unsubscribe;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fanwire_protocol::{Commands, Disconnect, Refresh};

use crate::hub::Hub;
use crate::notice::{Notice, Renewal, SubscribeOrder};
use crate::outbox::Outbox;
use crate::session::{ConnectionKey, Phase};
use crate::waiting::{Arrival, Part, PutOff, Work};

pub(crate) use enter::Entrance;
pub(crate) use turn::{Backlog, Outcome, Turn};
use turn::{Begun, Done, Refusal, Step, Then};

/// Processes one WebSocket message: its commands in order, each to completion.
///
/// It ends early with the first disconnect, and after a refused `connect`, whose reply is the last one (protocol §5.6). When
/// a command has to wait, the rest waits behind it (`waiting.rs`), and the shell is asked to read no further. So it is after
/// [`COMMANDS_AT_ONCE`]: the rest waits for the other letters of the shard. `keep` makes of a part of `frame` what is kept.
///
/// Returns how many commands were done; one with a large reply counts as several.
pub(crate) fn receive<'a>(
    hub: &mut Hub,
    key: ConnectionKey,
    frame: &'a [u8],
    keep: impl Fn(&'a [u8]) -> Bytes,
    now: Instant,
    out: &mut impl Outbox,
) -> usize {
    let (_, roster) = hub.parts();
    let Some(encoding) = roster.session(key).map(|session| session.encoding) else { return 0 };
    if hub.put_off(key, || PutOff::Frame(keep(frame)), out) {
        return 0;
    }
    let (mut commands, mut done) = (Commands::new(encoding, frame), 0);
    let mut left = frame;
    while let Some(command) = commands.next() {
        let own = &left[..left.len() - commands.rest().len()];
        left = commands.rest();
        let (node, roster) = hub.parts();
        let mut turn = Turn::new(node, roster, key, now);
        let outcome = turn.take(command, || keep(own));
        let backlog = turn.backlog;
        done += 1 + hub.conclude(key, outcome, backlog, out);
        let (_, roster) = hub.parts();
        if roster.session(key).is_none_or(|session| session.phase == Phase::Refused) {
            return done;
        }
        if done >= COMMANDS_AT_ONCE && !left.is_empty() && !roster.waiting().waits(key) {
            await_turn(hub, key);
        }
        let (_, roster) = hub.parts();
        if roster.waiting().waits(key) {
            if !left.is_empty() {
                roster.waiting_mut().put_back(key, PutOff::Rest(keep(left)));
            }
            out.hold(key);
            break;
        }
    }
    done
}

/// Lets a session that does not wait, but did [`COMMANDS_AT_ONCE`], wait until the letters of its shard are served that are
/// there already.
pub(crate) fn await_turn(hub: &mut Hub, key: ConnectionKey) {
    let (node, roster) = hub.parts();
    let ticket = roster.waiting_mut().ticket();
    roster.waiting_mut().park(key, ticket, NO_COMMAND, Work::Turn);
    let arrival = Arrival { key, ticket, part: Part::Turn };
    node.inbox(roster.shard()).push(Notice::Arrival(Box::new(arrival)));
}

/// Subscribes a connected session that does not wait, by order of the server.
pub(crate) fn subscribe_by_order(
    hub: &mut Hub,
    key: ConnectionKey,
    order: &Arc<SubscribeOrder>,
    now: Instant,
    out: &mut impl Outbox,
) {
    let (node, roster) = hub.parts();
    let mut turn = Turn::new(node, roster, key, now);
    let outcome = match order::begin(&mut turn, order) {
        Ok(Some(step)) => turn.step(NO_COMMAND, step),
        Ok(None) => Ok(None),
        Err(disconnect) => Err(disconnect),
    };
    let backlog = turn.backlog;
    hub.conclude(key, outcome, backlog, out);
    let (_, roster) = hub.parts();
    if roster.waiting().waits(key) {
        out.hold(key);
    }
}

/// Gives a connected session another lifetime, by order of the server. `None` when it is over already.
pub(crate) fn refresh_by_order(
    hub: &mut Hub,
    key: ConnectionKey,
    renewal: &Renewal,
    now: Instant,
) -> Option<Refresh> {
    let (node, roster) = hub.parts();
    order::refresh(&mut Turn::new(node, roster, key, now), renewal).ok()
}

/// Every command on a channel must name one (protocol §5.5).
fn named(channel: &str) -> Result<(), Refusal> {
    if channel.is_empty() { Err(Disconnect::BAD_REQUEST.into()) } else { Ok(()) }
}

/// Small commands of one connection that are done without a look at what else the shard has to do, in some 0.2 ms.
pub(crate) const COMMANDS_AT_ONCE: usize = 128;
/// So much of a reply is encoded and compressed in about the time of a small command.
pub(crate) const COMMAND_BYTES: usize = 512;

/// The id of what no command asked for.
const NO_COMMAND: u32 = 0;
