//! TLS of a listener (TLS 1.3, RFC 8446, and 1.2): its certificate, certificates of clients, tickets; all but the versions can change.
//! In: a section `tls` of a listener → out: a configuration for handshakes, which follows a replaced certificate.
//! Uses rustls with aws-lc, named directly so that no process-wide provider is needed. Never a socket.
//! Changed here: what handshakes agree on. How PEM options are read lives in `tls::pem`, the handshake in `edge::accept::tls_accept`.

use std::{fmt, sync::Arc};

use parking_lot::RwLock;
use rustls::{
    Error, InconsistentKeys, RootCertStore, ServerConfig, WantsVerifier,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::CertificateDer,
    server::{
        ClientHello, ProducesTickets, ResolvesServerCert, WebPkiClientVerifier,
        danger::ClientCertVerifier,
    },
    sign::CertifiedKey,
};

use crate::ServerTlsOptions;
use crate::{
    TlsError,
    certificate::{Date, Fields},
    pem,
};

/// TLS of one listener, or of both.
pub struct ServerTls {
    /// The name of its section.
    key: &'static str,
    /// `None` if they are ordered from an authority.
    certificates: Option<Arc<CertificateStore>>,
    accepting: RwLock<Accepting>,
}

/// The parts that new handshakes use.
struct Accepting {
    config: Arc<ServerConfig>,
    /// Authorities of clients' certificates.
    authorities: Vec<CertificateDer<'static>>,
}

/// The certificate that handshakes show. It may be replaced at any time.
#[derive(Debug)]
pub(crate) struct CertificateStore(RwLock<Arc<CertifiedKey>>);

/// The files of a section, read and checked.
pub struct Credentials {
    certified: CertifiedKey,
    authorities: Vec<CertificateDer<'static>>,
    /// `None` without authorities.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    tickets: Arc<dyn ProducesTickets>,
    provider: Arc<CryptoProvider>,
}

impl CertificateStore {
    pub(crate) fn new(certified: CertifiedKey) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::new(certified))))
    }

    /// Handshakes that begin afterwards show this certificate.
    pub(crate) fn replace(&self, certified: CertifiedKey) {
        *self.0.write() = Arc::new(certified);
    }

    pub(crate) fn current(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.read())
    }
}

impl ResolvesServerCert for CertificateStore {
    /// Whatever name the client asks for, also without one.
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

impl ServerTls {
    /// TLS of the section `key`.
    pub fn new(key: &'static str, credentials: Credentials) -> Self {
        let config = credentials.config();
        let certificates = CertificateStore::new(credentials.certified);
        let config = config.with_cert_resolver(Arc::clone(&certificates) as _);
        let config = Arc::new(finished(config, credentials.tickets));
        let accepting = Accepting { config, authorities: credentials.authorities };
        Self { key, certificates: Some(certificates), accepting: RwLock::new(accepting) }
    }

    /// TLS of the section `key`, with certificates that an authority issues, and the protocol in which it validates names.
    pub fn automatic(key: &'static str, certificates: Arc<dyn ResolvesServerCert>) -> Self {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = builder(provider).with_no_client_auth().with_cert_resolver(certificates);
        let mut config = finished(config, tickets());
        config.alpn_protocols.push(ACME_PROTOCOL.to_vec());
        let accepting = Accepting { config: Arc::new(config), authorities: Vec::new() };
        Self { key, certificates: None, accepting: RwLock::new(accepting) }
    }

    /// Replaces certificate and authorities, for handshakes that begin afterwards. Returns whether the certificate
    /// is another one. With other authorities no earlier session is resumed, because a resumed one is not verified
    /// again.
    pub fn replace(&self, credentials: Credentials) -> bool {
        let Some(certificates) = &self.certificates else { return false };
        let is_new = certificates.current().cert != credentials.certified.cert;
        let has_new_authorities = self.accepting.read().authorities != credentials.authorities;
        if has_new_authorities {
            let config = credentials.config().with_cert_resolver(Arc::clone(certificates) as _);
            let config = Arc::new(finished(config, credentials.tickets));
            *self.accepting.write() = Accepting { config, authorities: credentials.authorities };
        }
        certificates.replace(credentials.certified);
        is_new
    }

    /// The name of its section.
    pub fn key(&self) -> &'static str {
        self.key
    }

    /// The configuration of a handshake that begins now.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.accepting.read().config)
    }

    /// The end of the certificate of the section, if it can be read.
    pub fn end(&self) -> Option<Date> {
        Some(Fields::of(self.certificates.as_ref()?.current().cert.first()?)?.end)
    }
}

type ConfigBuilder = rustls::ConfigBuilder<ServerConfig, rustls::server::WantsServerCert>;

impl Credentials {
    /// Reads and checks the files of a section.
    ///
    /// # Errors
    /// The option, what is wrong with it, and what would be right.
    pub fn load(options: &ServerTlsOptions) -> Result<Self, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let chain = pem::certificates("cert_pem", &options.cert_pem)?;
        let key = pem::private_key("key_pem", &options.key_pem)?;
        let signing_key = provider
            .key_provider
            .load_private_key(key)
            .map_err(|error| TlsError::pem("key_pem", &error))?;
        let certified = CertifiedKey::new(chain, signing_key);
        check_pair(&certified)?;
        let authorities = match options.client_ca_pem.as_str() {
            "" => Vec::new(),
            value => pem::certificates("client_ca_pem", value)?,
        };
        let verifier = verifier(&authorities, &provider)?;
        Ok(Self { certified, authorities, verifier, tickets: tickets(), provider })
    }

    fn config(&self) -> ConfigBuilder {
        let builder = builder(Arc::clone(&self.provider));
        match &self.verifier {
            Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
            None => builder.with_no_client_auth(),
        }
    }

    /// Returns the properties of the certificate that are valid here and may fail at clients, at `now` in seconds since 1970.
    pub fn warnings(&self, now: u64) -> Vec<String> {
        let fields: Option<Vec<_>> =
            self.certified.cert.iter().map(|der| Fields::of(der)).collect();
        let Some(fields) = fields else { return Vec::new() };
        let is_broken = fields.windows(2).any(|pair| pair[0].issuer != pair[1].subject);
        let order = is_broken.then(|| {
            "the certificates are not in order, and some clients refuse them; expected the server's own one first, then \
             the one that signed it, and so on"
                .to_owned()
        });
        fields.first().and_then(|own| about_dates(own, now)).into_iter().chain(order).collect()
    }
}

fn builder(provider: Arc<CryptoProvider>) -> rustls::ConfigBuilder<ServerConfig, WantsVerifier> {
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    builder.expect("the provider has suites of both versions")
}

fn tickets() -> Arc<dyn ProducesTickets> {
    aws_lc_rs::Ticketer::new().expect("aws-lc has random numbers")
}

fn finished(mut config: ServerConfig, tickets: Arc<dyn ProducesTickets>) -> ServerConfig {
    config.alpn_protocols = ALPN_PROTOCOLS.map(<[u8]>::to_vec).into();
    config.ticketer = tickets;
    config
}

/// Checks that the key belongs to the first certificate.
fn check_pair(certified: &CertifiedKey) -> Result<(), TlsError> {
    match certified.keys_match() {
        // Some kinds of keys cannot be compared.
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(()),
        Err(Error::InconsistentKeys(_)) => Err(of_another(certified)),
        Err(error) => Err(TlsError::pem("cert_pem", &error)),
    }
}

/// The error of a key that is not that of the first certificate.
fn of_another(certified: &CertifiedKey) -> TlsError {
    let is_own = |certificate: &CertificateDer<'static>| {
        CertifiedKey::new(vec![certificate.clone()], Arc::clone(&certified.key))
            .keys_match()
            .is_ok()
    };
    match certified.cert.iter().position(is_own) {
        Some(at) => TlsError {
            key: "cert_pem",
            fault: format!("the certificate of key_pem is number {} in it", at + 1),
            expected: "the server's own certificate first, then the one that signed it, and so on",
        },
        None => TlsError {
            key: "key_pem",
            fault: "it is not the key of the certificate in cert_pem".to_owned(),
            expected: "the private key that this certificate was made for",
        },
    }
}

fn verifier(
    authorities: &[CertificateDer<'static>],
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
    if authorities.is_empty() {
        return Ok(None);
    }
    let mut roots = RootCertStore::empty();
    for certificate in authorities {
        let added = roots.add(certificate.clone());
        added.map_err(|error| TlsError::pem("client_ca_pem", &error))?;
    }
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    Ok(Some(verifier.build().map_err(|error| TlsError::pem("client_ca_pem", &error))?))
}

/// A warning about a certificate that is not valid, or soon will not be.
fn about_dates(own: &Fields<'_>, now: u64) -> Option<String> {
    let Fields { begin, end, .. } = own;
    let lifetime = end.seconds.saturating_sub(begin.seconds);
    let soon = (lifetime / LIFETIME_SHARE).min(SOON_SECONDS_MAX);
    if now < begin.seconds {
        return Some(format!("the certificate is not valid before {begin}, clients refuse it"));
    }
    match end.seconds.checked_sub(now) {
        None => Some(format!("the certificate expired on {end}, clients refuse it")),
        Some(left) if left < soon => {
            let days = left / 86_400;
            Some(format!(
                "the certificate expires on {end}, in {days} days; renew it and send SIGHUP"
            ))
        }
        Some(_) => None,
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The protocols above TLS that clients may choose (RFC 7301), the preferred one first.
const ALPN_PROTOCOLS: [&[u8]; 2] = [HTTP2, b"http/1.1"];

/// RFC 9113 §3.2.
pub const HTTP2: &[u8] = b"h2";

/// The protocol in which an authority validates names (tls-alpn-01, RFC 8737 §6.2).
pub const ACME_PROTOCOL: &[u8] = b"acme-tls/1";

/// A warning begins in the last tenth of a certificate's lifetime, which is after the time at which tools renew one.
const LIFETIME_SHARE: u64 = 10;

/// The warning begins at most two weeks before the end.
const SOON_SECONDS_MAX: u64 = 14 * 86_400;

#[cfg(test)]
mod tests;
