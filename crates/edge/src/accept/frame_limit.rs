//! The limit on frames of HTTP/2 that carry nothing: a connection that floods the server with them is ended.
//! In: the bytes of both directions → out: the same stream, whose reads fail when its allowance is spent.
//! May read frame headers (RFC 9113 §4.1); what is in a frame, and the limits on streams and headers, are h2's matter.
//! Changed here: what a frame costs. `http2` wraps each connection.

use std::{
    io::{Error, IoSlice, Result},
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};

/// Wraps `S`, on which the preface of HTTP/2 comes next.
pub(crate) struct FrameLimit<S> {
    socket: S,
    received: FrameHeaders,
    sent: FrameHeaders,
    allowance: Allowance,
}

impl<S> FrameLimit<S> {
    pub(crate) fn new(socket: S) -> Self {
        let received = FrameHeaders { payload: PREFACE_BYTES, ..FrameHeaders::default() };
        let allowance = Allowance { frames: ALLOWANCE_MAX, at: Instant::now() };
        Self { socket, received, sent: FrameHeaders::default(), allowance }
    }

    fn receive(&mut self, mut bytes: &[u8]) -> Result<()> {
        let mut cost = 0;
        while let Some(header) = self.received.next(&mut bytes) {
            cost += header.cost();
        }
        if cost == 0 || self.allowance.spend(cost, Instant::now()) {
            Ok(())
        } else {
            Err(Error::other("too many frames without content"))
        }
    }

    fn send(&mut self, mut bytes: &[u8]) {
        while let Some(header) = self.sent.next(&mut bytes) {
            if matches!(header.kind, DATA | HEADERS) {
                self.allowance.frames = ALLOWANCE_MAX.min(self.allowance.frames + FRAMES_PER_SENT);
            }
        }
    }
}

/// Number of frames without content that the peer may still send. It grows with time, and with each sent frame of a response, which
/// the peer answers by WINDOW_UPDATE.
struct Allowance {
    frames: u32,
    at: Instant,
}

impl Allowance {
    /// Takes `cost`; `false` when there is not so much.
    fn spend(&mut self, cost: u32, now: Instant) -> bool {
        let refill = now.saturating_duration_since(self.at).as_millis() * u128::from(PER_SECOND);
        let refill = u32::try_from(refill / 1000).unwrap_or(ALLOWANCE_MAX).min(ALLOWANCE_MAX);
        if refill > 0 {
            self.at = now;
        }
        let left = ALLOWANCE_MAX.min(self.frames + refill).checked_sub(cost);
        self.frames = left.unwrap_or_default();
        left.is_some()
    }
}

/// Finds the headers of frames in a stream of bytes.
#[derive(Default)]
struct FrameHeaders {
    /// Bytes before the next header.
    payload: usize,
    header: [u8; HEADER_BYTES],
    filled: usize,
}

impl FrameHeaders {
    /// The next header, and `bytes` without it; `None` when they end before.
    fn next(&mut self, bytes: &mut &[u8]) -> Option<FrameHeader> {
        let skipped = self.payload.min(bytes.len());
        self.payload -= skipped;
        let rest = &bytes[skipped..];
        let length = rest.len().min(HEADER_BYTES - self.filled);
        self.header[self.filled..self.filled + length].copy_from_slice(&rest[..length]);
        self.filled += length;
        *bytes = &rest[length..];
        if self.filled < HEADER_BYTES {
            return None;
        }
        self.filled = 0;
        let [high, middle, low, kind, flags, ..] = self.header;
        self.payload = u32::from_be_bytes([0, high, middle, low]) as usize;
        Some(FrameHeader { length: self.payload, kind, flags })
    }
}

struct FrameHeader {
    length: usize,
    kind: u8,
    flags: u8,
}

impl FrameHeader {
    /// Cost in frames of the allowance: 0 for parts of a request, more for long frames.
    fn cost(&self) -> u32 {
        match self.kind {
            HEADERS | CONTINUATION => 0,
            DATA => u32::from(self.length == 0 && self.flags & END_STREAM == 0),
            _ => 1 + self.length as u32 / BYTES_PER_COST,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FrameLimit<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let filled = buffer.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(context, buffer))?;
        Poll::Ready(self.receive(&buffer.filled()[filled..]))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FrameLimit<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let sent = ready!(Pin::new(&mut self.socket).poll_write(context, bytes))?;
        self.send(&bytes[..sent]);
        Poll::Ready(Ok(sent))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let sent = ready!(Pin::new(&mut self.socket).poll_write_vectored(context, slices))?;
        let mut left = sent;
        for slice in slices {
            let length = left.min(slice.len());
            self.send(&slice[..length]);
            left -= length;
        }
        Poll::Ready(Ok(sent))
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

/// Frames that a peer may send at once.
const ALLOWANCE_MAX: u32 = 10_000;

/// Frames that it may send in each second besides.
const PER_SECOND: u32 = 100;

/// Frames for each one of a response: two windows are updated, by some clients for each part that they read.
const FRAMES_PER_SENT: u32 = 8;

/// Payload that costs as much as a frame.
const BYTES_PER_COST: u32 = 256;

/// Bytes of a frame header, and of the client's preface.
const HEADER_BYTES: usize = 9;
const PREFACE_BYTES: usize = 24;

/// Types and a flag of frames (RFC 9113 §6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;

#[cfg(test)]
mod tests;
