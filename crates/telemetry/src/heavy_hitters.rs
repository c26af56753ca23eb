//! The names that occur most often, in bounded memory.
//! In: names with weights → out: the largest ones, with counts that are at most too high by the smallest.
//! Uses: the space-saving algorithm (Metwally, Agrawal, El Abbadi 2005). Never: a clock, a lock.
//! Changed here: how names are counted. What is counted is defined where it occurs.

use hashbrown::HashMap;

/// Counts of names. A new name takes the place of the smallest when all places are taken, and inherits its count.
#[derive(Debug, Default)]
pub struct HeavyHitters {
    counts: HashMap<Box<str>, u64>,
}

impl HeavyHitters {
    /// Adds to the count of a name. The time is constant for a known name, and that of one look at all places for others.
    pub fn add(&mut self, name: &str, weight: u64) {
        if let Some(count) = self.counts.get_mut(name) {
            *count += weight;
            return;
        }
        let mut inherited = 0;
        if self.counts.len() >= PLACES {
            let smallest = self.counts.iter().min_by_key(|(_, count)| **count);
            if let Some((smallest, count)) = smallest.map(|(name, count)| (name.clone(), *count)) {
                self.counts.remove(&smallest);
                inherited = count;
            }
        }
        self.counts.insert(name.into(), inherited + weight);
    }

    /// The largest names and their counts, largest first.
    pub fn largest(&self, limit: usize) -> Vec<(u64, String)> {
        let mut largest = Largest::new(limit);
        for (name, count) in &self.counts {
            largest.offer(*count, || name.to_string());
        }
        largest.into_vec()
    }

    /// Forgets all names.
    pub fn clear(&mut self) {
        self.counts = HashMap::new();
    }
}

/// The largest of many values, of which few are kept.
#[derive(Debug)]
pub struct Largest<T> {
    limit: usize,
    /// Largest first.
    kept: Vec<(u64, T)>,
}

impl<T> Largest<T> {
    /// Keeps at most `limit` values.
    pub fn new(limit: usize) -> Self {
        Self { limit, kept: Vec::new() }
    }

    /// Keeps a value if its size is among the largest; a size of 0 is never kept. `value` is only called if the value is kept.
    pub fn offer(&mut self, size: u64, value: impl FnOnce() -> T) {
        let is_full = self.kept.len() >= self.limit;
        if size == 0 || is_full && self.kept.last().is_none_or(|(smallest, _)| *smallest >= size) {
            return;
        }
        if is_full {
            self.kept.pop();
        }
        let at = self.kept.partition_point(|(other, _)| *other >= size);
        self.kept.insert(at, (size, value()));
    }

    /// The kept values, largest first.
    pub fn into_vec(self) -> Vec<(u64, T)> {
        self.kept
    }
}

/// A name with more than one of 256 parts of all weights is always among them.
const PLACES: usize = 256;

#[cfg(test)]
mod tests;
