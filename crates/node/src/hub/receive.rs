//! One message of a session, from its connection or from a request of its own: its commands in order, each to completion (protocol §5: life cycle, order, ids).
//! In: the bytes of a message → out: replies in order, or one disconnect; commands behind a pending one are kept.
//! Uses: `fanwire_protocol::Commands`, the commands, the pending ones. Never: rules of a single command.
//! Changed here: how many commands of a connection run at once. `resume.rs` continues after a wait.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fanwire_protocol::{Command, Commands, DecodeError, Encoding, Reply};

use super::Hub;
use crate::command::NO_COMMAND;
use crate::node::Node;
use crate::notice::Notice;
use crate::outbox::Outbox;
use crate::pending::{Awaited, AwaitedResult, Deferred, Part};
use crate::refusal::channel_of;
use crate::session::{CommandSource, ConnectionKey, Phase};
use crate::session_table::SessionTable;

impl Hub {
    /// Processes one WebSocket message: its commands in order, each to completion.
    ///
    /// It ends early with the first disconnect, and after a refused `connect`, whose reply is the last one (protocol
    /// §5.6). When a command has to wait, the rest waits behind it (`pending.rs`), and the shell stops reading the
    /// connection. The same happens after [`COMMANDS_AT_ONCE`]: the rest waits for the other messages of the shard.
    /// `keep` copies the rest of `frame`.
    ///
    /// Returns how many commands ran; one with a large reply counts as several.
    pub(super) fn receive_frame<'a>(
        &mut self,
        key: ConnectionKey,
        frame: &'a [u8],
        keep: impl Fn(&'a [u8]) -> Bytes,
        now: Instant,
        out: &mut impl Outbox,
    ) -> usize {
        let Some(session) = self.session_table.session(key) else { return 0 };
        let encoding = session.encoding;
        let command_source = session.command_source;
        if command_source == CommandSource::None
            && (session.phase != Phase::Open || self.session_table.pending.waits(key))
        {
            return 0; // only the first message of such a client is read
        }
        if self.defer(key, || Deferred::Frame(keep(frame)), out) {
            return 0;
        }
        let mut commands = command_source.commands(encoding, frame);
        let mut done = 0;
        let mut left = frame;
        let mut has_had_its_share = false;
        while let Some(command) = commands.next() {
            if !self.publish_replies.is_empty() && !is_publish(&command) {
                break;
            }
            let own = &left[..left.len() - commands.rest().len()];
            left = commands.rest();
            let mut context = self.context(key, now);
            let outcome = context.take(command, || keep(own));
            let mut effects = context.effects;
            if let Some(refused) = &mut effects.log.refused {
                refused.channel = channel_of_command(encoding, own);
            }
            done += 1 + self.conclude(key, outcome, effects, out);
            let session_table = &mut self.session_table;
            if session_table.session(key).is_none_or(|session| session.phase == Phase::Refused) {
                self.publish_replies.clear();
                return done;
            }
            has_had_its_share = done >= COMMANDS_AT_ONCE && !left.is_empty();
            if has_had_its_share || session_table.pending.waits(key) {
                break;
            }
        }
        self.await_own_publications(key, out);
        let session_table = &mut self.session_table;
        if has_had_its_share && !session_table.pending.waits(key) {
            await_turn(&self.node, session_table, key);
        }
        if session_table.pending.waits(key) {
            if !left.is_empty() {
                session_table.pending.put_back(key, Deferred::Rest(keep(left)));
            }
            out.hold(key);
        }
        done
    }

    /// Replies to publishes follow the client's own publications, which are in the shard's inbox now: the session waits
    /// until the shard has handled them. One that waits for something else gets its replies at once.
    pub(super) fn await_own_publications(&mut self, key: ConnectionKey, out: &mut impl Outbox) {
        if self.publish_replies.is_empty() {
            return;
        }
        let replies = std::mem::take(&mut self.publish_replies);
        if self.session_table.pending.waits(key) {
            return self.send_publish_replies(key, replies, out);
        }
        await_inbox(&self.node, &mut self.session_table, key, Awaited::OwnPublications(replies));
    }

    /// Sends replies to publishes. They are small.
    pub(super) fn send_publish_replies(
        &mut self,
        key: ConnectionKey,
        replies: Vec<Reply>,
        out: &mut impl Outbox,
    ) {
        for reply in &replies {
            self.send(key, reply, out);
        }
    }
}

/// After [`COMMANDS_AT_ONCE`] commands a session waits until the shard has handled the messages that are in its
/// inbox now.
pub(super) fn await_turn(node: &Node, session_table: &mut SessionTable, key: ConnectionKey) {
    await_inbox(node, session_table, key, Awaited::Turn);
}

/// The session waits until the shard has handled what is in its inbox now.
fn await_inbox(node: &Node, session_table: &mut SessionTable, key: ConnectionKey, work: Awaited) {
    let ticket = session_table.pending.ticket();
    session_table.pending.suspend(key, ticket, NO_COMMAND, work);
    let arrival = AwaitedResult { key, ticket, part: Part::Turn };
    node.inbox(session_table.shard).push(Notice::AwaitedResult(Box::new(arrival)));
}

/// Only further publishes run before the replies to earlier ones are sent.
fn is_publish(command: &Result<Command, DecodeError>) -> bool {
    let Ok(command) = command else { return false };
    let comes_first =
        command.connect.is_some() || command.subscribe.is_some() || command.unsubscribe.is_some();
    command.publish.is_some() && !comes_first // as `Command::into_request` chooses
}

/// The channel that a refused command names. Decodes it again, so that commands that succeed keep no copy of it.
pub(super) fn channel_of_command(encoding: Encoding, bytes: &[u8]) -> Option<Arc<str>> {
    let (_, request) = Commands::new(encoding, bytes).next()?.ok()?.into_request();
    channel_of(&request).map(Arc::from)
}

/// Small commands of one connection that run without interruption, some 0.2 ms.
pub(super) const COMMANDS_AT_ONCE: usize = 128;
/// Bytes of a reply that are encoded and compressed in about the time of a small command.
pub(super) const COMMAND_BYTES: usize = 512;
