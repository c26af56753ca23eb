//! Logarithmic axes.
//! In: values and where the axis begins and ends → out: places, and ticks at round values.
//! Uses nothing. Never: draws.
//! Changed here: where ticks stand.

/// A logarithmic axis that holds all of its values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    /// Logarithms to base 10 of the values at both ends.
    least: f64,
    most: f64,
    start: f64,
    end: f64,
}

impl Axis {
    /// Creates an axis from position `start` to `end`, for values above 0.
    pub(super) fn new(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Self {
        let logs = values.filter(|value| *value > 0.0).map(f64::log10);
        let (least, most) = logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), log| {
            (least.min(log), most.max(log))
        });
        if least > most {
            return Self { least: 0.0, most: 1.0, start, end };
        }
        // Some room at both ends, and never an axis of one point.
        let room = ((most - least) * 0.07).max(0.08);
        Self { least: least - room, most: most + room, start, end }
    }

    /// Returns the position of a value.
    pub(super) fn place(&self, value: f64) -> f64 {
        let log = value.max(f64::MIN_POSITIVE).log10();
        let share = ((log - self.least) / (self.most - self.least)).clamp(0.0, 1.0);
        self.start + share * (self.end - self.start)
    }

    /// Whether a value stands on the axis.
    pub(super) fn holds(&self, value: f64) -> bool {
        (self.least..=self.most).contains(&value.log10())
    }

    /// Round values and where they stand: 1, 2 and 5 of every decade, or fewer.
    pub(super) fn ticks(&self) -> Vec<(f64, f64)> {
        let sets: [&[f64]; 3] = [&[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
        let ticks = sets.map(|set| self.ticks_of(set));
        let few = ticks.iter().find(|ticks| ticks.len() <= TICKS_MAX).unwrap_or(&ticks[2]);
        let skip = few.len().div_ceil(TICKS_MAX).max(1);
        few.iter().copied().step_by(skip).collect()
    }

    fn ticks_of(&self, set: &[f64]) -> Vec<(f64, f64)> {
        let decades = self.least.floor() as i32..=self.most.ceil() as i32;
        let values =
            decades.flat_map(|decade| set.iter().map(move |step| step * 10f64.powi(decade)));
        let inside = values.filter(|value| self.holds(*value));
        inside.map(|value| (value, self.place(value))).collect()
    }
}

const TICKS_MAX: usize = 7;

#[cfg(test)]
mod tests;
