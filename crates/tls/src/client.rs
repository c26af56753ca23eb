//! TLS of outgoing connections (TLS 1.3, RFC 8446, and 1.2): trusted authorities and our client certificate.
//! In: a section `tls` of the configuration or one certificate, then sockets → out: verified streams.
//! Uses rustls with aws-lc, named directly so that no process-wide provider is needed. Never: speaks a protocol above TLS.
//! Changed here: how servers are verified. How PEM options are read lives in `pem`.

use std::{
    fmt, io,
    sync::{Arc, OnceLock},
};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::TlsOptions;
use crate::{TlsError, pem};

/// The client side of TLS.
pub struct Tls {
    config: Arc<ClientConfig>,
    /// "" = the host name of the address.
    server_name: String,
}

impl Tls {
    pub fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        Self::build(options, None)
    }

    /// Accepts one certificate, the first of an option `cert_pem`, whatever its names, dates and authority are.
    pub fn of_certificate(cert_pem: &str) -> Result<Self, TlsError> {
        let certificate = pem::certificates("cert_pem", cert_pem)?.into_iter().next();
        let any = TlsOptions { enabled: true, insecure_skip_verify: true, ..TlsOptions::default() };
        Self::build(&any, certificate)
    }

    fn build(
        options: &TlsOptions,
        certificate: Option<CertificateDer<'static>>,
    ) -> Result<Self, TlsError> {
        let default = TlsOptions::default();
        let options = if options.enabled { options } else { &default };
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("the provider has suites of both versions");
        let builder = if options.insecure_skip_verify {
            let verifier = Arc::new(WithoutAuthorities { certificate, provider });
            builder.dangerous().with_custom_certificate_verifier(verifier)
        } else {
            builder.with_root_certificates(authorities(&options.server_ca_pem)?)
        };
        let config = match options.cert_pem.as_str() {
            "" => builder.with_no_client_auth(),
            pem => {
                let chain = pem::certificates("cert_pem", pem)?;
                let key = pem::private_key("key_pem", &options.key_pem)?;
                let built = builder.with_client_auth_cert(chain, key);
                built.map_err(|error| TlsError::pem("cert_pem", &error))?
            }
        };
        Ok(Self { config: Arc::new(config), server_name: options.server_name.clone() })
    }

    /// Offers protocols above TLS (ALPN, RFC 7301), the preferred one first.
    #[must_use]
    pub(crate) fn with_protocols(mut self, protocols: &[&[u8]]) -> Self {
        let offered = protocols.iter().map(|protocol| protocol.to_vec());
        Arc::make_mut(&mut self.config).alpn_protocols = offered.collect();
        self
    }

    /// The settings for a client that opens its own sockets.
    pub fn config(&self) -> &Arc<ClientConfig> {
        &self.config
    }

    /// The name that certificates must have; "" = the host name of the address.
    pub fn server_name(&self) -> &str {
        &self.server_name
    }

    /// Performs the TLS handshake on a socket connected to `host`.
    pub async fn connect(&self, host: &str, socket: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let name = if self.server_name.is_empty() { host } else { &self.server_name };
        let name = ServerName::try_from(name.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        TlsConnector::from(Arc::clone(&self.config)).connect(name, socket).await
    }
}

/// The authorities in an option, or those of the system, which are read once: that takes long, and there are many clients.
fn authorities(pem: &str) -> Result<Arc<RootCertStore>, TlsError> {
    static OF_THE_SYSTEM: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    if pem.is_empty() {
        // Having no authority is not an error here: addresses may be `http`, and otherwise the handshake fails.
        return Ok(Arc::clone(OF_THE_SYSTEM.get_or_init(|| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            Arc::new(roots)
        })));
    }
    let mut roots = RootCertStore::empty();
    for certificate in pem::certificates("server_ca_pem", pem)? {
        roots.add(certificate).map_err(|error| TlsError::pem("server_ca_pem", &error))?;
    }
    Ok(Arc::new(roots))
}

/// Accepts `certificate` alone, or without it every one (`insecure_skip_verify`); handshake signatures are still checked.
#[derive(Debug)]
struct WithoutAuthorities {
    certificate: Option<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for WithoutAuthorities {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match &self.certificate {
            Some(certificate) if certificate != shown => {
                Err(CertificateError::ApplicationVerificationFailure.into())
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}
