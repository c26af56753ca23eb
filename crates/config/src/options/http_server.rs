//! `http_server.*`: the listeners for clients, and for operators and backends.
//! In: values of the rows → out: the section; which TLS each listener has.
//! Uses the options of `tls`. Never: a socket.
//! Changed here: the fields of the section, which have the names of their keys.

use fanwire_tls::{AutocertOptions, ServerTlsOptions, ServerTlsSection};

/// `http_server.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpServerOptions {
    /// Address or host name to listen on; "" = all addresses.
    pub address: String,
    /// 0 lets the system choose one.
    pub port: u16,
    /// Address of the operator's and backends' endpoints; "" = `address`.
    pub internal_address: String,
    /// Their port, a number as text; "" = `port`.
    pub internal_port: String,
    /// Serve HTTP/2 without TLS to clients.
    pub h2c_external: bool,
    /// Addresses and networks of proxies that say who the client is.
    pub trusted_proxies: Vec<String>,
    /// Proxies begin each connection with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// TLS of both listeners, without automatic certificates.
    pub tls: ServerTlsOptions,
    /// The internal listener is without it.
    pub tls_external: bool,
    /// TLS of the internal listener, instead of `tls`.
    pub internal_tls: ServerTlsOptions,
    /// Automatic certificates of both listeners, instead of `tls`.
    pub tls_autocert: AutocertOptions,
}

impl HttpServerOptions {
    /// Whether those endpoints have a listener of their own; the same address and port written twice is one listener.
    pub fn is_split(&self) -> bool {
        let address = match self.internal_address.as_str() {
            "" => &self.address,
            address => address,
        };
        let port = self.internal_port.parse().unwrap_or(self.port);
        (address, port) != (self.address.as_str(), self.port)
    }

    /// TLS of the listener for clients.
    pub fn client_tls(&self) -> Option<ServerTlsSection<'_>> {
        let is_used = self.tls.enabled && !self.tls_autocert.enabled;
        is_used.then_some(ServerTlsSection { key: "http_server.tls", options: &self.tls })
    }

    /// Whether the internal listener shows automatic certificates, as the one for clients does.
    pub fn has_internal_autocert(&self) -> bool {
        let has_other = self.is_split() && (self.internal_tls.enabled || self.tls_external);
        self.tls_autocert.enabled && !has_other
    }

    /// TLS of the listener with the operator's and backends' endpoints.
    pub fn internal_tls(&self) -> Option<ServerTlsSection<'_>> {
        let own = ServerTlsSection { key: "http_server.internal_tls", options: &self.internal_tls };
        match self.is_split() {
            true if self.internal_tls.enabled => Some(own),
            true if self.tls_external => None,
            _ => self.client_tls(),
        }
    }
}
