//! A timing wheel with exactly one timer per connection: the earliest thing a session has to do.
//! In: dense connection indices with a due moment, and the time → out: the indices that are due, earliest tick first.
//! Uses: nothing but vectors. Never: clocks, sessions; what is due is decided by `hub/timers.rs`.
//! Changed here: resolution and depth. Six levels of 64 slots, as in tokio's and Linux's wheels (Varghese & Lauck 1987).

use crate::clock::Moment;

/// Timers of one hub. Setting, moving and clearing are O(1), 16 bytes per connection, and no allocation per timer.
///
/// Timers fire up to one tick late and never early, except that those further away than the wheel reaches
/// ([`TICKS_MAX`]) fire early: the owner looks at what is really due and sets the timer again.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// Every set timer is due at this tick or later.
    elapsed: u64,
    /// Timers by connection index.
    entries: Vec<Entry>,
    /// First entry of each slot, or `NONE`.
    heads: [[u32; SLOTS]; LEVELS],
    /// Bit per slot that is not empty.
    occupied: [u64; LEVELS],
}

/// A node of a doubly linked list; 16 bytes.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Tick; `UNSET` when not in any list.
    due: u64,
    next: u32,
    /// The previous entry, or `HEAD` plus the number of the slot this entry is the first of.
    prev: u32,
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Self {
            elapsed: 0,
            entries: Vec::new(),
            heads: [[NONE; SLOTS]; LEVELS],
            occupied: [0; LEVELS],
        }
    }

    /// Sets the one timer of `index`, or moves it. [`Moment::NEVER`] clears it.
    pub(crate) fn set(&mut self, index: u32, due: Moment) {
        debug_assert!(index < HEAD, "connection indices stay below 2^31");
        self.clear(index);
        if due == Moment::NEVER {
            return;
        }
        if self.entries.len() <= index as usize {
            self.entries.resize(index as usize + 1, Entry { due: UNSET, next: NONE, prev: NONE });
        }
        let tick = due.0.div_ceil(TICK_MS).clamp(self.elapsed, self.elapsed | TICKS_MAX);
        self.entries[index as usize].due = tick;
        self.link(index);
    }

    /// Forgets the timer of `index`, if it is set.
    pub(crate) fn clear(&mut self, index: u32) {
        if self.entries.get(index as usize).is_some_and(|entry| entry.due != UNSET) {
            self.unlink(index);
        }
    }

    /// Whether the timer of `index` is set.
    pub(crate) fn has(&self, index: u32) -> bool {
        self.entries.get(index as usize).is_some_and(|entry| entry.due != UNSET)
    }

    /// The moment of the timer of `index`, rounded up to a tick; [`Moment::NEVER`] if it is not set.
    pub(crate) fn due(&self, index: u32) -> Moment {
        let set = self.entries.get(index as usize).filter(|entry| entry.due != UNSET);
        set.map_or(Moment::NEVER, |entry| Moment(entry.due.saturating_mul(TICK_MS)))
    }

    /// The next index whose timer is due at `now`; its timer is cleared. Call until `None`.
    pub(crate) fn pop(&mut self, now: Moment) -> Option<u32> {
        let tick = now.0 / TICK_MS;
        while let Some((level, slot, start)) = self.first_slot() {
            if start > tick {
                break;
            }
            self.elapsed = start;
            let index = self.heads[level][slot];
            if level == 0 {
                self.unlink(index);
                return Some(index);
            }
            self.cascade(index);
        }
        self.elapsed = self.elapsed.max(tick);
        None
    }

    /// Returns the time to call [`pop`](Self::pop) next. Nothing may be due then.
    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        self.first_slot().map(|(_, _, start)| Moment(start.saturating_mul(TICK_MS)))
    }

    /// The occupied slot that begins first: level, slot, first tick.
    ///
    /// All timers of a level lie in the one slot of the next level that `elapsed` is in, so a lower level always comes
    /// before a higher one, and no level wraps around.
    fn first_slot(&self) -> Option<(usize, usize, u64)> {
        let level = self.occupied.iter().position(|bits| *bits != 0)?;
        let slot = self.occupied[level].trailing_zeros();
        let shift = level as u32 * SLOT_BITS;
        let window = (1u64 << (shift + SLOT_BITS)) - 1;
        Some((level, slot as usize, (self.elapsed & !window) | (u64::from(slot) << shift)))
    }

    /// Spreads the list that begins with `index` over lower levels, now that `elapsed` is at the start of its slot.
    fn cascade(&mut self, mut index: u32) {
        while index != NONE {
            let next = self.entries[index as usize].next;
            let due = self.entries[index as usize].due;
            self.unlink(index);
            self.entries[index as usize].due = due;
            self.link(index);
            index = next;
        }
    }

    /// Puts an entry in front of the list its due tick belongs to.
    fn link(&mut self, index: u32) {
        let due = self.entries[index as usize].due;
        let differing = (self.elapsed ^ due) | 1;
        let level = (u64::BITS - 1 - differing.leading_zeros()) / SLOT_BITS;
        let slot = (due >> (level * SLOT_BITS)) as usize % SLOTS;
        let head = &mut self.heads[level as usize][slot];
        let entry = &mut self.entries[index as usize];
        entry.next = *head;
        entry.prev = HEAD + level * SLOTS as u32 + slot as u32;
        if *head != NONE {
            self.entries[*head as usize].prev = index;
        }
        *head = index;
        self.occupied[level as usize] |= 1 << slot;
    }

    fn unlink(&mut self, index: u32) {
        let Entry { next, prev, .. } = self.entries[index as usize];
        if next != NONE {
            self.entries[next as usize].prev = prev;
        }
        if prev < HEAD {
            self.entries[prev as usize].next = next;
        } else {
            let level = (prev - HEAD) as usize / SLOTS;
            let slot = (prev - HEAD) as usize % SLOTS;
            self.heads[level][slot] = next;
            if next == NONE {
                self.occupied[level] &= !(1 << slot);
            }
        }
        self.entries[index as usize].due = UNSET;
    }
}

/// Resolution. Coarse, so that pings of many connections share a wake-up: 31 turns a second at most.
pub(crate) const TICK_MS: u64 = 32;

const LEVELS: usize = 6;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// How far the wheel reaches: about 69 years.
const TICKS_MAX: u64 = (1 << (SLOT_BITS * LEVELS as u32)) - 1;

const NONE: u32 = u32::MAX;
const HEAD: u32 = 1 << 31;
const UNSET: u64 = u64::MAX;

#[cfg(test)]
mod tests;
