//! Measures the savings of longer and shorter histories with the channel's own publications.
//! A history and a publication → payload bytes at several depths; from them the best depth and size.
//! Pure; to be called rarely, because one trial costs about as much as ten frames.
//! Changed here: when a history is worth more or less. The server decides when to try, and the budget.

use super::history::WINDOW_BYTES;
use super::{History, Publication};

/// Payload bytes of one publication, or of several added up, by the depth of the frame.
///
/// [`History::trial`] parses, plans and emits once for each depth that is held, seven times at most:
/// about ten times the cost of one frame at depth 4, since the runs are deeper (20 µs for ticks of
/// 250 bytes, 130 µs for events of 1.7 KB; example `encoder`, since removed). With one publication in a hundred
/// tried, trials take a tenth of a channel's encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trial {
    count: u32,
    message: u32,
    alone: u32,
    /// Bytes with gaps, for each of [`DEPTHS`]; depths from `depths` on are not held.
    several: [u32; DEPTHS.len()],
    depths: usize,
    /// Bytes in an unbroken run of all held publications, or of the newer half.
    run: u32,
    half_run: u32,
    /// Publications in the newer half.
    half_count: usize,
    /// The history is at its limit.
    is_full: bool,
    bytes_max: usize,
}

impl History {
    /// Measures the publication at the depths that are held; `None` if it is no longer held.
    pub fn trial(&self, publication: &Publication) -> Option<Trial> {
        let place = self.place(publication)?;
        let held = self.held(place, self.room(publication));
        let half_count = self.held(place, self.bytes_max() / 2).max(1).min(held);
        let mut payload = Vec::new();
        let mut bytes = |parse: super::Parse, gaps: &[u32]| {
            payload.clear();
            parse.emit(gaps, &mut payload);
            payload.len() as u32
        };
        let alone = bytes(self.parse_alone(place, 15), &[]);
        let mut trial = Trial {
            count: 1,
            message: publication.bytes,
            alone,
            several: [alone; DEPTHS.len()],
            depths: DEPTHS.partition_point(|depth| *depth <= held),
            run: alone,
            half_run: alone,
            half_count,
            is_full: self.is_full(),
            bytes_max: self.bytes_max(),
        };
        let mut deeper = None;
        for (at, depth) in DEPTHS[..trial.depths].iter().enumerate().rev() {
            let (parse, gaps, copies) =
                self.parse_several(place, *depth, publication.bytes(), deeper.take())?;
            trial.several[at] = bytes(parse, &gaps[..*depth]);
            deeper = Some(copies);
        }
        if held > 0 {
            trial.run = bytes(self.parse_run(place, held)?, &[]);
            trial.half_run = trial.run;
        }
        if half_count < held {
            trial.half_run = bytes(self.parse_run(place, half_count)?, &[]);
        }
        Some(trial)
    }
}

impl Trial {
    /// Adds a later trial of one publication of the same history; earlier ones count less and less.
    ///
    /// About [`COUNT_MAX`](Self::COUNT_MAX) trials together predict the next publications.
    /// A history of another size starts again, and so does one that holds more depths for the
    /// first time; once it is full, only depths that are always held count.
    pub fn add(&mut self, later: &Self) {
        let kind = |trial: &Self| (trial.is_full, trial.bytes_max);
        if kind(self) != kind(later) || (!self.is_full && self.depths != later.depths) {
            *self = *later;
            return;
        }
        self.depths = self.depths.min(later.depths);
        if self.count >= Self::COUNT_MAX {
            self.sums().into_iter().for_each(|sum| *sum -= *sum / Self::COUNT_MAX);
        }
        let mut more = *later;
        self.sums().into_iter().zip(more.sums()).for_each(|(sum, more)| *sum += *more);
        self.half_count = self.half_count.min(later.half_count);
    }

    /// The best depth for peers with other messages in between: the smallest one within
    /// 3 % of the best, because each has gaps of its own and so fewer peers share a frame.
    pub fn depth(&self) -> usize {
        let known = &self.several[..self.depths];
        let best = u64::from(known.iter().copied().min().unwrap_or(0));
        let good = known.iter().position(|bytes| u64::from(*bytes) * 100 <= best * 103);
        good.map_or(1, |at| DEPTHS[at])
    }

    /// Whether twice the size may pay: the older half of this history, which is full, saves 3 % or
    /// more, or only one earlier publication fits.
    pub fn wants_more(&self) -> bool {
        let saves = u64::from(self.run) * 100 <= u64::from(self.half_run) * 97;
        let is_probed = self.depths > 1;
        self.bytes_max < WINDOW_BYTES && self.is_full && (saves || !is_probed)
    }

    /// Whether half the size is enough: the older half of this history saves less than 1 %, and
    /// the newer one holds as many publications as the depth needs, at least two.
    pub fn wants_less(&self) -> bool {
        let saves = u64::from(self.run) * 100 <= u64::from(self.half_run) * 99;
        let suffices = self.half_count >= self.depth().max(2);
        self.bytes_max > History::BYTES_MIN && self.is_full && suffices && !saves
    }

    /// Bytes per delivery that context saves compared to a frame that stands alone.
    ///
    /// The mean of peers with an unbroken run and peers with the depth that is best for them.
    pub fn saved(&self) -> usize {
        let alone = self.alone.min(self.message);
        let several = self.several[..self.depths].iter().copied().min().unwrap_or(alone);
        let saved = alone.saturating_sub(several) + alone.saturating_sub(self.run);
        (saved / 2 / self.count.max(1)) as usize
    }

    /// Whether a frame takes more than 97 % of its message, both alone and in context.
    pub fn is_incompressible(&self) -> bool {
        let several = self.several[..self.depths].iter().copied().min().unwrap_or(self.alone);
        let best = self.alone.min(self.run).min(several);
        u64::from(best) * 100 >= u64::from(self.message) * 97
    }

    /// Number of trials after which the earliest ones count less.
    pub const COUNT_MAX: u32 = 8;

    fn sums(&mut self) -> [&mut u32; 5 + DEPTHS.len()] {
        let [a, b, c, d] = &mut self.several;
        let Self { count, message, alone, run, half_run, .. } = self;
        [count, message, alone, run, half_run, a, b, c, d]
    }
}

/// Depths that are tried for peers with other messages in between.
const DEPTHS: [usize; 4] = [1, 2, 4, 8];

#[cfg(test)]
mod tests;
