//! A subscriber of the bare loop with TLS: each frame goes through rustls, then to the socket.
//! In: frames, readiness of the socket → out: records.
//! Uses rustls as it is meant to be used, with its own buffers; no code of the server.
//! Change nothing here that makes it slower; the loop lives in `bare`.

use mio::net::TcpStream;
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;

use super::Subscriber;

/// A subscriber with TLS.
pub(super) struct Encrypted {
    stream: TcpStream,
    session: ServerConnection,
}

impl Subscriber for Encrypted {
    type Settings = Arc<ServerConfig>;

    fn accepted(stream: TcpStream, config: &Arc<ServerConfig>) -> io::Result<Self> {
        let session = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
        let mut accepted = Self { stream, session };
        accepted.session.set_buffer_limit(None);
        accepted.readable(&mut [])?; // the ClientHello may have come already
        Ok(accepted)
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.session.writer().write_all(frame)?;
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.stream) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                sent => sent?,
            };
        }
        Ok(())
    }

    /// Messages of the handshake; a subscriber sends nothing later.
    fn readable(&mut self, _: &mut [u8]) -> io::Result<()> {
        loop {
            match self.session.read_tls(&mut self.stream) {
                Ok(0) => return Ok(()),
                Ok(_) => self.session.process_new_packets().map_err(io::Error::other)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return self.flush(),
                Err(error) => return Err(error),
            };
        }
    }
}
