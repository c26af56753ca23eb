//! Events of unidirectional streams (WHATWG HTML §9.2.6): a push, and the id after which its client continues.
//! In: bare pushes with their positions → out: whole events, appended to a message.
//! Uses ids of `node`; a push in JSON has no line end in itself. Never: a connection.
//! Changed here: the fields of an event. Events with commands have no ids; their bytes are `shard::transport`.

use std::io::Write as _;

use fanwire_node::{LastEventId, broker::Position};

/// Appends the event of a push. With a position in a stream it has an id.
pub(crate) fn write(position: Position, push: &[u8], out: &mut Vec<u8>) {
    if let Some(id) = LastEventId::of(position) {
        writeln!(out, "id: {id}").expect(GROWS);
    }
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(push);
    out.extend_from_slice(b"\n\n");
}

/// Appends the message that publications are missing: an event of its own type, or a JSON object with this only key.
pub(crate) fn write_unrecovered(is_event: bool, reason: &str, text: &str, out: &mut Vec<u8>) {
    let (start, end) = match is_event {
        true => ("event: unrecovered\ndata: ", "\n\n"),
        false => ("{\"unrecovered\":", "}"),
    };
    write!(out, "{start}{{\"reason\":\"{reason}\",\"message\":\"{text}\"}}{end}").expect(GROWS);
}

const GROWS: &str = "a Vec grows";
