//! A socket with time limits for request heads, idle connections and writes; it discards the rest of a request that was answered early.
//! In: a byte stream and time limits → out: the same stream, whose reads and writes fail when a limit has passed.
//! Uses tokio's timer; never reads ahead, never buffers.
//! Changed here: when a slow or silent peer times out, and when a socket is closed. `limits` has the limits.

use std::{
    io::{Error, ErrorKind, IoSlice, Result},
    mem::MaybeUninit,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep, sleep_until},
};

use super::{
    exchange::Exchange,
    slots::{ConnectionSlots, IdleConnection},
    tls_stream::PeerEnd,
};

/// Time limits of a peer. While slots are scarce they are shorter ([`ConnectionSlots::limit`]), except for writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeouts {
    /// Time limit of a request head, from its first byte; of the first head, from the accept.
    pub head: Duration,
    /// Time limit between a response and the next request. It is longer than HTTP clients keep pooled connections: otherwise a client may
    /// send a request while the connection is closed, and cannot find out whether it was executed.
    pub idle: Duration,
    /// Time limit in which one write has to make progress.
    pub write: Duration,
    /// Limits of the rest of a request whose response was sent before it was read.
    pub linger: LingerLimits,
}

/// Limits for discarding the rest of a request after its response (nginx: `lingering_close`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LingerLimits {
    /// Maximum total time.
    pub time: Duration,
    /// Maximum time without new bytes.
    pub silence: Duration,
    /// Maximum for a body.
    pub bytes: u64,
    /// Maximum for a head that was refused before its end.
    pub head_bytes: u64,
}

/// Wraps `S` with time limits. Creates a timer only when it has to wait.
pub(crate) struct TimeoutStream<S> {
    socket: S,
    timeouts: Timeouts,
    slots: Arc<ConnectionSlots>,
    exchange: Arc<Exchange>,
    state: ReadState,
    read_timer: Option<Pin<Box<Sleep>>>,
    write_timer: Option<Pin<Box<Sleep>>>,
    /// While the connection waits for its next request.
    idle: Option<IdleConnection>,
    /// Set once our side is closed.
    lingering: Option<Lingering>,
}

/// The remaining limits of discarding.
struct Lingering {
    until: Instant,
    silent_until: Instant,
    bytes: u64,
}

/// The limit that applies to the next read.
#[derive(Clone, Copy)]
enum ReadState {
    /// The last operation was a write.
    Answered,
    /// Nothing was received since the last write. The deadline for the next request.
    Idle(Instant),
    /// A request has begun. No deadline is set before the next wait, because most heads arrive in one read.
    Begun,
    /// The deadline for a complete head.
    Head(Instant),
}

impl<S> TimeoutStream<S> {
    /// No read limit applies while `exchange` has a request in flight.
    pub(crate) fn new(
        socket: S,
        timeouts: Timeouts,
        slots: Arc<ConnectionSlots>,
        exchange: Arc<Exchange>,
    ) -> Self {
        let state = ReadState::Head(Instant::now() + slots.limit(timeouts.head));
        Self {
            socket,
            timeouts,
            slots,
            exchange,
            state,
            read_timer: None,
            write_timer: None,
            idle: None,
            lingering: None,
        }
    }

    pub(crate) fn into_socket(self) -> S {
        self.socket
    }

    /// The deadline of the next read; sets one if the state has none.
    fn deadline(&mut self) -> Instant {
        let now = Instant::now;
        let (deadline, state): (_, fn(Instant) -> ReadState) = match self.state {
            ReadState::Idle(deadline) | ReadState::Head(deadline) => return deadline,
            ReadState::Answered => {
                self.idle = Some(self.slots.idle());
                (now() + self.slots.limit(self.timeouts.idle), ReadState::Idle)
            }
            ReadState::Begun => (now() + self.slots.limit(self.timeouts.head), ReadState::Head),
        };
        self.state = state(deadline);
        deadline
    }

    /// Fails once the read deadline has passed, or an idle connection is to give way. To be called after a pending read.
    fn poll_read_deadline(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let deadline = self.deadline();
        if let Some(idle) = &mut self.idle
            && Pin::new(idle).poll(context).is_ready()
        {
            return Poll::Ready(Err(Error::from(ErrorKind::TimedOut)));
        }
        self.poll_timer(deadline, context).map(|()| Err(Error::from(ErrorKind::TimedOut)))
    }

    /// Waits until `deadline`.
    fn poll_timer(&mut self, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.read_timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        timer.as_mut().poll(context)
    }

    /// Returns the result of a write; fails when writes made no progress for too long.
    fn check_write<T>(
        &mut self,
        result: Poll<Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<Result<T>> {
        if result.is_ready() {
            self.state = ReadState::Answered;
        }
        self.check_send(result, context)
    }

    /// As [`check_write`](Self::check_write), for what was written before.
    fn check_send<T>(
        &mut self,
        result: Poll<Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<Result<T>> {
        if result.is_ready() {
            self.write_timer = None;
            return result;
        }
        let timer = self.write_timer.get_or_insert_with(|| Box::pin(sleep(self.timeouts.write)));
        timer.as_mut().poll(context).map(|()| Err(Error::from(ErrorKind::TimedOut)))
    }
}

impl<S: AsyncRead + Unpin> TimeoutStream<S> {
    /// Reads and discards until the peer closes its side or a limit of [`LingerLimits`] is reached.
    fn poll_discard(
        &mut self,
        mut lingering: Lingering,
        context: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        let mut space = [MaybeUninit::uninit(); DISCARD_BYTES];
        loop {
            let mut buffer = ReadBuf::uninit(&mut space);
            if Pin::new(&mut self.socket).poll_read(context, &mut buffer)?.is_pending() {
                break;
            }
            let bytes = buffer.filled().len() as u64;
            let now = Instant::now();
            if bytes == 0 || bytes > lingering.bytes || now >= lingering.until {
                return Poll::Ready(Ok(()));
            }
            lingering.bytes -= bytes;
            lingering.silent_until = now + self.slots.limit(self.timeouts.linger.silence);
        }
        let deadline = lingering.until.min(lingering.silent_until);
        self.lingering = Some(lingering);
        self.poll_timer(deadline, context).map(Ok)
    }
}

impl<S: PeerEnd + AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let result = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.check_write(result, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let result = Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        self.check_write(result, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    /// hyper calls this whenever a response in flight may go on, and then reads nothing: a long one looks for the end of its peer.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(context);
        let flushed = self.check_send(flushed, context);
        if self.exchange.is_long() && self.socket.poll_peer_end(context)?.is_ready() {
            return Poll::Ready(Err(Error::from(ErrorKind::UnexpectedEof)));
        }
        flushed
    }

    /// Closes our side. If a part of the last request was not read, discards received bytes for a while: closing a socket
    /// with unread bytes resets the connection, and the peer would lose the response (RFC 9112 §9.6).
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        if let Some(lingering) = self.lingering.take() {
            return self.poll_discard(lingering, context);
        }
        let closed = Pin::new(&mut self.socket).poll_shutdown(context);
        ready!(self.check_send(closed, context))?;
        if !self.exchange.is_unread() {
            return Poll::Ready(Ok(()));
        }
        let LingerLimits { time, silence, bytes, head_bytes } = self.timeouts.linger;
        let bytes = if self.exchange.is_in_head() { head_bytes } else { bytes };
        let time = self.slots.limit(time);
        let silence = self.slots.limit(silence);
        let now = Instant::now();
        let lingering = Lingering { until: now + time, silent_until: now + silence, bytes };
        self.poll_discard(lingering, context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let filled = buffer.filled().len();
        let result = Pin::new(&mut self.socket).poll_read(context, buffer);
        if self.exchange.is_in_flight() {
            return result;
        }
        if result.is_pending() {
            return self.poll_read_deadline(context);
        }
        if buffer.filled().len() > filled {
            self.exchange.begin_head();
        }
        self.idle = None;
        if !matches!(self.state, ReadState::Head(_)) {
            self.state = ReadState::Begun;
        }
        result
    }
}

/// Discarded per read.
const DISCARD_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests;
