//! Secret texts of the configuration, which no log shows.
//! In: a key or password → out: the same text for its user, and "[hidden]" when it is printed.
//! Uses nothing. Never: compares in constant time; the code that checks a peer's input does.
//! Changed here: how a secret is shown.

use std::fmt;
use std::ops::Deref;

/// A key or password; "" = not set.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl Deref for Secret {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.is_empty() { "\"\"" } else { "[hidden]" })
    }
}
