//! The body of a response as a client of a test reads it.
//! In: bytes from a socket → out: the messages that were sent in it; whether the trailer was right.
//! Uses flate2 with stock zlib; never the encoder of the server.
//! Changed here: how a body is read. What it should contain is decided in `world`.

use fanwire_protocol::{Encoding, Reply};
use fanwire_shard::{Coding, Framing, Transport};
use flate2::{Decompress, FlushDecompress, Status};
use prost::Message as _;

/// A body, as far as it was received.
pub(super) struct Body {
    framing: Framing,
    encoding: Encoding,
    zlib: Option<Decompress>,
    plaintext: Vec<u8>,
    /// The trailer was read, and its checksum is that of the plaintext.
    is_complete: bool,
}

impl Body {
    pub(super) fn new(transport: Transport, encoding: Encoding, coding: Option<Coding>) -> Self {
        let zlib = coding.map(|coding| match coding {
            Coding::Gzip => Decompress::new_gzip(15),
            Coding::Deflate => Decompress::new(true),
        });
        let (plaintext, is_complete) = (Vec::new(), zlib.is_none());
        Self { framing: transport.framing(), encoding, zlib, plaintext, is_complete }
    }

    /// Decodes bytes as they arrive, like a browser.
    pub(super) fn receive(&mut self, mut bytes: &[u8]) {
        let Some(zlib) = &mut self.zlib else { return self.plaintext.extend_from_slice(bytes) };
        while !bytes.is_empty() {
            assert!(!self.is_complete, "nothing follows the trailer");
            self.plaintext.reserve(1 << 16);
            let before = zlib.total_in();
            let flush = FlushDecompress::Sync;
            let status = zlib.decompress_vec(bytes, &mut self.plaintext, flush);
            bytes = &bytes[(zlib.total_in() - before) as usize..];
            self.is_complete = status.expect("a valid stream") == Status::StreamEnd;
        }
    }

    /// All messages except replies to commands. Each is complete, although the stream goes on.
    pub(super) fn messages(&self) -> Vec<Vec<u8>> {
        let text = &self.plaintext[..];
        let messages: Vec<Vec<u8>> = match (self.framing, self.encoding) {
            (Framing::WebSocket | Framing::GrpcMessages, _) => {
                unreachable!("a compressed response")
            }
            (Framing::Events | Framing::WholeEvents, _) => {
                assert!(text.starts_with(b"\n"), "an empty line");
                events(std::str::from_utf8(text).expect("text"))
            }
            (Framing::Lines, Encoding::Json) => {
                assert!(text.ends_with(b"\n"), "the last line is complete");
                text[..text.len() - 1].split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
            }
            (Framing::Lines, Encoding::Protobuf) => delimited(text),
        };
        messages.into_iter().filter(|one| !is_reply(self.encoding, one)).collect()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }
}

/// Whether a message begins with the reply to a command.
pub(super) fn is_reply(encoding: Encoding, message: &[u8]) -> bool {
    match encoding {
        Encoding::Json => message.starts_with(b"{\"id\":") || message.starts_with(b"{\"connect\":"),
        Encoding::Protobuf => {
            Reply::decode_length_delimited(message).is_ok_and(|reply| reply.id > 0)
        }
    }
}

/// A message behind its length, as bodies in Protobuf have to contain it.
pub(super) fn with_length(message: &[u8]) -> Vec<u8> {
    let mut delimited = Vec::new();
    prost::encode_length_delimiter(message.len(), &mut delimited).expect("it grows");
    delimited.extend_from_slice(message);
    delimited
}

/// The data of each event (WHATWG HTML §9.2.6): CR, LF and CRLF each end a line, and a line has a field of its own.
fn events(stream: &str) -> Vec<Vec<u8>> {
    let (mut events, mut data, mut id) = (Vec::new(), Vec::new(), None);
    let lines = stream.replace("\r\n", "\n").replace('\r', "\n");
    for line in lines.split_terminator('\n') {
        if !line.is_empty() {
            match line.strip_prefix("id: ") {
                Some(of_event) => id = Some(of_event.split('.').next().expect("an offset")),
                None => data.push(line.strip_prefix("data: ").expect("a field with data")),
            }
        } else if !data.is_empty() {
            let event = std::mem::take(&mut data).join("\n");
            let is_publication = event.starts_with("{\"channel\":");
            let offset = id.take().filter(|_| is_publication);
            let offset = offset.map(|offset| format!("\"offset\":{offset}"));
            assert!(offset.is_none_or(|offset| event.contains(&offset)), "{event}");
            events.push(event.into_bytes());
        }
    }
    assert!(data.is_empty(), "the last event is complete");
    events
}

fn delimited(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let length = prost::decode_length_delimiter(bytes).expect("a length");
        let (message, rest) = bytes.split_at(prost::length_delimiter_len(length) + length);
        messages.push(message.to_vec());
        bytes = rest;
    }
    messages
}
