//! Frames in context of the broadcast that a shard is delivering: one for each distinct reference to earlier publications.
//! In: receivers, a few at a time → out: a frame in the queue of each, or on its socket.
//! Uses the parses of `compression`, the windows of the `ConnectionWriter`, and one buffer for all frames of a broadcast.
//! Changed here: in which order frames are looked up, made and written. What a frame may refer to is `deflate::gap`.

use std::{
    cell::OnceCell,
    ops::Range,
    time::{Duration, Instant},
};

use fanwire_deflate::gap::{Depth, Parse, Publication, Reference};
use fanwire_node::{Broadcast, DeltaMode};
use fanwire_protocol::Encoding;
use fanwire_ws::frame;
use hashbrown::HashMap;

use super::{Delivery, FrameStats, Frames, opcode, prepared_of};
use crate::compression::{DeliveryKind, EncodingHistory};
use fanwire_shard::{BorrowedFrame, Compression, ConnectionWriter, Frame, PeerFormat, Transport};

/// The frames made so far, and the next receivers.
#[derive(Default)]
pub(super) struct InContext {
    /// One for each distinct reference; their bytes are one after the other in `bytes`.
    frames: Vec<(EmittedFrame, FrameStats)>,
    bytes: Vec<u8>,
    /// Indices in `frames`, by reference and encoding; `last` is the one found last and is compared first.
    indices: HashMap<(Reference, Encoding), usize>,
    last: Option<(Reference, Encoding, usize)>,
    /// By encoding, at most [`TOGETHER`] and no connection twice. `connections` repeats their connections alone, in one
    /// block of memory, because each further receiver is searched for among them.
    pending: [Vec<PendingReceiver>; 2],
    connections: [Vec<u32>; 2],
    /// Time that the timed frames took, one of each [`TIMED`].
    timed: Duration,
}

/// The range of a frame's bytes, and the copy for queues if one needed it.
struct EmittedFrame {
    at: Range<usize>,
    copy: OnceCell<Frame>,
}

/// A connection and its subscription, and the index of its frame.
pub(super) struct PendingReceiver {
    pub(super) connection: u32,
    pub(super) place: u32,
    pub(super) compression: Compression,
    reference: Reference,
    frame: Option<usize>,
}

impl PendingReceiver {
    pub(super) fn new(connection: u32, place: u32, compression: Compression) -> Self {
        Self { connection, place, compression, reference: Reference::ALONE, frame: None }
    }
}

impl Frames {
    /// Adds a receiver in context; the broadcast is queued for it together with the next receivers.
    pub(super) fn deliver_later(
        &mut self,
        receiver: PendingReceiver,
        encoding: Encoding,
        broadcast: &Broadcast,
        out: &mut ConnectionWriter,
    ) {
        let connections = &self.in_context.connections[encoding.index()];
        if connections.len() == TOGETHER || connections.contains(&receiver.connection) {
            self.deliver_pending(encoding, broadcast, out);
        }
        self.in_context.connections[encoding.index()].push(receiver.connection);
        self.in_context.pending[encoding.index()].push(receiver);
    }

    /// Queues the broadcast for the pending receivers. It looks at all their windows, then makes all missing frames,
    /// and then writes, because a write evicts the data of the frames from the cache.
    pub(super) fn deliver_pending(
        &mut self,
        encoding: Encoding,
        broadcast: &Broadcast,
        out: &mut ConnectionWriter,
    ) {
        let mut pending = std::mem::take(&mut self.in_context.pending[encoding.index()]);
        match prepared_of(broadcast).publication(encoding) {
            Some((publication, history)) => {
                self.prepare(&mut pending, broadcast, encoding, publication, history, out);
                for receiver in &pending {
                    self.push(receiver, broadcast, encoding, publication, out);
                }
            }
            None => {
                for receiver in &pending {
                    let Some(delivery) = delivery(receiver, broadcast, encoding) else { break };
                    self.note_missed(&delivery, out);
                    self.deliver_alone(&delivery, true, None, out);
                }
            }
        }
        pending.clear();
        self.in_context.pending[encoding.index()] = pending;
        self.in_context.connections[encoding.index()].clear();
    }

    /// Finds or makes the frame of each receiver; none if the history no longer holds the publication.
    fn prepare(
        &mut self,
        pending: &mut [PendingReceiver],
        broadcast: &Broadcast,
        encoding: Encoding,
        publication: &Publication,
        history: &EncodingHistory,
        out: &ConnectionWriter,
    ) {
        for receiver in &mut *pending {
            if let Compression::Context { window_bits } = receiver.compression {
                let PendingReceiver { connection, place, .. } = *receiver;
                receiver.reference = out.reference(connection, place, publication, window_bits);
            }
        }
        let counters = self.contexts.counters_of(broadcast);
        let gaps_max = self.contexts.gaps_max();
        let in_context = &mut self.in_context;
        for receiver in pending {
            let mut reference = receiver.reference;
            receiver.frame = in_context.find(reference, encoding);
            if receiver.frame.is_none() {
                let stands_alone =
                    matches!(reference.depth(), Depth::Alone | Depth::AloneWithin(_));
                if in_context.frames.len() >= gaps_max && !stands_alone {
                    counters.gaps_refused.add(1);
                    reference = Reference::ALONE;
                    receiver.frame = in_context.find(reference, encoding);
                }
            }
            if receiver.frame.is_none() {
                let parse = history.parse(publication, reference.depth(), counters);
                receiver.frame = parse
                    .map(|parse| in_context.make(reference, encoding, parse, publication.bytes()));
            }
        }
    }

    fn push(
        &mut self,
        receiver: &PendingReceiver,
        broadcast: &Broadcast,
        encoding: Encoding,
        publication: &Publication,
        out: &mut ConnectionWriter,
    ) {
        let Some(delivery) = delivery(receiver, broadcast, encoding) else { return };
        let Some(index) = receiver.frame else {
            // The history no longer holds the publication, so nothing can be parsed against it.
            return self.deliver_alone(&delivery, true, Some(publication), out);
        };
        let InContext { frames, bytes, .. } = &mut self.in_context;
        let (EmittedFrame { at, copy }, stats) = &mut frames[index];
        stats.deliveries += 1;
        let frame = BorrowedFrame { bytes: &bytes[at.clone()], copy };
        let PendingReceiver { connection, place, .. } = *receiver;
        out.push_publication(connection, place, &frame, delivery.message, publication, None);
    }
}

impl InContext {
    /// Returns the number of frames, and the approximate time that they took to make.
    pub(super) fn emits(&mut self) -> (u32, Duration) {
        let emits = self.frames.len() as u32;
        let timed = std::mem::take(&mut self.timed);
        (emits, timed * emits / emits.div_ceil(TIMED as u32).max(1))
    }

    /// Drops the frames and returns their statistics.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = FrameStats> {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.indices.clear();
        self.last = None;
        self.frames.drain(..).map(|(_, stats)| stats)
    }

    fn find(&mut self, reference: Reference, encoding: Encoding) -> Option<usize> {
        if let Some((last, of, index)) = self.last
            && last == reference
            && of == encoding
        {
            return Some(index);
        }
        let index = *self.indices.get(&(reference, encoding))?;
        self.last = Some((reference, encoding, index));
        Some(index)
    }

    /// Makes the frame of a message of `message_bytes`. Returns its index.
    fn make(
        &mut self,
        reference: Reference,
        encoding: Encoding,
        parse: &Parse,
        message_bytes: usize,
    ) -> usize {
        let index = self.frames.len();
        let started = index.is_multiple_of(TIMED).then(Instant::now);
        let payload_at = self.bytes.len() + frame::HEADER_BYTES_MAX;
        self.bytes.resize(payload_at, 0);
        parse.emit(reference.gaps(), &mut self.bytes);
        let at = frame::encode_before(opcode(encoding), true, payload_at, &mut self.bytes)
            ..self.bytes.len();
        let stats = FrameStats {
            frame_bytes: at.len(),
            kind: kind(&reference),
            depth: Some((reference.depth(), encoding)),
            message_bytes,
            deliveries: 0,
        };
        self.frames.push((EmittedFrame { at, copy: OnceCell::new() }, stats));
        if let Some(started) = started {
            self.timed += started.elapsed();
        }
        self.indices.insert((reference, encoding), index);
        self.last = Some((reference, encoding, index));
        index
    }
}

fn kind(reference: &Reference) -> DeliveryKind {
    match (reference.depth(), reference.gaps().len()) {
        (Depth::Alone | Depth::AloneWithin(_), _) => DeliveryKind::Standalone,
        (Depth::Several | Depth::Most | Depth::Half, gaps @ 2..) => DeliveryKind::Several(gaps),
        (Depth::Run(run), _) => DeliveryKind::Run(usize::from(run)),
        _ => DeliveryKind::Newest,
    }
}

fn delivery<'a>(
    receiver: &PendingReceiver,
    broadcast: &'a Broadcast,
    encoding: Encoding,
) -> Option<Delivery<'a>> {
    let PendingReceiver { connection, place, compression, .. } = *receiver;
    let (delta_mode, message) =
        (DeltaMode::Plain, broadcast.message_in(DeltaMode::Plain, encoding)?);
    let (is_binary, transport) = (encoding == Encoding::Protobuf, Transport::WebSocket);
    let format = PeerFormat { is_binary, transport, compression };
    Some(Delivery { connection, place, encoding, delta_mode, format, broadcast, message })
}

/// Receivers whose frames are made before the first of them is written. With 16, game states to five channels each take
/// 2 % and ticks 1 % more (`fanwire-bench fanout --compression --against`).
const TOGETHER: usize = 64;

/// The first of this many frames in context is timed, and its time counts for all of them: two reads of the clock take
/// a sixth of the time of one frame.
const TIMED: usize = 16;

/// The buffer shrinks to this size after a rare broadcast with many large frames.
const KEPT_BYTES: usize = 512 << 10;
