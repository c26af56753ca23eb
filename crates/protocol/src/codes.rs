//! Every code on the wire with its exact text (client protocol §15, §22).
//! In: nothing. Out: three tables: [`ErrorCode`] (replies), [`Disconnect`] (close codes), [`UnsubscribeCode`] (pushes).
//! Uses `message::Error`; never decides when a code applies.
//! A code is one row here; the node sends it.

use std::borrow::Cow;
use std::fmt;

use crate::message;

/// An error reply. Application codes are 400 to 1999.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ErrorCode {
    pub code: u32,
    pub message: &'static str,
    /// The client tries again by itself; without it, a failed connect is final.
    pub temporary: bool,
}

/// The end of a connection: a WebSocket close code and its reason.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Disconnect {
    pub code: u16,
    /// Plain text of at most 123 bytes; not empty for terminal codes (client protocol §5.10).
    pub reason: Cow<'static, str>,
}

/// The end of a subscription by the server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UnsubscribeCode {
    pub code: u32,
    pub reason: &'static str,
}

table! { ErrorCode:
    INTERNAL = temporary(100, "internal server error"),
    UNAUTHORIZED = error(101, "unauthorized"),
    UNKNOWN_CHANNEL = error(102, "unknown channel"),
    PERMISSION_DENIED = error(103, "permission denied"),
    METHOD_NOT_FOUND = error(104, "method not found"),
    ALREADY_SUBSCRIBED = error(105, "already subscribed"),
    LIMIT_EXCEEDED = error(106, "limit exceeded"),
    BAD_REQUEST = error(107, "bad request"),
    NOT_AVAILABLE = error(108, "not available"),
    TOKEN_EXPIRED = error(109, "token expired"),
    EXPIRED = error(110, "expired"),
    TOO_MANY_REQUESTS = temporary(111, "too many requests"),
    UNRECOVERABLE_POSITION = error(112, "unrecoverable position"),
    CONCURRENT_PAGINATION = temporary(113, "concurrent pagination"),
}

table! { Disconnect:
    CONNECTION_CLOSED = disconnect(3000, "connection closed"),
    SHUTDOWN = disconnect(3001, "shutdown"),
    SERVER_ERROR = disconnect(3004, "internal server error"),
    EXPIRED = disconnect(3005, "connection expired"),
    SUBSCRIPTION_EXPIRED = disconnect(3006, "subscription expired"),
    SLOW = disconnect(3008, "slow"),
    WRITE_ERROR = disconnect(3009, "write error"),
    INSUFFICIENT_STATE = disconnect(3010, "insufficient state"),
    FORCE_RECONNECT = disconnect(3011, "force reconnect"),
    NO_PONG = disconnect(3012, "no pong"),
    TOO_MANY_REQUESTS = disconnect(3013, "too many requests"),
    STATE_INVALIDATED = disconnect(3014, "state invalidated"),
    INVALID_TOKEN = disconnect(3500, "invalid token"),
    BAD_REQUEST = disconnect(3501, "bad request"),
    STALE = disconnect(3502, "stale"),
    FORCE_DISCONNECT = disconnect(3503, "force disconnect"),
    CONNECTION_LIMIT = disconnect(3504, "connection limit"),
    CHANNEL_LIMIT = disconnect(3505, "channel limit"),
    INAPPROPRIATE_PROTOCOL = disconnect(3506, "inappropriate protocol"),
    PERMISSION_DENIED = disconnect(3507, "permission denied"),
    NOT_AVAILABLE = disconnect(3508, "not available"),
    TOO_MANY_ERRORS = disconnect(3509, "too many errors"),
}

table! { UnsubscribeCode:
    SERVER = unsubscribe(2000, "server unsubscribe"),
    INSUFFICIENT_STATE = unsubscribe(2500, "insufficient state"),
    SUBSCRIPTION_EXPIRED = unsubscribe(2501, "subscription expired"),
    STATE_INVALIDATED = unsubscribe(2502, "state invalidated"),
}

impl Disconnect {
    /// Whether clients come back by themselves: below 3500, 4000 to 4499, and from 5000 on
    /// (client protocol §22, the rule of every SDK).
    pub const fn reconnects(&self) -> bool {
        !matches!(self.code, 3500..=3999 | 4500..=4999)
    }

    /// Whether a server may send the code in a close frame (RFC 6455 §7.4).
    pub const fn is_close_code(&self) -> bool {
        matches!(self.code, 1000..=1003 | 1007..=1014 | 1016..=4999)
    }
}

impl UnsubscribeCode {
    /// Whether clients subscribe again by themselves: from 2500 on (client protocol §15).
    pub const fn resubscribes(&self) -> bool {
        self.code >= 2500
    }
}

impl From<ErrorCode> for message::Error {
    fn from(error: ErrorCode) -> Self {
        Self { code: error.code, message: error.message.to_owned(), temporary: error.temporary }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ErrorCode {}

impl fmt::Display for Disconnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason, self.code)
    }
}

const fn error(code: u32, message: &'static str) -> ErrorCode {
    ErrorCode { code, message, temporary: false }
}

const fn temporary(code: u32, message: &'static str) -> ErrorCode {
    ErrorCode { code, message, temporary: true }
}

const fn disconnect(code: u16, reason: &'static str) -> Disconnect {
    Disconnect { code, reason: Cow::Borrowed(reason) }
}

const fn unsubscribe(code: u32, reason: &'static str) -> UnsubscribeCode {
    UnsubscribeCode { code, reason }
}

/// Makes one constant per row, and `ALL` with every row in order.
macro_rules! table {
    ($table:ident: $($name:ident = $make:ident($code:literal, $text:literal),)+) => {
        impl $table {
            $(#[doc = concat!(stringify!($code), " ", $text)] pub const $name: Self = $make($code, $text);)+

            /// Every row of the table.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
        }
    };
}
use table;

#[cfg(test)]
mod tests;
