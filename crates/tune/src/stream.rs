//! The input of every mode: the sample as encoded messages, the settings, and the clock.
//! In: a sample → out: its messages with their envelopes, and what the other channels of a client bring.
//! Uses `wire` for envelopes. Never: reads a clock of its own.
//! Changed here: what all modes share. How a mode compresses lives in `codec`.

use std::time::Duration;

use bytes::Bytes;
use fanwire_deflate::Compressor;

use crate::input::Sample;
use crate::wire;

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Level of dedicated contexts, deltas and gap coding.
    pub level: u8,
    /// Channels per client, where they are interleaved.
    pub channels: usize,
}

/// Time since a fixed moment.
#[derive(Clone, Copy)]
pub struct Clock<'a>(pub &'a dyn Fn() -> Duration);

impl Clock<'_> {
    pub(crate) fn now(&self) -> Duration {
        (self.0)()
    }

    /// Returns the result of `work`, and the time that it took.
    pub(crate) fn time<T>(&self, work: impl FnOnce() -> T) -> (T, Duration) {
        let start = self.now();
        let result = work();
        (result, self.now().saturating_sub(start))
    }
}

/// A sample as encoded messages.
pub(crate) struct Stream<'a> {
    pub(crate) sample: &'a Sample,
    /// The messages with their envelopes.
    pub(crate) pushes: Vec<Bytes>,
    /// Payloads of standalone frames of them: what the other channels of a client bring.
    pub(crate) others: Vec<Vec<u8>>,
    /// Bytes of the longest push.
    pub(crate) longest: usize,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(sample: &'a Sample) -> Self {
        let push = |(at, payload): (usize, &Vec<u8>)| {
            wire::push(sample.encoding, &sample.channel, at, payload)
        };
        let pushes: Vec<Bytes> = sample.payloads.iter().enumerate().map(push).collect();
        let mut compressor = Compressor::new(1);
        let standalone = |push: &Bytes| {
            let mut payload = Vec::new();
            compressor.standalone(push, &mut payload);
            payload
        };
        let others = pushes.iter().map(standalone).collect();
        let longest = pushes.iter().map(Bytes::len).max().unwrap_or_default();
        Self { sample, pushes, others, longest }
    }
}
