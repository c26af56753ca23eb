//! The last events of one connection, in at most 768 bytes.
//! In: events with their time → out: the same events, oldest first; the oldest ones make room for new ones.
//! Uses: one buffer, which grows with the events. Never: knows connections, reads a clock.
//! Changed here: how an event is stored. What a log has besides its events is in `lib.rs`.

/// Kind of an event. It decides what the fields of a [`FlightEvent`] mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FlightEventKind {
    /// The client is connected; `text` is the client's program, `detail` its version.
    Connect,
    /// The client is subscribed to the channel `text`.
    Subscribe,
    /// The same, and it got what it had missed: `numbers` are its offset and the newest one.
    Recover,
    /// The same, but it must reload its state; `detail` is the cause.
    Unrecovered,
    /// The subscription to the channel `text` ended, with `code` for one of the server.
    Unsubscribe,
    /// The command `detail` was refused with `code`, because of `text`.
    Refuse,
    /// The round trip of a ping took `numbers[0]` ms. The first one, and those that differ by a factor of two.
    Ping,
    /// The socket took no bytes for `numbers[0]` ms, and up to `numbers[1]` bytes were queued.
    Stall,
    /// The connection ended with `code`, because of `text`.
    Close,
}

impl FlightEventKind {
    const ALL: [Self; 9] = [
        Self::Connect,
        Self::Subscribe,
        Self::Recover,
        Self::Unrecovered,
        Self::Unsubscribe,
        Self::Refuse,
        Self::Ping,
        Self::Stall,
        Self::Close,
    ];

    /// The name in the server API and in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Subscribe => "subscribe",
            Self::Recover => "recover",
            Self::Unrecovered => "unrecovered",
            Self::Unsubscribe => "unsubscribe",
            Self::Refuse => "refuse",
            Self::Ping => "ping",
            Self::Stall => "stall",
            Self::Close => "close",
        }
    }
}

/// One event; [`FlightEventKind`] says what its fields mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightEvent<'a> {
    pub kind: FlightEventKind,
    pub code: u32,
    pub numbers: [u64; 2],
    /// Cut to 160 bytes.
    pub text: &'a str,
    /// Cut to 48 bytes.
    pub detail: &'a str,
}

impl<'a> FlightEvent<'a> {
    /// An event about `text`, without numbers.
    pub fn new(kind: FlightEventKind, text: &'a str) -> Self {
        Self { kind, code: 0, numbers: [0, 0], text, detail: "" }
    }
}

/// A stored event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredEvent<'a> {
    /// Milliseconds after the connect; of the last one if there were several.
    pub after_ms: u64,
    /// How many equal events came one after the other, 65,535 at most.
    pub count: u16,
    pub event: FlightEvent<'a>,
}

/// Stored events, one behind the other: length, kind, count (2 bytes), time (5 bytes), then what equal events share.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    bytes: Vec<u8>,
    /// The place at which the newest event begins.
    newest: usize,
}

impl Ring {
    /// Appends an event, or counts it if it equals the newest one.
    pub(crate) fn push(&mut self, event: FlightEvent<'_>, after_ms: u64) {
        let mut stored = Vec::with_capacity(EVENT_BYTES_MAX);
        stored.extend([0, event.kind as u8, 1, 0]);
        stored.extend(&after_ms.min(TIME_MAX).to_le_bytes()[..TIME_BYTES]);
        [event.code.into(), event.numbers[0], event.numbers[1]]
            .into_iter()
            .for_each(|number| put_number(number, &mut stored));
        let text = cut(event.text, TEXT_BYTES_MAX);
        stored.push(text.len() as u8);
        stored.extend(text.as_bytes());
        stored.extend(cut(event.detail, DETAIL_BYTES_MAX).as_bytes());
        stored[0] = stored.len() as u8;
        if let Some(newest) = self.bytes.get_mut(self.newest..).filter(|newest| !newest.is_empty())
            && newest[1] == stored[1]
            && newest[HEAD_BYTES..] == stored[HEAD_BYTES..]
        {
            let count = u16::from_le_bytes([newest[2], newest[3]]).saturating_add(1);
            stored[2..4].copy_from_slice(&count.to_le_bytes());
            newest.copy_from_slice(&stored);
            return;
        }
        self.make_room(stored.len());
        self.newest = self.bytes.len();
        self.bytes.extend(stored);
    }

    /// Drops the oldest events when the buffer is full, some at once, and grows it before that.
    fn make_room(&mut self, bytes: usize) {
        let needed = self.bytes.len() + bytes;
        if needed > RING_BYTES_MAX {
            let mut dropped = 0;
            while needed - dropped > RING_BYTES_MAX - ROOM_BYTES {
                dropped += usize::from(self.bytes[dropped]);
            }
            self.bytes.drain(..dropped);
        } else if needed > self.bytes.capacity() {
            let capacity = needed.next_power_of_two().clamp(RING_BYTES_MIN, RING_BYTES_MAX);
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
    }

    /// The events, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = StoredEvent<'_>> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let (stored, behind) = rest.split_at_checked(usize::from(*rest.first()?))?;
            rest = behind;
            decoded(stored)
        })
    }

    /// Bytes of the buffer.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

/// `None` never happens: the ring stores what it has encoded.
fn decoded(stored: &[u8]) -> Option<StoredEvent<'_>> {
    let kind = *FlightEventKind::ALL.get(usize::from(stored[1]))?;
    let mut time = [0; 8];
    time[..TIME_BYTES].copy_from_slice(stored.get(4..HEAD_BYTES)?);
    let mut rest = &stored[HEAD_BYTES..];
    let code = take_number(&mut rest)?.try_into().ok()?;
    let numbers = [take_number(&mut rest)?, take_number(&mut rest)?];
    let (length, rest) = rest.split_first()?;
    let (text, detail) = rest.split_at_checked(usize::from(*length))?;
    let text = std::str::from_utf8(text).ok()?;
    let event =
        FlightEvent { kind, code, numbers, text, detail: std::str::from_utf8(detail).ok()? };
    let count = u16::from_le_bytes([stored[2], stored[3]]);
    Some(StoredEvent { after_ms: u64::from_le_bytes(time), count, event })
}

/// Writes a number in groups of seven bits, lowest first (LEB128).
fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_number(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

const TIME_BYTES: usize = 5;
const TIME_MAX: u64 = (1 << (8 * TIME_BYTES)) - 1;
const HEAD_BYTES: usize = 4 + TIME_BYTES;
/// Causes have up to some 140 bytes; with all its parts an event stays below 256, as its length is one byte.
const TEXT_BYTES_MAX: usize = 160;
const DETAIL_BYTES_MAX: usize = 48;
/// Head, code, two numbers, both texts and the length of the first one.
const EVENT_BYTES_MAX: usize = HEAD_BYTES + 5 + 2 * 10 + 1 + TEXT_BYTES_MAX + DETAIL_BYTES_MAX;
const _: () = assert!(EVENT_BYTES_MAX <= u8::MAX as usize, "the length of an event is one byte");
/// With the other parts of a log this is below 1.1 KB.
pub(crate) const RING_BYTES_MAX: usize = 768;
const RING_BYTES_MIN: usize = 64;
/// A full buffer is moved once for several events.
const ROOM_BYTES: usize = 96;

#[cfg(test)]
mod tests;
