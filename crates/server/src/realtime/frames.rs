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
    shard::{Compression, Frame, Opcode, Outlet},
};

/// A shard's frames of one broadcast; empty between broadcasts.
pub(super) struct Frames {
    contexts: Arc<Contexts>,
    /// The broadcast that they are of.
    broadcast: Option<Arc<Broadcast>>,
    /// Frames that refer to nothing, by form: copied once per shard out of the slots that all shards share, so that
    /// handing one to a connection touches no memory of another core.
    shared: [Option<Made>; Form::COUNT],
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
    message: &'a Bytes,
    dispatch: &'a Dispatch,
}

impl Frames {
    pub(super) fn new(contexts: Arc<Contexts>) -> Self {
        Self {
            contexts,
            broadcast: None,
            shared: Default::default(),
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

    /// Queues the broadcast for the subscription at `place` of a connection.
    pub(super) fn deliver(
        &mut self,
        connection: u32,
        place: u32,
        (broadcast, shape): (&Arc<Broadcast>, Shape),
        out: &mut Outlet,
    ) {
        if !self.broadcast.as_ref().is_some_and(|of| Arc::ptr_eq(of, broadcast)) {
            self.finish();
            self.broadcast = Some(Arc::clone(broadcast));
        }
        let Some((is_binary, compression)) = out.form(connection) else { return };
        let encoding = if is_binary { Encoding::Protobuf } else { Encoding::Json };
        let message =
            broadcast.shaped(shape, encoding).expect("the hub delivers in forms that exist");
        let dispatch = broadcast.prepared::<Dispatch>().expect("every broadcast is prepared");
        let delivery =
            Delivery { connection, place, encoding, shape, compression, message, dispatch };
        match (compression, dispatch.policy()) {
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
                self.deliver_in_context(&delivery, window_bits, broadcast, out);
            }
            (_, _) => self.deliver_alone(&delivery, true, None, out),
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
        let depths = self.count(&broadcast);
        if let Some(dispatch) = broadcast.prepared::<Dispatch>().filter(|_| emits > 0) {
            dispatch.delivered(&depths);
        }
        self.places.clear();
        self.last = None;
        self.missed = [false; 2];
    }

    /// Counts what was delivered, all frames of a kind at once, and forgets them. The deliveries in context are returned by
    /// encoding and depth.
    fn count(&mut self, broadcast: &Broadcast) -> [[u64; Depth::COUNT]; 2] {
        let counters = self.contexts.counters_of(broadcast);
        let mut kinds = [(0, 0, 0); Kind::ALL.len()];
        let mut depths = [[0; Depth::COUNT]; 2];
        let shared = self.shared.iter_mut().filter_map(Option::take);
        for made in self.made.drain(..).chain(shared) {
            let (deliveries, message_bytes, frame_bytes) = &mut kinds[made.kind as usize];
            *deliveries += made.deliveries;
            *message_bytes += made.deliveries * made.message_bytes as u64;
            *frame_bytes += made.deliveries * made.frame.len() as u64;
            if let Some((depth, encoding)) = made.depth {
                depths[encoding.index()][depth.index()] += made.deliveries;
            }
        }
        for (kind, (deliveries, message_bytes, frame_bytes)) in Kind::ALL.into_iter().zip(kinds) {
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
        let Delivery { connection, place, encoding, shape, compression, message, dispatch } =
            *delivery;
        let may_compress = may_compress && compression.takes(message.len());
        let form = Form { encoding, shape, compressed: may_compress };
        let spent = &mut self.spent;
        let made = self.shared[form.index()].get_or_insert_with(|| {
            let frame = dispatch.frame(form, || {
                let started = Instant::now();
                let frame = out.framer().frame(opcode(encoding), may_compress, message);
                let frame = Bytes::copy_from_slice(frame);
                *spent += started.elapsed();
                frame
            });
            Made::new(Frame::from(&frame[..]), None, message.len())
        });
        made.deliveries += 1;
        let frame = made.frame.clone();
        match publication {
            Some(publication) => {
                out.push_publication(connection, place, frame, message, publication)
            }
            None => out.push(connection, frame, message),
        }
    }

    fn deliver_in_context(
        &mut self,
        delivery: &Delivery<'_>,
        window_bits: u8,
        broadcast: &Broadcast,
        out: &mut Outlet,
    ) {
        let Delivery { connection, place, encoding, message, dispatch, .. } = *delivery;
        let source = dispatch.publication(encoding);
        let Some((publication, lane)) = source else {
            self.miss(delivery, broadcast, out);
            return self.deliver_alone(delivery, true, None, out);
        };
        let reference = out.reference(connection, place, publication, window_bits);
        let at = match self.last {
            Some((last, of, at)) if last == reference && of == encoding => at,
            _ => {
                match self.find_or_make(reference, delivery, (publication, lane), broadcast, out) {
                    Some(at) => at,
                    // The history has gone on: nothing can be parsed against it any more.
                    None => return self.deliver_alone(delivery, true, Some(publication), out),
                }
            }
        };
        self.last = Some((reference, encoding, at));
        let made = &mut self.made[at];
        made.deliveries += 1;
        out.push_publication(connection, place, made.frame.clone(), message, publication);
    }

    fn find_or_make(
        &mut self,
        reference: Reference,
        delivery: &Delivery<'_>,
        (publication, lane): (&Publication, &Lane),
        broadcast: &Broadcast,
        out: &mut Outlet,
    ) -> Option<usize> {
        let encoding = delivery.encoding;
        if let Some(at) = self.places.get(&(reference, encoding)) {
            return Some(*at);
        }
        let counters = self.contexts.counters_of(broadcast);
        let is_crowded =
            self.made.len() >= self.contexts.gaps_max() && reference.depth() != Depth::Alone;
        if is_crowded && !matches!(reference.depth(), Depth::AloneWithin(_)) {
            counters.gaps_refused.add(1);
            let source = (publication, lane);
            return self.find_or_make(Reference::ALONE, delivery, source, broadcast, out);
        }
        let parse = lane.parse(publication, reference.depth(), counters)?;
        let started = self.made.len().is_multiple_of(TIMED).then(Instant::now);
        let frame = out.framer().compressed(opcode(encoding), |payload| {
            parse.emit(reference.gaps(), payload);
        });
        let depth = Some((reference.depth(), encoding));
        self.made.push(Made::new(Frame::from(frame), depth, delivery.message.len()));
        if let Some(started) = started {
            self.timed += started.elapsed();
        }
        self.places.insert((reference, encoding), self.made.len() - 1);
        Some(self.made.len() - 1)
    }

    /// Takes note, once, that the channel should have a history.
    fn miss(&mut self, delivery: &Delivery<'_>, broadcast: &Broadcast, out: &mut Outlet) {
        let Delivery { encoding, message, dispatch, .. } = *delivery;
        if std::mem::replace(&mut self.missed[encoding.index()], true)
            || !out.framer().compresses(message)
        {
            return;
        }
        match dispatch.lane(encoding) {
            Some(lane) => lane.want(),
            None => self.contexts.want(broadcast, encoding),
        }
    }
}

impl Made {
    fn new(frame: Frame, depth: Option<(Depth, Encoding)>, message_bytes: usize) -> Self {
        let kind = match depth.map(|(depth, _)| depth) {
            None if !fanwire_ws::frame::is_compressed(&frame) => Kind::Raw,
            None | Some(Depth::Alone | Depth::AloneWithin(_)) => Kind::Standalone,
            Some(Depth::Newest | Depth::Quoted) => Kind::Newest,
            Some(Depth::Several | Depth::Most | Depth::Half) => Kind::Several,
            Some(Depth::Run(_)) => Kind::Run,
        };
        Self { frame, kind, depth, message_bytes, deliveries: 0 }
    }
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
