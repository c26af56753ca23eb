//! The frames of the broadcast that a shard is delivering: for each connection the best one it can read.
//! In: a connection, its subscription and a broadcast → out: a frame in its queue, shared with all that can read the same.
//! Uses what `compression` prepared, `deflate::gap` to emit and the outlet; never compresses the same thing twice.
//! Changed here: which frame a connection gets. What is known of its window lives in `shard`, histories in `compression`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use fanwire_deflate::gap::{Depth, Publication, Reference};
use fanwire_node::{Broadcast, Shape, options::CompressionPolicy};
use fanwire_protocol::Encoding;
use hashbrown::HashMap;

use crate::{
    compression::{Contexts, Dispatch, Form, Kind, Lane},
    shard::{Compression, Dialect, Frame, Leave, Opcode, Outlet},
};

/// A shard's frames of one broadcast; empty between broadcasts.
pub(super) struct Frames {
    contexts: Arc<Contexts>,
    /// The broadcast that they are of, and its channel's policy.
    broadcast: Option<Arc<Broadcast>>,
    policy: CompressionPolicy,
    /// Frames that refer to nothing, by form: copied once per shard out of the slots that all shards share, so that
    /// handing one to a connection touches no memory of another core.
    shared: [Option<Made>; Form::COUNT],
    /// What the peer that was sent the plain publication last reads, and the index of the shared frame that all such get.
    alike: Option<(Dialect, usize)>,
    /// Frames in context, one for each distinct reference.
    made: Vec<Made>,
    /// Where they are, by reference and encoding; the last one is looked at first.
    places: HashMap<(Reference, Encoding), usize>,
    last: Option<(Reference, Encoding, usize)>,
    /// Context was wanted and there was none.
    missed: [bool; 2],
    dedicated: Dedicated,
    /// What frames that refer to nothing took, and one of [`TIMED`] of those in context.
    spent: Duration,
    timed: Duration,
}

/// What went through compressors of single connections.
#[derive(Default)]
struct Dedicated {
    deliveries: u64,
    message_bytes: u64,
    frame_bytes: u64,
}

/// A frame and what became of it.
struct Made {
    frame: Frame,
    kind: Kind,
    /// Of a frame in context: its depth and encoding.
    depth: Option<(Depth, Encoding)>,
    message_bytes: usize,
    deliveries: u64,
}

/// One delivery: to whom, of what.
struct Delivery<'a> {
    connection: u32,
    place: u32,
    encoding: Encoding,
    shape: Shape,
    compression: Compression,
    broadcast: &'a Broadcast,
    message: &'a Bytes,
}

impl Frames {
    pub(super) fn new(contexts: Arc<Contexts>) -> Self {
        Self {
            contexts,
            broadcast: None,
            policy: CompressionPolicy::Off,
            shared: Default::default(),
            alike: None,
            made: Vec::new(),
            places: HashMap::new(),
            last: None,
            missed: [false; 2],
            dedicated: Dedicated::default(),
            spent: Duration::ZERO,
            timed: Duration::ZERO,
        }
    }

    pub(super) fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// Queues the broadcast as it is for each of these connections and places.
    ///
    /// Where frames refer to nothing, one peer after the other gets the same: a third of the instructions.
    pub(super) fn deliver_to_all(
        &mut self,
        receivers: impl Iterator<Item = (u32, u32)>,
        broadcast: &Arc<Broadcast>,
        out: &mut Outlet,
    ) {
        self.begin(broadcast);
        for (connection, place) in receivers {
            if let Some((dialect, form)) = self.alike
                && let Some(made) = &mut self.shared[form]
                && out.push_alike(connection, dialect, &made.frame, made.message_bytes)
            {
                made.deliveries += 1;
            } else {
                self.deliver(connection, place, (broadcast, Shape::Plain), out);
            }
        }
    }

    /// Queues the broadcast for the subscription at `place` of a connection.
    pub(super) fn deliver(
        &mut self,
        connection: u32,
        place: u32,
        (broadcast, shape): (&Arc<Broadcast>, Shape),
        out: &mut Outlet,
    ) {
        self.begin(broadcast);
        let Some(Dialect { is_binary, compression }) = out.dialect(connection) else { return };
        let encoding = if is_binary { Encoding::Protobuf } else { Encoding::Json };
        let message =
            broadcast.shaped(shape, encoding).expect("the hub delivers in forms that exist");
        let delivery =
            Delivery { connection, place, encoding, shape, compression, broadcast, message };
        match (compression, self.policy) {
            (Compression::Raw, _) | (_, CompressionPolicy::Off) => {
                self.deliver_alone(&delivery, false, None, out);
            }
            (Compression::Dedicated { .. }, _) => {
                let frame_bytes = out.send_at(connection, is_binary, message);
                self.dedicated.deliveries += 1;
                self.dedicated.message_bytes += message.len() as u64;
                self.dedicated.frame_bytes += frame_bytes as u64;
            }
            // Who agreed to deltas takes no part in context. A patch has next to nothing in common with the patch before it,
            // so a history of patches would cost parses and memory for little; and a client that gets patches has few
            // publications of its channel in its window, so those in full would seldom find theirs (docs/compression.md has
            // figures). Frames that stand alone only move the counter of the window.
            (Compression::Context { window_bits }, CompressionPolicy::Context)
                if shape == Shape::Plain =>
            {
                self.deliver_in_context(&delivery, window_bits, out);
            }
            (_, _) => self.deliver_alone(&delivery, true, None, out),
        }
    }

    /// What follows are frames of this broadcast.
    fn begin(&mut self, broadcast: &Arc<Broadcast>) {
        if !self.broadcast.as_ref().is_some_and(|of| Arc::ptr_eq(of, broadcast)) {
            self.finish();
            self.policy = dispatch_of(broadcast).policy();
            self.broadcast = Some(Arc::clone(broadcast));
        }
    }

    /// Counts what was delivered and forgets the frames. To be called at the end of each turn at least.
    pub(super) fn finish(&mut self) {
        let Some(broadcast) = self.broadcast.take() else { return };
        let counters = self.contexts.counters_of(&broadcast);
        let Dedicated { deliveries, message_bytes, frame_bytes } =
            std::mem::take(&mut self.dedicated);
        counters.delivered(Kind::Dedicated, deliveries, message_bytes, frame_bytes);
        let emits = self.made.len();
        if emits > 0 {
            counters.emits.add(emits as u64);
            self.spent += self.timed * emits as u32 / emits.div_ceil(TIMED) as u32;
            self.timed = Duration::ZERO;
        }
        if !self.spent.is_zero() {
            counters.spent(std::mem::take(&mut self.spent));
        }
        self.count_missed(&broadcast);
        let depths = self.count(&broadcast);
        if let Some(dispatch) = broadcast.prepared::<Dispatch>().filter(|_| emits > 0) {
            dispatch.delivered(&depths);
        }
        self.alike = None;
        self.places.clear();
        self.last = None;
    }

    /// Tells histories that are not there what they would have been good for, about: who did not agree to context gets
    /// the same frame.
    fn count_missed(&mut self, broadcast: &Broadcast) {
        let missed = std::mem::take(&mut self.missed);
        for (encoding, _) in Encoding::ALL.into_iter().zip(missed).filter(|(_, missed)| *missed) {
            let form = Form { encoding, shape: Shape::Plain, compressed: true };
            if let Some(lane) = dispatch_of(broadcast).lane(encoding)
                && let Some(made) = &self.shared[form.index()]
            {
                lane.missed(made.deliveries);
            }
        }
    }

    /// Counts what was delivered, all frames of a kind at once, and forgets them. The deliveries in context are returned by
    /// encoding and depth.
    fn count(&mut self, broadcast: &Broadcast) -> [[u64; Depth::COUNT]; 2] {
        let counters = self.contexts.counters_of(broadcast);
        let mut kinds = [(0, 0, 0); Kind::COUNT];
        let mut depths = [[0; Depth::COUNT]; 2];
        let shared = self.shared.iter_mut().filter_map(Option::take);
        for made in self.made.drain(..).chain(shared) {
            let (deliveries, message_bytes, frame_bytes) = &mut kinds[made.kind.index()];
            *deliveries += made.deliveries;
            *message_bytes += made.deliveries * made.message_bytes as u64;
            *frame_bytes += made.deliveries * made.frame.len() as u64;
            if let Some((depth, encoding)) = made.depth {
                depths[encoding.index()][depth.index()] += made.deliveries;
            }
        }
        for (kind, (deliveries, message_bytes, frame_bytes)) in Kind::all().zip(kinds) {
            counters.delivered(kind, deliveries, message_bytes, frame_bytes);
        }
        depths
    }

    /// A frame that refers to nothing; raw unless it `may_compress`. `publication`: the message is in a history.
    fn deliver_alone(
        &mut self,
        delivery: &Delivery<'_>,
        may_compress: bool,
        publication: Option<&Publication>,
        out: &mut Outlet,
    ) {
        let Delivery { connection, place, encoding, shape, compression, message, .. } = *delivery;
        let compressed = may_compress && compression.takes(message.len());
        let form = Form { encoding, shape, compressed };
        if self.shared[form.index()].is_none() {
            self.share(form, delivery, out);
        }
        let Some(made) = &mut self.shared[form.index()] else { return };
        made.deliveries += 1;
        match publication {
            Some(publication) => {
                let to = (connection, place);
                out.push_publication(to, &made.frame, message, publication, Leave::Early)
            }
            None => out.push(connection, &made.frame, message),
        }
        if publication.is_none() && shape == Shape::Plain {
            let is_binary = encoding == Encoding::Protobuf;
            self.alike = Some((Dialect { is_binary, compression }, form.index()));
        }
    }

    /// Takes a frame that refers to nothing from the slot that all shards share, or makes it there.
    fn share(&mut self, form: Form, delivery: &Delivery<'_>, out: &mut Outlet) {
        let frame = dispatch_of(delivery.broadcast).frame(form, || {
            let started = Instant::now();
            let (opcode, message) = (opcode(form.encoding), delivery.message);
            let frame =
                Bytes::copy_from_slice(out.framer().frame(opcode, form.compressed, message));
            self.spent += started.elapsed();
            frame
        });
        let made = Made::new(Frame::from(&frame[..]), None, delivery.message.len());
        self.shared[form.index()] = Some(made);
    }

    fn deliver_in_context(&mut self, delivery: &Delivery<'_>, window_bits: u8, out: &mut Outlet) {
        let Delivery { connection, place, encoding, broadcast, message, .. } = *delivery;
        let Some((publication, lane)) = dispatch_of(broadcast).publication(encoding) else {
            self.miss(delivery, out);
            return self.deliver_alone(delivery, true, None, out);
        };
        let reference = out.reference(connection, place, publication, window_bits);
        let at = match self.last {
            Some((last, of, at)) if last == reference && of == encoding => at,
            _ => {
                match self.find_or_make(reference, delivery, (publication, lane), out) {
                    Some(at) => at,
                    // The history has gone on: nothing can be parsed against it any more.
                    None => return self.deliver_alone(delivery, true, Some(publication), out),
                }
            }
        };
        self.last = Some((reference, encoding, at));
        let made = &mut self.made[at];
        let leave = if made.deliveries == 0 { Leave::Late } else { Leave::Early };
        made.deliveries += 1;
        out.push_publication((connection, place), &made.frame, message, publication, leave);
    }

    fn find_or_make(
        &mut self,
        reference: Reference,
        delivery: &Delivery<'_>,
        (publication, lane): (&Publication, &Lane),
        out: &mut Outlet,
    ) -> Option<usize> {
        let encoding = delivery.encoding;
        if let Some(at) = self.places.get(&(reference, encoding)) {
            return Some(*at);
        }
        let counters = self.contexts.counters_of(delivery.broadcast);
        let is_crowded =
            self.made.len() >= self.contexts.gaps_max() && reference.depth() != Depth::Alone;
        if is_crowded && !matches!(reference.depth(), Depth::AloneWithin(_)) {
            counters.gaps_refused.add(1);
            let source = (publication, lane);
            return self.find_or_make(Reference::ALONE, delivery, source, out);
        }
        let parse = lane.parse(publication, reference.depth(), counters)?;
        let started = self.made.len().is_multiple_of(TIMED).then(Instant::now);
        let frame = out.framer().compressed(opcode(encoding), |payload| {
            parse.emit(reference.gaps(), payload);
        });
        self.made.push(Made::new(
            Frame::from(frame),
            Some((&reference, encoding)),
            delivery.message.len(),
        ));
        if let Some(started) = started {
            self.timed += started.elapsed();
        }
        self.places.insert((reference, encoding), self.made.len() - 1);
        Some(self.made.len() - 1)
    }

    /// Takes note, once, that the channel should have a history.
    fn miss(&mut self, delivery: &Delivery<'_>, out: &mut Outlet) {
        let Delivery { encoding, broadcast, message, .. } = *delivery;
        if std::mem::replace(&mut self.missed[encoding.index()], true)
            || !out.framer().compresses(message)
        {
            return;
        }
        match dispatch_of(broadcast).lane(encoding) {
            Some(lane) => lane.want(),
            None => self.contexts.want(broadcast, encoding),
        }
    }
}

impl Made {
    fn new(frame: Frame, reference: Option<(&Reference, Encoding)>, message_bytes: usize) -> Self {
        let depth = reference.map(|(reference, encoding)| (reference.depth(), encoding));
        let gaps = reference.map_or(0, |(reference, _)| reference.gaps().len());
        let kind = match depth.map(|(depth, _)| depth) {
            None if !fanwire_ws::frame::is_compressed(&frame) => Kind::Raw,
            None | Some(Depth::Alone | Depth::AloneWithin(_)) => Kind::Standalone,
            Some(Depth::Several | Depth::Most | Depth::Half) if gaps > 1 => Kind::Several(gaps),
            Some(Depth::Run(rung)) => Kind::Run(usize::from(rung)),
            Some(_) => Kind::Newest,
        };
        Self { frame, kind, depth, message_bytes, deliveries: 0 }
    }
}

fn dispatch_of(broadcast: &Broadcast) -> &Dispatch {
    broadcast.prepared().expect("every broadcast is prepared")
}

fn opcode(encoding: Encoding) -> Opcode {
    match encoding {
        Encoding::Json => Opcode::Text,
        Encoding::Protobuf => Opcode::Binary,
    }
}

/// Of so many frames in context of a broadcast the first is timed, and stands for the others: to look at the clock twice
/// takes a sixth as long as to make one.
const TIMED: usize = 16;

#[cfg(test)]
mod tests;
