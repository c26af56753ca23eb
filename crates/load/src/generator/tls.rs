//! TLS of one subscriber (RFC 8446): what it sends is encrypted, what it reads is decrypted.
//! In: a configuration, bytes to send, bytes of the socket → out: records on the socket, plaintext.
//! Uses rustls; the server's side of TLS is code of its own, so nothing of it is used here.
//! Change here how a subscriber speaks TLS; what it says lives in `connection`.

use anyhow::{Context, Result};
use mio::net::TcpStream;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io::{Read, Write};
use std::sync::Arc;

/// The session of a subscriber.
pub(super) struct ClientTls(Box<rustls::ClientConnection>);

impl ClientTls {
    /// Begins the handshake.
    ///
    /// # Errors
    /// The socket does not take the first message.
    pub(super) fn begin(config: Arc<ClientConfig>, socket: &mut TcpStream) -> Result<Self> {
        let name = ServerName::try_from(SERVER_NAME).expect("a name");
        let mut session = Self(Box::new(rustls::ClientConnection::new(config, name)?));
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

/// The name that the certificate must have.
pub const SERVER_NAME: &str = "localhost";

#[cfg(test)]
mod tests;
