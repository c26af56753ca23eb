//! A connection that asks one thing at a time and waits for the answer, on a thread that may sleep.
//! In: requests, and how the length of a whole answer is known → out: the answer's bytes.
//! Uses a blocking socket with a limit on patience; knows neither HTTP nor frames.
//! Changed here: how is waited; what is asked lives in `broadcast` and `connects`.

use anyhow::{Context, Result, ensure};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One connection, kept alive.
pub struct Caller {
    stream: TcpStream,
    received: Vec<u8>,
    buffer: Box<[u8]>,
}

impl Caller {
    /// # Errors
    /// No connection.
    pub fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, received: Vec::new(), buffer: vec![0; READ_BYTES_MAX].into() })
    }

    /// # Errors
    /// A connection that is gone.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Reads until `whole` knows the length of what is in front, and takes that away.
    ///
    /// # Errors
    /// That of `whole`, a connection that is gone, or ten seconds without a byte.
    pub fn take(
        &mut self,
        mut whole: impl FnMut(&[u8]) -> Result<Option<usize>>,
    ) -> Result<Vec<u8>> {
        loop {
            if let Some(length) = whole(&self.received)? {
                let rest = self.received.split_off(length);
                return Ok(std::mem::replace(&mut self.received, rest));
            }
            let length = self.stream.read(&mut self.buffer).context("waiting for an answer")?;
            ensure!(length > 0, "the server closed the connection");
            self.received.extend_from_slice(&self.buffer[..length]);
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(10);
const READ_BYTES_MAX: usize = 256 * 1024;
