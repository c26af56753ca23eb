//! A simulated client of a gap coder, with several decoders in the context it would have.
//! References and frames for it → panics that name the broken invariant.
//! Uses `puff`, zlib-rs, stock zlib and the crate's own `Shadow`, each with the agreed window.
//! Changed here: the state and checks of a client. Its events are `clients` and `fan_out`.

use std::collections::HashMap;
use std::ops::Range;

use fanwire_deflate::gap::{
    Depth, EmbeddedPart, Publication, Reference, SubscriptionWindow, WindowCounter,
};
use fanwire_deflate::{FLUSH_TAIL, Shadow};
use flate2::{Decompress, FlushDecompress};

use crate::channel::part;
use crate::puff;

pub(crate) struct Client {
    window_bits: u8,
    counter: WindowCounter,
    subscriptions: HashMap<usize, Subscription>,
    /// All plaintext of compressed messages.
    stream: Vec<u8>,
    zlib_rs: zlib_rs::Inflate,
    zlib: Decompress,
    shadow: Shadow,
    pub(crate) received: usize,
}

#[derive(Default)]
struct Subscription {
    window: SubscriptionWindow,
    /// Begin and end in the stream of each publication, or part of one, oldest first.
    places: Vec<(usize, usize)>,
}

impl Client {
    pub(crate) fn new(window_bits: u8) -> Self {
        Self {
            window_bits,
            counter: WindowCounter::default(),
            subscriptions: HashMap::new(),
            stream: Vec::new(),
            zlib_rs: zlib_rs::Inflate::new(false, 15),
            zlib: Decompress::new_with_window_bits(false, window_bits.max(9)),
            shadow: Shadow::new(window_bits),
            received: 0,
        }
    }

    pub(crate) fn window_bits(&self) -> u8 {
        self.window_bits
    }

    pub(crate) fn plaintext_bytes(&self) -> usize {
        self.stream.len()
    }

    pub(crate) fn join(&mut self, channel: usize) {
        self.subscriptions.insert(channel, Subscription::default());
    }

    pub(crate) fn leave(&mut self, channel: usize) {
        self.subscriptions.remove(&channel);
    }

    /// The reference that a publication of the channel may use; `None` without a subscription.
    ///
    /// `plaintexts` are all of the channel up to the publication, oldest first.
    pub(crate) fn reference(
        &self,
        channel: usize,
        publication: &Publication,
        plaintexts: &[Vec<u8>],
    ) -> Option<Reference> {
        let window = &self.subscriptions.get(&channel)?.window;
        let reference = window.reference(publication, self.counter, self.window_bits);
        let earlier = || plaintexts[..plaintexts.len() - 1].iter().rev();
        for (gap, plaintext) in reference.gaps().iter().zip(earlier()) {
            let place = self.stream.len() - *gap as usize;
            let is_embedded = reference.depth() == Depth::Embedded;
            let len = plaintext.len();
            let plaintext = &plaintext[if is_embedded { part(len) } else { 0..len }];
            let there = &self.stream[place..][..plaintext.len()];
            assert_eq!(there, plaintext, "I2: the window holds the publication at its gap");
        }
        if let depth @ Depth::Run(_) = reference.depth() {
            let mut end = self.stream.len();
            for plaintext in earlier().take(publication.depth(depth)) {
                let there = &self.stream[..end];
                assert!(there.ends_with(plaintext), "I2: the window holds the whole run");
                end -= plaintext.len();
            }
        }
        Some(reference)
    }

    /// The publication's frame was queued, however it is encoded.
    pub(crate) fn publication(
        &mut self,
        channel: usize,
        publication: &Publication,
        frame: &[u8],
        message: &[u8],
    ) {
        self.check_sources(channel, frame, message);
        let subscription = self.subscriptions.get_mut(&channel).expect("asked before");
        subscription.window.queued(publication, &mut self.counter);
        let start = self.stream.len();
        subscription.places.push((start, start + message.len()));
        self.receive(frame, message);
    }

    /// The next queued message embeds the channel's newest publication at `at`.
    pub(crate) fn embed(&mut self, channel: usize, embedded_part: EmbeddedPart, at: Range<usize>) {
        let subscription = self.subscriptions.get_mut(&channel).expect("joined");
        subscription.window.embedded(embedded_part, at.start, self.counter);
        let start = self.stream.len();
        subscription.places.push((start + at.start, start + at.end));
    }

    /// A message that is in no history was queued.
    pub(crate) fn other(&mut self, frame: &[u8], message: &[u8]) {
        self.counter.advance(message.len());
        self.receive(frame, message);
    }

    pub(crate) fn is_subscribed(&self, channel: usize) -> bool {
        self.subscriptions.contains_key(&channel)
    }

    /// Decodes the frame in a window in which all bytes are overwritten except publications of the channel.
    fn check_sources(&self, channel: usize, frame: &[u8], message: &[u8]) {
        let first = self.stream.len().saturating_sub(1 << self.window_bits);
        let mut window = vec![0xee; self.stream.len() - first];
        for (start, end) in self.subscriptions[&channel].places.iter().rev() {
            let start = *start.max(&first);
            if start >= *end {
                break;
            }
            window[start - first..end - first].copy_from_slice(&self.stream[start..*end]);
        }
        let plain = self.puff(frame, &window);
        assert_eq!(plain, message, "I4: sources are publications of the channel only");
    }

    fn receive(&mut self, frame: &[u8], message: &[u8]) {
        assert_eq!(self.puff(frame, &self.stream), message, "the plaintext by puff");
        assert_eq!(self.inflate_zlib_rs(frame, message.len()), message, "by zlib-rs");
        assert_eq!(self.inflate_zlib(frame, message.len()), message, "by stock zlib");
        assert_eq!(self.shadow.check(frame, message), Ok(()), "the shadow agrees");
        self.stream.extend_from_slice(message);
        self.received += frame.len();
        let mut sum = WindowCounter::default();
        sum.advance(self.stream.len());
        assert_eq!(self.counter, sum, "I1: the counter is the sum of what was queued compressed");
    }

    fn puff(&self, frame: &[u8], stream: &[u8]) -> Vec<u8> {
        let data = [frame, &FLUSH_TAIL].concat();
        let distance_max = 1 << self.window_bits;
        let window = &stream[stream.len().saturating_sub(distance_max)..];
        let plain = puff::inflate_within(&data, window, distance_max)
            .expect("I3: no distance leads beyond the window or before the first byte");
        assert_eq!(plain.final_blocks, 0, "BFINAL is never set");
        plain.bytes
    }

    fn inflate_zlib_rs(&mut self, frame: &[u8], len: usize) -> Vec<u8> {
        let data = [frame, &FLUSH_TAIL].concat();
        let mut out = vec![0; len + 1];
        let before = self.zlib_rs.total_out();
        let flush = zlib_rs::InflateFlush::SyncFlush;
        self.zlib_rs.decompress(&data, &mut out, flush).expect("valid for zlib-rs");
        out.truncate((self.zlib_rs.total_out() - before) as usize);
        out
    }

    fn inflate_zlib(&mut self, frame: &[u8], len: usize) -> Vec<u8> {
        let data = [frame, &FLUSH_TAIL].concat();
        let mut out = vec![0; len + 1];
        let before = self.zlib.total_out();
        self.zlib.decompress(&data, &mut out, FlushDecompress::Sync).expect("valid for zlib");
        out.truncate((self.zlib.total_out() - before) as usize);
        out
    }
}
