//! The codecs of the modes: server and client of one connection in one place.
//! In: a mode and a stream → out: a codec that delivers message after message, each checked.
//! Uses zlib-rs for the client, which keeps its window as a browser does. Never: counts or prints.
//! A mode's codec is one file in `codec/`.

use std::time::Duration;

use fanwire_deflate::FLUSH_TAIL;
use zlib_rs::{Inflate, InflateFlush};

use crate::mode::Mode;
use crate::stream::{Clock, Settings, Stream};

mod context;
mod dedicated;
mod delta;
mod standalone;

#[cfg(test)]
mod tests;

/// A server that compresses and a client that decompresses.
pub(crate) trait Codec {
    /// Sends the message `at`; they come in order. `None` when it came back changed.
    fn deliver(&mut self, at: usize, clock: Clock<'_>) -> Option<Delivery>;

    /// Returns the memory of the server after the last message.
    fn memory(&self) -> Memory;
}

/// One message at its client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivery {
    /// Payload of the frame.
    pub(crate) bytes: usize,
    pub(crate) compress: Duration,
    pub(crate) decompress: Duration,
    /// Time to write the frame for clients at another position.
    pub(crate) again: Option<Duration>,
    /// Earlier publications that the frame may refer to.
    pub(crate) depth: usize,
}

impl Delivery {
    /// Takes the times of another delivery of the same message where they are shorter.
    pub(crate) fn keep_faster(&mut self, other: &Self) {
        self.compress = self.compress.min(other.compress);
        self.decompress = self.decompress.min(other.decompress);
        self.again = self.again.min(other.again);
    }
}

/// Bytes that a server holds between messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Bytes for each connection, once it is subscribed.
    pub(crate) connection: usize,
    /// Bytes for each channel, however many subscribe.
    pub(crate) channel: usize,
}

/// The codec of a mode that compresses.
pub(crate) fn of<'a>(
    mode: Mode,
    stream: &'a Stream<'a>,
    settings: Settings,
) -> Box<dyn Codec + 'a> {
    match mode {
        Mode::Raw => unreachable!("raw frames are only counted"),
        Mode::Standalone { level } => Box::new(standalone::Standalone::new(stream, level)),
        Mode::Dedicated { window_bits, memory_level } => {
            let level = settings.level;
            Box::new(dedicated::OwnContext::new(stream, window_bits, memory_level, level))
        }
        Mode::Delta { is_compressed } => {
            Box::new(delta::Delta::new(stream, is_compressed.then_some(settings.level)))
        }
        Mode::Context { depth, channels } => {
            Box::new(context::Context::new(stream, depth, channels, settings.level))
        }
    }
}

/// A client that keeps its window from message to message (RFC 7692 §7.2.2).
struct ReceivingClient {
    inflate: Inflate,
    payload: Vec<u8>,
    plain: Vec<u8>,
}

impl ReceivingClient {
    fn new() -> Self {
        Self { inflate: Inflate::new(false, 15), payload: Vec::new(), plain: Vec::new() }
    }

    /// How long it took to get `expected` out of a frame's payload; `None` when it was not that.
    fn receive(&mut self, payload: &[u8], expected: &[u8], clock: Clock<'_>) -> Option<Duration> {
        self.payload.clear();
        self.payload.extend_from_slice(payload);
        self.payload.extend_from_slice(&FLUSH_TAIL);
        // One byte more, so that a message that is too long shows itself.
        self.plain.resize(expected.len() + 1, 0);
        let before = self.inflate.total_out();
        let (status, time) = clock.time(|| {
            self.inflate.decompress(&self.payload, &mut self.plain, InflateFlush::SyncFlush)
        });
        let made = (self.inflate.total_out() - before) as usize;
        (status.is_ok() && self.plain[..made] == *expected).then_some(time)
    }
}
