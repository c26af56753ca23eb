//! Fossil deltas against the previous publication, as clients with deltas get them.
//! In: payloads → out: deliveries; the delta of a text is a text, and one that is not shorter is sent in full.
//! Uses the protocol's deltas and the engine's compressor. Never: earlier messages than the last.
//! When a delta is sent: client protocol §11; the crate `protocol` makes it.

use std::time::Duration;

use bytes::Bytes;
use fanwire_deflate::Compressor;
use fanwire_protocol::fossil::{self, Differ};

use super::{Codec, Delivery, Memory, ReceivingClient};
use crate::stream::{Clock, Stream};
use crate::wire;

pub(super) struct Delta<'a> {
    stream: &'a Stream<'a>,
    differ: Differ,
    /// Compressor of deltas that are compressed, too.
    compressor: Option<Compressor>,
    client: ReceivingClient,
    patch: Vec<u8>,
    out: Vec<u8>,
}

impl<'a> Delta<'a> {
    pub(super) fn new(stream: &'a Stream<'a>, level: Option<u8>) -> Self {
        Self {
            stream,
            differ: Differ::default(),
            compressor: level.map(Compressor::new),
            client: ReceivingClient::new(),
            patch: Vec::new(),
            out: Vec::new(),
        }
    }

    /// The push for a client that has the publication before, how long the delta took to make, and
    /// how long to apply; `None` when applying it gives something else.
    fn push(&mut self, at: usize, clock: Clock<'_>) -> Option<(Bytes, Duration, Duration)> {
        let sample = self.stream.sample;
        let payload = &sample.payloads[at];
        let push = |data: &[u8], is_delta| {
            wire::delta_push(sample.encoding, &sample.channel, at, data, is_delta)
        };
        let Some(previous) = at.checked_sub(1).map(|before| &sample.payloads[before]) else {
            return Some((push(payload, false), Duration::ZERO, Duration::ZERO));
        };
        self.patch.clear();
        let ((), make) = clock.time(|| match str::from_utf8(payload) {
            Ok(text) => self.differ.create_text(previous, text, &mut self.patch),
            Err(_) => self.differ.create(previous, payload, &mut self.patch),
        });
        if self.patch.len() >= payload.len() {
            return Some((push(payload, false), make, Duration::ZERO));
        }
        let delta = push(&self.patch, true);
        self.out.clear();
        let (applied, apply) =
            clock.time(|| fossil::apply(previous, &self.patch, payload.len(), &mut self.out));
        (applied.is_ok() && self.out == *payload).then_some((delta, make, apply))
    }
}

impl Codec for Delta<'_> {
    fn deliver(&mut self, at: usize, clock: Clock<'_>) -> Option<Delivery> {
        let (push, make, apply) = self.push(at, clock)?;
        let Some(compressor) = &mut self.compressor else {
            let compress = make;
            let decompress = apply;
            return Some(Delivery {
                bytes: push.len(),
                compress,
                decompress,
                ..Delivery::default()
            });
        };
        self.out.clear();
        let ((), compress) = clock.time(|| compressor.standalone(&push, &mut self.out));
        let inflate = self.client.receive(&self.out, &push, clock)?;
        let compress = make + compress;
        let decompress = inflate + apply;
        Some(Delivery { bytes: self.out.len(), compress, decompress, ..Delivery::default() })
    }

    /// The publication before.
    fn memory(&self) -> Memory {
        let payloads = self.stream.sample.payloads.iter();
        Memory { connection: 0, channel: payloads.map(Vec::len).max().unwrap_or_default() }
    }
}
