//! One pass over a text that says whether it is JSON (RFC 8259), for payloads that are passed on unread.
//! In: bytes. Out: whether they are one JSON text in UTF-8, and how many raw newlines stand between its tokens.
//! Uses no recursion, and the heap only beyond 64 levels of nesting; never builds a value.
//! The grammar changes here; what follows from an invalid payload lives in `publication` and in the node.

/// Whether the whole of `data` is one JSON text (RFC 8259 §2) in UTF-8. Numbers may be of any size
/// and `\u` escapes may be half a surrogate pair, as in every SDK's reader.
pub fn is_json(data: &[u8]) -> bool {
    newlines_in_json(data).is_some()
}

/// Whether the whole of `data` is one JSON object in UTF-8.
pub fn is_json_object(data: &[u8]) -> bool {
    let start = data.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    start == Some(&b'{') && is_json(data)
}

/// The number of raw newlines in a JSON text, all of them between tokens; `None` if it is no JSON.
pub(crate) fn newlines_in_json(data: &[u8]) -> Option<usize> {
    std::str::from_utf8(data).ok()?;
    let mut scanner = Scanner { rest: data, newlines: 0 };
    scanner.text()?;
    Some(scanner.newlines)
}

/// Stands somewhere in a text. Every method takes one thing off its front, or finds something else.
struct Scanner<'a> {
    rest: &'a [u8],
    newlines: usize,
}

impl Scanner<'_> {
    fn text(&mut self) -> Option<()> {
        let mut nesting = Nesting::default();
        loop {
            let opened = match self.token()? {
                b'{' => self.begin_object()?,
                b'[' => self.begin_array()?,
                start => {
                    self.scalar(start)?;
                    None
                }
            };
            match opened {
                Some(container) => nesting.push(container),
                None if self.after_value(&mut nesting)? => return Some(()),
                None => {}
            }
        }
    }

    /// Goes to the next value, closing what ends before it. True at the end of the text.
    fn after_value(&mut self, nesting: &mut Nesting) -> Option<bool> {
        while let Some(container) = nesting.top() {
            match (self.token()?, container) {
                (b',', Container::Array) => return Some(false),
                (b',', Container::Object) => return self.key().map(|()| false),
                (b']', Container::Array) | (b'}', Container::Object) => nesting.pop(),
                _ => return None,
            }
        }
        match self.token() {
            None => Some(true),
            Some(_) => None,
        }
    }

    /// What follows `{`: the first key, or the end of the object, which is then a value.
    fn begin_object(&mut self) -> Option<Option<Container>> {
        match self.token()? {
            b'}' => Some(None),
            b'"' => self.key_after_quote().map(|()| Some(Container::Object)),
            _ => None,
        }
    }

    /// What follows `[`: the first value, or the end of the array, which is then a value.
    fn begin_array(&mut self) -> Option<Option<Container>> {
        self.skip_whitespace();
        if self.rest.first() == Some(&b']') {
            self.rest = &self.rest[1..];
            return Some(None);
        }
        Some(Some(Container::Array))
    }

    fn key(&mut self) -> Option<()> {
        (self.token()? == b'"').then_some(())?;
        self.key_after_quote()
    }

    fn key_after_quote(&mut self) -> Option<()> {
        self.string_after_quote()?;
        (self.token()? == b':').then_some(())
    }

    fn scalar(&mut self, start: u8) -> Option<()> {
        match start {
            b'"' => self.string_after_quote(),
            b't' => self.literal(b"rue"),
            b'f' => self.literal(b"alse"),
            b'n' => self.literal(b"ull"),
            b'-' => {
                let first = self.byte()?;
                self.number_after(first)
            }
            _ => self.number_after(start),
        }
    }

    fn literal(&mut self, rest: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(rest)?;
        Some(())
    }

    /// RFC 8259 §6, after the sign and the first digit.
    fn number_after(&mut self, first: u8) -> Option<()> {
        match first {
            b'0' => {}
            b'1'..=b'9' => self.skip_digits(),
            _ => return None,
        }
        if let [b'.', rest @ ..] = self.rest {
            self.rest = rest;
            self.digits()?;
        }
        if let [b'e' | b'E', rest @ ..] = self.rest {
            self.rest = match rest {
                [b'+' | b'-', rest @ ..] => rest,
                _ => rest,
            };
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        self.byte()?.is_ascii_digit().then_some(())?;
        self.skip_digits();
        Some(())
    }

    fn skip_digits(&mut self) {
        while let [b'0'..=b'9', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// RFC 8259 §7.
    fn string_after_quote(&mut self) -> Option<()> {
        loop {
            self.rest = &self.rest[plain_bytes(self.rest)..];
            match self.byte()? {
                b'"' => return Some(()),
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        match self.byte()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let (digits, rest) = self.rest.split_at_checked(4)?;
                self.rest = rest;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }

    /// The first byte of the next token; `None` at the end.
    fn token(&mut self) -> Option<u8> {
        self.skip_whitespace();
        self.byte()
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn skip_whitespace(&mut self) {
        while let [space @ (b' ' | b'\t' | b'\n' | b'\r'), rest @ ..] = self.rest {
            self.newlines += usize::from(*space == b'\n');
            self.rest = rest;
        }
    }
}

/// Bytes of a string before the next quote, backslash or control character, eight at a time.
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
fn ends_in(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let quote = below(word ^ (ONES * b'"' as u64), 1);
    let backslash = below(word ^ (ONES * b'\\' as u64), 1);
    (quote | backslash | below(word, 0x20)) & (ONES << 7)
}

#[derive(Clone, Copy)]
enum Container {
    Array,
    Object,
}

/// The open containers, one bit each; the innermost is the lowest bit of `word`.
#[derive(Default)]
struct Nesting {
    depth: usize,
    word: u64,
    /// Full words of the outer levels: bounded by an eighth of the text's bytes.
    outer: Vec<u64>,
}

impl Nesting {
    fn top(&self) -> Option<Container> {
        match self.word & 1 {
            _ if self.depth == 0 => None,
            0 => Some(Container::Array),
            _ => Some(Container::Object),
        }
    }

    fn push(&mut self, container: Container) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.word);
        }
        self.word = self.word << 1 | u64::from(matches!(container, Container::Object));
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.word >>= 1;
        self.depth -= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.word = self.outer.pop().expect("one word per 64 levels");
        }
    }
}

#[cfg(test)]
mod tests;
