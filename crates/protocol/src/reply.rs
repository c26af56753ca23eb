//! Replies, and the pushes that go to one connection at a time (client protocol §2–§4).
//! In: an encoding and a value. Out: one message appended to a buffer, without newline, with its length in Protobuf.
//! Uses prost and `json`; never joins messages (`encoding::join`) and never frames them.
//! A new push kind starts here; the broadcast of a publication, the hot path, lives in `publication`.

use prost::Message as _;

use crate::encoding::Encoding;
use crate::error::NotJson;
use crate::json;
use crate::message::{
    ClientInfo, Connect, ConnectResult, Disconnect, Join, Leave, Push, Refresh, Reply, Unsubscribe,
};
use crate::protobuf::{
    field_length, number_length, put_head, put_number, put_text, put_varint, text_length,
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

fn encode_protobuf(reply: &Reply, out: &mut Vec<u8>) {
    match &reply.connect {
        Some(connect) => {
            let body = connect_body(connect);
            put_varint((number_length(reply.id.into()) + field_length(body.len())) as u64, out);
            put_number(1, reply.id.into(), out); // Reply.id
            put_head(5, body.len(), out); // Reply.connect, the only field
            out.extend_from_slice(&body);
        }
        None => reply.encode_length_delimited(out).expect(GROWS),
    }
}

/// prost leaves the value of a map's entry out when it has no field. protobuf.js reads that as null, and centrifuge-js fails
/// on a subscription without a result; so the fields of a connect result are written here.
fn connect_body(connect: &ConnectResult) -> Vec<u8> {
    let mut out = Vec::new();
    put_text(1, connect.client.as_bytes(), &mut out);
    put_text(2, connect.version.as_bytes(), &mut out);
    put_number(3, connect.expires.into(), &mut out);
    put_number(4, connect.ttl.into(), &mut out);
    put_text(5, &connect.data, &mut out);
    for (channel, result) in &connect.subs {
        let length = result.encoded_len();
        put_head(6, text_length(channel.as_bytes()) + field_length(length), &mut out);
        put_text(1, channel.as_bytes(), &mut out);
        put_head(2, length, &mut out);
        result.encode(&mut out).expect(GROWS);
    }
    put_number(7, connect.ping.into(), &mut out);
    put_number(8, connect.pong.into(), &mut out);
    put_text(9, connect.session.as_bytes(), &mut out);
    put_text(10, connect.node.as_bytes(), &mut out);
    put_number(11, connect.time as u64, &mut out);
    put_number(12, connect.flag as u64, &mut out);
    if let Some(dict) = &connect.dict {
        put_head(13, dict.encoded_len(), &mut out);
        dict.encode(&mut out).expect(GROWS);
    }
    out
}

/// The first push of a unidirectional client, which sends no command that could have a reply (client protocol §25).
impl From<ConnectResult> for Push {
    fn from(result: ConnectResult) -> Self {
        let ConnectResult { client, version, expires, ttl, data, subs, ping, pong, .. } = result;
        let session = result.session;
        let node = result.node;
        let time = result.time;
        let connect =
            Connect { client, version, data, subs, expires, ttl, ping, pong, session, node, time };
        Self { connect: Some(connect), ..Self::default() }
    }
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

/// Appends a push: the connection now expires in `ttl` seconds, or never.
pub fn encode_refresh_push(encoding: Encoding, refresh: Refresh, out: &mut Vec<u8>) {
    let push = Push { refresh: Some(refresh), ..Push::default() };
    encode_push(encoding, push, out).expect("no payload inside");
}

/// Appends a push that says that the connection ends. Transports without close codes need it.
pub fn encode_disconnect_push(encoding: Encoding, code: u16, reason: &str, out: &mut Vec<u8>) {
    let code = code.into();
    let reason = reason.to_owned();
    let disconnect = Some(Disconnect { code, reason, ..Disconnect::default() });
    let push = Push { disconnect, ..Push::default() };
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

fn encode_push(encoding: Encoding, push: Push, out: &mut Vec<u8>) -> Result<(), NotJson> {
    encode_reply(encoding, &Reply { push: Some(push), ..Reply::default() }, out)
}

const GROWS: &str = "a Vec grows";

#[cfg(test)]
mod tests;
