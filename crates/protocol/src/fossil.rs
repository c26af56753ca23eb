//! Deltas between two payloads in Fossil's format (client protocol §11, §12): made and applied.
//! A source and a target → a delta; a source and a delta → the target, or a [`DeltaError`].
//! Pure; uses nothing; never decides who gets a delta, nor writes one into a push.
//! What a delta costs or how it is searched changes here; when to send one is the node's business.
//!
//! A delta is `length "\n"`, then copies `count@offset,` and inserts `count:bytes`, then `checksum;`.
//! Numbers are big-endian in base 64 with the digits `0-9A-Z_a-z~`
//! (<https://fossil-scm.org/home/doc/trunk/www/delta_format.wiki>).

/// Makes deltas; keeps its tables, so that only the first ones and longer sources allocate.
///
/// The search is that of the npm package `fossil-delta`, byte for byte, so that sizes compare.
#[derive(Clone, Debug)]
pub struct Differ {
    /// The newest block of each bucket, [`NONE`] for an empty one.
    newest: Vec<u32>,
    /// The block before in the same bucket, for each block of the source.
    before: Vec<u32>,
    /// Bytes that may still be compared, by all deltas to come.
    effort: usize,
}

impl Default for Differ {
    /// Without a limit.
    fn default() -> Self {
        Self::within(usize::MAX)
    }
}

impl Differ {
    /// Makes deltas for whose search about `effort` bytes are compared, all deltas together. Most payloads need one to
    /// ten of them per byte; payloads made to be slow, thousands. What comes behind the limit is inserted, not copied.
    pub fn within(effort: usize) -> Self {
        Self { newest: Vec::new(), before: Vec::new(), effort }
    }

    /// Appends the delta that makes `target` of `source` to `out`.
    ///
    /// It is at most 24 bytes longer than `target`; the sender compares the lengths. It may
    /// cut a character of UTF-8 in two and then fits into no JSON string. At each byte of `target`
    /// at most [`CANDIDATES_MAX`] blocks are looked at, whatever the payloads are.
    pub fn create(&mut self, source: &[u8], target: &[u8], out: &mut Vec<u8>) {
        self.write(source, Target { bytes: target, is_text: false }, out);
    }

    /// Creates a delta as [`create`](Self::create) does, in UTF-8: copies begin and end between the characters of
    /// `target`, which costs a few bytes where they would not have.
    pub fn create_text(&mut self, source: &[u8], target: &str, out: &mut Vec<u8>) {
        self.write(source, Target { bytes: target.as_bytes(), is_text: true }, out);
    }

    fn write(&mut self, source: &[u8], target: Target<'_>, out: &mut Vec<u8>) {
        let bytes = target.bytes;
        put_number(out, bytes.len());
        out.push(b'\n');
        let mut base = 0;
        if source.len() > BLOCK_BYTES {
            self.index(source);
            while base + BLOCK_BYTES < bytes.len() {
                let Some(copy) = self.search(source, target, base) else { break };
                if copy.start > base {
                    put_insert(out, &bytes[base..copy.start]);
                }
                put_number(out, copy.bytes);
                out.push(b'@');
                put_number(out, copy.offset);
                out.push(b',');
                base = copy.start + copy.bytes;
            }
        }
        // A source too short to copy from makes one insert, even of nothing.
        if base < bytes.len() || source.len() <= BLOCK_BYTES {
            put_insert(out, &bytes[base..]);
        }
        put_number(out, checksum(bytes) as usize);
        out.push(b';');
    }

    /// Files each block of the source under its hash.
    fn index(&mut self, source: &[u8]) {
        self.newest.clear();
        self.newest.resize(source.len().div_ceil(BLOCK_BYTES), NONE);
        self.before.clear();
        // The last block, whole or not, is not filed; copies reach into it from the one before.
        let filed = (source.len() - 1) / BLOCK_BYTES;
        for (number, block) in source.as_chunks::<BLOCK_BYTES>().0.iter().take(filed).enumerate() {
            let bucket = RollingHash::new(block).bucket(self.newest.len());
            self.before.push(self.newest[bucket]);
            self.newest[bucket] = number as u32;
        }
    }

    /// The longest copy that covers the first place at or behind `base` that is worth one.
    fn search(&mut self, source: &[u8], target: Target<'_>, base: usize) -> Option<Found> {
        let mut hash = RollingHash::new(target.bytes[base..].first_chunk()?);
        for at in base.. {
            if self.effort == 0 {
                break;
            }
            let bucket = hash.bucket(self.newest.len());
            let best = self.longest(bucket, source, target, base, at);
            if best.is_some() {
                return best;
            }
            hash.slide(target.bytes[at], *target.bytes.get(at + BLOCK_BYTES)?);
        }
        None
    }

    /// The longest copy through `target[at]` from a block in this bucket; the newest of equals.
    fn longest(
        &mut self,
        bucket: usize,
        source: &[u8],
        target: Target<'_>,
        base: usize,
        at: usize,
    ) -> Option<Found> {
        let mut best: Option<Found> = None;
        let mut block = self.newest[bucket];
        for _ in 0..CANDIDATES_MAX {
            if block == NONE {
                break;
            }
            let place = block as usize * BLOCK_BYTES;
            let forth = equal_bytes(source[place..].iter(), target.bytes[at..].iter());
            // Not back to the very first byte: that is how the format's own tool searches.
            let behind = &source[place.min(1)..place];
            let back = equal_bytes(behind.iter().rev(), target.bytes[base..at].iter().rev());
            let widest = Found { start: at - back, offset: place - back, bytes: back + forth };
            let copy =
                if target.is_text { widest.between_characters(target.bytes) } else { widest };
            self.effort = self.effort.saturating_sub(forth + back + BLOCK_BYTES);
            let is_longer = best.is_none_or(|best| copy.bytes > best.bytes);
            if is_longer && copy.bytes >= copy.cost(base) {
                best = Some(copy);
            }
            block = self.before[block as usize];
        }
        best
    }
}

/// Result that a delta has to make.
#[derive(Clone, Copy)]
struct Target<'a> {
    bytes: &'a [u8],
    /// UTF-8 that is to be cut between characters only.
    is_text: bool,
}

/// Some bytes of the source.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// Start of the bytes in the target.
    start: usize,
    offset: usize,
    bytes: usize,
}

impl Found {
    /// Bytes of the copy's command, and of the head of the insert before it, which begins at `base`.
    fn cost(self, base: usize) -> usize {
        digits(self.start - base) + digits(self.bytes) + digits(self.offset) + 3
    }

    /// Without the parts of characters at both ends; `target` is UTF-8.
    fn between_characters(mut self, target: &[u8]) -> Self {
        while self.bytes > 0 && is_inside_character(target[self.start]) {
            self.start += 1;
            self.offset += 1;
            self.bytes -= 1;
        }
        let is_cut = |end: usize| target.get(end).is_some_and(|byte| is_inside_character(*byte));
        while self.bytes > 0 && is_cut(self.start + self.bytes) {
            self.bytes -= 1;
        }
        self
    }
}

/// Whether a byte of UTF-8 goes on with the character before it.
fn is_inside_character(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Appends what `delta` makes of `source` to `out`, which on an error is left as it was.
///
/// # Errors
/// `TooLarge` when the delta announces more than `bytes_max` bytes, before anything is copied.
/// Otherwise what is wrong with the delta; `Checksum` is the usual sign of a wrong source.
pub fn apply(
    source: &[u8],
    delta: &[u8],
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), DeltaError> {
    let start = out.len();
    let applied = run(source, &mut Reader { delta, at: 0 }, bytes_max, out);
    if applied.is_err() {
        out.truncate(start);
    }
    applied
}

fn run(
    source: &[u8],
    reader: &mut Reader<'_>,
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), DeltaError> {
    let announced = reader.number()?;
    reader.expect(b'\n')?;
    if announced > bytes_max {
        return Err(DeltaError::TooLarge { announced, bytes_max });
    }
    let start = out.len();
    out.reserve(announced.min(source.len() + reader.delta.len()));
    loop {
        let at = reader.at;
        let number = reader.number()?;
        let piece = match reader.byte()? {
            b'@' => {
                let offset = reader.number()?;
                reader.expect(b',')?;
                let piece = source.get(offset..).and_then(|rest| rest.get(..number));
                piece.ok_or(DeltaError::CopyOutside { at })?
            }
            b':' => reader.bytes(number)?,
            b';' => break finish(number, announced, &out[start..], reader),
            _ => return Err(DeltaError::Command { at: reader.at - 1 }),
        };
        if piece.len() > announced - (out.len() - start) {
            return Err(DeltaError::Length { announced });
        }
        out.extend_from_slice(piece);
    }
}

fn finish(
    sum: usize,
    announced: usize,
    made: &[u8],
    reader: &Reader<'_>,
) -> Result<(), DeltaError> {
    if reader.at < reader.delta.len() {
        return Err(DeltaError::Trailing { at: reader.at });
    }
    if made.len() != announced {
        return Err(DeltaError::Length { announced });
    }
    if checksum(made) as usize != sum {
        return Err(DeltaError::Checksum);
    }
    Ok(())
}

/// The reason why a delta cannot be applied. `at` counts bytes of the delta from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeltaError {
    /// The delta ends before its checksum.
    #[error("the delta ends early")]
    Unterminated,
    /// No digit where a number must be, or a number of more than 32 bits.
    #[error("no number of 32 bits at byte {at} of the delta")]
    Number { at: usize },
    /// A byte that does not end the number before it.
    #[error("no command at byte {at} of the delta")]
    Command { at: usize },
    /// A copy of bytes that the source does not have.
    #[error("the copy at byte {at} of the delta is not inside the source")]
    CopyOutside { at: usize },
    /// The delta makes more or fewer bytes than it announces.
    #[error("the delta does not make {announced} bytes")]
    Length { announced: usize },
    /// The delta announces more bytes than the caller takes.
    #[error("the delta makes {announced} bytes, more than {bytes_max}")]
    TooLarge { announced: usize, bytes_max: usize },
    /// The delta makes other bytes than it was made from: the source is not the one it was made for.
    #[error("the delta was made for another source")]
    Checksum,
    /// Bytes behind the end.
    #[error("the delta goes on behind its end at byte {at}")]
    Trailing { at: usize },
}

struct Reader<'a> {
    delta: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8, DeltaError> {
        let byte = *self.delta.get(self.at).ok_or(DeltaError::Unterminated)?;
        self.at += 1;
        Ok(byte)
    }

    fn expect(&mut self, expected: u8) -> Result<(), DeltaError> {
        match self.byte()? {
            byte if byte == expected => Ok(()),
            _ => Err(DeltaError::Command { at: self.at - 1 }),
        }
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], DeltaError> {
        let rest = &self.delta[self.at..];
        let bytes = rest.get(..count).ok_or(DeltaError::Unterminated)?;
        self.at += count;
        Ok(bytes)
    }

    /// One digit or more, up to 32 bits.
    fn number(&mut self) -> Result<usize, DeltaError> {
        let wrong = DeltaError::Number { at: self.at };
        let digits = self.delta[self.at..].iter().map_while(|byte| value(*byte));
        let mut number = 0u32;
        let mut count = 0;
        for digit in digits {
            let shifted = number.checked_mul(64).ok_or(wrong)?;
            number = shifted | digit;
            count += 1;
        }
        self.at += count;
        match count {
            0 if self.at == self.delta.len() => Err(DeltaError::Unterminated),
            0 => Err(wrong),
            _ => Ok(number as usize),
        }
    }
}

/// Two 16-bit sums over a block of bytes that can move on by one byte.
struct RollingHash {
    plain: u16,
    /// The first byte 16 times, the next 15 times, and so on.
    weighted: u16,
}

impl RollingHash {
    fn new(block: &[u8; BLOCK_BYTES]) -> Self {
        let mut hash = Self { plain: 0, weighted: 0 };
        for byte in block {
            hash.plain += u16::from(*byte);
            hash.weighted += hash.plain;
        }
        hash
    }

    fn slide(&mut self, old: u8, new: u8) {
        self.plain = self.plain - u16::from(old) + u16::from(new);
        let gone = u16::from(old) * BLOCK_BYTES as u16;
        self.weighted = self.weighted - gone + self.plain;
    }

    fn bucket(&self, buckets: usize) -> usize {
        (u32::from(self.plain) | u32::from(self.weighted) << 16) as usize % buckets
    }
}

/// The sum of the big-endian 32-bit words; a shorter last one is filled up with zeros.
fn checksum(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]).map(|word| u32::from_be_bytes(*word));
    words.fold(0, u32::wrapping_add)
}

fn equal_bytes<'a>(
    left: impl Iterator<Item = &'a u8>,
    right: impl Iterator<Item = &'a u8>,
) -> usize {
    left.zip(right).take_while(|(left, right)| left == right).count()
}

fn put_insert(out: &mut Vec<u8>, literal: &[u8]) {
    put_number(out, literal.len());
    out.push(b':');
    out.extend_from_slice(literal);
}

fn put_number(out: &mut Vec<u8>, number: usize) {
    let places = (0..digits(number)).rev();
    out.extend(places.map(|place| DIGITS[number >> (6 * place) & 63]));
}

fn digits(number: usize) -> usize {
    (number.max(1).ilog2() / 6 + 1) as usize
}

fn value(digit: u8) -> Option<u32> {
    let value = match digit {
        b'0'..=b'9' => digit - b'0',
        b'A'..=b'Z' => digit - b'A' + 10,
        b'_' => 36,
        b'a'..=b'z' => digit - b'a' + 37,
        b'~' => 63,
        _ => return None,
    };
    Some(value.into())
}

/// Blocks of one hash that are looked at for one byte of the target.
pub const CANDIDATES_MAX: usize = 250;

/// Width of the hash, and length of the blocks of the source that can be found by it.
const BLOCK_BYTES: usize = 16;

const NONE: u32 = u32::MAX;

const DIGITS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~";

#[cfg(test)]
mod tests;
