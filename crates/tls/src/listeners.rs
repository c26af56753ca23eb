//! TLS of the listeners: which section is whose, reading them again, and what is logged about certificates.
//! In: the sections of the listeners → out: TLS of each listener; a reload that replaces all certificates or none.
//! Uses `tls::server`. Never: a socket.
//! Changed here: how sections become listeners. What one section means lives in `tls::server`.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use rustls::server::ResolvesServerCert;

use crate::server::{Credentials, ServerTls};
use crate::{ListenerSections, SectionError, ServerTlsSection, pem};

/// TLS of the listeners of a server; `None` for a listener that speaks plain HTTP.
#[derive(Clone, Default)]
pub struct ListenersTls {
    pub clients: Option<Arc<ServerTls>>,
    /// The same as the other one if both have one section.
    pub internal: Option<Arc<ServerTls>>,
    /// Those for gRPC: of the server API, and of unidirectional clients.
    pub grpc: [Option<Arc<ServerTls>>; 2],
}

/// Sections, read and checked.
pub struct LoadedTls(Vec<(&'static str, Credentials)>);

impl ListenersTls {
    /// `automatic` has the certificates that an authority issues, if the configuration wants them.
    ///
    /// # Errors
    /// A section with a wrong certificate.
    pub fn start(
        sections: ListenerSections<'_>,
        automatic: Option<Arc<dyn ResolvesServerCert>>,
    ) -> Result<Self, SectionError> {
        let load = |section: ServerTlsSection<'_>| {
            let credentials = load(section)?;
            log_warnings(section.key, &credentials);
            Ok::<_, SectionError>(Arc::new(ServerTls::new(section.key, credentials)))
        };
        let is_same = sections.internal.map(|it| it.key) == sections.clients.map(|it| it.key);
        let clients = sections.clients.map(load).transpose()?;
        let internal =
            if is_same { clients.clone() } else { sections.internal.map(load).transpose()? };
        let [api, uni] = sections.grpc.map(|section| section.map(load).transpose());
        let grpc = [api?, uni?];
        let Some(resolver) = automatic else { return Ok(Self { clients, internal, grpc }) };
        let automatic = Arc::new(ServerTls::automatic("http_server.tls_autocert", resolver));
        let internal =
            if sections.has_internal_autocert { Some(automatic.clone()) } else { internal };
        Ok(Self { clients: Some(automatic), internal, grpc })
    }

    /// Reads the sections of the running listeners again.
    ///
    /// # Errors
    /// A section with a wrong certificate.
    pub fn read_again(&self, sections: ListenerSections<'_>) -> Result<LoadedTls, SectionError> {
        let running: Vec<_> = self.sections().map(|tls| tls.key()).collect();
        let of_http = [sections.clients, sections.internal].into_iter();
        let sections = of_http.chain(sections.grpc).flatten();
        let mut loaded: Vec<(&'static str, Credentials)> = Vec::new();
        for section in sections {
            let key = section.key;
            if running.contains(&key) && loaded.iter().all(|(known, _)| *known != key) {
                loaded.push((key, load(section)?));
            }
        }
        Ok(LoadedTls(loaded))
    }

    /// Replaces the certificates, for handshakes that begin afterwards.
    pub fn replace(&self, loaded: LoadedTls) {
        for (key, credentials) in loaded.0 {
            log_warnings(key, &credentials);
            let Some(tls) = self.sections().find(|tls| tls.key() == key) else { continue };
            if tls.replace(credentials) {
                let end = tls.end().map(|end| end.to_string());
                tracing::info!(key, end, "replaced the certificate");
            }
        }
    }

    /// Each section once.
    pub fn sections(&self) -> impl Iterator<Item = &Arc<ServerTls>> {
        let internal = self.internal.iter();
        let is_other = |tls: &&Arc<ServerTls>| {
            self.clients.as_ref().is_none_or(|clients| !Arc::ptr_eq(clients, tls))
        };
        self.clients.iter().chain(internal.filter(is_other)).chain(self.grpc.iter().flatten())
    }

    /// The errors of a start, and warnings with their keys.
    pub fn check(sections: ListenerSections<'_>) -> (Vec<SectionError>, Vec<String>) {
        let ListenerSections { clients, internal, grpc, .. } = sections;
        let mut errors = Vec::new();
        let mut warnings = Vec::new();
        let clients_key = clients.map(|section| section.key);
        let is_other = |section: &ServerTlsSection<'_>| Some(section.key) != clients_key;
        let of_http = clients.into_iter().chain(internal.filter(is_other));
        for section in of_http.chain(grpc.into_iter().flatten()) {
            match load(section) {
                Ok(credentials) => warnings.extend(described(section.key, &credentials)),
                Err(error) => {
                    errors.push(error);
                    errors.extend(further(section));
                }
            }
        }
        (errors, warnings)
    }
}

/// The error of the key, where the one of the certificate is found first.
fn further(section: ServerTlsSection<'_>) -> Option<SectionError> {
    let ServerTlsSection { key, options } = section;
    pem::certificates("cert_pem", &options.cert_pem).err()?;
    let source = pem::private_key("key_pem", &options.key_pem).err()?;
    Some(SectionError { key, source })
}

fn load(section: ServerTlsSection<'_>) -> Result<Credentials, SectionError> {
    let ServerTlsSection { key, options } = section;
    Credentials::load(options).map_err(|source| SectionError { key, source })
}

fn log_warnings(key: &str, credentials: &Credentials) {
    for warning in described(key, credentials) {
        tracing::warn!("{warning}");
    }
}

fn described(key: &str, credentials: &Credentials) -> Vec<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let warnings = credentials.warnings(now).into_iter();
    warnings.map(|warning| format!("{key}.cert_pem: {warning}")).collect()
}
