//! Which Redis has a channel, and which of its connections: all nodes must agree about the Redis.
//! In: a channel and a count → out: an index.
//! Uses: FNV-1a and jump consistent hashing (Lamping and Veach, 2014), as Centrifugo does. Never: random hashers.
//! Changed here: nothing while data is kept, because every node must compute the same.

/// 64-bit FNV-1a.
pub(crate) fn hash(channel: &str) -> u64 {
    channel.bytes().fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

/// The index below `count` for `hash`. A larger count by one moves one part in `count + 1`, all to the new index.
pub(crate) fn jump(mut hash: u64, count: usize) -> usize {
    let mut at = 0_u64;
    let mut next = 0_u64;
    while next < count as u64 {
        at = next;
        hash = hash.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let divisor = ((hash >> 33) + 1) as f64;
        next = ((at + 1) as f64 * ((1_u64 << 31) as f64 / divisor)) as u64;
    }
    at as usize
}

/// The connection for `hash`, of `count` connections to one Redis; each node may have another count.
pub(crate) fn spread(hash: u64, count: usize) -> usize {
    // Other bits than `jump` begins with, so that all connections to each Redis are used.
    ((hash ^ (hash >> 32)) as u32 as usize) % count.max(1)
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

#[cfg(test)]
mod tests;
