//! Negotiates permessage-deflate (RFC 7692 §7.1).
//! The client's offers → the first acceptable one as an `Agreement`, and the response header.
//! Uses `list` for the syntax; never fails a handshake, an invalid offer is declined.
//! Change here: which offers are accepted. Whether a message is then compressed is decided in `compression`.

mod apple;

use std::borrow::Cow;

pub use self::apple::is_apple_nsurlsession;
use crate::list;

/// The operator's settings for permessage-deflate.
#[derive(Clone, Copy, Debug)]
pub struct ExtensionSettings {
    /// Whether permessage-deflate is accepted at all.
    pub enabled: bool,
}

/// The accepted parameters.
///
/// `client_no_context_takeover` is part of every agreement (RFC 7692 §7.1.1.2 allows a server to
/// send it without an offer), so that no connection needs an inflater of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreement {
    /// We must not refer to earlier messages (RFC 7692 §7.1.1.1).
    pub server_no_context_takeover: bool,
    /// Our distances stay within 2^bits bytes, 9..=15 (RFC 7692 §7.1.2.1).
    pub server_window_bits: u8,
    /// The client asked for a window, so the response must name it.
    window_bits_offered: bool,
}

/// Agrees to the first acceptable offer; `offers` are the `Sec-WebSocket-Extensions` in order.
///
/// An offer is declined when it is another extension, when a parameter is unknown, repeated or has
/// a bad value (RFC 7692 §7), and when it asks for a window of 256 bytes, which no zlib supports
/// (madler/zlib#171).
pub fn negotiate<'a>(
    offers: impl Iterator<Item = &'a str>,
    settings: ExtensionSettings,
) -> Option<Agreement> {
    let mut offers = offers.filter(|_| settings.enabled);
    offers.find_map(|value| list::split(value, ',').find_map(accept))
}

impl Agreement {
    /// The value of the response's `Sec-WebSocket-Extensions`.
    ///
    /// Never names `client_max_window_bits`: our inflater takes any window (RFC 7692 §7.1.2.2).
    pub fn response(&self) -> String {
        let mut response = format!("{NAME}; {CLIENT_NO_CONTEXT_TAKEOVER}");
        if self.server_no_context_takeover {
            response.push_str("; ");
            response.push_str(SERVER_NO_CONTEXT_TAKEOVER);
        }
        if self.window_bits_offered {
            response.push_str(&format!("; {SERVER_MAX_WINDOW_BITS}={}", self.server_window_bits));
        }
        response
    }
}

/// The agreement to one offer; `None` if it is not acceptable.
fn accept(offer: &str) -> Option<Agreement> {
    let mut parts = list::split(offer, ';');
    if parts.next()? != NAME {
        return None;
    }
    let mut parameters = Parameters::default();
    parts.try_for_each(|part| parameters.add(part))?;
    let server_window_bits = parameters.server_max_window_bits.unwrap_or(15);
    if server_window_bits < 9 {
        return None;
    }
    Some(Agreement {
        server_no_context_takeover: parameters.server_no_context_takeover,
        server_window_bits,
        window_bits_offered: parameters.server_max_window_bits.is_some(),
    })
}

/// The parameters of one offer that have been read.
#[derive(Default)]
struct Parameters {
    server_no_context_takeover: bool,
    client_no_context_takeover: bool,
    server_max_window_bits: Option<u8>,
    client_max_window_bits: bool,
}

impl Parameters {
    /// Adds `name` or `name=value`; `None` if it makes the offer invalid.
    fn add(&mut self, part: &str) -> Option<()> {
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (list::trim(name), Some(unquote(list::trim(value))?)),
            None => (part, None),
        };
        let value = value.as_deref();
        let repeated = match name {
            SERVER_NO_CONTEXT_TAKEOVER if value.is_none() => {
                std::mem::replace(&mut self.server_no_context_takeover, true)
            }
            CLIENT_NO_CONTEXT_TAKEOVER if value.is_none() => {
                std::mem::replace(&mut self.client_no_context_takeover, true)
            }
            SERVER_MAX_WINDOW_BITS => {
                self.server_max_window_bits.replace(window_bits(value?)?).is_some()
            }
            CLIENT_MAX_WINDOW_BITS => {
                // Without a value the server may choose a window. With one it is the client's own bound.
                value.map_or(Some(15), window_bits)?;
                std::mem::replace(&mut self.client_max_window_bits, true)
            }
            _ => return None,
        };
        if repeated { None } else { Some(()) }
    }
}

/// A decimal number from 8 to 15 without leading zeros (RFC 7692 §7.1.2).
fn window_bits(value: &str) -> Option<u8> {
    match value {
        "8" => Some(8),
        "9" => Some(9),
        "10" => Some(10),
        "11" => Some(11),
        "12" => Some(12),
        "13" => Some(13),
        "14" => Some(14),
        "15" => Some(15),
        _ => None,
    }
}

/// The value of a token or a quoted string (RFC 6455 §9.1); `None` when the quotes do not match.
fn unquote(value: &str) -> Option<Cow<'_, str>> {
    let Some(quoted) = value.strip_prefix('"') else { return Some(Cow::Borrowed(value)) };
    let mut plain = String::with_capacity(quoted.len());
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '"' => break,
            '\\' => plain.push(characters.next()?),
            character => plain.push(character),
        }
    }
    characters.as_str().is_empty().then_some(Cow::Owned(plain))
}

const NAME: &str = "permessage-deflate";
const SERVER_NO_CONTEXT_TAKEOVER: &str = "server_no_context_takeover";
const CLIENT_NO_CONTEXT_TAKEOVER: &str = "client_no_context_takeover";
const SERVER_MAX_WINDOW_BITS: &str = "server_max_window_bits";
const CLIENT_MAX_WINDOW_BITS: &str = "client_max_window_bits";

#[cfg(test)]
mod tests;
