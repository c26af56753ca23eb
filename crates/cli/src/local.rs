//! Addresses, key and certificate of a server on this machine, from its configuration.
//! In: a configuration file, the environment → out: URLs and TLS for commands that talk to a running server.
//! Uses the library's loader. Never: connections.
//! Change here how a command finds its server, and which certificate it accepts.

use std::path::Path;

use anyhow::{Error, Result, anyhow, bail};
use fanwire_config::{Config, TlsOptions, example, load};
use fanwire_tls::Tls;

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
        let server = &self.config.http_server;
        let port = server.internal_port.parse().unwrap_or(server.port);
        let prefix = self.config.http_api.api.handler_prefix.trim_matches('/');
        format!("{}://{}:{port}/{prefix}", example::api_scheme(&self.config), self.host())
    }

    /// Returns the address of the health endpoint.
    ///
    /// # Errors
    /// When the configuration switches it off.
    pub(crate) fn health_url(&self) -> Result<String> {
        let (server, health) = (&self.config.http_server, &self.config.health);
        if !health.enabled {
            bail!("health.enabled is false: set it to true, or give --url");
        }
        let port = server.internal_port.parse().unwrap_or(server.port);
        let path = health.handler_prefix.trim_matches('/');
        Ok(format!("{}://{}:{port}/{path}", example::api_scheme(&self.config), self.host()))
    }

    pub(crate) fn websocket_url(&self) -> String {
        let path = self.config.websocket.handler_prefix.trim_matches('/');
        let (_, scheme) = example::client_schemes(&self.config);
        format!("{scheme}://{}:{}/{path}", self.host(), self.config.http_server.port)
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
            if let Some((key, own)) = section {
                return Tls::of_certificate(&own.cert_pem)
                    .map_err(|error| anyhow!("{key}.{error}"));
            }
            options.server_name =
                http.tls_autocert.host_whitelist.first().cloned().unwrap_or_default();
        }
        Tls::new(&options).map_err(|error| anyhow!("--ca: {}, expected a PEM file", error.fault))
    }

    /// Empty: none is set.
    pub(crate) fn api_key(&self) -> String {
        self.config.http_api.api.key.to_string()
    }

    fn host(&self) -> &str {
        let address = &self.config.http_server.address;
        if address.is_empty() { "127.0.0.1" } else { address }
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
