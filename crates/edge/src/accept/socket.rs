//! The socket of an HTTP connection, plain or with TLS, of the runtime or of a shard, and what of it leaves HTTP.
//! In: an accepted socket, after its TLS handshake if it has one → out: a byte stream for hyper; its parts for a shard.
//! Uses tokio; never decides how long something may take.
//! Changed here: what moves to a shard with a socket. TLS itself lives in `tls_stream` and `shard::tls`.

use std::{
    io::{ErrorKind, IoSlice, Result},
    mem::MaybeUninit,
    net,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::tls_stream::{PeerEnd, TlsStream};
use fanwire_shard::{ShardSocket, tls::TlsSession};

/// A socket that speaks HTTP.
pub(crate) enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
    /// The connection is served on a shard.
    Shard(ShardSocket),
}

/// A socket that has left HTTP, prepared for a shard.
pub(crate) struct ReleasedSocket {
    pub(crate) socket: net::TcpStream,
    pub(crate) tls: Option<Box<TlsSession>>,
    /// Plaintext that nothing has read.
    pub(crate) unread: Vec<u8>,
}

impl Socket {
    /// # Errors
    /// The socket is closed, or a shard has it already.
    pub(crate) fn release(self) -> Result<ReleasedSocket> {
        let (socket, tls, unread) = match self {
            Self::Plain(socket) => (socket, None, Vec::new()),
            Self::Tls(stream) => {
                let (socket, session, unread) = stream.into_parts();
                (socket, Some(session), unread)
            }
            Self::Shard(_) => return Err(ErrorKind::Unsupported.into()),
        };
        let socket = socket.into_std()?;
        fanwire_shard::prepare(&socket)?;
        Ok(ReleasedSocket { socket, tls, unread })
    }
}

impl From<TcpStream> for Socket {
    fn from(socket: TcpStream) -> Self {
        Self::Plain(socket)
    }
}

impl PeerEnd for Socket {
    fn poll_peer_end(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut space = [MaybeUninit::uninit(); 1];
        match self {
            Self::Plain(socket) => {
                match ready!(socket.poll_peek(context, &mut ReadBuf::uninit(&mut space)))? {
                    0 => Poll::Ready(Ok(())),
                    _ => Poll::Pending,
                }
            }
            Self::Tls(stream) => stream.poll_peer_end(context),
            Self::Shard(socket) => socket.poll_peer_end(),
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Shard(socket) => {
                let count = ready!(socket.poll_read(buffer.initialize_unfilled()))?;
                buffer.advance(count);
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Shard(socket) => socket.poll_write(bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write_vectored(context, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Shard(socket) => socket.poll_write_vectored(slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
            // The shard sends what was written.
            Self::Shard(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Shard(socket) => socket.poll_shutdown(),
        }
    }
}
