//! Huffman codes of limited length (RFC 1951 §3.2.2): canonical, complete, and optimal whenever
//! the optimal code keeps the limit. Frequencies → code lengths → codes.
//! Pure; allocates nothing; knows nothing of blocks.
//! Changed here: how codes are built. Which symbols they stand for is `block`.

use crate::tables::{Code, LITERALS};

/// Writes the length and the code of each symbol, 0 and none for one that does not occur.
///
/// At most `count_max` bits each (15, or 7 for code lengths), for at most 288 symbols whose
/// frequencies sum up to less than 2²³. Two symbols get a code even if fewer occur, because some
/// decoders refuse an incomplete one. The codes are canonical (§3.2.2) and reversed as the bit
/// writer takes them (§3.1.1).
pub(crate) fn build(frequencies: &[u32], count_max: usize, lengths: &mut [u8], codes: &mut [Code]) {
    lengths.fill(0);
    codes.fill(Code::default());
    let mut present = [0; LITERALS];
    let used = gather(frequencies, &mut present);
    if used < 2 {
        let only = (present[0] & SYMBOL_MASK) as usize;
        let pair = if only == 0 { [0, 1] } else { [0, only] };
        for (bits, symbol) in (0..).zip(pair) {
            lengths[symbol] = 1;
            codes[symbol] = Code::new(bits, 1);
        }
        return;
    }
    let present = &present[..used];
    let mut sorted = [0; LITERALS];
    sort(present, &mut sorted);
    let counts = length_counts(&sorted[..used], count_max);
    // The rarest symbols come first and get the longest codes.
    let mut ranked = sorted.iter();
    for length in (1..=count_max).rev() {
        for entry in ranked.by_ref().take(usize::from(counts[length])) {
            lengths[(*entry & SYMBOL_MASK) as usize] = length as u8;
        }
    }
    assign(present, &counts, lengths, codes);
}

/// Collects the symbols that occur, each with its frequency above it; returns their number.
fn gather(frequencies: &[u32], present: &mut [u32; LITERALS]) -> usize {
    let mut used = 0;
    for (symbol, &frequency) in frequencies.iter().enumerate() {
        // Without a branch: processors cannot predict which symbols occur.
        present[used] = frequency << SYMBOL_BITS | symbol as u32;
        used += usize::from(frequency > 0);
    }
    used
}

/// Sorts symbols by frequency.
///
/// Small frequencies, which are most, have a position that follows from counting; the rest is
/// sorted by comparison.
fn sort(present: &[u32], sorted: &mut [u32; LITERALS]) {
    let place = |entry: u32| (entry >> SYMBOL_BITS).min(PLACES as u32 - 1) as usize;
    let mut starts = [0u16; PLACES];
    for &entry in present {
        starts[place(entry)] += 1;
    }
    let mut start = 0;
    for count in &mut starts {
        start += std::mem::replace(count, start);
    }
    let frequent = usize::from(starts[PLACES - 1]);
    for &entry in present {
        let start = &mut starts[place(entry)];
        sorted[usize::from(*start)] = entry;
        *start += 1;
    }
    sorted[frequent..present.len()].sort_unstable();
}

/// Numbers the codes of each length in the order of their symbols.
fn assign(present: &[u32], counts: &[u16; 16], lengths: &[u8], codes: &mut [Code]) {
    let mut next = [0u16; 16];
    for length in 1..16 {
        next[length] = (next[length - 1] + counts[length - 1]) << 1;
    }
    for entry in present {
        let symbol = (entry & SYMBOL_MASK) as usize;
        let length = lengths[symbol];
        let bits = &mut next[usize::from(length & 15)];
        codes[symbol] = Code::new(bits.reverse_bits() >> (16 - length), length);
        *bits += 1;
    }
}

/// The number of codes of each length, for two or more symbols sorted by frequency.
fn length_counts(sorted: &[u32], count_max: usize) -> [u16; 16] {
    let mut parents = [0u16; LITERALS];
    let root = link_nodes(sorted, &mut parents);
    // From the root down, each inner node turns one code into two that are a bit longer. A node
    // that would break the limit splits the deepest shorter code instead, as libdeflate does.
    let mut depths = [0u8; LITERALS];
    let mut counts = [0; 16];
    counts[1] = 2;
    for node in (0..root).rev() {
        let depth = usize::from(depths[usize::from(parents[node])]) + 1;
        depths[node] = depth as u8;
        let mut split = depth;
        if split >= count_max {
            split = count_max - 1;
            while counts[split] == 0 {
                split -= 1;
            }
        }
        counts[split] -= 1;
        counts[split + 1] += 2;
    }
    counts
}

/// Builds the tree of two or more leaves by always joining the two rarest nodes; returns the root.
///
/// Inner nodes are numbered in the order of their making, which is that of their weights, so two
/// queues are enough and nothing needs sorting again.
fn link_nodes(sorted: &[u32], parents: &mut [u16; LITERALS]) -> usize {
    let mut weights = [0u32; LITERALS];
    let mut leaf = 0;
    let mut inner = 0;
    let root = sorted.len() - 2;
    for node in 0..=root {
        let mut weight = 0;
        for _ in 0..2 {
            let is_leaf = leaf < sorted.len()
                && (inner == node || sorted[leaf] >> SYMBOL_BITS <= weights[inner]);
            if is_leaf {
                weight += sorted[leaf] >> SYMBOL_BITS;
                leaf += 1;
            } else {
                weight += weights[inner];
                parents[inner] = node as u16;
                inner += 1;
            }
        }
        weights[node] = weight;
    }
    root
}

/// A symbol is stored below its frequency in one number, so that sorting moves both.
const SYMBOL_BITS: u32 = 9;
const PLACES: usize = 64;
const SYMBOL_MASK: u32 = (1 << SYMBOL_BITS) - 1;

#[cfg(test)]
mod tests;
