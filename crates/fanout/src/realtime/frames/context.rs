//! Frames in context of the broadcast that a shard is delivering: one for each distinct reference to earlier publications.
//! In: receivers, a few at a time → out: a frame in the queue of each, or on its socket.
//! Uses the parses of `compression`, the windows of the `ConnectionWriter`, and one buffer for all frames of a broadcast.
//! Changed here: in which order frames are looked up, made and written. What a frame may refer to is `deflate::gap`.

use std::{
    cell::OnceCell,
    ops::Range,
    time::{Duration, Instant},
};

use fanwire_deflate::Envelope;
use fanwire_deflate::gap::{Depth, Parse, Publication, Reference};
use fanwire_node::{Broadcast, DeltaMode, SubscriptionIndex};
use fanwire_protocol::Encoding;
use fanwire_ws::frame;
use hashbrown::HashMap;

use super::{Delivery, FrameStats, Frames, encoding, message_for, opcode, prepared_of};
use crate::compression::{DeliveryKind, EncodingHistory, TextKind};
use fanwire_shard::{
    BorrowedFrame, Compression, ConnectionWriter, Frame, Framing, PeerFormat, Transport,
    WindowIndex,
};

/// The frames made so far, and the next receivers.
#[derive(Default)]
pub(super) struct InContext {
    /// One for each distinct reference; their bytes are one after the other in `bytes`.
    frames: Vec<(EmittedFrame, FrameStats)>,
    bytes: Vec<u8>,
    /// Indices in `frames`, by reference and form; `last` is the one found last and is compared first.
    indices: HashMap<(Reference, Form), usize>,
    last: Option<(Reference, Form, usize)>,
    /// Receivers by form, at most [`TOGETHER`] and no connection twice. `connections` repeats their connections alone,
    /// in one block of memory, because each further receiver is searched for among them.
    pending: [Vec<PendingReceiver>; Form::COUNT],
    connections: [Vec<u32>; Form::COUNT],
    /// Time that the timed frames took, one of each [`TIMED`].
    timed: Duration,
}

/// Text and framing of peers in context; with equal references they get the same frame. A dense index below
/// [`COUNT`](Self::COUNT).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Form(u8);

impl Form {
    const COUNT: usize = FORMS.len();

    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT as u8).map(Self)
    }

    pub(super) fn of(format: PeerFormat) -> Self {
        Self(match format.transport {
            Transport::WebSocket => u8::from(format.is_binary),
            // The latter has no context.
            Transport::HttpStream | Transport::UniGrpc => 2 + u8::from(format.is_binary),
            Transport::EventStream => 4,
            Transport::UniWebSocket => 5,
            Transport::UniHttpStream => 6,
            Transport::UniEventStream => 7,
        })
    }

    fn is_binary(self) -> bool {
        self.encoding().is_binary()
    }

    fn encoding(self) -> Encoding {
        self.kind().encoding()
    }

    fn kind(self) -> TextKind {
        FORMS[self.index()].0
    }

    fn framing(self) -> Framing {
        FORMS[self.index()].1
    }

    fn index(self) -> usize {
        self.0.into()
    }

    /// Whether a frame of this reference is made by a parse; other frames are the same for all peers of a format.
    fn is_parsed(self, reference: Reference) -> bool {
        let stands_alone = matches!(reference.depth(), Depth::Alone | Depth::AloneWithin(_));
        !stands_alone || self.framing().envelope(self.is_binary()) == Envelope::NONE
    }
}

/// Texts and framings, by the index of the form.
const FORMS: [(TextKind, Framing); 8] = [
    (TextKind::Json, Framing::WebSocket),
    (TextKind::Protobuf, Framing::WebSocket),
    (TextKind::Json, Framing::Lines),
    (TextKind::Protobuf, Framing::Lines),
    (TextKind::Json, Framing::Events),
    (TextKind::BareJson, Framing::WebSocket),
    (TextKind::BareJson, Framing::Lines),
    (TextKind::Event, Framing::WholeEvents),
];

/// The range of a frame's bytes, and the copy for queues if one needed it.
struct EmittedFrame {
    at: Range<usize>,
    copy: OnceCell<Frame>,
}

/// A connection and its subscription, and the index of its frame.
pub(super) struct PendingReceiver {
    pub(super) connection: u32,
    pub(super) subscription: SubscriptionIndex,
    pub(super) format: PeerFormat,
    reference: Reference,
    frame: Option<usize>,
}

impl PendingReceiver {
    pub(super) fn new(
        connection: u32,
        subscription: SubscriptionIndex,
        format: PeerFormat,
    ) -> Self {
        Self { connection, subscription, format, reference: Reference::ALONE, frame: None }
    }
}

impl Frames {
    /// Adds a receiver in context; the broadcast is queued for it together with the next receivers.
    pub(super) fn deliver_later(
        &mut self,
        receiver: PendingReceiver,
        broadcast: &Broadcast,
        out: &mut ConnectionWriter,
    ) {
        let form = Form::of(receiver.format);
        let connections = &self.in_context.connections[form.index()];
        if connections.len() == TOGETHER || connections.contains(&receiver.connection) {
            self.deliver_pending(form, broadcast, out);
        }
        self.in_context.connections[form.index()].push(receiver.connection);
        self.in_context.pending[form.index()].push(receiver);
    }

    /// Queues the broadcast for the pending receivers. It looks at all their windows, then makes all missing frames,
    /// and then writes, because a write evicts the data of the frames from the cache.
    pub(super) fn deliver_pending(
        &mut self,
        form: Form,
        broadcast: &Broadcast,
        out: &mut ConnectionWriter,
    ) {
        if self.in_context.pending[form.index()].is_empty() {
            return;
        }
        let mut pending = std::mem::take(&mut self.in_context.pending[form.index()]);
        match prepared_of(broadcast).publication(form.kind()) {
            Some((publication, history)) => {
                self.prepare(&mut pending, broadcast, form, publication, history, out);
                for receiver in &pending {
                    self.push(receiver, broadcast, publication, out);
                }
            }
            None => {
                for receiver in &pending {
                    let Some(delivery) = delivery(receiver, broadcast) else { break };
                    self.note_missed(&delivery, out);
                    self.deliver_alone(&delivery, true, None, out);
                }
            }
        }
        pending.clear();
        self.in_context.pending[form.index()] = pending;
        self.in_context.connections[form.index()].clear();
    }

    /// Finds or makes the frame of each receiver; none if the history no longer holds the publication, or if the frame is
    /// the same for all peers of a format.
    fn prepare(
        &mut self,
        pending: &mut [PendingReceiver],
        broadcast: &Broadcast,
        form: Form,
        publication: &Publication,
        history: &EncodingHistory,
        out: &ConnectionWriter,
    ) {
        for receiver in &mut *pending {
            if let Compression::Context { window_bits } = receiver.format.compression {
                let PendingReceiver { connection, subscription, .. } = *receiver;
                let window = WindowIndex(subscription.0);
                receiver.reference = out
                    .connection(connection)
                    .map_or(Reference::ALONE, |it| it.reference(window, publication, window_bits));
            }
        }
        let counters = self.contexts.counters_of(broadcast);
        let gaps_max = self.contexts.gaps_max();
        let in_context = &mut self.in_context;
        for receiver in pending {
            let mut reference = receiver.reference;
            receiver.frame = in_context.find(reference, form);
            if receiver.frame.is_none() {
                let stands_alone =
                    matches!(reference.depth(), Depth::Alone | Depth::AloneWithin(_));
                if in_context.frames.len() >= gaps_max && !stands_alone {
                    counters.gaps_refused.add(1);
                    reference = Reference::ALONE;
                    receiver.frame = in_context.find(reference, form);
                }
            }
            if receiver.frame.is_none() && form.is_parsed(reference) {
                let parse = history.parse(publication, reference.depth(), counters);
                let bytes = publication.bytes();
                receiver.frame = parse.and_then(|it| in_context.make(reference, form, it, bytes));
            }
        }
    }

    fn push(
        &mut self,
        receiver: &PendingReceiver,
        broadcast: &Broadcast,
        publication: &Publication,
        out: &mut ConnectionWriter,
    ) {
        let Some(delivery) = delivery(receiver, broadcast) else { return };
        let Some(index) = receiver.frame else {
            return self.deliver_alone(&delivery, true, Some(publication), out);
        };
        let stream_index = self.stream_message(&delivery);
        let stream = stream_index.map(|index| &self.stream_messages[index].1);
        let InContext { frames, bytes, .. } = &mut self.in_context;
        let (EmittedFrame { at, copy }, stats) = &mut frames[index];
        stats.deliveries += 1;
        let frame = BorrowedFrame { bytes: &bytes[at.clone()], copy };
        let PendingReceiver { connection, subscription, .. } = *receiver;
        out.push_publication(
            connection,
            WindowIndex(subscription.0),
            &frame,
            delivery.message,
            publication,
            stream,
        );
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

    fn find(&mut self, reference: Reference, form: Form) -> Option<usize> {
        if let Some((last, of, index)) = self.last
            && last == reference
            && of == form
        {
            return Some(index);
        }
        let index = *self.indices.get(&(reference, form))?;
        self.last = Some((reference, form, index));
        Some(index)
    }

    /// Makes the frame of a message of `message_bytes`. Returns its index; `None` if the parse is the same for all peers
    /// of a format that has bytes around each message.
    fn make(
        &mut self,
        reference: Reference,
        form: Form,
        parse: &Parse,
        message_bytes: usize,
    ) -> Option<usize> {
        let index = self.frames.len();
        let started = index.is_multiple_of(TIMED).then(Instant::now);
        let begin = match form.framing() {
            Framing::WebSocket => {
                let payload_at = self.bytes.len() + frame::HEADER_BYTES_MAX;
                self.bytes.resize(payload_at, 0);
                parse.emit(reference.gaps(), &mut self.bytes);
                let opcode = opcode(form.encoding());
                frame::encode_before(opcode, true, payload_at, &mut self.bytes)
            }
            framing => {
                let at = self.bytes.len();
                let envelope = framing.envelope(form.is_binary());
                if !parse.emit_in_stream(envelope, &reference, &mut self.bytes) {
                    return None;
                }
                at
            }
        };
        let at = begin..self.bytes.len();
        let stats = FrameStats {
            frame_bytes: at.len(),
            kind: kind(&reference),
            depth: Some((reference.depth(), form.kind())),
            message_bytes,
            deliveries: 0,
        };
        self.frames.push((EmittedFrame { at, copy: OnceCell::new() }, stats));
        if let Some(started) = started {
            self.timed += started.elapsed();
        }
        self.indices.insert((reference, form), index);
        self.last = Some((reference, form, index));
        Some(index)
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

fn delivery<'a>(receiver: &PendingReceiver, broadcast: &'a Broadcast) -> Option<Delivery<'a>> {
    let PendingReceiver { connection, subscription, format, .. } = *receiver;
    let encoding = encoding(format.is_binary);
    let delta_mode = DeltaMode::Plain;
    let message = message_for(format.transport, broadcast, delta_mode, encoding)?;
    Some(Delivery { connection, subscription, encoding, delta_mode, format, broadcast, message })
}

/// Receivers whose frames are made before the first of them is written. With 16, game states to five channels each take
/// 2 % and ticks 1 % more (`fanwire-bench fanout --compression --against`).
const TOGETHER: usize = 64;

/// The first of this many frames in context is timed, and its time counts for all of them: two reads of the clock take
/// a sixth of the time of one frame.
const TIMED: usize = 16;

/// The buffer shrinks to this size after a rare broadcast with many large frames.
const KEPT_BYTES: usize = 512 << 10;
