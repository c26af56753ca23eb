//! Frames of messages: those that many connections share, and those of one connection, perhaps in its own context.
//! In: messages, connections → out: frames, and what the window of a connection contains behind them.
//! Uses the framer and `deflate`; never queues a frame and never writes a socket.
//! Changed here: how a message of one WebSocket is compressed and verified. Response bodies are in `body`.

use fanwire_deflate::{Checksum, Mismatch, Shadow};
use fanwire_ws::{Compression, Opcode, frame};

use crate::{
    ShardSettings, UniWebSocketSettings,
    connection::{Connection, PeerFormat, Phase},
    counters::ShardCounters,
    framer::Framer,
    queue::{Frame, WireFrame},
    transport::{Framing, Transport},
};

/// The framers of a shard.
pub struct Framers {
    pub(super) shared: Framer,
    /// The framer of unidirectional WebSockets, which may be compressed otherwise. It is made for the first of their messages.
    uni: Option<Box<Framer>>,
    uni_compression_level: u8,
    uni_compression_min_bytes: usize,
}

/// The frame of a message for one connection, and what its window contains behind it if the frame is compressed.
pub(super) struct OwnFrame {
    pub(super) frame: Frame,
    pub(super) plaintext_bytes: usize,
    /// The framer of a compressed stream.
    pub(super) checksum: Option<Checksum>,
}

impl Framers {
    pub(super) fn new(settings: &ShardSettings) -> Self {
        let UniWebSocketSettings { compression_level, compression_min_bytes, .. } =
            settings.uni_websocket;
        Self {
            shared: Framer::new(settings.compression_level, settings.compression_min_bytes),
            uni: None,
            uni_compression_level: compression_level,
            uni_compression_min_bytes: compression_min_bytes,
        }
    }

    /// Makes frames for all connections except unidirectional WebSockets.
    pub fn shared(&mut self) -> &mut Framer {
        &mut self.shared
    }

    /// Makes frames for connections with this transport.
    pub fn of(&mut self, transport: Transport) -> &mut Framer {
        if transport != Transport::UniWebSocket {
            return &mut self.shared;
        }
        let level = self.uni_compression_level;
        let min_bytes = self.uni_compression_min_bytes;
        self.uni.get_or_insert_with(|| Box::new(Framer::new(level, min_bytes)))
    }

    /// Makes the frame of a message for one connection alone.
    pub(super) fn own_frame(
        &mut self,
        settings: &ShardSettings,
        connection: &mut Connection,
        is_binary: bool,
        payload: &[u8],
    ) -> OwnFrame {
        let PeerFormat { transport, compression, .. } = connection.format();
        if transport.framing() != Framing::WebSocket {
            return self.own_body(connection, is_binary, payload);
        }
        let opcode = if is_binary { Opcode::Binary } else { Opcode::Text };
        let framer = self.of(transport);
        let is_worth_it = framer.compresses_for_one(payload);
        let frame = match compression {
            Compression::Dedicated { window_bits } if is_worth_it => {
                self.dedicated(settings, connection, window_bits, opcode, payload)
            }
            _ => {
                let may_compress = is_worth_it && compression.takes(payload.len());
                framer.frame(opcode, may_compress, payload).into()
            }
        };
        OwnFrame { frame, plaintext_bytes: payload.len(), checksum: None }
    }

    /// The frame of a message in the connection's own context; the first such message allocates it. Without memory for
    /// a context, the connection's messages are compressed alone from now on.
    fn dedicated(
        &mut self,
        settings: &ShardSettings,
        connection: &mut Connection,
        window_bits: u8,
        opcode: Opcode,
        message: &[u8],
    ) -> Frame {
        if connection.dedicated_mut().is_none()
            && let Some(made) = settings.dedicated.make(window_bits)
        {
            connection.rare_mut().dedicated = Some(made);
        }
        if let Some(dedicated) = connection.dedicated_mut() {
            return self.shared.dedicated(opcode, &mut dedicated.compressor, message).into();
        }
        connection.compression = connection.compression.without_context();
        self.shared.frame(opcode, connection.compression.takes(message.len()), message).into()
    }

    /// Returns the frame if the peer's inflater decodes it to `message`. Otherwise, which is a bug, it returns a raw
    /// frame and ends compression for this connection.
    pub(super) fn verified(
        &mut self,
        counters: &ShardCounters,
        connection: &mut Connection,
        frame: &impl WireFrame,
        message: &[u8],
    ) -> Frame {
        let bytes = frame.bytes();
        if connection.is_compressed_stream() {
            return self.verified_in_body(counters, connection, frame.shared(), message);
        }
        let window_bits = connection.compression.window_bits().unwrap_or(WINDOW_BITS_MAX);
        let shadow =
            connection.rare_mut().shadow.get_or_insert_with(|| Box::new(Shadow::new(window_bits)));
        let Err(mismatch) = shadow.check(frame::payload(bytes), message) else {
            return frame.shared();
        };
        connection.compression = Compression::Raw;
        note_mismatch(counters, mismatch);
        let opcode = frame::opcode(bytes).expect("a frame of ours");
        self.shared.frame(opcode, false, message).into()
    }
}

pub(super) fn note_mismatch(counters: &ShardCounters, mismatch: Mismatch) {
    tracing::error!(%mismatch, "a compressed frame was wrong and goes out uncompressed: a bug");
    debug_assert!(false, "a compressed frame was wrong: {mismatch}");
    counters.verify_failures.add(1);
}

/// The code and the reason with which a connection ends.
#[derive(Clone, Copy)]
pub(super) struct Close<'a> {
    pub(super) code: u16,
    pub(super) reason: &'a str,
}

/// The bytes that end a WebSocket, and the phase behind them.
pub(super) fn close_frame(
    settings: &ShardSettings,
    format: PeerFormat,
    close: Close<'_>,
    phase: Phase,
) -> (Frame, Phase) {
    let PeerFormat { transport, is_binary, .. } = format;
    let mut bytes = Vec::new();
    let last_message = || (settings.last_message)(format, close.code, close.reason);
    // A peer that broke the protocol gets a close frame alone (RFC 6455 §7.1.7).
    if transport == Transport::UniWebSocket && phase != Phase::Failed {
        let settings = &settings.uni_websocket;
        if settings.sends_last_message {
            let opcode = if is_binary { Opcode::Binary } else { Opcode::Text };
            frame::encode(opcode, false, &last_message(), &mut bytes);
        }
        if !settings.sends_close_frame {
            return (bytes.into(), Phase::Done);
        }
    }
    frame::encode_close(close.code, close.reason, &mut bytes);
    (bytes.into(), phase)
}

/// The window of a peer that named no smaller one (RFC 7692 §7.1.2.1).
pub(super) const WINDOW_BITS_MAX: u8 = 15;
