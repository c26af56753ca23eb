//! Messages of one WebSocket connection, and their bytes (RFC 6455 §5, RFC 7692 §7.2).
//! Bytes of the socket → messages, pings, the close; messages → bytes for the socket.
//! Uses ws and deflate; never sockets or chance: keys of masks are parameters.
//! Changed here: how our messages are compressed. The handshake is `transport`, the content of messages `core`.

use fanwire_deflate::{Compressor, Dedicated, Scratch};
use fanwire_protocol::Encoding;
use fanwire_ws::client::ClientAgreement;
use fanwire_ws::{ClientReader, Event, Failure, Input, Limits, Opcode, Pool, frame};

use crate::CompressionConfig;

/// The state of one connection after its handshake.
pub(crate) struct MessageCodec {
    opcode: Opcode,
    reader: ClientReader,
    pool: Pool,
    limits: Limits,
    compressor: Option<MessageCompressor>,
    /// Bytes that were received since the last message.
    wire_bytes: usize,
}

/// A message or the end of the connection, as a server sent it.
#[derive(Debug, PartialEq)]
pub(crate) enum WireEvent {
    /// A message, and the bytes that came since the message before.
    Message {
        bytes: Vec<u8>,
        wire_bytes: usize,
    },
    /// A ping, which the pong returns.
    Ping(Vec<u8>),
    Close {
        code: Option<u16>,
        reason: String,
    },
}

impl MessageCodec {
    pub(crate) fn new(
        encoding: Encoding,
        agreement: Option<ClientAgreement>,
        compression: Option<&CompressionConfig>,
        message_size_max: usize,
    ) -> Self {
        let limits = Limits {
            message_bytes_max: message_size_max,
            inflated_bytes_max: message_size_max,
            ..Limits::default()
        };
        let compressor = agreement
            .zip(compression)
            .map(|(agreement, config)| MessageCompressor::new(agreement, config));
        Self {
            opcode: if encoding.is_binary() { Opcode::Binary } else { Opcode::Text },
            reader: ClientReader::new(agreement.as_ref()),
            pool: Pool::new(),
            limits,
            compressor,
            wire_bytes: 0,
        }
    }

    /// Takes all of `bytes`, and passes on what is complete.
    ///
    /// # Errors
    /// The rule that the server broke; the connection must be closed then.
    pub(crate) fn receive(
        &mut self,
        bytes: &mut [u8],
        mut complete: impl FnMut(WireEvent),
    ) -> Result<(), Failure> {
        let mut input = Input::new(bytes);
        loop {
            let before = input.rest().len();
            let event = self.reader.receive(&mut input, &mut self.pool, &self.limits)?;
            let received = match event {
                Some(Event::Text(text)) => {
                    Some(WireEvent::Message { bytes: text.as_bytes().to_vec(), wire_bytes: 0 })
                }
                Some(Event::Binary(bytes)) => {
                    Some(WireEvent::Message { bytes: bytes.to_vec(), wire_bytes: 0 })
                }
                Some(Event::Ping(payload)) => Some(WireEvent::Ping(payload.to_vec())),
                Some(Event::Pong(_)) => continue,
                Some(Event::Close(None)) => {
                    Some(WireEvent::Close { code: None, reason: String::new() })
                }
                Some(Event::Close(Some((code, reason)))) => {
                    Some(WireEvent::Close { code: Some(code), reason: reason.to_owned() })
                }
                None => None,
            };
            self.wire_bytes += before - input.rest().len();
            match received {
                None => return Ok(()),
                Some(WireEvent::Message { bytes, .. }) => {
                    let wire_bytes = std::mem::take(&mut self.wire_bytes);
                    complete(WireEvent::Message { bytes, wire_bytes });
                }
                Some(received) => complete(received),
            }
        }
    }

    /// Appends the frame of one message to `out`.
    pub(crate) fn send(&mut self, message: &[u8], key: [u8; 4], out: &mut Vec<u8>) {
        match &mut self.compressor {
            None => frame::encode_masked(self.opcode, false, message, key, out),
            Some(compressor) => {
                let payload = compressor.compress(message);
                frame::encode_masked(self.opcode, true, payload, key, out);
            }
        }
    }

    /// Appends the answer to a ping.
    pub(crate) fn pong(&self, payload: &[u8], key: [u8; 4], out: &mut Vec<u8>) {
        frame::encode_masked(Opcode::Pong, false, payload, key, out);
    }

    /// Appends a close frame.
    pub(crate) fn close(&self, code: u16, key: [u8; 4], out: &mut Vec<u8>) {
        frame::encode_masked(Opcode::Close, false, &code.to_be_bytes(), key, out);
    }
}

/// The compressor of our messages.
struct MessageCompressor {
    kind: CompressorKind,
    scratch: Scratch,
    payload: Vec<u8>,
}

enum CompressorKind {
    /// A compressor with the options of the application. `resets`: each message stands alone.
    Dedicated { dedicated: Box<Dedicated>, resets: bool },
    /// A compressor for a window of 256 bytes. Each message stands alone.
    Small(Box<Compressor>),
}

impl MessageCompressor {
    fn new(agreement: ClientAgreement, config: &CompressionConfig) -> Self {
        let window_bits = agreement.client_window_bits;
        let kind = if window_bits < 9 {
            CompressorKind::Small(Box::new(Compressor::new(config.level)))
        } else {
            let dedicated = Dedicated::new(window_bits, config.memory_level, config.level);
            CompressorKind::Dedicated {
                dedicated: Box::new(dedicated.with_strategy(config.strategy)),
                resets: !agreement.client_context_takeover,
            }
        };
        Self { kind, scratch: Scratch::default(), payload: Vec::new() }
    }

    fn compress(&mut self, message: &[u8]) -> &[u8] {
        self.payload.clear();
        match &mut self.kind {
            CompressorKind::Dedicated { dedicated, resets } => {
                if *resets {
                    dedicated.reset();
                }
                dedicated.compress(message, &mut self.scratch, &mut self.payload);
            }
            CompressorKind::Small(compressor) => {
                compressor.standalone_within(8, message, &mut self.payload);
            }
        }
        &self.payload
    }
}

#[cfg(test)]
mod tests;
