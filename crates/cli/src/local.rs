//! Addresses and key of a server on this machine, from its configuration.
//! In: a configuration file, the environment → out: URLs for commands that talk to a running server.
//! Uses the library's loader. Never: connections.
//! Change here how a command finds its server.

use std::path::Path;

use anyhow::Result;
use fanwire_config::example;
use fanwire_config::{Config, load};

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

    pub(crate) fn websocket_url(&self) -> String {
        let path = self.config.websocket.handler_prefix.trim_matches('/');
        let (_, scheme) = example::client_schemes(&self.config);
        format!("{scheme}://{}:{}/{path}", self.host(), self.config.http_server.port)
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
