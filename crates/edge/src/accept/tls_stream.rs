//! A TLS session on a tokio socket, for as long as the connection speaks HTTP.
//! In: a socket, a configuration → out: its plaintext as a byte stream; session and socket for a shard.
//! Uses `shard::tls`; never a timer, which `timeout_stream` and `tls_accept` have.
//! Changed here: when records are sent on the HTTP side. What records are lives in `shard::tls`.

use std::{
    future::poll_fn,
    io::{Error, ErrorKind, IoSlice, Result},
    mem::MaybeUninit,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use fanwire_shard::tls::{PLAINTEXT_BYTES_MAX, PeerState, TlsSession};

/// A socket that tells the end of its peer without a read.
pub(crate) trait PeerEnd {
    /// Ready when the peer has closed its sending side. While bytes wait to be read, no task is woken: they hide what follows.
    ///
    /// # Errors
    /// The connection has failed.
    fn poll_peer_end(&mut self, context: &mut Context<'_>) -> Poll<Result<()>>;
}

/// A socket with TLS.
pub(crate) struct TlsStream {
    socket: TcpStream,
    session: Box<TlsSession>,
    /// Plaintext that was received; the first `taken` bytes of it are read.
    plaintext: Vec<u8>,
    taken: usize,
    /// No more plaintext will be received.
    is_ended: bool,
}

impl TlsStream {
    /// Performs the handshake. An alert is sent if it fails.
    ///
    /// # Errors
    /// `UnexpectedEof` if the peer left, `InvalidData` with the error of rustls, or that of the socket.
    pub(crate) async fn accept(socket: TcpStream, config: Arc<ServerConfig>) -> Result<Self> {
        let session = TlsSession::new(config).map_err(invalid)?;
        let mut stream = Self { socket, session, plaintext: Vec::new(), taken: 0, is_ended: false };
        poll_fn(|context| stream.poll_handshake(context)).await?;
        Ok(stream)
    }

    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        loop {
            ready!(self.poll_send(context))?;
            if !self.session.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            ready!(self.poll_receive(context))?;
            if self.is_ended && self.session.is_handshaking() {
                return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Whether the handshake continued an earlier session.
    pub(crate) fn is_resumed(&self) -> bool {
        self.session.is_resumed()
    }

    /// The protocol above TLS that both sides agreed on.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.session.protocol()
    }

    /// The socket, its session, and the plaintext that is not read.
    pub(crate) fn into_parts(mut self) -> (TcpStream, Box<TlsSession>, Vec<u8>) {
        self.plaintext.drain(..self.taken);
        (self.socket, self.session, self.plaintext)
    }

    /// Ready when there is plaintext, or none will come.
    fn poll_plaintext(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        // Records may have no plaintext.
        while self.taken == self.plaintext.len() && !self.is_ended {
            (self.plaintext, self.taken) = (Vec::new(), 0);
            ready!(self.poll_receive(context))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads from the socket once; all plaintext was taken.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut space = [MaybeUninit::uninit(); READ_BYTES];
        let mut buffer = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut self.socket).poll_read(context, &mut buffer))?;
        if buffer.filled().is_empty() {
            // Every message of HTTP says where it ends, so that an end without close_notify cuts none unnoticed.
            self.is_ended = true;
            return Poll::Ready(Ok(()));
        }
        let received = self.session.receive(buffer.filled_mut(), &mut self.plaintext);
        self.is_ended = received != Ok(PeerState::Open);
        // Alerts are sent as far as the socket takes them; an error of the socket is found by the next read or write.
        let _ = self.poll_send(context);
        Poll::Ready(received.map(|_| ()).map_err(invalid))
    }

    /// Sends what the session has to send.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        while !self.session.unsent().is_empty() {
            let sent =
                ready!(Pin::new(&mut self.socket).poll_write(context, self.session.unsent()))?;
            if sent == 0 {
                return Poll::Ready(Err(ErrorKind::WriteZero.into()));
            }
            self.session.advance(sent);
        }
        Poll::Ready(Ok(()))
    }
}

impl PeerEnd for TlsStream {
    fn poll_peer_end(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        ready!(self.poll_plaintext(context))?;
        if self.is_ended { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        ready!(self.poll_plaintext(context))?;
        let unread = &self.plaintext[self.taken..];
        let count = unread.len().min(buffer.remaining());
        buffer.put_slice(&unread[..count]);
        self.taken += count;
        if self.taken == self.plaintext.len() {
            (self.plaintext, self.taken) = (Vec::new(), 0); // an idle connection holds no buffer
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TlsStream {
    /// Takes the bytes of one record. The part that the socket does not take is sent before the next one.
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        ready!(self.poll_send(context))?;
        let count = bytes.len().min(PLAINTEXT_BYTES_MAX);
        self.session.push(&bytes[..count]).map_err(invalid)?;
        let _ = self.poll_send(context)?;
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        if let [slice] = slices {
            return self.poll_write(context, slice);
        }
        let mut joined = Vec::new();
        for slice in slices {
            let left = PLAINTEXT_BYTES_MAX - joined.len();
            joined.extend_from_slice(&slice[..slice.len().min(left)]);
        }
        self.poll_write(context, &joined)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll_send(context)
    }

    /// Sends close_notify, then the end of our side.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.session.close();
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

fn invalid(error: rustls::Error) -> Error {
    Error::new(ErrorKind::InvalidData, error)
}

/// One record.
const READ_BYTES: usize = 16 * 1024 + 256;

#[cfg(test)]
mod tests;
