//! A compressor for each connection: every message refers to all that the window holds.
//! In: messages → out: deliveries.
//! Uses the engine's dedicated contexts. Never: shares a frame.
//! How much memory a context takes is decided in the engine.

use fanwire_deflate::{Dedicated, Scratch};

use super::{Codec, Delivery, Memory, ReceivingClient};
use crate::stream::{Clock, Stream};

pub(super) struct OwnContext<'a> {
    stream: &'a Stream<'a>,
    context: Dedicated,
    scratch: Scratch,
    client: ReceivingClient,
    out: Vec<u8>,
}

impl<'a> OwnContext<'a> {
    pub(super) fn new(
        stream: &'a Stream<'a>,
        window_bits: u8,
        memory_level: u8,
        level: u8,
    ) -> Self {
        let context = Dedicated::new(window_bits, memory_level, level);
        let scratch = Scratch::default();
        let client = ReceivingClient::new();
        Self { stream, context, scratch, client, out: Vec::new() }
    }
}

impl Codec for OwnContext<'_> {
    fn deliver(&mut self, at: usize, clock: Clock<'_>) -> Option<Delivery> {
        let Self { stream, context, scratch, client, out } = self;
        let message = &stream.pushes[at];
        out.clear();
        let ((), compress) = clock.time(|| context.compress(message, scratch, out));
        let decompress = client.receive(out, message, clock)?;
        Some(Delivery { bytes: out.len(), compress, decompress, ..Delivery::default() })
    }

    fn memory(&self) -> Memory {
        Memory { connection: self.context.memory(), channel: 0 }
    }
}
