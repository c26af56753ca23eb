//! The shared part of one broadcast: frames for all shards, and the publication's position in its channel's history.
//! In: a broadcast just accepted → out: one frame per variant and one parse per depth, each made once on the first use.
//! Uses write-once cells, and the lock of a history for a parse that does not exist yet (ARCHITECTURE.md, Locks).
//! Changed here: the parts of a broadcast that shards share. Frames for one shard's connections are made in `realtime::frames`.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use fanwire_deflate::gap::{Depth, Publication};
use fanwire_node::{Broadcast, DeltaMode, options::CompressionPolicy};
use fanwire_protocol::Encoding;

use fanwire_shard::{Framing, PeerFormat, StreamMessage, Transport};

use super::{
    TextKind,
    channel::{Channel, EncodingHistory},
};

/// The parts of a broadcast that are prepared once for all shards.
pub(crate) struct PreparedBroadcast {
    policy: CompressionPolicy,
    frames: [OnceLock<Bytes>; FrameVariant::PLAIN],
    /// The other variants; allocated for the first subscriber that agreed to deltas, or has another transport.
    delta_frames: OnceLock<Box<[OnceLock<Bytes>]>>,
    /// Parts of compressed streams that contain the message; allocated for the first subscriber with one.
    stream_messages: OnceLock<Box<[OnceLock<StreamMessage>; StreamVariant::COUNT]>>,
    context: Option<(Arc<Channel>, Publications)>,
    /// The push as an event of its own.
    event: OnceLock<Box<[u8]>>,
}

/// A publication in the histories of its channel, by the index of the kind of text.
type Publications = [Option<Box<Publication>>; TextKind::COUNT];

/// The properties that determine the bytes of a frame that refers to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FrameVariant {
    pub(crate) encoding: Encoding,
    pub(crate) delta_mode: DeltaMode,
    pub(crate) form: FrameForm,
}

/// The bytes around a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FrameForm {
    Raw,
    Compressed,
    /// A line in the body of a response.
    Line,
    Event,
    /// A line in a compressed body.
    CompressedLine,
    CompressedEvent,
    /// A line in a compressed body, but without compression.
    UncompressedLine,
    UncompressedEvent,
    /// The same for unidirectional clients, with the push alone ([`bare_push`](fanwire_protocol::bare_push)). These have
    /// JSON, the last one Protobuf, and no deltas.
    BareRaw,
    BareCompressed,
    BareLine,
    BareEvent,
    BareCompressedLine,
    BareCompressedEvent,
    BareUncompressedLine,
    BareUncompressedEvent,
    BareGrpc,
}

/// The properties that determine the plaintext of a message in a compressed stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamVariant {
    pub(crate) encoding: Encoding,
    pub(crate) delta_mode: DeltaMode,
    pub(crate) transport: Transport,
}

impl FrameForm {
    /// The form for a peer; compressed if the message is to be and the peer takes that.
    pub(crate) fn of(format: PeerFormat, compresses: bool) -> Self {
        let is_stream = format.is_compressed_stream();
        if format.transport.is_unidirectional() {
            return match (format.transport.framing(), compresses) {
                (Framing::WebSocket, true) => Self::BareCompressed,
                (Framing::WebSocket, false) => Self::BareRaw,
                (Framing::GrpcMessages, _) => Self::BareGrpc,
                (Framing::Lines, _) if !is_stream => Self::BareLine,
                (Framing::Lines, true) => Self::BareCompressedLine,
                (Framing::Lines, false) => Self::BareUncompressedLine,
                (Framing::Events | Framing::WholeEvents, _) if !is_stream => Self::BareEvent,
                (Framing::Events | Framing::WholeEvents, true) => Self::BareCompressedEvent,
                (Framing::Events | Framing::WholeEvents, false) => Self::BareUncompressedEvent,
            };
        }
        match (format.transport.framing(), compresses) {
            (Framing::WebSocket, true) => Self::Compressed,
            (Framing::WebSocket, false) => Self::Raw,
            (Framing::GrpcMessages, _) => Self::BareGrpc,
            (Framing::WholeEvents, _) => Self::BareEvent,
            (Framing::Lines, _) if !is_stream => Self::Line,
            (Framing::Lines, true) => Self::CompressedLine,
            (Framing::Lines, false) => Self::UncompressedLine,
            (Framing::Events, _) if !is_stream => Self::Event,
            (Framing::Events, true) => Self::CompressedEvent,
            (Framing::Events, false) => Self::UncompressedEvent,
        }
    }

    /// The forms in place of which there can be a frame in context of texts of this kind.
    pub(crate) fn compressed(kind: TextKind) -> &'static [Self] {
        match kind {
            TextKind::Json | TextKind::Protobuf => {
                &[Self::Compressed, Self::CompressedLine, Self::CompressedEvent]
            }
            TextKind::BareJson => &[Self::BareCompressed, Self::BareCompressedLine],
            TextKind::Event => &[Self::BareCompressedEvent],
        }
    }

    /// Whether a message that is long enough is compressed.
    pub(crate) fn is_compressed(self) -> bool {
        TextKind::ALL.into_iter().any(|kind| Self::compressed(kind).contains(&self))
    }
}

impl FrameVariant {
    /// Number of variants.
    pub(crate) const COUNT: usize = 49;
    /// The first this many variants are WebSocket frames without deltas.
    const PLAIN: usize = 4;

    /// Dense index below [`COUNT`](Self::COUNT).
    pub(crate) fn index(self) -> usize {
        let pair = pair(self.delta_mode, self.encoding);
        let bare_pair = usize::from(self.form == FrameForm::BareGrpc);
        debug_assert!(pair == bare_pair || self.form < FrameForm::BareRaw, "bare pushes are plain");
        match self.form {
            FrameForm::Raw => pair * 2,
            FrameForm::Compressed => pair * 2 + 1,
            FrameForm::Line => 10 + pair,
            FrameForm::Event => 15 + pair,
            FrameForm::CompressedLine => 20 + pair,
            FrameForm::CompressedEvent => 25 + pair,
            FrameForm::UncompressedLine => 30 + pair,
            FrameForm::UncompressedEvent => 35 + pair,
            FrameForm::BareRaw => 40,
            FrameForm::BareCompressed => 41,
            FrameForm::BareLine => 42,
            FrameForm::BareEvent => 43,
            FrameForm::BareGrpc => 44,
            FrameForm::BareCompressedLine => 45,
            FrameForm::BareCompressedEvent => 46,
            FrameForm::BareUncompressedLine => 47,
            FrameForm::BareUncompressedEvent => 48,
        }
    }
}

impl StreamVariant {
    const COUNT: usize = 12;

    fn index(self) -> usize {
        let pair = pair(self.delta_mode, self.encoding);
        match self.transport {
            Transport::EventStream => 5 + pair,
            Transport::UniHttpStream => 10,
            Transport::UniEventStream => 11,
            _ => pair,
        }
    }
}

/// The message itself, below 5.
fn pair(delta_mode: DeltaMode, encoding: Encoding) -> usize {
    match (delta_mode, encoding) {
        (DeltaMode::Plain, Encoding::Json) => 0,
        (DeltaMode::Plain | DeltaMode::Full, Encoding::Protobuf) => 1,
        (DeltaMode::Full, Encoding::Json) => 2,
        (DeltaMode::Patch, Encoding::Json) => 3,
        (DeltaMode::Patch, Encoding::Protobuf) => 4,
    }
}

impl PreparedBroadcast {
    /// Prepares a broadcast for a channel without a history.
    pub(super) fn new(policy: CompressionPolicy) -> Self {
        Self {
            policy,
            frames: Default::default(),
            delta_frames: Default::default(),
            stream_messages: Default::default(),
            context: None,
            event: OnceLock::new(),
        }
    }

    /// Prepares a broadcast for a channel whose histories hold the texts that have a publication; `event` as it was written.
    pub(super) fn in_context(
        channel: Arc<Channel>,
        publications: Publications,
        event: OnceLock<Box<[u8]>>,
    ) -> Self {
        let context = Some((channel, publications));
        Self { context, event, ..Self::new(CompressionPolicy::Context) }
    }

    /// Approximate bytes while it waits for a shard: encodings, and parses of about their size.
    pub(crate) fn bytes(&self) -> usize {
        let publications = self.context.iter().flat_map(|(_, all)| all.iter().flatten());
        size_of::<Self>() + publications.map(|publication| 2 * publication.bytes()).sum::<usize>()
    }

    pub(crate) fn policy(&self) -> CompressionPolicy {
        self.policy
    }

    /// Returns the frame of one variant; the first call makes it with `make`.
    pub(crate) fn frame(&self, variant: FrameVariant, make: impl FnOnce() -> Bytes) -> &Bytes {
        let slot = match variant.index().checked_sub(FrameVariant::PLAIN) {
            None => &self.frames[variant.index()],
            Some(index) => {
                let slots = FrameVariant::COUNT - FrameVariant::PLAIN;
                let make = || (0..slots).map(|_| OnceLock::new()).collect();
                &self.delta_frames.get_or_init(make)[index]
            }
        };
        slot.get_or_init(make)
    }

    /// The publication as text of a kind, as [`TextKind::text`] writes it.
    pub(crate) fn text<'a>(
        &'a self,
        kind: TextKind,
        broadcast: &'a Broadcast,
        delta_mode: DeltaMode,
    ) -> Option<&'a [u8]> {
        kind.text(broadcast, delta_mode, &self.event)
    }

    /// Returns what a message adds to compressed streams; the first call makes it with `make`.
    pub(crate) fn stream_message(
        &self,
        variant: StreamVariant,
        make: impl FnOnce() -> StreamMessage,
    ) -> &StreamMessage {
        self.stream_messages.get_or_init(Box::default)[variant.index()].get_or_init(make)
    }

    /// The publication in the channel's history of texts of one kind, and that history.
    pub(crate) fn publication(&self, kind: TextKind) -> Option<(&Publication, &EncodingHistory)> {
        let (channel, publications) = self.context.as_ref()?;
        let publication = publications[kind.index()].as_deref()?;
        Some((publication, channel.history(kind)))
    }

    /// Records the frames in context that a shard delivered, by indices of kind and depth.
    pub(crate) fn delivered(&self, deliveries: &[[u64; Depth::COUNT]; TextKind::COUNT]) {
        for (kind, deliveries) in TextKind::ALL.into_iter().zip(deliveries) {
            let depths = Depth::all().zip(deliveries).filter(|(_, deliveries)| **deliveries > 0);
            for (depth, deliveries) in depths {
                if let Some(history) = self.history(kind) {
                    history.want();
                    history.delivered(depth, *deliveries);
                }
            }
        }
    }

    /// The channel's history of texts of one kind, even if this publication is not in it.
    pub(crate) fn history(&self, kind: TextKind) -> Option<&EncodingHistory> {
        self.context.as_ref().map(|(channel, _)| channel.history(kind))
    }
}
