//! How messages are framed on a connection: WebSocket frames, or the body of a response that does not end.
//! In: a message → out: its bytes in the body of an HTTP stream or an event stream; those of WebSocket are made by `ws`.
//! Uses the envelope of `deflate`; a message in JSON has no line end in itself, so a line feed in its bytes separates two messages.
//! Changed here: the bytes around a message. Which connection has which transport is decided by the HTTP side.

use fanwire_deflate::Envelope;

/// The transport of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Transport {
    #[default]
    WebSocket,
    /// A response body: JSON messages that end in line feeds, or Protobuf messages behind their lengths.
    HttpStream,
    /// Server-Sent Events, JSON only: an event for each message (WHATWG HTML §9.2).
    EventStream,
    /// A WebSocket to a client that sends one message and receives any number.
    UniWebSocket,
    UniHttpStream,
    UniEventStream,
    /// The response of a gRPC call with one request: a message for each push, in Protobuf.
    UniGrpc,
}

/// The bytes around the messages of a transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// WebSocket frames, made by `ws`.
    WebSocket,
    /// A response body: JSON messages that end in line feeds, or Protobuf messages behind their lengths.
    Lines,
    /// A response body: an event for each JSON message.
    Events,
    /// A response body: messages that are whole events.
    WholeEvents,
    /// A response body: Protobuf messages, each behind the prefix of a gRPC message.
    GrpcMessages,
}

impl Transport {
    pub const ALL: [Self; 7] = [
        Self::WebSocket,
        Self::HttpStream,
        Self::EventStream,
        Self::UniWebSocket,
        Self::UniHttpStream,
        Self::UniEventStream,
        Self::UniGrpc,
    ];

    pub fn framing(self) -> Framing {
        match self {
            Self::WebSocket | Self::UniWebSocket => Framing::WebSocket,
            Self::HttpStream | Self::UniHttpStream => Framing::Lines,
            Self::EventStream => Framing::Events,
            Self::UniEventStream => Framing::WholeEvents,
            Self::UniGrpc => Framing::GrpcMessages,
        }
    }

    /// Whether its clients send one message only.
    pub fn is_unidirectional(self) -> bool {
        match self {
            Self::WebSocket | Self::HttpStream | Self::EventStream => false,
            Self::UniWebSocket | Self::UniHttpStream | Self::UniEventStream | Self::UniGrpc => true,
        }
    }

    /// The name as backends and metrics see it (protocol §24).
    pub fn name(self) -> &'static str {
        match self {
            Self::WebSocket => "websocket",
            Self::HttpStream => "http_stream",
            Self::EventStream => "sse",
            Self::UniWebSocket => "uni_websocket",
            Self::UniHttpStream => "uni_http_stream",
            Self::UniEventStream => "uni_sse",
            Self::UniGrpc => "uni_grpc",
        }
    }

    /// Appends `message`, which may be several joined ones, as it is sent in a response body.
    ///
    /// # Panics
    /// With [`Framing::WebSocket`].
    pub(crate) fn encode(self, is_binary: bool, message: &[u8], into: &mut Vec<u8>) {
        match self.framing() {
            Framing::WebSocket => unreachable!("WebSocket frames are made by the framer"),
            Framing::Lines | Framing::WholeEvents => into.extend_from_slice(message),
            Framing::GrpcMessages => {
                into.push(0); // not compressed
                into.extend_from_slice(&(message.len() as u32).to_be_bytes());
                into.extend_from_slice(message);
            }
            Framing::Events => {
                let Envelope { prefix, suffix } = EVENT;
                let mut lines = message.split(|byte| *byte == b'\n').peekable();
                while let Some(line) = lines.next() {
                    into.extend_from_slice(prefix);
                    into.extend_from_slice(line);
                    if lines.peek().is_some() {
                        into.extend_from_slice(suffix);
                    }
                }
            }
        }
        into.extend_from_slice(self.framing().envelope(is_binary).suffix);
    }
}

impl Framing {
    /// The bytes around a message in a response body.
    #[inline]
    pub fn envelope(self, is_binary: bool) -> Envelope {
        match self {
            Self::Lines if !is_binary => LINE,
            Self::Events => EVENT,
            Self::WebSocket | Self::Lines | Self::WholeEvents | Self::GrpcMessages => {
                Envelope::NONE
            }
        }
    }

    /// Whether its messages are events (WHATWG HTML §9.2).
    pub fn is_events(self) -> bool {
        matches!(self, Self::Events | Self::WholeEvents)
    }

    /// The first bytes of a response body, before any message.
    pub(crate) fn first_bytes(self) -> &'static [u8] {
        match self {
            // An empty line makes proxies begin the stream. npm `eventsource` 1 and 2 read a CR at this place twice, and lose an event.
            Self::Events | Self::WholeEvents => b"\n",
            Self::WebSocket | Self::Lines | Self::GrpcMessages => b"",
        }
    }

    /// The place of byte `at` of `message` in the bytes that are sent.
    pub(crate) fn position(self, message: &[u8], at: usize) -> usize {
        match self {
            Self::Events => {
                let line_feeds = message[..at].iter().filter(|byte| **byte == b'\n').count();
                EVENT.prefix.len() + at + line_feeds * (EVENT.bytes() - 1)
            }
            Self::WebSocket | Self::Lines | Self::WholeEvents => at,
            Self::GrpcMessages => GRPC_PREFIX_BYTES + at,
        }
    }
}

/// A JSON message that ends in a line feed.
const LINE: Envelope = Envelope { prefix: b"", suffix: b"\n" };

/// A flag and the length, of <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>.
const GRPC_PREFIX_BYTES: usize = 5;

/// WHATWG HTML §9.2.6.
const EVENT: Envelope = Envelope { prefix: b"data: ", suffix: b"\n\n" };

#[cfg(test)]
mod tests {
    use super::{Framing, Transport};

    #[test]
    fn messages_are_lines_events_or_bytes() {
        let encoded = |transport: Transport, is_binary, message: &[u8]| {
            let mut bytes = Vec::new();
            transport.encode(is_binary, message, &mut bytes);
            String::from_utf8(bytes).expect("text")
        };
        assert_eq!(encoded(Transport::HttpStream, false, b"{\"id\":1}\n{}"), "{\"id\":1}\n{}\n");
        assert_eq!(encoded(Transport::HttpStream, true, b"\x02ab"), "\x02ab");
        assert_eq!(encoded(Transport::UniGrpc, true, b"ab\n"), "\0\0\0\0\x03ab\n");
        assert_eq!(encoded(Transport::UniGrpc, true, b""), "\0\0\0\0\0", "a ping");
        let events = encoded(Transport::EventStream, false, b"{\"id\":1}\n{}");
        assert_eq!(events, "data: {\"id\":1}\n\ndata: {}\n\n");
    }

    #[test]
    fn bytes_of_a_message_are_found_in_what_is_sent() {
        let messages = b"first\nsecond\nlast one";
        for transport in [Transport::HttpStream, Transport::EventStream, Transport::UniGrpc] {
            let mut sent = Vec::new();
            transport.encode(false, messages, &mut sent);
            for at in (0..messages.len()).filter(|at| messages[*at] != b'\n') {
                let position = transport.framing().position(messages, at);
                assert_eq!(sent[position], messages[at], "{transport:?}, byte {at}");
            }
        }
        assert_eq!(Framing::WebSocket.position(messages, 7), 7);
    }
}
