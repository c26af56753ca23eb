//! TLS of subscribers and publishers (RFC 8446): what they send is encrypted, what they read is decrypted.
//! In: a configuration, bytes to send, bytes of the socket → out: records on the socket, plaintext.
//! Uses rustls; the server's side of TLS is code of its own, so nothing of it is used here.
//! Changed here: how TLS is spoken; what is said lives in `connection` and the publishers.

use anyhow::{Context, Result};
use mio::net::TcpStream;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::sync::Arc;

use super::STALL;
use crate::address::ServerAddress;

/// The session of a subscriber.
pub(super) struct ClientTls(Box<ClientConnection>);

impl ClientTls {
    /// Begins the handshake with the host of a `Host` header.
    ///
    /// # Errors
    /// The host is no name, or the socket does not take the first message.
    pub(super) fn begin(
        config: &Arc<ClientConfig>,
        host: &str,
        socket: &mut TcpStream,
    ) -> Result<Self> {
        let mut session = Self(Box::new(session(config, host)?));
        session.flush(socket)?;
        Ok(session)
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.0.is_handshaking()
    }

    /// Sends bytes, after the handshake if that is not over.
    ///
    /// # Errors
    /// The socket does not take all of them.
    pub(super) fn write(&mut self, bytes: &[u8], socket: &mut TcpStream) -> Result<()> {
        self.0.writer().write_all(bytes)?;
        self.flush(socket)
    }

    /// Decrypts what was read from the socket, and answers messages of the handshake.
    ///
    /// # Errors
    /// Anything a right server would not send.
    pub(super) fn receive(
        &mut self,
        mut bytes: &[u8],
        socket: &mut TcpStream,
        plaintext: &mut Vec<u8>,
    ) -> Result<()> {
        while !bytes.is_empty() {
            if self.0.read_tls(&mut bytes)? == 0 {
                break; // what follows close_notify
            }
            let state = self.0.process_new_packets().context("TLS")?;
            let before = plaintext.len();
            plaintext.resize(before + state.plaintext_bytes_to_read(), 0);
            self.0.reader().read_exact(&mut plaintext[before..])?;
        }
        self.flush(socket)
    }

    fn flush(&mut self, socket: &mut TcpStream) -> Result<()> {
        while self.0.wants_write() {
            self.0.write_tls(socket).context("sending to the server")?;
        }
        Ok(())
    }
}

fn session(config: &Arc<ClientConfig>, host: &str) -> Result<ClientConnection> {
    let with_port = host.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
    let host_name = with_port.map_or(host, |(name, _)| name).trim_matches(['[', ']']);
    let name =
        ServerName::try_from(host_name.to_owned()).with_context(|| format!("TLS with {host}"))?;
    Ok(ClientConnection::new(config.clone(), name)?)
}

/// A nonblocking connection of a publisher, with TLS or without.
pub(super) trait PlainOrTls: Read + Write + Send {}

impl<S: Read + Write + Send> PlainOrTls for S {}

/// Connects a publisher, performs the TLS handshake, then calls `register`.
///
/// # Errors
/// No server listens, its certificate is wrong, or it does not answer for ten seconds.
pub(super) fn connect(
    address: &ServerAddress,
    register: impl FnOnce(&mut TcpStream) -> io::Result<()>,
) -> Result<Box<dyn PlainOrTls>> {
    let context = || format!("connecting the publisher to {}", address.socket);
    let mut socket = std::net::TcpStream::connect(address.socket).with_context(context)?;
    socket.set_nodelay(true)?;
    let begun = address.tls.as_ref().map(|config| session(config, &address.host));
    let mut session = begun.transpose()?;
    if let Some(session) = &mut session {
        socket.set_read_timeout(Some(STALL))?;
        session.complete_io(&mut socket).with_context(context)?;
    }
    socket.set_nonblocking(true)?;
    let mut socket = TcpStream::from_std(socket);
    register(&mut socket)?;
    Ok(match session {
        Some(session) => Box::new(StreamOwned::new(session, socket)),
        None => Box::new(socket),
    })
}

/// The name of servers that the laboratory starts.
pub const SERVER_NAME: &str = "localhost";

#[cfg(test)]
mod tests;
