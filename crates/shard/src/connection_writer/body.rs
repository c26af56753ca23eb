//! The body of a response, compressed or not: its beginning, the messages of one connection, its last message.
//! In: a head and a coding, messages → out: frames; the window and the checksum of a compressed stream behind them.
//! Uses the framer and `deflate`'s streams; never queues a message and never writes a socket.
//! Changed here: what a body contains besides shared messages. The bytes around a message are `transport`.

use fanwire_deflate::{Coding, FLUSH_TAIL, Mismatch, Shadow, end_stream, write_uncompressed};
use fanwire_ws::Compression;

use super::ConnectionWriter;
use super::framers::{Close, Framers, OwnFrame, WINDOW_BITS_MAX, note_mismatch};
use crate::ShardSettings;
use crate::connection::{Connection, PeerFormat, SlotKey, open};
use crate::counters::ShardCounters;
use crate::queue::Frame;

impl ConnectionWriter {
    /// Sends the head of a response and the first bytes of its body, which is compressed with `coding` from then on.
    pub fn begin_response(&mut self, key: SlotKey, coding: Option<Coding>, mut head: Vec<u8>) {
        let Some(connection) = open(&mut self.connections, key) else { return };
        let first = connection.transport.framing().first_bytes();
        match coding {
            None => head.extend_from_slice(first),
            Some(coding) => {
                head.extend_from_slice(coding.header());
                if !first.is_empty() {
                    write_uncompressed(first, &mut head);
                }
                connection.compression = Compression::Context { window_bits: WINDOW_BITS_MAX };
                connection.window.begin_stream(first.len(), coding.checksum().with(first));
            }
        }
        self.sockets.append(connection, key.index, head.into());
    }
}

impl Framers {
    /// Makes the bytes of a message for one connection alone.
    pub(super) fn own_body(
        &mut self,
        connection: &Connection,
        is_binary: bool,
        payload: &[u8],
    ) -> OwnFrame {
        let PeerFormat { transport, .. } = connection.format();
        if !connection.is_compressed_stream() {
            let frame = self.shared.in_body(transport, is_binary, payload).into();
            return OwnFrame { frame, plaintext_bytes: 0, checksum: None };
        }
        let may_compress = self.shared.compresses_for_one(payload);
        let frame = self.shared.in_stream(transport, is_binary, may_compress, payload).into();
        let plaintext = self.shared.plaintext();
        let checksum = connection.window.checksum().map(|checksum| checksum.with(plaintext));
        OwnFrame { frame, plaintext_bytes: plaintext.len(), checksum }
    }

    /// The last message of a body. A compressed stream ends with its trailer, unless queued bytes of it were dropped: then
    /// the peer lacks them, and no checksum would be right.
    pub(super) fn last_in_body(
        &mut self,
        settings: &ShardSettings,
        connection: &Connection,
        close: Close<'_>,
    ) -> Frame {
        let format = connection.format();
        let PeerFormat { transport, is_binary, .. } = format;
        let message = (settings.last_message)(format, close.code, close.reason);
        if !connection.is_compressed_stream() {
            return self.shared.in_body(transport, is_binary, &message).into();
        }
        let mut last = self.shared.in_stream(transport, is_binary, false, &message).to_vec();
        let plaintext = self.shared.plaintext();
        if let Some(checksum) = connection.window.checksum() {
            let bytes = connection.window.plaintext_bytes() + plaintext.len() as u64;
            end_stream(checksum.with(plaintext), bytes, &mut last);
        }
        last.into()
    }

    /// Returns the frame if the peer's inflater decodes it to `message` and the bytes around it. Otherwise, which is a
    /// bug, it returns the message uncompressed, and from then on no frame for this connection refers to another.
    pub(super) fn verified_in_body(
        &mut self,
        counters: &ShardCounters,
        connection: &mut Connection,
        frame: Frame,
        message: &[u8],
    ) -> Frame {
        let PeerFormat { transport, is_binary, .. } = connection.format();
        let window_bits = connection.compression.window_bits().unwrap_or(WINDOW_BITS_MAX);
        let shadow =
            connection.rare_mut().shadow.get_or_insert_with(|| Box::new(Shadow::new(window_bits)));
        let expected = self.shared.in_body(transport, is_binary, message);
        let checked = match frame.strip_suffix(&FLUSH_TAIL) {
            Some(payload) => shadow.check(payload, expected),
            None => Err(Mismatch::Corrupt { at: 0 }),
        };
        let Err(mismatch) = checked else { return frame };
        connection.compression = connection.compression.without_context();
        connection.rare_mut().shadow = None;
        note_mismatch(counters, mismatch);
        self.shared.in_stream(transport, is_binary, false, message).into()
    }
}

#[cfg(test)]
mod tests;
