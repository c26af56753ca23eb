//! Gap coding: context for each client, and one parse for all of them.
//! In: messages, a depth, and how many channels a client has → out: deliveries.
//! Uses the engine's history and subscription window as the fan-out does. Never: state of a client beyond them.
//! Changed here: messages of a client's other channels; the engine codes gaps.

use std::collections::VecDeque;
use std::time::Duration;

use fanwire_deflate::Compressor;
use fanwire_deflate::gap::{
    DEPTH_MAX, History, Publication, Reference, SubscriptionWindow, WindowCounter,
};

use super::{Codec, Delivery, Memory, ReceivingClient};
use crate::mode::ContextDepth;
use crate::stream::{Clock, Stream};

pub(super) struct Context<'a> {
    stream: &'a Stream<'a>,
    depth: ContextDepth,
    channels: usize,
    history: History,
    /// Window of a client that is connected from the first message on.
    reach: SubscriptionWindow,
    counter: WindowCounter,
    /// The publications that a client of one channel has got, when they are limited.
    last: VecDeque<Publication>,
    /// Compressor for messages that are too long for a history.
    compressor: Compressor,
    client: ReceivingClient,
    random: u64,
    out: Vec<u8>,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        stream: &'a Stream<'a>,
        depth: ContextDepth,
        channels: usize,
        level: u8,
    ) -> Self {
        let (count, bytes) = match depth {
            // The message itself is in the history, too.
            ContextDepth::Publications(depth) => (depth, (depth + 1) * stream.longest),
            ContextDepth::Window => (DEPTH_MAX, WINDOW_BYTES),
        };
        let bytes = bytes.max(1).next_power_of_two().min(WINDOW_BYTES);
        Self {
            stream,
            depth,
            channels,
            history: History::new(bytes, count.clamp(1, DEPTH_MAX), level),
            reach: SubscriptionWindow::default(),
            counter: WindowCounter::default(),
            last: VecDeque::new(),
            compressor: Compressor::new(level),
            client: ReceivingClient::new(),
            random: 1,
            out: Vec::new(),
        }
    }

    /// Receives messages of the client's other channels before the next message of this one: each message of the client
    /// is of any of its channels with equal chance, and of the lengths of this one's.
    fn receive_others(&mut self, clock: Clock<'_>) -> Option<()> {
        while self.draw(self.channels) > 0 {
            let other = self.draw(self.stream.pushes.len());
            let push = &self.stream.pushes[other];
            let payload = &self.stream.others[other];
            self.client.receive(payload, push, clock)?;
            self.counter.advance(push.len());
        }
        Some(())
    }

    /// A number below `limit`; the same ones in every run.
    fn draw(&mut self, limit: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((self.random >> 33) as usize) % limit
    }

    fn reference(&self, publication: &Publication) -> Reference {
        match self.depth {
            ContextDepth::Publications(0) => Reference::ALONE,
            // A client that has got so many and no more.
            ContextDepth::Publications(_) if self.channels == 1 => {
                let mut reach = SubscriptionWindow::default();
                let mut counter = WindowCounter::default();
                self.last.iter().for_each(|earlier| reach.queued(earlier, &mut counter));
                reach.reference(publication, counter, WINDOW_BITS)
            }
            _ => self.reach.reference(publication, self.counter, WINDOW_BITS),
        }
    }

    fn queued(&mut self, publication: Publication) {
        self.reach.queued(&publication, &mut self.counter);
        if let ContextDepth::Publications(depth) = self.depth {
            self.last.push_back(publication);
            let surplus = self.last.len().saturating_sub(depth);
            self.last.drain(..surplus);
        }
    }

    /// A message that may not become part of the history.
    fn standalone(&mut self, message: &[u8], clock: Clock<'_>) -> Option<Delivery> {
        self.last.clear();
        self.counter.advance(message.len());
        let ((), compress) = clock.time(|| self.compressor.standalone(message, &mut self.out));
        let decompress = self.client.receive(&self.out, message, clock)?;
        let again = (self.channels > 1).then_some(Duration::ZERO);
        Some(Delivery { bytes: self.out.len(), compress, decompress, again, depth: 0 })
    }
}

impl Codec for Context<'_> {
    fn deliver(&mut self, at: usize, clock: Clock<'_>) -> Option<Delivery> {
        self.receive_others(clock)?;
        let stream = self.stream;
        let message = &stream.pushes[at];
        self.out.clear();
        let (publication, hash) = clock.time(|| self.history.publish(message));
        let Some(publication) = publication else { return self.standalone(message, clock) };
        let reference = self.reference(&publication);
        let (parse, plan) = clock.time(|| self.history.parse(&publication, reference.depth()));
        let parse = parse?;
        let ((), emit) = clock.time(|| parse.emit(reference.gaps(), &mut self.out));
        let decompress = self.client.receive(&self.out, message, clock)?;
        let bytes = self.out.len();
        let ((), again) = clock.time(|| {
            for _ in 0..EMITS {
                self.out.clear();
                parse.emit(std::hint::black_box(reference.gaps()), &mut self.out);
            }
        });
        let depth = publication.depth(reference.depth());
        self.queued(publication);
        let again = (self.channels > 1).then_some(again / EMITS);
        Some(Delivery { bytes, compress: hash + plan + emit, decompress, again, depth })
    }

    fn memory(&self) -> Memory {
        match self.depth {
            ContextDepth::Publications(0) => Memory::default(),
            _ => Memory {
                connection: size_of::<WindowCounter>()
                    + self.channels * size_of::<SubscriptionWindow>(),
                channel: self.history.memory(),
            },
        }
    }
}

/// Bits of a decoder's largest window (RFC 7692 §7.1.2.1).
const WINDOW_BITS: u8 = 15;
const WINDOW_BYTES: usize = 1 << WINDOW_BITS;

/// More than one, so that the time of the clock itself does not count.
const EMITS: u32 = 8;
