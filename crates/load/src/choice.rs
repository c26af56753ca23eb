//! Which channel a publication goes to, and which ones a connection subscribes to.
//! In: the number of channels, their popularity → out: channel numbers, the same in every run.
//! Pure.
//! Another distribution is added here.

use serde::Serialize;

use crate::random::Random;

/// How channels differ in popularity, among publishers and among subscribers.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Popularity {
    /// All alike.
    Uniform,
    /// The k-th channel is chosen with a share of 1 / k^exponent.
    Zipf { exponent: f64 },
}

/// Chooses channels.
#[derive(Debug)]
pub(crate) struct Choice {
    random: Random,
    channels: u32,
    /// Sums of the weights up to each channel; empty for a uniform choice.
    sums: Vec<f64>,
}

impl Choice {
    /// `channels` must not be 0.
    pub(crate) fn new(popularity: Popularity, channels: u32, seed: u64) -> Self {
        let sums = match popularity {
            Popularity::Uniform => Vec::new(),
            Popularity::Zipf { exponent } => {
                let mut sum = 0.0;
                let weights = (1..=channels).map(|rank| f64::from(rank).powf(-exponent));
                weights
                    .map(|weight| {
                        sum += weight;
                        sum
                    })
                    .collect()
            }
        };
        Self { random: Random(seed), channels, sums }
    }

    /// One channel.
    pub(crate) fn channel(&mut self) -> u32 {
        let Some(total) = self.sums.last() else {
            return self.random.below(self.channels as usize) as u32;
        };
        let place = self.random.below(RESOLUTION) as f64 / RESOLUTION as f64 * total;
        let channel = self.sums.partition_point(|sum| *sum <= place);
        channel.min(self.sums.len() - 1) as u32
    }

    /// `count` different channels for the subscriber with this number, in ascending order. A uniform choice takes them in
    /// turn, so that all channels have the same number of subscribers, or nearly.
    pub(crate) fn subscriptions(&mut self, subscriber: usize, count: u32) -> Vec<u32> {
        let count = count.min(self.channels);
        let mut chosen = Vec::new();
        if self.sums.is_empty() {
            let first = subscriber as u64 * u64::from(count);
            let all = u64::from(self.channels);
            chosen.extend((first..first + u64::from(count)).map(|place| (place % all) as u32));
        }
        let mut tries = 0;
        while chosen.len() < count as usize {
            // Popular channels are found again and again; the rest is filled up in order.
            let channel =
                if tries < count * TRIES { self.channel() } else { tries - count * TRIES };
            tries += 1;
            if !chosen.contains(&channel) {
                chosen.push(channel);
            }
        }
        chosen.sort_unstable();
        chosen
    }
}

const RESOLUTION: usize = 1 << 30;
/// Random choices for each subscription.
const TRIES: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uniform_choice_gives_every_channel_the_same() {
        let mut choice = Choice::new(Popularity::Uniform, 10, 1);
        let mut counts = [0; 10];
        (0..50).for_each(|subscriber| {
            choice.subscriptions(subscriber, 3).iter().for_each(|one| counts[*one as usize] += 1);
        });
        assert_eq!(counts, [15; 10]);
        let mut counts = [0; 10];
        (0..10_000).for_each(|_| counts[choice.channel() as usize] += 1);
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_zipf_choice_prefers_the_first_channels_by_their_rank() {
        let mut choice = Choice::new(Popularity::Zipf { exponent: 1.0 }, 100, 1);
        let mut counts = [0; 100];
        (0..100_000).for_each(|_| counts[choice.channel() as usize] += 1);
        // The harmonic number of 100 is 5.187.
        let expected = |rank: f64| 100_000.0 / 5.187 / rank;
        for rank in [1, 2, 10] {
            let ratio = f64::from(counts[rank - 1]) / expected(rank as f64);
            assert!((0.9..1.1).contains(&ratio), "rank {rank}: {ratio}");
        }
    }

    #[test]
    fn subscriptions_are_different_channels_and_never_more_than_there_are() {
        for popularity in [Popularity::Uniform, Popularity::Zipf { exponent: 3.0 }] {
            let mut choice = Choice::new(popularity, 5, 1);
            for subscriber in 0..20 {
                let chosen = choice.subscriptions(subscriber, 4);
                assert!(chosen.len() == 4 && chosen.is_sorted_by(|a, b| a < b), "{chosen:?}");
            }
            assert_eq!(choice.subscriptions(0, 9), [0, 1, 2, 3, 4]);
        }
    }
}
