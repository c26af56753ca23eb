//! A socket whose peer must go on with a request head and with taking an answer, and may end a request that was answered early.
//! In: a byte stream and limits of time → out: the same stream, whose reads and writes fail when a limit is over.
//! Uses tokio's timer; never reads ahead, never buffers.
//! Changed here: when a peer that is slow or silent is given up, and when a socket is closed. How long each may take is said by `listener`.

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

use super::exchange::Exchange;

/// How long a peer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Patience {
    /// For a request head, from its first byte; for the first one from the start.
    pub head: Duration,
    /// Between an answer and the next request. Longer than the pools of HTTP clients keep a connection: else one may send
    /// a request just when it ends, and would not know whether it was done.
    pub idle: Duration,
    /// To take some byte of an answer.
    pub write: Duration,
    /// For the rest of a request that was answered before it was read.
    pub linger: Linger,
}

/// How much of a request is discarded behind its answer (nginx: `lingering_close`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Linger {
    pub time: Duration,
    /// Time in which nothing comes.
    pub silence: Duration,
    /// Of a body.
    pub bytes: u64,
    /// Of a head that was refused before its end: no client has more of one that it means.
    pub head_bytes: u64,
}

/// Wraps `S`. It has timers only once it has waited.
pub(super) struct TimeoutStream<S> {
    socket: S,
    patience: Patience,
    exchange: Arc<Exchange>,
    stage: Stage,
    silence: Option<Pin<Box<Sleep>>>,
    blocked: Option<Pin<Box<Sleep>>>,
    /// Since the end of our side.
    lingering: Option<Lingering>,
}

/// What remains of the limits in [`Linger`].
struct Lingering {
    until: Instant,
    silent_until: Instant,
    bytes: u64,
}

/// What a peer that is read from has done.
#[derive(Clone, Copy)]
enum Stage {
    /// It was sent something last.
    Answered,
    /// And has said nothing since.
    Idle(Instant),
    /// It has begun a request, and nothing was waited for since: mostly all of the head came with the first byte.
    Begun,
    /// It has begun a request, or ought to: by then all of its head must be there.
    Head(Instant),
}

impl<S> TimeoutStream<S> {
    /// Nobody is waited for while the request of `exchange` is being answered.
    pub(super) fn new(socket: S, patience: Patience, exchange: Arc<Exchange>) -> Self {
        let stage = Stage::Head(Instant::now() + patience.head);
        Self { socket, patience, exchange, stage, silence: None, blocked: None, lingering: None }
    }

    pub(super) fn into_socket(self) -> S {
        self.socket
    }

    /// Until when the peer may say nothing more.
    fn deadline(&mut self) -> Instant {
        let now = Instant::now;
        let (deadline, stage): (_, fn(Instant) -> Stage) = match self.stage {
            Stage::Idle(deadline) | Stage::Head(deadline) => return deadline,
            Stage::Answered => (now() + self.patience.idle, Stage::Idle),
            Stage::Begun => (now() + self.patience.head, Stage::Head),
        };
        self.stage = stage(deadline);
        deadline
    }

    /// Looks whether the peer, which said nothing new, has been silent for too long.
    fn watch_silence(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let deadline = self.deadline();
        self.poll_silence(deadline, context).map(|()| Err(Error::from(ErrorKind::TimedOut)))
    }

    /// Waits until `deadline`.
    fn poll_silence(&mut self, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.silence.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        timer.as_mut().poll(context)
    }

    /// Passes on what a write came to, unless it has come to nothing for too long.
    fn watch<T>(&mut self, result: Poll<Result<T>>, context: &mut Context<'_>) -> Poll<Result<T>> {
        if result.is_ready() {
            self.blocked = None;
            self.stage = Stage::Answered;
            return result;
        }
        let timer = self.blocked.get_or_insert_with(|| Box::pin(sleep(self.patience.write)));
        timer.as_mut().poll(context).map(|()| Err(Error::from(ErrorKind::TimedOut)))
    }
}

impl<S: AsyncRead + Unpin> TimeoutStream<S> {
    /// Reads and discards until the peer has ended its side, or a limit of [`Linger`] is reached.
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
            let (bytes, now) = (buffer.filled().len() as u64, Instant::now());
            if bytes == 0 || bytes > lingering.bytes || now >= lingering.until {
                return Poll::Ready(Ok(()));
            }
            lingering.bytes -= bytes;
            lingering.silent_until = now + self.patience.linger.silence;
        }
        let deadline = lingering.until.min(lingering.silent_until);
        self.lingering = Some(lingering);
        self.poll_silence(deadline, context).map(Ok)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let result = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.watch(result, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let result = Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        self.watch(result, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    /// Ends our side. If the peer may be sending a request still that was answered, what comes is discarded for a while: a
    /// socket that is closed with bytes unread resets the connection, and the peer would lose the answer (RFC 9112 §9.6).
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        if let Some(lingering) = self.lingering.take() {
            return self.poll_discard(lingering, context);
        }
        ready!(Pin::new(&mut self.socket).poll_shutdown(context))?;
        if !self.exchange.is_unread() {
            return Poll::Ready(Ok(()));
        }
        let Linger { time, silence, bytes, head_bytes } = self.patience.linger;
        let bytes = if self.exchange.is_in_head() { head_bytes } else { bytes };
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
        if self.exchange.is_answering() {
            return result;
        }
        if result.is_pending() {
            return self.watch_silence(context);
        }
        if buffer.filled().len() > filled {
            self.exchange.begin_head();
        }
        if !matches!(self.stage, Stage::Head(_)) {
            self.stage = Stage::Begun;
        }
        result
    }
}

/// Discarded at a time.
const DISCARD_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests;
