//! TLS: certificates of listeners, from files or by ACME, and of connections that this server opens.
//! In: sections `tls` of the configuration → out: configurations of listeners, verified streams, errors that name the option.
//! Uses rustls with aws-lc, instant-acme, hyper-util's client. Never: sockets of clients, which `edge` and the shards own.
//! Changed here: the error of an option. `client` verifies servers, `server` has the certificate of a listener, `pem` reads options,
//! `certificate` their dates, `acme` orders certificates, `https_client` sends requests, `jwks` fetches keys.
#![forbid(unsafe_code)]

use std::fmt;

mod acme;
mod autocert;
mod certificate;
mod client;
mod handshakes;
mod https_client;
mod jwks;
mod listeners;
mod options;
mod pem;
mod server;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use acme::{Acme, AcmeError, Certificates, NameStats};
pub use autocert::{AutocertOptions, is_host_name};
pub use certificate::Fields;
pub use client::Tls;
pub use handshakes::{HandshakeCounts, HandshakeResult};
pub use https_client::{Http2, HttpsClient, PoolOptions, RequestError, RequestLimits};
pub use jwks::KeyFetcher;
pub use listeners::ListenersTls;
pub use options::{ListenerSections, ServerTlsOptions, ServerTlsSection, TlsOptions};
pub use server::{ACME_PROTOCOL, HTTP2, ServerTls};

/// An invalid TLS option; `key` is the last part of its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {fault}, expected {expected}")]
pub struct TlsError {
    pub key: &'static str,
    pub fault: String,
    /// The value that would be right.
    pub expected: &'static str,
}

/// The error of one section of the configuration; `key` is its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionError {
    pub key: &'static str,
    pub source: TlsError,
}

impl TlsError {
    /// For a value that is not the PEM that the option needs.
    fn pem(key: &'static str, fault: &impl fmt::Display) -> Self {
        let expected = "PEM, base64 of PEM, or the name of a file with it";
        Self { key, fault: fault.to_string(), expected }
    }
}
