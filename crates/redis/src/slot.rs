//! The slots of a Redis Cluster: each name belongs to one of 16,384.
//! In: names of keys and of PUB/SUB → out: numbers of slots.
//! Uses: CRC-16 of the Redis Cluster specification (polynomial 1021₁₆, XMODEM). Never: a Redis.
//! Changed here: nothing; Redis computes the same.

/// Slots of every Cluster.
pub(crate) const SLOTS: usize = 16_384;

/// The slot of a name. The hash tag, which is between the first `{` and the next `}`, decides; if it is empty or
/// missing, the whole name.
pub(crate) fn of(name: &[u8]) -> u16 {
    of_tag(tag(name).unwrap_or(name).iter().copied())
}

/// The slot of names with this hash tag.
pub(crate) fn of_tag(tag: impl Iterator<Item = u8>) -> u16 {
    let crc =
        tag.fold(0, |crc: u16, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)]);
    crc % SLOTS as u16
}

fn tag(name: &[u8]) -> Option<&[u8]> {
    let from = name.iter().position(|byte| *byte == b'{')? + 1;
    let length = name[from..].iter().position(|byte| *byte == b'}')?;
    (length > 0).then(|| &name[from..from + length])
}

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ POLYNOMIAL };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

static TABLE: [u16; 256] = table();
const POLYNOMIAL: u16 = 0x1021;

#[cfg(test)]
mod tests;
