//! TLS: of connections that this server opens, of its listeners, and the options of both.
//! In: sections `tls` of the configuration → out: verified streams, configurations of listeners, errors that name the option.
//! Uses rustls with aws-lc. Never: sockets of clients, which `http::tls_stream` and the shards own.
//! Changed here: the error of an option. `client` verifies servers, `server` has the certificate of a listener, `pem` reads options, `certificate` their dates.

use std::fmt;

mod certificate;
mod client;
mod handshakes;
mod listeners;
mod pem;
mod server;

#[cfg(test)]
pub(crate) use server::tests::localhost;

pub(crate) use certificate::Fields;
pub(crate) use client::Tls;
pub(crate) use handshakes::{HandshakeCounts, HandshakeResult};
pub(crate) use listeners::ListenersTls;
pub(crate) use server::{ACME_PROTOCOL, HTTP2, ServerTls};

/// An invalid TLS option; `key` is the last part of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    pub key: &'static str,
    pub fault: String,
    /// What would be right.
    pub expected: &'static str,
}

/// The error of one section of the configuration; `key` is its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SectionError {
    pub(crate) key: &'static str,
    pub(crate) source: TlsError,
}

impl TlsError {
    /// For a value that is not the PEM that the option needs.
    fn pem(key: &'static str, fault: &impl fmt::Display) -> Self {
        let expected = "PEM, base64 of PEM, or the name of a file with it";
        Self { key, fault: fault.to_string(), expected }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, fault, expected } = self;
        write!(f, "{key}: {fault}, expected {expected}")
    }
}

impl std::error::Error for TlsError {}
