//! Addresses, key and certificate of a server on this machine, from its configuration.
//! In: a configuration file, the environment → out: URLs and TLS for commands that talk to a running server.
//! Uses the library's loader. Never: connections.
//! Changed here: how a command finds its server, and which certificate it accepts.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Error, Result, anyhow, bail};
use fanwire_config::{Config, example, load};
use fanwire_tls::{Tls, TlsOptions};

use crate::arguments::ServerTrust;
use crate::environment;

/// A server with this configuration.
pub(crate) struct LocalServer {
    config: Config,
}

impl LocalServer {
    pub(crate) fn load(path: Option<&Path>) -> Result<Self> {
        let (config, _) = load(path, environment::variables()?, &[])?;
        Ok(Self { config })
    }

    /// Returns the address of the server API, with its prefix.
    pub(crate) fn api_url(&self) -> String {
        let prefix = self.config.http_api.handler_prefix.trim_matches('/');
        format!("{}://{}/{prefix}", example::api_scheme(&self.config), self.internal_address())
    }

    /// Returns the address of the health endpoint.
    ///
    /// # Errors
    /// When the configuration switches it off.
    pub(crate) fn health_url(&self) -> Result<String> {
        let health = &self.config.health;
        if !health.enabled {
            bail!("health.enabled is false: set it to true, or give --url");
        }
        let path = health.handler_prefix.trim_matches('/');
        Ok(format!("{}://{}/{path}", example::api_scheme(&self.config), self.internal_address()))
    }

    /// Whether a program of this machine gets no answer of the health endpoint: it is off, or its listener asks for the
    /// certificate of a client or for a header of the PROXY protocol.
    pub(crate) fn has_unreachable_health(&self) -> bool {
        let server = &self.config.http_server;
        let asks_for_certificates =
            server.internal_tls().is_some_and(|tls| !tls.options.client_ca_pem.is_empty());
        !self.config.health.enabled || asks_for_certificates || server.proxy_protocol
    }

    /// Returns address and port of the operator's and backends' endpoints.
    pub(crate) fn internal_address(&self) -> String {
        let server = &self.config.http_server;
        let address = match server.internal_address.as_str() {
            "" => &server.address,
            address => address,
        };
        host_and_port(address, server.internal_port.parse().unwrap_or(server.port))
    }

    pub(crate) fn websocket_url(&self) -> String {
        let path = self.config.websocket.handler_prefix.trim_matches('/');
        let (_, scheme) = example::client_schemes(&self.config);
        let server = &self.config.http_server;
        format!("{scheme}://{}/{path}", host_and_port(&server.address, server.port))
    }

    /// Returns TLS for the option `url`, with an address of the API or of clients. Without the option the server must show
    /// the certificate of the configuration, which need not have a name of this machine; an automatic one is verified by name.
    pub(crate) fn tls(
        &self,
        trust: &ServerTrust,
        url: Option<&String>,
        is_api: bool,
    ) -> Result<Tls> {
        let ServerTrust { ca, insecure } = trust;
        let mut options = TlsOptions {
            enabled: true,
            server_ca_pem: ca.clone().unwrap_or_default(),
            insecure_skip_verify: *insecure,
            ..TlsOptions::default()
        };
        if url.is_none() && ca.is_none() && !insecure {
            let http = &self.config.http_server;
            let is_internal = is_api && !self.config.http_api.external;
            let section = if is_internal { http.internal_tls() } else { http.client_tls() };
            if let Some(section) = section {
                return Tls::of_certificate(&section.options.cert_pem)
                    .map_err(|error| anyhow!("{}.{error}", section.key));
            }
            options.server_name =
                http.tls_autocert.host_whitelist.first().cloned().unwrap_or_default();
        }
        Tls::new(&options).map_err(|error| anyhow!("--ca: {}, expected a PEM file", error.fault))
    }

    /// Empty: none is set.
    pub(crate) fn api_key(&self) -> String {
        self.config.http_api.key.to_string()
    }
}

/// The address with its port, as a URL has them; loopback for a server that listens on all addresses.
fn host_and_port(address: &str, port: u16) -> String {
    match address.parse() {
        Ok(ip) => example::reachable(SocketAddr::new(ip, port)).to_string(),
        Err(_) if address.is_empty() => format!("127.0.0.1:{port}"),
        Err(_) => format!("{address}:{port}"),
    }
}

/// Adds what helps after a failed TLS handshake.
pub(crate) fn with_remedy(error: Error) -> Error {
    let text = format!("{error:#}");
    match REMEDIES.iter().find(|(part, _)| text.contains(part)) {
        Some((_, remedy)) => anyhow!("{text}; {remedy}"),
        None => error,
    }
}

/// Names of errors of rustls and webpki, and what helps.
const REMEDIES: [(&str, &str); 4] = [
    ("UnknownIssuer", "give --ca with the file of the authority that signed the certificate"),
    (
        "ApplicationVerificationFailure",
        "it is not the configuration's: reload the server, or use --ca",
    ),
    ("CaUsedAsEndEntity", "it is an authority's own: make one with basicConstraints=CA:FALSE"),
    ("InvalidContentType", "the server speaks no TLS at this port: use http:// or ws://"),
];
