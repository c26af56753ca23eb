//! RESP2, the protocol of Redis: commands as bytes, and replies from bytes (redis.io, "Redis serialization protocol").
//! In: arguments; bytes as they arrive → out: one buffer per command; replies whose texts are slices of what arrived.
//! Uses: `Bytes`. Never: sockets, what a command means.
//! Change here: how bytes are read and written. RESP2, because every Redis and every store like it speaks it.

use bytes::{Bytes, BytesMut};

/// One reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// `+OK`.
    Simple(Bytes),
    /// `-ERR …`, without the minus.
    Error(Bytes),
    Integer(i64),
    Bulk(Bytes),
    Null,
    Array(Vec<Reply>),
}

/// What no Redis sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Reply {
    /// Takes the next reply off the front of `buffer`; `None` when it is not all there yet. Copies no text.
    ///
    /// # Errors
    /// [`Malformed`] for what is not RESP2; the buffer is then of no use any more.
    pub(crate) fn take(buffer: &mut BytesMut) -> Result<Option<Self>, Malformed> {
        let Some(end) = end_of(buffer, 0, DEPTH_MAX)? else { return Ok(None) };
        let whole = buffer.split_to(end).freeze();
        let (reply, _) = build(&whole, 0);
        Ok(Some(reply))
    }

    /// The text of a simple or bulk reply.
    pub(crate) fn text(&self) -> Option<&Bytes> {
        match self {
            Self::Simple(text) | Self::Bulk(text) => Some(text),
            _ => None,
        }
    }

    /// A number, whether it came as one or as text.
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            Self::Simple(text) | Self::Bulk(text) => str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// The parts of an array.
    pub(crate) fn parts(self) -> Option<Vec<Self>> {
        match self {
            Self::Array(parts) => Some(parts),
            _ => None,
        }
    }
}

/// Where the value that begins at `at` ends, without looking into texts.
fn end_of(bytes: &[u8], at: usize, depth: usize) -> Result<Option<usize>, Malformed> {
    let Some(kind) = bytes.get(at) else { return Ok(None) };
    if !b"+-:$*".contains(kind) {
        return Err(Malformed); // before the line is there: what is no Redis may never end its line
    }
    let Some(line) = line_at(bytes, at + 1)? else { return Ok(None) };
    let after = at + 1 + line.len() + 2;
    match kind {
        b'+' | b'-' => Ok(Some(after)),
        b':' => number(line).map(|_| Some(after)),
        b'$' => match number(line)? {
            -1 => Ok(Some(after)),
            length => text_end(bytes, after, length),
        },
        _ => array_end(bytes, after, number(line)?, depth),
    }
}

fn text_end(bytes: &[u8], at: usize, length: i64) -> Result<Option<usize>, Malformed> {
    let length = usize::try_from(length).map_err(|_| Malformed)?;
    if length > TEXT_BYTES_MAX {
        return Err(Malformed);
    }
    let end = at + length;
    match bytes.get(end..end + 2) {
        Some(b"\r\n") => Ok(Some(end + 2)),
        Some(_) => Err(Malformed),
        None => Ok(None),
    }
}

fn array_end(
    bytes: &[u8],
    at: usize,
    count: i64,
    depth: usize,
) -> Result<Option<usize>, Malformed> {
    if count == -1 {
        return Ok(Some(at));
    }
    if count < 0 || depth == 0 {
        return Err(Malformed);
    }
    let mut end = at;
    for _ in 0..count {
        match end_of(bytes, end, depth - 1)? {
            Some(next) => end = next,
            None => return Ok(None),
        }
    }
    Ok(Some(end))
}

/// The line that begins at `at`, without its end.
fn line_at(bytes: &[u8], at: usize) -> Result<Option<&[u8]>, Malformed> {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest.windows(2).take(LINE_BYTES_MAX).position(|pair| pair == b"\r\n") {
        Some(length) => Ok(Some(&rest[..length])),
        None if rest.len() > LINE_BYTES_MAX => Err(Malformed),
        None => Ok(None),
    }
}

fn number(line: &[u8]) -> Result<i64, Malformed> {
    str::from_utf8(line).ok().and_then(|text| text.parse().ok()).ok_or(Malformed)
}

/// The value at `at` and its end. Only for bytes that [`end_of`] has found to be whole.
fn build(whole: &Bytes, at: usize) -> (Reply, usize) {
    let line = line_at(whole, at + 1).ok().flatten().unwrap_or_default();
    let after = at + 1 + line.len() + 2;
    let count = || number(line).unwrap_or_default();
    match whole[at] {
        b'+' => (Reply::Simple(whole.slice_ref(line)), after),
        b'-' => (Reply::Error(whole.slice_ref(line)), after),
        b':' => (Reply::Integer(count()), after),
        b'$' => match usize::try_from(count()) {
            Ok(length) => (Reply::Bulk(whole.slice(after..after + length)), after + length + 2),
            Err(_) => (Reply::Null, after),
        },
        _ => match usize::try_from(count()) {
            Ok(count) => build_array(whole, after, count),
            Err(_) => (Reply::Null, after),
        },
    }
}

fn build_array(whole: &Bytes, mut at: usize, count: usize) -> (Reply, usize) {
    let mut parts = Vec::with_capacity(count); // each of them is there
    for _ in 0..count {
        let (part, end) = build(whole, at);
        parts.push(part);
        at = end;
    }
    (Reply::Array(parts), at)
}

/// A command being written: an array of texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command(Vec<u8>);

impl Command {
    /// Begins a command of `count` arguments, its name included, with room for `bytes` of them.
    pub(crate) fn new(count: usize, bytes: usize) -> Self {
        let mut out = Vec::with_capacity(bytes + 16 * (count + 1));
        put_head(&mut out, b'*', count);
        Self(out)
    }

    /// A command whose arguments are there already.
    pub(crate) fn of(arguments: &[&[u8]]) -> Self {
        let bytes = arguments.iter().map(|argument| argument.len()).sum();
        let mut command = Self::new(arguments.len(), bytes);
        for argument in arguments {
            command.text(argument);
        }
        command
    }

    /// The next argument.
    pub(crate) fn text(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        let text = text.as_ref();
        self.written(text.len(), |out| out.extend_from_slice(text))
    }

    /// The next argument: a number.
    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        let mut digits = [0; DIGITS_MAX];
        self.text(digits_of(number, &mut digits))
    }

    /// The next argument, of `length` bytes, written in place.
    pub(crate) fn written(&mut self, length: usize, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        put_head(&mut self.0, b'$', length);
        let from = self.0.len();
        write(&mut self.0);
        debug_assert_eq!(self.0.len() - from, length);
        self.0.extend_from_slice(b"\r\n");
        self
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

fn put_head(out: &mut Vec<u8>, kind: u8, number: usize) {
    out.push(kind);
    let mut digits = [0; DIGITS_MAX];
    out.extend_from_slice(digits_of(number as u64, &mut digits));
    out.extend_from_slice(b"\r\n");
}

fn digits_of(mut number: u64, digits: &mut [u8; DIGITS_MAX]) -> &[u8] {
    let mut start = DIGITS_MAX;
    while start == DIGITS_MAX || number > 0 {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    &digits[start..]
}

/// Digits of the largest `u64`.
const DIGITS_MAX: usize = 20;
/// Arrays within arrays; what we ask for is at most four deep.
const DEPTH_MAX: usize = 8;
/// A line: a number, or the text of a status or an error.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// The longest text a Redis has (`proto-max-bulk-len`).
const TEXT_BYTES_MAX: usize = 512 * 1024 * 1024;

#[cfg(test)]
mod tests;
