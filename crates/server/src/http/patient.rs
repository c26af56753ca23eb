//! A socket whose peer must go on: with a request head that it has begun, and with taking what is written to it.
//! In: a byte stream and limits of time → out: the same stream, whose reads and writes fail when a limit is over.
//! Uses tokio's timer; never reads ahead, never buffers.
//! Changed here: when a peer that is slow or silent is given up. How long each may take is said by `listener`.

use std::{
    io::{Error, ErrorKind, IoSlice, Result},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep, sleep_until},
};

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
}

/// Says that a request is being answered, until it is dropped: its body has limits of its own.
pub(super) struct Answering(Arc<AtomicBool>);

impl Answering {
    pub(super) fn begin(is_answering: &Arc<AtomicBool>) -> Self {
        is_answering.store(true, Relaxed);
        Self(Arc::clone(is_answering))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
    }
}

/// Wraps `S`. It has timers only once it has waited.
pub(super) struct Patient<S> {
    socket: S,
    patience: Patience,
    is_answering: Arc<AtomicBool>,
    stage: Stage,
    silence: Option<Pin<Box<Sleep>>>,
    blocked: Option<Pin<Box<Sleep>>>,
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

impl<S> Patient<S> {
    /// Nobody is waited for while `is_answering` says so.
    pub(super) fn new(socket: S, patience: Patience, is_answering: Arc<AtomicBool>) -> Self {
        let stage = Stage::Head(Instant::now() + patience.head);
        Self { socket, patience, is_answering, stage, silence: None, blocked: None }
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
        let timer = self.silence.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        timer.as_mut().poll(context).map(|()| Err(Error::from(ErrorKind::TimedOut)))
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

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
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

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let result = Pin::new(&mut self.socket).poll_read(context, buffer);
        if self.is_answering.load(Relaxed) {
            return result;
        }
        if result.is_pending() {
            return self.watch_silence(context);
        }
        if !matches!(self.stage, Stage::Head(_)) {
            self.stage = Stage::Begun;
        }
        result
    }
}

#[cfg(test)]
mod tests;
