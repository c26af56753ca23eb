//! The sections `tls` of the configuration: of listeners, and of connections that this server opens.
//! In: nothing → out: plain data; which section each listener has.
//! Uses values only. Never: reads a certificate.
//! Changed here: what a section contains. `server` and `client` read it, `autocert` has automatic certificates.

use fanwire_auth::Secret;

/// A section `tls` of a listener, with its name.
#[derive(Clone, Copy, Debug)]
pub struct ServerTlsSection<'a> {
    pub key: &'static str,
    pub options: &'a ServerTlsOptions,
}

/// A section `tls` of a listener. Each PEM is a text, that text in base64, or the path of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerTlsOptions {
    pub enabled: bool,
    /// The server's certificate, and those that signed it.
    pub cert_pem: String,
    /// Its private key.
    pub key_pem: Secret,
    /// Authorities of clients' certificates, which then are required; "" = none is asked for.
    pub client_ca_pem: String,
}

/// The sections of the listeners of a server; `None` for a listener without TLS of a section.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListenerSections<'a> {
    /// Section of the listener for clients.
    pub clients: Option<ServerTlsSection<'a>>,
    /// Section of the listener for operators and backends.
    pub internal: Option<ServerTlsSection<'a>>,
    /// Sections of the listeners for gRPC: of the server API, and of unidirectional clients.
    pub grpc: [Option<ServerTlsSection<'a>>; 2],
    /// The internal listener shows automatic certificates, as the one for clients does.
    pub has_internal_autocert: bool,
}

/// A section `tls` of a connection to somebody else. Each PEM is a text, that text in base64, or the path of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Obey the rest; else servers are verified with the authorities that the system believes.
    pub enabled: bool,
    /// Authorities to believe instead of the system's; "" = those.
    pub server_ca_pem: String,
    /// Certificate to show; "" = none.
    pub cert_pem: String,
    /// Its private key.
    pub key_pem: Secret,
    /// Name the server's certificate must have; "" = that of the address.
    pub server_name: String,
    /// Believe any certificate.
    pub insecure_skip_verify: bool,
}
