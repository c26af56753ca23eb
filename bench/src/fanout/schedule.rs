//! Who subscribes to what, which channel is next, and which deliveries are outstanding.
//! In: how many channels there are and each subscriber has → out: memberships, a random order, completed publications.
//! Uses `random` with a fixed seed, so that runs are alike; never a socket.
//! Changed here: how interleaving is made up; how a round is measured lives in `round`.

use anyhow::{Result, bail};
use std::collections::VecDeque;
use std::time::Instant;

use fanwire_load::generator::PublicationHandler;
use fanwire_load::random::Random;

/// Each subscriber has `each` of `all` channels.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    pub each: usize,
    pub all: usize,
}

impl Choice {
    /// The channels of a subscriber, in ascending order: another choice for each number.
    pub fn of_subscriber(self, number: usize) -> Vec<usize> {
        let mut random = Random(number as u64 + 1);
        let mut channels: Vec<usize> = (0..self.all).collect();
        for place in 0..self.each {
            let other = place + random.below(self.all - place);
            channels.swap(place, other);
        }
        channels.truncate(self.each);
        channels.sort_unstable();
        channels
    }
}

/// The name of a channel.
pub fn channel(number: usize) -> String {
    match number {
        0 => "bench".to_owned(),
        number => format!("bench{number}"),
    }
}

/// The random order in which channels get their publications.
pub struct Schedule {
    random: Random,
    published: Vec<usize>,
}

impl Schedule {
    pub fn new(channels: usize) -> Self {
        Self { random: Random(1), published: vec![0; channels] }
    }

    /// The next channel, and how many publications it has had.
    pub fn pick(&mut self) -> (usize, usize) {
        let channel = self.random.below(self.published.len());
        self.published[channel] += 1;
        (channel, self.published[channel] - 1)
    }
}

/// Counts arrivals: each subscriber gets the publications of its channels in order, so the next one is known.
pub struct Ledger {
    subscribers: Vec<Subscriber>,
    /// Subscribers of each channel.
    audiences: Vec<usize>,
    /// Publications that not every subscriber has yet, oldest first; some in between may be complete.
    pub open: VecDeque<Open>,
    /// Publications before the first open one.
    completed: u64,
    pub deliveries: u64,
    pub latencies_ms: Vec<f64>,
}

struct Subscriber {
    channels: Vec<usize>,
    /// Publications, of all channels, that it need not wait for any more.
    passed: u64,
}

pub struct Open {
    channel: usize,
    published_at: Instant,
    missing: usize,
}

impl Ledger {
    pub fn new(memberships: Vec<Vec<usize>>) -> Self {
        let channels = memberships.iter().flatten().max().map_or(0, |last| last + 1);
        let mut audiences = vec![0; channels];
        memberships.iter().flatten().for_each(|channel| audiences[*channel] += 1);
        let subscribers =
            memberships.into_iter().map(|channels| Subscriber { channels, passed: 0 });
        Self {
            subscribers: subscribers.collect(),
            audiences,
            open: VecDeque::new(),
            completed: 0,
            deliveries: 0,
            latencies_ms: Vec::new(),
        }
    }

    pub fn published(&mut self, channel: usize, now: Instant) {
        let missing = self.audiences.get(channel).copied().unwrap_or(0);
        self.open.push_back(Open { channel, published_at: now, missing });
        self.complete();
    }

    /// The event that a run waits for when it stands still.
    pub fn missing(&self) -> String {
        let (channel, missing) =
            self.open.front().map_or((0, 0), |open| (open.channel, open.missing));
        format!(
            "publication {} of this round has not reached {missing} of {} subscribers",
            self.completed + 1,
            self.audiences.get(channel).unwrap_or(&0),
        )
    }

    fn complete(&mut self) {
        while self.open.front().is_some_and(|open| open.missing == 0) {
            self.open.pop_front();
            self.completed += 1;
        }
    }
}

impl PublicationHandler for Ledger {
    fn publication(&mut self, number: usize, _message: &[u8]) -> Result<()> {
        let subscriber = &mut self.subscribers[number];
        let first = subscriber.passed.saturating_sub(self.completed) as usize;
        let own = |open: &Open| subscriber.channels.contains(&open.channel);
        let Some(place) = self.open.range(first.min(self.open.len())..).position(own) else {
            bail!("subscriber {number} received more than was published");
        };
        let place = first + place;
        subscriber.passed = self.completed + place as u64 + 1;
        let open = &mut self.open[place];
        open.missing -= 1;
        self.deliveries += 1;
        if open.missing == 0 {
            self.latencies_ms.push(open.published_at.elapsed().as_secs_f64() * 1e3);
            self.complete();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
