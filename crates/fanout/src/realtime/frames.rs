//! The frames of the broadcast that a shard is delivering: for each connection the smallest one that it can decode.
//! In: a connection, its subscription and a broadcast → out: a frame in its queue, shared by connections with the same format.
//! Uses what `compression` prepared, `deflate::gap` to emit and the `ConnectionWriter`; never compresses the same thing twice.
//! Changed here: which frame a connection gets. The state of its window lives in `shard`, histories in `compression`.

mod context;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use fanwire_deflate::gap::{Depth, Publication};
use fanwire_node::{Broadcast, DeltaMode, SubscriptionIndex, options::CompressionPolicy};
use fanwire_protocol::{Encoding, bare_push};
use fanwire_ws::frame;

use self::context::{Form, InContext, PendingReceiver};
use crate::compression::{
    Contexts, DeliveryKind, FrameForm, FrameVariant, PreparedBroadcast, StreamVariant, TextKind,
};
use fanwire_shard::{
    Compression, Connection, ConnectionWriter, Frame, Framing, Opcode, PeerFormat, StreamMessage,
    Transport, WindowIndex,
};

/// A shard's frames of one broadcast; empty between broadcasts.
pub(super) struct Frames {
    contexts: Arc<Contexts>,
    /// The broadcast of these frames, and its channel's policy.
    broadcast: Option<Arc<Broadcast>>,
    policy: CompressionPolicy,
    /// Frames that refer to nothing, by variant: copied once per shard out of the slots that all shards share, so that
    /// delivering one touches no memory of another core.
    shared: [Option<(Frame, FrameStats)>; FrameVariant::COUNT],
    /// The indices of the shared frames that exist.
    made: Vec<usize>,
    /// Parts of compressed streams that contain the message, copied for the same reason.
    stream_messages: Vec<(StreamVariant, StreamMessage)>,
    /// The format of the last peer that got the plain publication, the index of the shared frame for this format, and that
    /// of the stream message.
    last_plain: Option<(PeerFormat, usize, Option<usize>)>,
    dedicated: Dedicated,
    in_context: InContext,
    /// Missed histories by kind of text: a subscriber in context got a frame without context because there was no history.
    missed: [bool; TextKind::COUNT],
    /// Time that the frames took to make.
    spent: Duration,
}

/// Deliveries through compressors of single connections.
#[derive(Default)]
struct Dedicated {
    deliveries: u64,
    message_bytes: u64,
    frame_bytes: u64,
}

/// The sizes and kind of a frame, and the number of its deliveries.
struct FrameStats {
    frame_bytes: usize,
    kind: DeliveryKind,
    /// The depth and text of a frame in context.
    depth: Option<(Depth, TextKind)>,
    message_bytes: usize,
    deliveries: u64,
}

/// One delivery: a subscription of a connection, and the message for it.
struct Delivery<'a> {
    connection: u32,
    subscription: SubscriptionIndex,
    encoding: Encoding,
    delta_mode: DeltaMode,
    format: PeerFormat,
    broadcast: &'a Broadcast,
    message: &'a [u8],
}

impl Frames {
    pub(super) fn new(contexts: Arc<Contexts>) -> Self {
        Self {
            contexts,
            broadcast: None,
            policy: CompressionPolicy::Off,
            shared: std::array::from_fn(|_| None),
            made: Vec::new(),
            stream_messages: Vec::new(),
            last_plain: None,
            dedicated: Dedicated::default(),
            in_context: InContext::default(),
            missed: [false; TextKind::COUNT],
            spent: Duration::ZERO,
        }
    }

    pub(super) fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// Queues the plain broadcast for each of these connections and places.
    ///
    /// Consecutive peers with the same format get the same frame without further checks, which takes a third of the
    /// instructions.
    pub(super) fn deliver_to_all(
        &mut self,
        receivers: impl Iterator<Item = (u32, SubscriptionIndex)>,
        broadcast: &Arc<Broadcast>,
        out: &mut ConnectionWriter,
    ) {
        self.begin(broadcast);
        // A state is worth most when it is new.
        out.let_publications_wait(broadcast.latest().is_none());
        for (connection, subscription) in receivers {
            if let Some((format, variant, stream)) = self.last_plain
                && let Some((frame, stats)) = &mut self.shared[variant]
                && let stream = stream.map(|index| &self.stream_messages[index].1)
                && out.push_if_same_format(connection, format, frame, stats.message_bytes, stream)
            {
                stats.deliveries += 1;
            } else if self.policy == CompressionPolicy::Context
                && let Some(format) = out.connection(connection).map(Connection::format)
                && matches!(format.compression, Compression::Context { .. })
            {
                let receiver = PendingReceiver::new(connection, subscription, format);
                self.deliver_later(receiver, broadcast, out);
            } else {
                self.deliver(connection, subscription, broadcast, DeltaMode::Plain, out);
            }
        }
        for form in Form::all() {
            self.deliver_pending(form, broadcast, out);
        }
    }

    /// Queues the broadcast for a subscription of a connection.
    pub(super) fn deliver(
        &mut self,
        connection: u32,
        subscription: SubscriptionIndex,
        broadcast: &Arc<Broadcast>,
        delta_mode: DeltaMode,
        out: &mut ConnectionWriter,
    ) {
        self.begin(broadcast);
        out.let_publications_wait(broadcast.latest().is_none());
        let Some(format) = out.connection(connection).map(Connection::format) else { return };
        let PeerFormat { is_binary, compression, .. } = format;
        let encoding = encoding(is_binary);
        let message = message_for(format.transport, broadcast, delta_mode, encoding)
            .expect("the hub delivers in forms that exist");
        let delivery =
            Delivery { connection, subscription, encoding, delta_mode, format, broadcast, message };
        match (compression, self.policy) {
            // A standalone frame must not enter the window of a peer whose own compressor does not see it: the
            // compressor would then refer to wrong bytes.
            (Compression::Raw, _)
            | (_, CompressionPolicy::Off)
            | (Compression::Dedicated { .. }, CompressionPolicy::Standalone) => {
                self.deliver_alone(&delivery, false, None, out);
            }
            (Compression::Dedicated { .. }, CompressionPolicy::Context) => {
                let frame_bytes = out.send_at(connection, is_binary, message);
                self.dedicated.deliveries += 1;
                self.dedicated.message_bytes += message.len() as u64;
                self.dedicated.frame_bytes += frame_bytes as u64;
            }
            // Subscribers that agreed to deltas get no frames in context. Two patches have little in common, so a
            // history of patches would cost parses and memory and save little; and a client that gets patches has few
            // publications of the channel in its window to which a full one could refer (docs/compression.md has
            // figures). Frames that stand alone only advance the counter of the window.
            (Compression::Context { .. }, CompressionPolicy::Context)
                if delta_mode == DeltaMode::Plain =>
            {
                let receiver = PendingReceiver::new(connection, subscription, format);
                self.deliver_later(receiver, broadcast, out);
                self.deliver_pending(Form::of(format), broadcast, out);
            }
            (_, _) => self.deliver_alone(&delivery, true, None, out),
        }
    }

    /// Starts the frames of this broadcast, and finishes those of the last one.
    fn begin(&mut self, broadcast: &Arc<Broadcast>) {
        if !self.broadcast.as_ref().is_some_and(|of| Arc::ptr_eq(of, broadcast)) {
            self.finish();
            self.policy = prepared_of(broadcast).policy();
            self.broadcast = Some(Arc::clone(broadcast));
        }
    }

    /// Counts the deliveries and drops the frames. To be called at least at the end of each turn.
    pub(super) fn finish(&mut self) {
        let Some(broadcast) = self.broadcast.take() else { return };
        let counters = self.contexts.counters_of(&broadcast);
        let Dedicated { deliveries, message_bytes, frame_bytes } =
            std::mem::take(&mut self.dedicated);
        counters.delivered(DeliveryKind::Dedicated, deliveries, message_bytes, frame_bytes);
        let (emits, spent) = self.in_context.emits();
        self.spent += spent;
        counters.emits.add(u64::from(emits));
        counters.encoded(broadcast.take_encode_time());
        if !self.spent.is_zero() {
            counters.spent(std::mem::take(&mut self.spent));
        }
        self.count_missed(&broadcast);
        let depths = self.count(&broadcast);
        if let Some(prepared) = broadcast.prepared::<PreparedBroadcast>().filter(|_| emits > 0) {
            prepared.delivered(&depths);
        }
        self.last_plain = None;
        self.stream_messages.clear();
    }

    /// Records for a missing history how many deliveries it would have served. Approximate: receivers that did not
    /// agree to context get the same frame and are counted, too.
    fn count_missed(&mut self, broadcast: &Broadcast) {
        let missed = std::mem::take(&mut self.missed);
        for (kind, _) in TextKind::ALL.into_iter().zip(missed).filter(|(_, missed)| *missed) {
            let Some(history) = prepared_of(broadcast).history(kind) else { continue };
            for form in FrameForm::compressed(kind) {
                let encoding = kind.encoding();
                let delta_mode = DeltaMode::Plain;
                let variant = FrameVariant { encoding, delta_mode, form: *form };
                if let Some((_, stats)) = &self.shared[variant.index()] {
                    history.missed(stats.deliveries);
                }
            }
        }
    }

    /// Counts the deliveries, all frames of a kind at once, and drops the frames. Returns deliveries in context by
    /// kind of text and depth.
    fn count(&mut self, broadcast: &Broadcast) -> [[u64; Depth::COUNT]; TextKind::COUNT] {
        let counters = self.contexts.counters_of(broadcast);
        let mut kinds = [(0, 0, 0); DeliveryKind::COUNT];
        let mut depths = [[0; Depth::COUNT]; TextKind::COUNT];
        let taken = self.made.drain(..).filter_map(|index| self.shared[index].take());
        let shared = taken.map(|(_, stats)| stats);
        for stats in self.in_context.drain().chain(shared) {
            let (deliveries, message_bytes, frame_bytes) = &mut kinds[stats.kind.index()];
            *deliveries += stats.deliveries;
            *message_bytes += stats.deliveries * stats.message_bytes as u64;
            *frame_bytes += stats.deliveries * stats.frame_bytes as u64;
            if let Some((depth, kind)) = stats.depth {
                depths[kind.index()][depth.index()] += stats.deliveries;
            }
        }
        for (kind, (deliveries, message_bytes, frame_bytes)) in DeliveryKind::all().zip(kinds) {
            counters.delivered(kind, deliveries, message_bytes, frame_bytes);
        }
        depths
    }

    /// Delivers a frame that refers to nothing; raw unless it `may_compress`. `publication` is set if a history holds
    /// the message.
    fn deliver_alone(
        &mut self,
        delivery: &Delivery<'_>,
        may_compress: bool,
        publication: Option<&Publication>,
        out: &mut ConnectionWriter,
    ) {
        let Delivery { connection, subscription, encoding, delta_mode, format, message, .. } =
            *delivery;
        let form = FrameForm::of(format, may_compress && format.compression.takes(message.len()));
        let variant = FrameVariant { encoding, delta_mode, form };
        if self.shared[variant.index()].is_none() {
            self.share(variant, delivery, out);
        }
        let index = self.stream_message(delivery);
        let stream = index.map(|index| &self.stream_messages[index].1);
        let Some((frame, stats)) = &mut self.shared[variant.index()] else { return };
        stats.deliveries += 1;
        match publication {
            Some(publication) => {
                let window = WindowIndex(subscription.0);
                out.push_publication(connection, window, frame, message, publication, stream);
            }
            None => out.push(connection, frame, message, stream),
        }
        if publication.is_none() && delta_mode == DeltaMode::Plain {
            self.last_plain = Some((format, variant.index(), index));
        }
    }

    /// The index of what the message adds to the compressed stream of the receiver; `None` for other receivers. The first
    /// shard reads the message.
    fn stream_message(&mut self, delivery: &Delivery<'_>) -> Option<usize> {
        let Delivery { encoding, delta_mode, format, broadcast, message, .. } = *delivery;
        if !format.is_compressed_stream() {
            return None;
        }
        let transport = format.transport;
        let variant = StreamVariant { encoding, delta_mode, transport };
        let known = self.stream_messages.iter().position(|(known, _)| *known == variant);
        Some(known.unwrap_or_else(|| {
            let make = || StreamMessage::new(transport.framing(), format.is_binary, message);
            let made = prepared_of(broadcast).stream_message(variant, make).clone();
            self.stream_messages.push((variant, made));
            self.stream_messages.len() - 1
        }))
    }

    /// Copies a frame that refers to nothing from the slot that all shards share; the first shard makes it.
    fn share(
        &mut self,
        variant: FrameVariant,
        delivery: &Delivery<'_>,
        out: &mut ConnectionWriter,
    ) {
        let is_compressed = variant.form.is_compressed();
        let frame = prepared_of(delivery.broadcast).frame(variant, || {
            let started = Instant::now();
            let opcode = opcode(variant.encoding);
            let message = delivery.message;
            let PeerFormat { is_binary, transport, .. } = delivery.format;
            let framer = out.framers().of(transport);
            let frame = Bytes::copy_from_slice(match transport.framing() {
                Framing::WebSocket => framer.frame(opcode, is_compressed, message),
                _ if delivery.format.is_compressed_stream() => {
                    framer.in_stream(transport, is_binary, is_compressed, message)
                }
                _ => framer.in_body(transport, is_binary, message),
            });
            self.spent += started.elapsed();
            frame
        });
        let is_compressed = match variant.form {
            FrameForm::Compressed | FrameForm::BareCompressed => frame::is_compressed(frame),
            form => form.is_compressed() && out.framers().shared().compresses(delivery.message),
        };
        let kind = if is_compressed { DeliveryKind::Standalone } else { DeliveryKind::Raw };
        let frame_bytes = frame.len();
        let message_bytes = delivery.message.len();
        let stats = FrameStats { frame_bytes, kind, depth: None, message_bytes, deliveries: 0 };
        self.shared[variant.index()] = Some((Frame::from(&frame[..]), stats));
        self.made.push(variant.index());
    }

    /// Records, once per broadcast, that the channel should have a history.
    fn note_missed(&mut self, delivery: &Delivery<'_>, out: &mut ConnectionWriter) {
        let Delivery { encoding, broadcast, message, format, .. } = *delivery;
        let kind = TextKind::of(format.transport, encoding);
        if std::mem::replace(&mut self.missed[kind.index()], true)
            || !out.framers().shared().compresses(message)
        {
            return;
        }
        match prepared_of(broadcast).history(kind) {
            Some(history) => history.want(),
            None => self.contexts.want(broadcast, kind),
        }
    }
}

/// The publication as clients with this transport receive it; `None` when it does not exist in this form.
fn message_for(
    transport: Transport,
    broadcast: &Broadcast,
    delta_mode: DeltaMode,
    encoding: Encoding,
) -> Option<&[u8]> {
    match transport {
        Transport::UniGrpc => bare_push(encoding, broadcast.message_in(delta_mode, encoding)?),
        transport if transport.is_unidirectional() => {
            let kind = TextKind::of(transport, encoding);
            prepared_of(broadcast).text(kind, broadcast, delta_mode)
        }
        // Most deliveries, which need no look at the prepared state.
        _ => Some(broadcast.message_in(delta_mode, encoding)?),
    }
}

fn prepared_of(broadcast: &Broadcast) -> &PreparedBroadcast {
    broadcast.prepared().expect("every broadcast is prepared")
}

fn encoding(is_binary: bool) -> Encoding {
    if is_binary { Encoding::Protobuf } else { Encoding::Json }
}

fn opcode(encoding: Encoding) -> Opcode {
    match encoding {
        Encoding::Json => Opcode::Text,
        Encoding::Protobuf => Opcode::Binary,
    }
}

#[cfg(test)]
mod tests;
