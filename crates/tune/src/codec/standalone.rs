//! Each message by itself: one frame for all clients.
//! In: messages → out: deliveries.
//! Uses the engine's compressor. Never: earlier messages.
//! What a standalone frame is lives in the engine.

use fanwire_deflate::Compressor;

use super::{Codec, Delivery, Memory, ReceivingClient};
use crate::stream::{Clock, Stream};

pub(super) struct Standalone<'a> {
    stream: &'a Stream<'a>,
    compressor: Compressor,
    client: ReceivingClient,
    out: Vec<u8>,
}

impl<'a> Standalone<'a> {
    pub(super) fn new(stream: &'a Stream<'a>, level: u8) -> Self {
        let compressor = Compressor::new(level);
        Self { stream, compressor, client: ReceivingClient::new(), out: Vec::new() }
    }
}

impl Codec for Standalone<'_> {
    fn deliver(&mut self, at: usize, clock: Clock<'_>) -> Option<Delivery> {
        let message = &self.stream.pushes[at];
        self.out.clear();
        let ((), compress) = clock.time(|| self.compressor.standalone(message, &mut self.out));
        let decompress = self.client.receive(&self.out, message, clock)?;
        Some(Delivery { bytes: self.out.len(), compress, decompress, ..Delivery::default() })
    }

    /// The compressor is one for a whole shard.
    fn memory(&self) -> Memory {
        Memory::default()
    }
}
