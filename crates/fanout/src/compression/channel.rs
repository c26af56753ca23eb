//! The last publications of one channel, one history per kind of text, and the length of the history.
//! In: messages in the channel's order, requests of shards → out: publications, parses made once.
//! Uses `deflate::gap` and the memory budget; a lock per history that the publisher and the first parse of a depth take.
//! Changed here: when a history begins, grows and skips publications. Its memory and its end are `share`; `sweep` chooses histories to shorten.

mod share;

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use fanwire_deflate::gap::{DEPTH_MAX, Depth, EmbeddedPart, History, Parse, Publication, Trial};
use parking_lot::Mutex;

use self::share::MemoryRequest;
pub(super) use self::share::Share;
use super::{ContextSettings, NamespaceCounters, TextKind, embedded_part};
use fanwire_shard::Reservation;

/// One channel's histories.
#[derive(Default)]
pub(crate) struct Channel {
    /// Publications of messages in JSON and in Protobuf.
    messages: [EncodingHistory; 2],
    /// Publications of bare pushes and of events; allocated for the first client without commands in context.
    bare: OnceLock<Box<[EncodingHistory; 2]>>,
}

/// The history of one channel in texts of one kind.
#[derive(Default)]
pub(crate) struct EncodingHistory {
    /// Some shard has or had a subscriber in context.
    is_wanted: AtomicBool,
    /// Depths at which shards made frames since the last publication, one bit each.
    used_depths: AtomicU32,
    /// Deliveries in context since the last sweep, and deliveries that a history would have made in context.
    deliveries: AtomicU64,
    missed: AtomicU64,
    /// Deliveries since the last trial to subscribers that received other messages in between. `fewer`: at most half of
    /// the offered publications were in the subscriber's window; `several`: more than half.
    fewer: AtomicU64,
    several: AtomicU64,
    state: Mutex<HistoryState>,
}

/// The state that publishers and sweeps change.
#[derive(Default)]
struct HistoryState {
    tracking: Option<Tracking>,
    /// The channel had a publication since the last sweep.
    is_busy: bool,
    /// Consecutive sweeps that found the history unused; a sweep after publications counts several times.
    unused: u32,
    /// Memory that the channel needed and did not get.
    request: Option<MemoryRequest>,
    /// Bytes that context saves per delivery, measured by the last history that ran a trial.
    saved_bytes: Option<u64>,
    /// A sweep gave its memory to others; the channel takes none before the next sweep.
    is_displaced: bool,
    /// Memory that the last sweep reserved for this channel.
    granted: Option<Reservation>,
}

/// A history that exists, with its memory and trials.
struct Tracking {
    history: History,
    memory: Reservation,
    next: Next,
    /// Publications between the last two trials.
    interval: u32,
    /// Depths that shards used in the last round that used any, and those that they used in the two last such rounds.
    used_depths: u32,
    usual_depths: u32,
    /// The depth that is in the window of most subscribers that receive other messages in between.
    usable_depth: usize,
    /// The sum of the last trials.
    trial: Option<Trial>,
}

/// The treatment of the next publications.
enum Next {
    /// They enter the history; after so many comes a trial.
    TrialIn(u32),
    /// The last trial saved nothing: they are left out of the history. The last one of so many is a trial.
    Skip(u32),
}

impl Channel {
    /// The history of texts of this kind, allocated if need be.
    pub(crate) fn history(&self, kind: TextKind) -> &EncodingHistory {
        match kind.index().checked_sub(self.messages.len()) {
            None => &self.messages[kind.index()],
            Some(index) => &self.bare.get_or_init(Box::default)[index],
        }
    }

    /// The histories that are allocated.
    pub(crate) fn histories(&self) -> impl Iterator<Item = (TextKind, &EncodingHistory)> {
        let bare = self.bare.get().into_iter().flat_map(|both| both.iter());
        TextKind::ALL.into_iter().zip(self.messages.iter().chain(bare))
    }
}

impl EncodingHistory {
    /// Records that a subscriber in context exists.
    pub(crate) fn want(&self) {
        if !self.is_wanted.load(Relaxed) {
            self.is_wanted.store(true, Relaxed);
        }
    }

    /// Records `deliveries` to subscribers in context of a publication that was in no history.
    pub(crate) fn missed(&self, deliveries: u64) {
        self.missed.fetch_add(deliveries, Relaxed);
    }

    /// Records `deliveries` of frames at this depth.
    pub(crate) fn delivered(&self, depth: Depth, deliveries: u64) {
        self.used_depths.fetch_or(1 << depth.index(), Relaxed);
        self.deliveries.fetch_add(deliveries, Relaxed);
        match depth {
            Depth::Far | Depth::Newest | Depth::Half => self.fewer.fetch_add(deliveries, Relaxed),
            Depth::Several | Depth::Most => self.several.fetch_add(deliveries, Relaxed),
            _ => 0,
        };
    }

    /// Adds a text to the history, if there is one or one should begin. Called in the channel's order.
    pub(super) fn publish<'a>(
        &self,
        text: impl FnOnce() -> Option<&'a [u8]>,
        settings: &ContextSettings,
        counters: &NamespaceCounters,
    ) -> Option<Publication> {
        let mut locked = self.state.lock();
        let state = &mut *locked;
        state.is_busy = true;
        if state.tracking.is_none() && !self.is_wanted.load(Relaxed) {
            return None;
        }
        let message = text()?;
        if state.tracking.is_none() {
            state.begin(message.len(), settings);
        }
        let tracking = state.tracking.as_mut()?;
        if message.len() < settings.min_bytes || tracking.skips() {
            return None;
        }
        let started = Instant::now();
        if state.granted.take().is_some() {
            tracking.resize(tracking.history.bytes_max() * 2);
        }
        if !tracking.make_room(message.len()) {
            state.request = Some(MemoryRequest::for_message(message.len(), state.saved_bytes));
        }
        let publication = tracking.history.publish(message)?;
        // A subscriber that got an embedded part gets this publication next, so it is parsed at that depth as well.
        let depths =
            tracking.usual_depths(self.used_depths.swap(0, Relaxed)) | 1 << Depth::Embedded.index();
        let is_wanted = |depth: Depth| depths & (1 << depth.index()) != 0;
        let parses = tracking.history.parse_all(&publication, is_wanted);
        counters.parses.add(parses as u64);
        if tracking.is_trial_due() {
            let reached = [&self.fewer, &self.several].map(|count| count.swap(0, Relaxed));
            if !tracking.try_out(&publication, reached) {
                state.request = Some(tracking.request_for_more());
            }
            state.saved_bytes = tracking.trial.map(|trial| trial.saved() as u64);
        }
        counters.spent(started.elapsed());
        Some(publication)
    }

    /// Finds the newest publication in `reply`, without the envelope of its push.
    pub(super) fn embedded_part(
        &self,
        kind: TextKind,
        reply: &[u8],
    ) -> Option<(usize, EmbeddedPart)> {
        let mut state = self.state.lock();
        let history = &mut state.tracking.as_mut()?.history;
        let message = history.newest()?;
        let part = kind.publication_in(message)?;
        let at = embedded_part::find(reply, &message[part.clone()])?;
        Some((at, history.embed(part)?))
    }

    /// Returns the publication parsed at one depth; the first call for a depth parses, unless the publisher did. `None`
    /// if the history no longer holds the publication; every later call then returns `None`, too.
    pub(crate) fn parse<'a>(
        &self,
        publication: &'a Publication,
        depth: Depth,
        counters: &NamespaceCounters,
    ) -> Option<&'a Parse> {
        publication.parse(depth, || {
            let started = Instant::now();
            let parse = self.state.lock().tracking.as_ref()?.history.parse(publication, depth);
            counters.parses.add(1);
            counters.spent(started.elapsed());
            parse
        })
    }
}

impl Tracking {
    /// Begins with the longest history while memory is plentiful: a trial shortens it when the older half saves
    /// nothing, but a short history cannot measure the savings of a long one. `None` if there is no memory for the
    /// shortest history.
    fn begin(message_bytes: usize, settings: &ContextSettings) -> Option<Self> {
        let budget = &settings.memory;
        let is_plenty = budget.bytes() < budget.bytes_max() / PLENTY_SHARE;
        let lengths = [is_plenty.then_some(BYTES_MAX), Some(bytes_min_for(message_bytes))];
        let reserve =
            |bytes_max| Some((bytes_max, budget.reserve(History::memory_for(bytes_max))?));
        let granted = lengths.into_iter().flatten().find_map(reserve);
        let (bytes_max, memory) = granted?;
        let history = History::new(bytes_max, FIRST_DEPTH, settings.level);
        Some(Self {
            history,
            memory,
            next: Next::TrialIn(FIRST_TRIAL),
            interval: FIRST_TRIAL,
            used_depths: 0,
            usual_depths: 0,
            usable_depth: FIRST_DEPTH,
            trial: None,
        })
    }

    /// Depths that the publisher parses, so that no shard waits for another shard and no parse comes too late: those
    /// that shards used for both of the last two publications. With five depths in occasional use a publication needs
    /// three, and each takes as long as the frames for 60 gaps.
    fn usual_depths(&mut self, used_depths: u32) -> u32 {
        if used_depths != 0 {
            self.usual_depths = used_depths & self.used_depths;
            self.used_depths = used_depths;
        }
        self.usual_depths
    }

    /// Whether this message is left out of the history. The first message after a pause starts a trial.
    fn skips(&mut self) -> bool {
        let Next::Skip(left) = self.next else { return false };
        self.next = if left > 1 { Next::Skip(left - 1) } else { Next::TrialIn(1) };
        left > 1
    }

    /// Counts down to the next trial; the interval doubles after each.
    fn is_trial_due(&mut self) -> bool {
        let Next::TrialIn(left) = &mut self.next else { return false };
        *left = left.saturating_sub(1);
        *left == 0
    }

    /// Measures the worth of depth and length, and adjusts both. `several` deliveries had most of the offered
    /// publications in the window, `fewer` had less. Returns false if there was no memory for the new length.
    fn try_out(&mut self, publication: &Publication, [fewer, several]: [u64; 2]) -> bool {
        self.interval = (self.interval * 2).min(TRIAL_INTERVAL);
        self.next = Next::TrialIn(self.interval);
        let Some(latest) = self.history.trial(publication) else { return true };
        let trial = self.trial.get_or_insert_default();
        trial.add(&latest);
        let trial = *trial;
        if several < fewer {
            self.usable_depth = (self.usable_depth / 2).max(1);
        } else if fewer * FEW < several {
            self.usable_depth = (self.usable_depth * 2).min(DEPTH_MAX);
        }
        self.history.set_depth(trial.depth().min(self.usable_depth));
        if trial.is_incompressible() {
            self.next = Next::Skip(SKIPS);
        } else if trial.wants_more() {
            self.interval = FIRST_TRIAL;
            return self.resize(self.history.bytes_max() * 2);
        } else if trial.wants_less() {
            return self.resize(self.history.bytes_max() / 2);
        }
        true
    }

    /// Lengthens the history for longer messages. Returns false if there is no memory.
    fn make_room(&mut self, message_bytes: usize) -> bool {
        let fits = ..=History::MESSAGE_BYTES_MAX;
        let is_longer = message_bytes > self.history.message_bytes_max();
        !is_longer || !fits.contains(&message_bytes) || self.resize(bytes_min_for(message_bytes))
    }

    /// Resizes within the limits of histories and of the budget. Returns false if there is no memory.
    fn resize(&mut self, bytes_max: usize) -> bool {
        let bytes_max = bytes_max.clamp(BYTES_MIN, BYTES_MAX);
        let bytes = History::memory_for(bytes_max);
        if bytes_max == self.history.bytes_max() {
            return true;
        }
        if bytes > self.memory.bytes() && !self.memory.resize(bytes) {
            return false;
        }
        self.history.resize(bytes_max);
        self.memory.resize(bytes);
        true
    }
}

impl HistoryState {
    /// Begins a history if there is memory for one; otherwise requests memory from the next sweep.
    fn begin(&mut self, message_bytes: usize, settings: &ContextSettings) {
        drop(self.granted.take());
        if !self.is_displaced {
            self.tracking = Tracking::begin(message_bytes, settings);
        }
        if self.tracking.is_none() {
            self.request = Some(MemoryRequest::for_message(message_bytes, self.saved_bytes));
        }
    }
}

/// The shortest history for messages of this size, in bytes of plaintext.
fn bytes_min_for(message_bytes: usize) -> usize {
    (message_bytes.min(BYTES_MAX) * 2).next_power_of_two().clamp(BYTES_MIN, BYTES_MAX)
}

/// Histories begin long while less than this part (1/n) of the budget is used.
const PLENTY_SHARE: usize = 2;
/// The shortest history takes 3 KB in all: of 100,000 busy channels seven of eight can have one in 256 MiB.
const BYTES_MIN: usize = History::BYTES_MIN;

/// The largest window of a decoder (RFC 7692 §7.1.2.1).
const BYTES_MAX: usize = 32 << 10;

/// Depth until the first trial.
const FIRST_DEPTH: usize = 4;
/// Publications before the first trial; the next intervals double.
const FIRST_TRIAL: u32 = 16;
/// Publications between trials at most: one trial costs about as much as ten parses.
const TRIAL_INTERVAL: u32 = 256;
/// The depth doubles when at most one in this many subscribers has fewer publications in its window.
const FEW: u64 = 8;
/// Publications sent without context after a trial that gained nothing.
const SKIPS: u32 = 256;
