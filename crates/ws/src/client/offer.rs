//! permessage-deflate from the client's side (RFC 7692 §5, §7.1).
//! The settings of a client → its offer; the response of the server → the agreement, if it fits the offer.
//! Uses the parameters of `extension` and `list`; never fails a handshake by itself.
//! Changed here: what a client offers, and which response it accepts.

use crate::extension::{
    CLIENT_MAX_WINDOW_BITS, CLIENT_NO_CONTEXT_TAKEOVER, NAME, Parameters, SERVER_MAX_WINDOW_BITS,
    SERVER_NO_CONTEXT_TAKEOVER,
};
use crate::list;

/// The parameters that a client offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtensionOffer {
    /// The messages of the server.
    pub server: TakeoverOffer,
    /// The messages of the client.
    pub client: TakeoverOffer,
}

/// One direction of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakeoverOffer {
    /// Whether messages may refer to earlier ones (RFC 7692 §7.1.1).
    pub context_takeover: bool,
    /// The largest window, 8 to 15 bits (RFC 7692 §7.1.2). Other values are brought into range.
    pub window_bits: u8,
}

impl Default for TakeoverOffer {
    /// References to earlier messages in the largest window.
    fn default() -> Self {
        Self { context_takeover: true, window_bits: WINDOW_BITS_MAX }
    }
}

/// The parameters that both sides agreed to, as a client sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAgreement {
    /// The server may refer to the last 2^bits bytes of its messages, 8 to 15; `None`: each of its messages stands alone.
    pub server_window_bits: Option<u8>,
    /// Our distances stay within 2^bits bytes, 8 to 15.
    pub client_window_bits: u8,
    /// Our messages may refer to earlier ones.
    pub client_context_takeover: bool,
}

impl ExtensionOffer {
    /// The value of the request's `Sec-WebSocket-Extensions`.
    ///
    /// `client_max_window_bits` is always there, so that the server may choose a smaller window (RFC 7692 §7.1.2.2).
    pub fn header(&self) -> String {
        let mut offer = NAME.to_owned();
        if !self.server.context_takeover {
            offer += &format!("; {SERVER_NO_CONTEXT_TAKEOVER}");
        }
        if !self.client.context_takeover {
            offer += &format!("; {CLIENT_NO_CONTEXT_TAKEOVER}");
        }
        let server_bits = in_range(self.server.window_bits);
        if server_bits < WINDOW_BITS_MAX {
            offer += &format!("; {SERVER_MAX_WINDOW_BITS}={server_bits}");
        }
        offer += &format!("; {CLIENT_MAX_WINDOW_BITS}");
        let client_bits = in_range(self.client.window_bits);
        if client_bits < WINDOW_BITS_MAX {
            offer += &format!("={client_bits}");
        }
        offer
    }

    /// The agreement that a response makes of this offer; `None` if it does not fit (RFC 7692 §5.1, §7.1).
    pub(super) fn accept(&self, response: &str) -> Option<ClientAgreement> {
        let mut extensions = list::split(response, ',');
        let extension = extensions.next()?;
        if extensions.next().is_some() {
            return None;
        }
        let mut parts = list::split(extension, ';');
        if parts.next()? != NAME {
            return None;
        }
        let mut parameters = Parameters::default();
        for part in parts {
            // In a response the name alone has no meaning (RFC 7692 §7.1.2.2).
            if part == CLIENT_MAX_WINDOW_BITS {
                return None;
            }
            parameters.add(part)?;
        }
        self.agree(&parameters)
    }

    fn agree(&self, parameters: &Parameters) -> Option<ClientAgreement> {
        let server_bits = parameters.server_max_window_bits.unwrap_or(WINDOW_BITS_MAX);
        let client_bits = parameters.client_max_window_bits.unwrap_or(WINDOW_BITS_MAX);
        // The server grants what is asked of its messages, or declines the offer (RFC 7692 §7.1.1.1, §7.1.2.1).
        let ignores_takeover =
            !self.server.context_takeover && !parameters.server_no_context_takeover;
        if ignores_takeover || server_bits > in_range(self.server.window_bits) {
            return None;
        }
        // A window that is larger than our own bound is allowed: we need not use all of it (RFC 7692 §7.1.2.2).
        let stands_alone = parameters.server_no_context_takeover;
        let client_refers = self.client.context_takeover && !parameters.client_no_context_takeover;
        Some(ClientAgreement {
            server_window_bits: if stands_alone { None } else { Some(server_bits) },
            client_window_bits: client_bits.min(in_range(self.client.window_bits)),
            client_context_takeover: client_refers,
        })
    }
}

fn in_range(window_bits: u8) -> u8 {
    window_bits.clamp(8, WINDOW_BITS_MAX)
}

const WINDOW_BITS_MAX: u8 = 15;

#[cfg(test)]
mod tests;
