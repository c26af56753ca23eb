//! A JSON validator (RFC 8259) of one pass, for payloads that are forwarded unread.
//! In: bytes. Out: whether they are one JSON text in UTF-8, and how many raw line ends are between its tokens.
//! Uses no recursion, and the heap only beyond 63 levels of nesting; never builds a value.
//! The grammar changes here; `publication` and the node handle an invalid payload.

/// Whether the whole of `data` is one JSON text (RFC 8259 §2) in UTF-8. Numbers may be of any size
/// and `\u` escapes may be half a surrogate pair, as in every SDK's reader.
pub fn is_json(data: &[u8]) -> bool {
    line_ends_in_json(data).is_some()
}

/// Whether the whole of `data` is one JSON object in UTF-8.
pub fn is_json_object(data: &[u8]) -> bool {
    let start = data.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    start == Some(&b'{') && is_json(data)
}

/// Whether a JSON text is nested deeper than [`JSON_DEPTH_MAX`]: readers that recurse fail, and those of Python end their client.
/// The result has no meaning for a text that is not JSON.
pub fn nests_too_deep(json: &[u8]) -> bool {
    let is_opening = |byte: &&u8| matches!(byte, b'[' | b'{');
    let mut depth = 0_isize;
    let mut is_in_string = false;
    let mut is_escaped = false;
    let mut goes_too_deep = |byte: &u8| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_in_string,
            b'"' => is_in_string = !is_in_string,
            b'[' | b'{' if !is_in_string => depth += 1,
            b']' | b'}' if !is_in_string => depth -= 1,
            _ => {}
        }
        depth > JSON_DEPTH_MAX as isize
    };
    // A short text cannot nest too deep. Most others end at the count, which has no branch per byte.
    json.len() > JSON_DEPTH_MAX
        && json.iter().filter(is_opening).count() > JSON_DEPTH_MAX
        && json.iter().any(&mut goes_too_deep)
}

/// Levels of nesting that a payload may have. The readers of SDKs that recurse fail from some 990 levels on, the payload within
/// its push.
pub const JSON_DEPTH_MAX: usize = 512;

/// Whether a byte ends a line where a client reads lines or events: CR, LF and CRLF do (WHATWG HTML §9.2.5).
pub(crate) fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// The number of raw CR and LF in a JSON text, all of them between tokens; `None` if it is no JSON.
pub(crate) fn line_ends_in_json(data: &[u8]) -> Option<usize> {
    std::str::from_utf8(data).ok()?;
    let mut scanner = Scanner { text: data, at: 0, line_ends: 0 };
    scanner.text()?;
    Some(scanner.line_ends)
}

/// Stands somewhere in a text. Every method goes past one thing, or finds something else.
///
/// serde_json's `IgnoredAny`, with a count of line ends, gives the same verdicts in 1.9 times the instructions, so that encoding the
/// push of a tick takes 1.6 times as many (lines of `bench/corpus`, callgrind).
///
/// What is done per byte or token is inlined: calls took a third of the time.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    line_ends: usize,
}

impl Scanner<'_> {
    fn text(&mut self) -> Option<()> {
        let mut nesting = Nesting { word: 1, outer: Vec::new() };
        loop {
            match self.token() {
                b'"' => self.string_after_quote()?,
                b'{' => match self.token() {
                    b'"' => {
                        self.key_after_quote()?;
                        nesting.push(Container::Object);
                        continue;
                    }
                    b'}' => {}
                    _ => return None,
                },
                b'[' => match self.token() {
                    b']' => {}
                    _ => {
                        self.at -= 1;
                        nesting.push(Container::Array);
                        continue;
                    }
                },
                start => self.scalar(start)?,
            }
            if self.after_value(&mut nesting)? {
                return Some(());
            }
        }
    }

    /// Goes to the next value, closing what ends before it. True at the end of the text.
    #[inline(always)]
    fn after_value(&mut self, nesting: &mut Nesting) -> Option<bool> {
        while let Some(container) = nesting.top() {
            match (self.token(), container) {
                (b',', Container::Array) => return Some(false),
                (b',', Container::Object) => {
                    (self.token() == b'"').then_some(())?;
                    return self.key_after_quote().map(|()| false);
                }
                (b']', Container::Array) | (b'}', Container::Object) => nesting.pop(),
                _ => return None,
            }
        }
        self.skip_whitespace();
        (self.at == self.text.len()).then_some(true)
    }

    #[inline(always)]
    fn key_after_quote(&mut self) -> Option<()> {
        self.string_after_quote()?;
        (self.token() == b':').then_some(())
    }

    #[inline(always)]
    fn scalar(&mut self, start: u8) -> Option<()> {
        match start {
            b'-' | b'0'..=b'9' => self.number_after(start),
            b't' => self.literal(b"rue"),
            b'f' => self.literal(b"alse"),
            b'n' => self.literal(b"ull"),
            _ => None,
        }
    }

    #[inline(always)]
    fn literal(&mut self, rest: &[u8]) -> Option<()> {
        self.text[self.at..].starts_with(rest).then(|| self.at += rest.len())
    }

    /// RFC 8259 §6.
    #[inline(always)]
    fn number_after(&mut self, start: u8) -> Option<()> {
        let first = if start == b'-' { self.byte() } else { start };
        match first {
            b'0' => {}
            b'1'..=b'9' => self.skip_digits(),
            _ => return None,
        }
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if let b'e' | b'E' = self.peek() {
            self.at += 1;
            if let b'+' | b'-' = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    #[inline(always)]
    fn digits(&mut self) -> Option<()> {
        self.byte().is_ascii_digit().then_some(())?;
        self.skip_digits();
        Some(())
    }

    #[inline(always)]
    fn skip_digits(&mut self) {
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
    }

    /// RFC 8259 §7. Most strings end within eight bytes.
    #[inline(always)]
    fn string_after_quote(&mut self) -> Option<()> {
        loop {
            let rest = self.text.get(self.at..)?;
            self.at += match rest.split_first_chunk() {
                Some((word, more)) => match ends_in(u64::from_le_bytes(*word)) {
                    0 => 8 + plain_bytes(more),
                    ends => ends.trailing_zeros() as usize / 8,
                },
                None => plain_bytes(rest),
            };
            if self.is_closed()? {
                return Some(());
            }
        }
    }

    /// Reads a byte that is not plain text: a quote ends the string (true), an escape does not (false), others are invalid (`None`).
    #[inline(always)]
    fn is_closed(&mut self) -> Option<bool> {
        match self.byte() {
            b'"' => Some(true),
            b'\\' => self.escape().map(|()| false),
            _ => None,
        }
    }

    #[inline(always)]
    fn escape(&mut self) -> Option<()> {
        match self.byte() {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.text.get(self.at..self.at + 4)?;
                self.at += 4;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }

    /// The first byte of the next token; [`END`] at the end.
    #[inline(always)]
    fn token(&mut self) -> u8 {
        let byte = self.byte();
        if byte > b' ' {
            return byte;
        }
        self.at -= 1;
        self.skip_whitespace();
        self.byte()
    }

    /// [`END`] is no part of any token: nothing goes on behind it.
    #[inline(always)]
    fn byte(&mut self) -> u8 {
        let byte = self.peek();
        self.at += 1;
        byte
    }

    #[inline(always)]
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(END)
    }

    #[inline(always)]
    fn skip_whitespace(&mut self) {
        let (bytes, line_ends) = whitespace(self.text.get(self.at..).unwrap_or_default());
        self.at += bytes;
        self.line_ends += line_ends;
    }
}

/// How much of it a text begins with, and how many line ends are there.
fn whitespace(text: &[u8]) -> (usize, usize) {
    let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let bytes = text.iter().take_while(is_space).count();
    (bytes, text[..bytes].iter().filter(|byte| is_line_end(**byte)).count())
}

/// Byte after the end of the text: a control character, which JSON has nowhere.
const END: u8 = 0;

/// Bytes of a string before the next quote, backslash or control character, eight at a time.
#[inline(never)] // its constants stay in registers: a fifth of the time of long strings
fn plain_bytes(text: &[u8]) -> usize {
    let (words, tail) = text.as_chunks();
    for (index, word) in words.iter().enumerate() {
        let ends = ends_in(u64::from_le_bytes(*word));
        if ends != 0 {
            return index * 8 + ends.trailing_zeros() as usize / 8;
        }
    }
    let is_end = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    words.len() * 8 + tail.iter().position(is_end).unwrap_or(tail.len())
}

/// The high bit of each byte that is a quote, a backslash or a control character. A borrow may also
/// set bits above the first such byte, never below it.
#[inline(always)]
fn ends_in(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let quote = (word ^ (ONES * b'"' as u64)).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    let control = word.wrapping_sub(ONES * 0x20);
    (quote | backslash | control) & !word & (ONES << 7)
}

#[derive(Clone, Copy)]
enum Container {
    Array,
    Object,
}

/// The open containers, one bit each below a bit that is always set; the innermost is the lowest.
struct Nesting {
    word: u64,
    /// Full words of the outer levels: bounded by an eighth of the text's bytes.
    outer: Vec<u64>,
}

impl Nesting {
    #[inline(always)]
    fn top(&self) -> Option<Container> {
        match self.word {
            1 => None,
            word if word & 1 == 0 => Some(Container::Array),
            _ => Some(Container::Object),
        }
    }

    #[inline(always)]
    fn push(&mut self, container: Container) {
        if self.word >> 63 == 1 {
            self.outer.push(self.word);
            self.word = 1;
        }
        self.word = self.word << 1 | u64::from(matches!(container, Container::Object));
    }

    #[inline(always)]
    fn pop(&mut self) {
        self.word >>= 1;
        if self.word == 1 {
            self.word = self.outer.pop().unwrap_or(1);
        }
    }
}

#[cfg(test)]
mod tests;
