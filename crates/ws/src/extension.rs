//! Negotiates permessage-deflate (RFC 7692 §7.1).
//! The client's offers → the first acceptable one as an `Agreement`, and the response header.
//! Uses `list` for the syntax; never fails a handshake, an invalid offer is declined.
//! Changed here: which offers are accepted. Whether a message is then compressed is decided in `compression`.

mod apple;

use std::borrow::Cow;

pub use self::apple::is_apple_nsurlsession;
use crate::list;

/// The operator's settings for permessage-deflate.
#[derive(Clone, Copy, Debug)]
pub struct ExtensionSettings {
    /// Whether permessage-deflate is accepted at all.
    pub enabled: bool,
    /// The largest window of our own messages in bits, 9..=15.
    pub server_window_bits: u8,
    /// The messages of clients that may refer to earlier ones; `None`: no messages.
    pub client_takeover: Option<ClientTakeover>,
}

/// Conditions under which a client may refer to its earlier messages.
#[derive(Clone, Copy, Debug)]
pub struct ClientTakeover {
    /// The largest window of a client that lets us choose, in bits, 9..=15.
    pub window_bits: u8,
    /// Decline offers that do not let us choose, instead of agreeing to 32 KiB.
    pub requires_choice: bool,
}

impl Default for ExtensionSettings {
    /// Any window of ours, and no context takeover of clients.
    fn default() -> Self {
        Self { enabled: true, server_window_bits: WINDOW_BITS_MAX, client_takeover: None }
    }
}

/// The accepted parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreement {
    /// We must not refer to earlier messages (RFC 7692 §7.1.1.1).
    pub server_no_context_takeover: bool,
    /// Our distances stay within 2^bits bytes, 9..=15 (RFC 7692 §7.1.2.1).
    pub server_window_bits: u8,
    /// The client may refer to the last 2^bits bytes of its earlier messages, 8..=15; `None`: each of its messages
    /// stands alone, because the response has `client_no_context_takeover`, which needs no offer (RFC 7692 §7.1.1.2).
    pub client_window_bits: Option<u8>,
    /// The response names the server's window: the client asked for one, or ours is smaller than 32 KiB.
    names_server_window: bool,
    /// The response names the client's window, which needs an offer (RFC 7692 §7.1.2.2a).
    names_client_window: bool,
}

/// Agrees to the first acceptable offer; `offers` are the `Sec-WebSocket-Extensions` in order. Without an agreement the response names no
/// extension (RFC 7692 §5e).
///
/// No extension is used that the client did not offer (RFC 6455 §4.2.2h, §5.8a, §9a).
///
/// An offer is declined when it is another extension, when a parameter is unknown, repeated or has
/// a bad value (RFC 7692 §7a, §7b, §7c), when it asks for a window of 256 bytes, which no zlib supports
/// (madler/zlib#171), and when it does not fulfil [`ClientTakeover::requires_choice`] (RFC 7692 §7d).
pub fn negotiate<'a>(
    offers: impl Iterator<Item = &'a str>,
    settings: ExtensionSettings,
) -> Option<Agreement> {
    let mut offers = offers.filter(|_| settings.enabled);
    offers.find_map(|value| list::split(value, ',').find_map(|offer| accept(offer, settings)))
}

impl Agreement {
    /// The same agreement to messages of the client that stand alone, for a server without memory for its window.
    pub fn without_client_takeover(self) -> Self {
        Self { client_window_bits: None, names_client_window: false, ..self }
    }

    /// The value of the response's `Sec-WebSocket-Extensions` (RFC 6455 §9b, §9.1b, §9.1c; RFC 7692 §5a). Windows are numbers from 8 to 15
    /// (RFC 7692 §7.1.2.1a, §7.1.2.2b).
    ///
    /// Names `client_max_window_bits` only if the client may refer to earlier messages: within one message our
    /// inflater takes any window.
    pub fn response(&self) -> String {
        let mut response = NAME.to_owned();
        if self.client_window_bits.is_none() {
            response.push_str(&format!("; {CLIENT_NO_CONTEXT_TAKEOVER}"));
        }
        if self.server_no_context_takeover {
            response.push_str(&format!("; {SERVER_NO_CONTEXT_TAKEOVER}"));
        }
        if self.names_server_window {
            response.push_str(&format!("; {SERVER_MAX_WINDOW_BITS}={}", self.server_window_bits));
        }
        if let Some(window_bits) = self.client_window_bits.filter(|_| self.names_client_window) {
            response.push_str(&format!("; {CLIENT_MAX_WINDOW_BITS}={window_bits}"));
        }
        response
    }
}

/// The agreement to one offer; `None` if some parameter of it is not supported (RFC 7692 §5b).
fn accept(offer: &str, settings: ExtensionSettings) -> Option<Agreement> {
    let mut parts = list::split(offer, ';');
    if parts.next()? != NAME {
        return None;
    }
    let mut parameters = Parameters::default();
    parts.try_for_each(|part| parameters.add(part))?;
    let offered = parameters.server_max_window_bits;
    let server_window_bits = settings.server_window_bits.min(offered.unwrap_or(WINDOW_BITS_MAX));
    if server_window_bits < WINDOW_BITS_MIN {
        return None;
    }
    let client_window_bits = match settings.client_takeover {
        Some(takeover) if !parameters.client_no_context_takeover => {
            Some(parameters.client_window_bits(takeover)?)
        }
        _ => None,
    };
    Some(Agreement {
        server_no_context_takeover: parameters.server_no_context_takeover,
        server_window_bits,
        client_window_bits,
        // Without an offer, too (RFC 7692 §7.1.2.1): the client may then hold less.
        names_server_window: offered.is_some() || server_window_bits < WINDOW_BITS_MAX,
        names_client_window: client_window_bits.is_some()
            && parameters.client_max_window_bits.is_some(),
    })
}

/// The parameters of one offer, or of a response, that have been read.
#[derive(Default)]
pub(crate) struct Parameters {
    pub(crate) server_no_context_takeover: bool,
    pub(crate) client_no_context_takeover: bool,
    pub(crate) server_max_window_bits: Option<u8>,
    pub(crate) client_max_window_bits: Option<u8>,
}

impl Parameters {
    /// The window of a client with context takeover; `None` if the offer is not acceptable.
    fn client_window_bits(&self, takeover: ClientTakeover) -> Option<u8> {
        match self.client_max_window_bits {
            Some(window_bits) => Some(window_bits.min(takeover.window_bits)),
            None if takeover.requires_choice => None,
            None => Some(WINDOW_BITS_MAX),
        }
    }

    /// Adds `name` or `name=value`; `None` if it makes the offer or response invalid.
    pub(crate) fn add(&mut self, part: &str) -> Option<()> {
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
                let window_bits = value.map_or(Some(WINDOW_BITS_MAX), window_bits)?;
                self.client_max_window_bits.replace(window_bits).is_some()
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

/// The value of a token or a quoted string (RFC 6455 §9.1); `None` when the quotes do not match. A quoted value that is no token is
/// refused later, because every value is a number (RFC 6455 §4.3a).
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

pub(crate) const NAME: &str = "permessage-deflate";
pub(crate) const SERVER_NO_CONTEXT_TAKEOVER: &str = "server_no_context_takeover";
pub(crate) const CLIENT_NO_CONTEXT_TAKEOVER: &str = "client_no_context_takeover";
pub(crate) const SERVER_MAX_WINDOW_BITS: &str = "server_max_window_bits";
pub(crate) const CLIENT_MAX_WINDOW_BITS: &str = "client_max_window_bits";

const WINDOW_BITS_MIN: u8 = 9;
const WINDOW_BITS_MAX: u8 = 15;

#[cfg(test)]
mod tests;
