//! Events of unidirectional streams (WHATWG HTML §9.2.6): a push, and the id after which its client continues.
//! In: bare pushes with their positions → out: whole events, appended to a message.
//! Uses ids of `node`; a push in JSON has no line end in itself. Never: a connection.
//! Changed here: the fields of an event. Events with commands have no ids; their bytes are `shard::transport`.

use std::io::Write as _;

use fanwire_node::{LastEventId, broker::Position};

/// Appends the event of a push. With a position in a stream it has an id.
///
/// The id is the last line, because npm `eventsource` 1 and 2 take it before the event is complete: they would come back behind
/// an event whose data was cut.
pub(crate) fn write(position: Position, push: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(push);
    if let Some(id) = LastEventId::of(position) {
        write!(out, "\nid: {id}").expect(GROWS);
    }
    out.extend_from_slice(b"\n\n");
}

/// Appends the message that publications are missing: an event of its own type, or a JSON object with this only key.
pub(crate) fn write_unrecovered(is_event: bool, reason: &str, text: &str, out: &mut Vec<u8>) {
    let (start, end) =
        if is_event { ("event: unrecovered\ndata: ", "\n\n") } else { ("{\"unrecovered\":", "}") };
    write!(out, "{start}{{\"reason\":\"{reason}\",\"message\":\"{text}\"}}{end}").expect(GROWS);
}

const GROWS: &str = "a Vec grows";
