//! permessage-deflate from the receiving side (RFC 7692 §7.2.2), straight over zlib-rs.
//! In: compressed payloads of one connection in order → out: their plaintext.
//! Uses zlib-rs only, never Fanwire's own codec: a checker must not share the code it checks.
//! Changed here: how a message is inflated; whether a connection has a window at all is decided in `connection`.

use anyhow::{Result, bail, ensure};
use zlib_rs::{Inflate, InflateFlush, Status};

use super::frame::PAYLOAD_BYTES_MAX;

/// The inflate state of one connection: it keeps the window between messages, as a client with context takeover must.
pub struct Inflater {
    state: Inflate,
    output: Box<[u8]>,
}

impl Default for Inflater {
    fn default() -> Self {
        Self { state: Inflate::new(false, 15), output: vec![0; OUTPUT_BYTES].into() }
    }
}

impl Inflater {
    /// Forgets the window, for connections with `server_no_context_takeover`.
    pub fn reset(&mut self) {
        self.state.reset(false);
    }

    /// Appends the plaintext of one message to `out`.
    ///
    /// # Errors
    /// Corrupt input, a final block (BFINAL=1: many clients lose all later messages), or input left over.
    pub fn message(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.piece(payload, out)?;
        self.piece(&[0x00, 0x00, 0xff, 0xff], out)
    }

    /// Appends the plaintext of the next bytes of a stream to `out`.
    ///
    /// # Errors
    /// Corrupt input, or a final block.
    pub fn piece(&mut self, mut input: &[u8], out: &mut Vec<u8>) -> Result<()> {
        loop {
            let taken = self.state.total_in();
            let made = self.state.total_out();
            match self.state.decompress(input, &mut self.output, InflateFlush::SyncFlush) {
                Ok(Status::StreamEnd) => bail!("a block with BFINAL=1"),
                Ok(Status::Ok | Status::BufError) => {}
                Err(error) => bail!("corrupt compressed payload: {error:?}"),
            }
            input = &input[(self.state.total_in() - taken) as usize..];
            let made = (self.state.total_out() - made) as usize;
            out.extend_from_slice(&self.output[..made]);
            ensure!(
                out.len() <= PAYLOAD_BYTES_MAX,
                "a compressed payload of over {PAYLOAD_BYTES_MAX} bytes"
            );
            if made < self.output.len() {
                if !input.is_empty() {
                    bail!("{} bytes of compressed payload left over", input.len());
                }
                return Ok(());
            }
        }
    }
}

const OUTPUT_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests;
