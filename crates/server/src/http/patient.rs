//! A socket whose peer must take what is written to it, sooner or later.
//! In: a byte stream and a time → out: the same stream, whose writes fail when nothing left for that long.
//! Uses tokio's timer; never reads ahead, never buffers.
//! Changed here: when a peer that does not read is given up. How long that is is said by `listener`.

use std::{
    io::{Error, ErrorKind, IoSlice, Result},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// Wraps `S`. Its timer exists only while a write is blocked.
pub(super) struct Patient<S> {
    socket: S,
    write_timeout: Duration,
    blocked: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(super) fn new(socket: S, write_timeout: Duration) -> Self {
        Self { socket, write_timeout, blocked: None }
    }

    pub(super) fn into_socket(self) -> S {
        self.socket
    }

    /// Passes on what a write came to, unless it has come to nothing for too long.
    fn watch<T>(&mut self, result: Poll<Result<T>>, context: &mut Context<'_>) -> Poll<Result<T>> {
        if result.is_ready() {
            self.blocked = None;
            return result;
        }
        let timer = self.blocked.get_or_insert_with(|| Box::pin(sleep(self.write_timeout)));
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
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::{io::ErrorKind, time::Duration};

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::Patient;

    #[tokio::test]
    async fn a_peer_that_takes_nothing_is_given_up() {
        let (ours, _theirs) = duplex(16);
        let mut ours = Patient::new(ours, Duration::from_millis(1));
        let error = ours.write_all(&[0; 17]).await.expect_err("one byte too many for the pipe");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_peer_that_reads_on_gets_everything_and_leaves_no_timer() {
        let (ours, mut theirs) = duplex(16);
        let mut ours = Patient::new(ours, Duration::from_secs(3600));
        let mut taken = Vec::new();
        let writing = async {
            ours.write_all(&[7; 1000]).await.expect("somebody reads");
            assert!(ours.blocked.is_none());
            drop(ours);
        };
        let (_, read) = tokio::join!(writing, theirs.read_to_end(&mut taken));
        read.expect("a pipe");
        assert_eq!(taken, [7; 1000]);
    }
}
