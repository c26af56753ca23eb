//! Events of a channel in a random sequence, and the small generator that makes it from a seed.
//! In: a seed → out: steps.
//! Uses: arithmetic. Never: the node; a step says nothing about what should come of it.
//! Changed here: which steps there are and how often they come.

/// One thing that happens.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Publish(Publish),
    Read { limit: Option<usize>, since: Option<(u64, EpochName)>, reverse: bool },
    Remove,
    Wait { seconds: u64 },
    Sweep,
    Drain { shard: usize },
    Subscribe { who: usize, ask: Ask },
    Unsubscribe { who: usize },
}

#[derive(Clone, Debug)]
pub(super) struct Publish {
    pub(super) key: &'static str,
    pub(super) skip: bool,
    pub(super) version: u64,
    pub(super) version_epoch: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) positioned: bool,
    pub(super) recoverable: bool,
    /// Offset and epoch of a client that wants to recover.
    pub(super) claim: Option<(u64, EpochName)>,
    pub(super) only_recovered: bool,
}

/// An epoch as a client may know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EpochName {
    /// "", that of any stream.
    Empty,
    /// `_`, that of none.
    Never,
    /// The epoch of this stream of the channel, from 0. Those that are not there yet read as `_`.
    Number(usize),
}

impl EpochName {
    pub(super) fn fits(self, epoch: usize) -> bool {
        matches!(self, Self::Empty) || self == Self::Number(epoch)
    }
}

/// Random numbers (Steele, Lea, Flood: SplitMix64).
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Below `sides`.
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    /// The next step; `known` tells what an SDK remembers for a client.
    pub(super) fn step(&mut self, known: impl Fn(usize) -> (u64, EpochName)) -> Step {
        match self.roll(20) {
            0..=5 => Step::Publish(self.publish()),
            6..=9 => Step::Drain { shard: self.roll(2) as usize },
            10..=13 => self.subscribe(known),
            14..=15 => Step::Unsubscribe { who: self.roll(3) as usize },
            16 => self.read(),
            17 => Step::Wait { seconds: [1, 7, 30, 60, 61, 300][self.roll(6) as usize] },
            18 if self.one_in(2) => Step::Remove,
            18 => Step::Sweep,
            _ => Step::Wait { seconds: self.roll(4) },
        }
    }

    fn publish(&mut self) -> Publish {
        Publish {
            key: if self.one_in(6) { "key" } else { "" },
            skip: self.one_in(8),
            version: if self.one_in(6) { 1 + self.roll(3) } else { 0 },
            version_epoch: if self.one_in(2) { "x" } else { "" },
        }
    }

    fn subscribe(&mut self, known: impl Fn(usize) -> (u64, EpochName)) -> Step {
        let who = self.roll(3) as usize;
        let claim = match self.roll(4) {
            0 => None,
            1 => Some((self.offset(), self.epoch())),
            _ => Some(known(who)),
        };
        let positioned = self.one_in(2);
        let recoverable = self.one_in(2);
        Step::Subscribe {
            who,
            ask: Ask { positioned, recoverable, claim, only_recovered: self.one_in(6) },
        }
    }

    fn read(&mut self) -> Step {
        Step::Read {
            limit: (!self.one_in(3)).then(|| self.roll(4) as usize),
            since: self.one_in(2).then(|| (self.offset(), self.epoch())),
            reverse: self.one_in(2),
        }
    }

    fn offset(&mut self) -> u64 {
        if self.one_in(10) { u64::MAX - self.roll(2) } else { self.roll(8) }
    }

    fn epoch(&mut self) -> EpochName {
        match self.roll(5) {
            0 => EpochName::Empty,
            1 => EpochName::Never,
            2 => EpochName::Number(1),
            _ => EpochName::Number(0),
        }
    }
}
