//! Replies, and the pushes that go to one connection at a time (client protocol §2–§4).
//! In: an encoding and a value. Out: one message appended to a buffer, without newline, with its length in Protobuf.
//! Uses prost and `json`; never joins messages (`encoding::join`) and never frames them.
//! A new push kind starts here; the broadcast of a publication, the hot path, lives in `publication`.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::{Message as _, encode_length_delimiter};

use crate::encoding::Encoding;
use crate::error::NotJson;
use crate::json;
use crate::message::{
    ClientInfo, Disconnect, Join, Leave, Message, Push, Refresh, Reply, Subscribe, SubscribeResult,
    Unsubscribe,
};

/// Appends one reply.
///
/// # Errors
/// [`NotJson`] when the encoding is JSON and a payload in the reply is not; nothing is appended then.
pub fn encode_reply(encoding: Encoding, reply: &Reply, out: &mut Vec<u8>) -> Result<(), NotJson> {
    match encoding {
        Encoding::Json => json::write(reply, out),
        Encoding::Protobuf => {
            encode_protobuf(reply, out);
            Ok(())
        }
    }
}

/// prost leaves the value of a map's entry out when it has no field. protobuf.js reads that as null, and centrifuge-js fails
/// on a subscription without a result; so such entries are written here.
fn encode_protobuf(reply: &Reply, out: &mut Vec<u8>) {
    let is_empty = |result: &SubscribeResult| *result == SubscribeResult::default();
    match &reply.connect {
        Some(connect) if connect.subs.values().any(is_empty) => {
            let mut connect = connect.clone();
            let (empty, subs) =
                connect.subs.into_iter().partition::<BTreeMap<_, _>, _>(|(_, sub)| is_empty(sub));
            connect.subs = subs;
            let mut body = connect.encode_to_vec();
            for channel in empty.keys() {
                let mut entry = Vec::with_capacity(channel.len() + 8);
                put_field(1, channel.as_bytes(), &mut entry);
                put_field(2, &[], &mut entry);
                put_field(6, &entry, &mut body); // ConnectResult.subs
            }
            let mut message = Reply { connect: None, ..reply.clone() }.encode_to_vec();
            put_field(5, &body, &mut message); // Reply.connect
            encode_length_delimiter(message.len(), out).expect("a Vec grows");
            out.append(&mut message);
        }
        _ => reply.encode_length_delimited(out).expect("a Vec grows"),
    }
}

/// Appends a field with a length: text, bytes or a message.
fn put_field(number: u8, value: &[u8], out: &mut Vec<u8>) {
    out.push(number << 3 | 2);
    encode_length_delimiter(value.len(), out).expect("a Vec grows");
    out.extend_from_slice(value);
}

/// Appends a push: the server ended the subscription of `channel`. Both must not be empty.
pub fn encode_unsubscribe_push(
    encoding: Encoding,
    channel: &str,
    code: u32,
    reason: &str,
    out: &mut Vec<u8>,
) {
    let unsubscribe = Some(Unsubscribe { code, reason: reason.to_owned() });
    let push = Push { channel: channel.to_owned(), unsubscribe, ..Push::default() };
    encode_push(encoding, push, out).expect("no payload inside");
}

/// Appends a push: the connection ends. Only for transports without close codes.
pub fn encode_disconnect_push(encoding: Encoding, code: u32, reason: &str, out: &mut Vec<u8>) {
    let disconnect = Some(Disconnect { code, reason: reason.to_owned(), reconnect: false });
    encode_push(encoding, Push { disconnect, ..Push::default() }, out).expect("no payload inside");
}

/// Appends a push: the connection now expires in `ttl` seconds, or never.
pub fn encode_refresh_push(encoding: Encoding, refresh: Refresh, out: &mut Vec<u8>) {
    let push = Push { refresh: Some(refresh), ..Push::default() };
    encode_push(encoding, push, out).expect("no payload inside");
}

/// Appends a push: a client entered the channel.
///
/// # Errors
/// [`NotJson`] as in [`encode_reply`].
pub fn encode_join_push(
    encoding: Encoding,
    channel: &str,
    info: ClientInfo,
    out: &mut Vec<u8>,
) -> Result<(), NotJson> {
    let join = Some(Join { info: Some(info) });
    encode_push(encoding, Push { channel: channel.to_owned(), join, ..Push::default() }, out)
}

/// Appends a push: a client left the channel.
///
/// # Errors
/// [`NotJson`] as in [`encode_reply`].
pub fn encode_leave_push(
    encoding: Encoding,
    channel: &str,
    info: ClientInfo,
    out: &mut Vec<u8>,
) -> Result<(), NotJson> {
    let leave = Some(Leave { info: Some(info) });
    encode_push(encoding, Push { channel: channel.to_owned(), leave, ..Push::default() }, out)
}

/// Appends a push: the server subscribed the connection to the channel.
///
/// # Errors
/// [`NotJson`] as in [`encode_reply`].
pub fn encode_subscribe_push(
    encoding: Encoding,
    channel: &str,
    subscribe: Subscribe,
    out: &mut Vec<u8>,
) -> Result<(), NotJson> {
    let subscribe = Some(subscribe);
    encode_push(encoding, Push { channel: channel.to_owned(), subscribe, ..Push::default() }, out)
}

/// Appends a push: a payload for the application, outside of any channel.
///
/// # Errors
/// [`NotJson`] as in [`encode_reply`].
pub fn encode_message_push(
    encoding: Encoding,
    data: Bytes,
    out: &mut Vec<u8>,
) -> Result<(), NotJson> {
    encode_push(encoding, Push { message: Some(Message { data }), ..Push::default() }, out)
}

fn encode_push(encoding: Encoding, push: Push, out: &mut Vec<u8>) -> Result<(), NotJson> {
    encode_reply(encoding, &Reply { push: Some(push), ..Reply::default() }, out)
}

#[cfg(test)]
mod tests;
