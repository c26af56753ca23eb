//! One message or control frame of a peer: counted, and given to the application or answered.
//! In: an event of the reader → out: calls of the application, pongs and closes; the number of commands.
//! Uses the `ConnectionWriter`. Never: a socket, the bytes around the event.
//! Changed here: what a control frame causes (RFC 6455 §5.5). The order of events is the reader's.

use std::time::Instant;

use fanwire_ws::{Event, Opcode};

use super::share::Share;
use crate::{
    application::{Application, ReceivedMessage},
    connection::{Connection, PeerFormat, SlotKey, is_open},
    connection_writer::ConnectionWriter,
    counters::is_sampled,
};

/// Handles one event and returns the number of commands.
pub(super) fn handle<A: Application>(
    application: &mut A,
    out: &mut ConnectionWriter,
    key: SlotKey,
    event: Event<'_>,
    share: &mut Share,
) -> usize {
    let message = match event {
        Event::Text(text) => ReceivedMessage::Text(text),
        Event::Binary(bytes) => ReceivedMessage::Binary(bytes),
        control => {
            share.spend(1, 0);
            answer(application, out, key, control);
            return 0;
        }
    };
    if !is_open(&out.connections, key) {
        return 0;
    }
    let Some(PeerFormat { transport, is_binary, .. }) =
        out.connection(key.index).map(Connection::format)
    else {
        return 0;
    };
    let traffic = out.counters.of(transport, is_binary);
    let started = is_sampled(&traffic.messages_in).then(Instant::now);
    traffic.messages_in.add(1);
    traffic.payload_bytes_in.add(message.bytes().len() as u64);
    let commands = application.receive(key, message, out.now, out);
    if let Some(started) = started {
        out.counters.message_time.observe(started.elapsed());
    }
    share.spend(commands.max(1), message.bytes().len());
    commands
}

fn answer<A: Application>(
    application: &mut A,
    out: &mut ConnectionWriter,
    key: SlotKey,
    control: Event<'_>,
) {
    match control {
        Event::Ping(payload) => out.control(key, Opcode::Pong, payload), // RFC 6455 §5.5.2a
        Event::Pong(_) if is_open(&out.connections, key) => application.pong(key, out.now, out),
        Event::Close(close) => out.peer_closed(key, close.map(|(code, _)| code)),
        Event::Pong(_) | Event::Text(_) | Event::Binary(_) => {}
    }
}
