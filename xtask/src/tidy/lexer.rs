//! Rust text with its comments and strings apart from its code, line by line.
//! In: the text of a file → out: the same text with everything but code (or but comments) blanked, and its functions.
//! May assume rustfmt's layout for functions; never parses more than comments, literals and braces.
//! Changed here: what counts as code, comment or function; what is forbidden in them stands in the checks.

/// Two views of one file, both with the line breaks of the original and spaces elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lexed {
    /// Code without comments and without the insides of string and character literals.
    pub(crate) code: String,
    /// Comments only, their slashes included.
    pub(crate) comments: String,
}

/// A function with a body. Lines count from 1; `lines` includes the signature and the closing brace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) lines: usize,
}

/// Splits `text` into code and comments.
pub(crate) fn lex(text: &str) -> Lexed {
    let mut lexed = Lexed { code: String::new(), comments: String::new() };
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let (kind, length) = token(rest, first, before);
        let (token, after) = rest.split_at(length);
        let blank: String = token.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        lexed.code.push_str(if kind == Kind::Code { token } else { &blank });
        lexed.comments.push_str(if kind == Kind::Comment { token } else { &blank });
        before = token.chars().next_back().unwrap_or(' ');
        rest = after;
    }
    lexed
}

/// The functions of blanked `code`, nested ones included.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    let mut functions = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let starts_word = !code[..at].ends_with(is_word);
        let name: String = code[at + 3..].chars().take_while(|c| is_word(*c)).collect();
        if !starts_word || name.is_empty() {
            continue;
        }
        let Some(length) = body_end(&code[at..]) else { continue };
        let line = 1 + code[..at].matches('\n').count();
        let lines = 1 + code[at..at + length].matches('\n').count();
        functions.push(Function { name, line, lines });
    }
    functions
}

/// Whether `word` stands in `code` on its own, not as a part of a longer name.
pub(crate) fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        !code[..at].ends_with(is_word) && !code[at + word.len()..].starts_with(is_word)
    })
}

/// The texts between the commas of a list, up to the bracket that closes it.
pub(crate) fn parts(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = list;
    loop {
        let end = outside_brackets(rest, &[',', ')', ']', '}']).unwrap_or(rest.len());
        parts.push(rest[..end].trim());
        let Some(next) = rest[end..].strip_prefix(',') else { break };
        rest = next;
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The place of the first of `wanted` outside of all brackets. `<` is none: it also compares.
pub(crate) fn outside_brackets(code: &str, wanted: &[char]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        if depth == 0 && wanted.contains(&c) {
            return Some(at);
        }
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// The kind and the length in bytes of what stands at the front of `rest`.
fn token(rest: &str, first: char, before: char) -> (Kind, usize) {
    if rest.starts_with("//") {
        return (Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Kind::Comment, block_comment(rest));
    }
    if first == '"' {
        return (Kind::Literal, quoted(rest, '"'));
    }
    if first == '\'' && is_character(rest) {
        return (Kind::Literal, quoted(rest, '\''));
    }
    if matches!(first, 'r' | 'b' | 'c')
        && !is_word(before)
        && let Some(length) = raw_string(rest)
    {
        return (Kind::Literal, length);
    }
    (Kind::Code, first.len_utf8())
}

/// The length of a block comment; they nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length of a literal that ends at the next `quote` without a backslash before it.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return at + 1;
        }
    }
    rest.len()
}

/// Tells `'a'` and `'\n'` from the lifetime `'a`.
fn is_character(rest: &str) -> bool {
    let mut inside = rest.chars().skip(1);
    matches!((inside.next(), inside.next()), (Some('\\'), _) | (Some(_), Some('\'')))
}

/// The length of `r"…"`, `br#"…"#` and their relatives, `None` for anything else.
fn raw_string(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r"].into_iter().find(|prefix| rest.starts_with(prefix))?;
    let hashes = rest[prefix.len()..].chars().take_while(|c| *c == '#').count();
    let open = prefix.len() + hashes;
    if !rest[open..].starts_with('"') {
        return None;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    Some(rest[open + 1..].find(&close).map_or(rest.len(), |at| open + 1 + at + close.len()))
}

/// Returns the end of a function, the closing brace of its body; `None` when it has no body (a trait's or a type's `fn`).
fn body_end(code: &str) -> Option<usize> {
    let mut brackets = 0_usize;
    let mut braces = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.checked_sub(1)?,
            ';' if braces == 0 && brackets == 0 => return None,
            '{' => braces += 1,
            '}' => {
                braces = braces.checked_sub(1)?;
                if braces == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests;
