//! Frames in context of the broadcast that a shard is delivering: one for each distinct place of the earlier publications.
//! In: receivers, a few at a time → out: a frame in the queue of each, or on its socket.
//! Uses the parses of `compression`, what the connection_writer knows of windows, and one buffer for all frames of a broadcast.
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
use fanwire_shard::{BorrowedFrame, Compression, ConnectionWriter, Frame};

/// The frames made so far, and who gets one next.
#[derive(Default)]
pub(super) struct InContext {
    /// One for each distinct reference, and their bytes one behind the other.
    frames: Vec<(EmittedFrame, FrameStats)>,
    bytes: Vec<u8>,
    /// Where they are in the list, by reference and encoding; the last one is looked at first.
    places: HashMap<(Reference, Encoding), usize>,
    last: Option<(Reference, Encoding, usize)>,
    /// By encoding, at most [`TOGETHER`] and no connection twice; and their connections alone, side by side, because each
    /// further one is looked for among them.
    waiting: [Vec<PendingReceiver>; 2],
    connections: [Vec<u32>; 2],
    /// What one of [`TIMED`] frames took.
    timed: Duration,
}

/// Where the bytes of a frame are, and the copy that queues hold if one had to.
struct EmittedFrame {
    at: Range<usize>,
    copy: OnceCell<Frame>,
}

/// A connection and its subscription, and which frame it gets.
pub(super) struct PendingReceiver {
    pub(super) connection: u32,
    pub(super) place: u32,
    pub(super) compression: Compression,
    reference: Reference,
    frame: Option<usize>,
}

impl PendingReceiver {
    pub(super) fn new((connection, place): (u32, u32), compression: Compression) -> Self {
        Self { connection, place, compression, reference: Reference::ALONE, frame: None }
    }
}

impl Frames {
    /// Queues the broadcast for a receiver in context, together with the next ones.
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
        self.in_context.waiting[encoding.index()].push(receiver);
    }

    /// Queues the broadcast for those that wait for it: looks at all their windows, makes all frames that are missing, and
    /// then writes, because a write drives what frames are made of out of the cache.
    pub(super) fn deliver_pending(
        &mut self,
        encoding: Encoding,
        broadcast: &Broadcast,
        out: &mut ConnectionWriter,
    ) {
        let mut waiting = std::mem::take(&mut self.in_context.waiting[encoding.index()]);
        match prepared_of(broadcast).publication(encoding) {
            Some(source) => {
                self.prepare(&mut waiting, (broadcast, encoding), source, out);
                for receiver in &waiting {
                    self.offload(receiver, (broadcast, encoding), source.0, out);
                }
            }
            None => {
                for receiver in &waiting {
                    let Some(delivery) = delivery(receiver, (broadcast, encoding)) else { break };
                    self.miss(&delivery, out);
                    self.deliver_alone(&delivery, true, None, out);
                }
            }
        }
        waiting.clear();
        self.in_context.waiting[encoding.index()] = waiting;
        self.in_context.connections[encoding.index()].clear();
    }

    /// Finds or makes the frame of each receiver; of none where the history has gone on.
    fn prepare(
        &mut self,
        waiting: &mut [PendingReceiver],
        (broadcast, encoding): (&Broadcast, Encoding),
        (publication, history): (&Publication, &EncodingHistory),
        out: &ConnectionWriter,
    ) {
        for receiver in &mut *waiting {
            if let Compression::Context { window_bits } = receiver.compression {
                let PendingReceiver { connection, place, .. } = *receiver;
                receiver.reference = out.reference(connection, place, publication, window_bits);
            }
        }
        let counters = self.contexts.counters_of(broadcast);
        let gaps_max = self.contexts.gaps_max();
        let known = &mut self.in_context;
        for receiver in waiting {
            let mut reference = receiver.reference;
            receiver.frame = known.find(reference, encoding);
            if receiver.frame.is_none() {
                let stands_alone =
                    matches!(reference.depth(), Depth::Alone | Depth::AloneWithin(_));
                if known.frames.len() >= gaps_max && !stands_alone {
                    counters.gaps_refused.add(1);
                    reference = Reference::ALONE;
                    receiver.frame = known.find(reference, encoding);
                }
            }
            if receiver.frame.is_none() {
                let parse = history.parse(publication, reference.depth(), counters);
                receiver.frame =
                    parse.map(|parse| known.make(reference, encoding, parse, publication.bytes()));
            }
        }
    }

    fn offload(
        &mut self,
        receiver: &PendingReceiver,
        (broadcast, encoding): (&Broadcast, Encoding),
        publication: &Publication,
        out: &mut ConnectionWriter,
    ) {
        let Some(delivery) = delivery(receiver, (broadcast, encoding)) else { return };
        let Some(index) = receiver.frame else {
            // The history has gone on: nothing can be parsed against it any more.
            return self.deliver_alone(&delivery, true, Some(publication), out);
        };
        let InContext { frames, bytes, .. } = &mut self.in_context;
        let (EmittedFrame { at, copy }, made) = &mut frames[index];
        made.deliveries += 1;
        let frame = BorrowedFrame { bytes: &bytes[at.clone()], copy };
        let to = (receiver.connection, receiver.place);
        out.push_publication(to, &frame, delivery.message, publication);
    }
}

impl InContext {
    /// How many frames there are, and what they took to make, about.
    pub(super) fn emits(&mut self) -> (u32, Duration) {
        let emits = self.frames.len() as u32;
        let timed = std::mem::take(&mut self.timed);
        (emits, timed * emits / emits.div_ceil(TIMED as u32).max(1))
    }

    /// Forgets the frames, and says what became of each.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = FrameStats> {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.places.clear();
        self.last = None;
        self.frames.drain(..).map(|(_, made)| made)
    }

    fn find(&mut self, reference: Reference, encoding: Encoding) -> Option<usize> {
        if let Some((last, of, index)) = self.last
            && last == reference
            && of == encoding
        {
            return Some(index);
        }
        let index = *self.places.get(&(reference, encoding))?;
        self.last = Some((reference, encoding, index));
        Some(index)
    }

    /// Makes the frame of a message of so many bytes.
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
        let made = FrameStats {
            frame_bytes: at.len(),
            kind: kind(&reference),
            depth: Some((reference.depth(), encoding)),
            message_bytes,
            deliveries: 0,
        };
        self.frames.push((EmittedFrame { at, copy: OnceCell::new() }, made));
        if let Some(started) = started {
            self.timed += started.elapsed();
        }
        self.places.insert((reference, encoding), index);
        self.last = Some((reference, encoding, index));
        index
    }
}

fn kind(reference: &Reference) -> DeliveryKind {
    match (reference.depth(), reference.gaps().len()) {
        (Depth::Alone | Depth::AloneWithin(_), _) => DeliveryKind::Standalone,
        (Depth::Several | Depth::Most | Depth::Half, gaps @ 2..) => DeliveryKind::Several(gaps),
        (Depth::Run(rung), _) => DeliveryKind::Run(usize::from(rung)),
        _ => DeliveryKind::Newest,
    }
}

fn delivery<'a>(
    receiver: &PendingReceiver,
    (broadcast, encoding): (&'a Broadcast, Encoding),
) -> Option<Delivery<'a>> {
    let PendingReceiver { connection, place, compression, .. } = *receiver;
    let (delta_mode, message) =
        (DeltaMode::Plain, broadcast.message_in(DeltaMode::Plain, encoding)?);
    Some(Delivery { connection, place, encoding, delta_mode, compression, broadcast, message })
}

/// Receivers whose frames are made before the first of them is written: of 16, game states to five channels each take 2 %
/// and ticks 1 % more (`fanwire-bench fanout --compression --against`).
const TOGETHER: usize = 64;

/// Of so many frames in context of a broadcast the first is timed, and stands for the others: to look at the clock twice
/// takes a sixth as long as to make one.
const TIMED: usize = 16;

/// A rare broadcast with many large frames does not leave its buffer behind.
const KEPT_BYTES: usize = 512 << 10;
