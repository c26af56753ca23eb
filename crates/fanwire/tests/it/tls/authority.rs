//! An authority for the tests of TLS: certificates for servers and clients, and clients that trust it.
//! In: names, versions → out: options of a server, connected sockets.
//! Uses rcgen and tokio-rustls; never a certificate of a file.
//! Changed here: the client's side of TLS. What is expected of servers is in the tests.

use std::{net::SocketAddr, sync::Arc};

use fanwire_tls::ServerTlsOptions;
use rcgen::{BasicConstraints, CertificateParams, CertifiedKey, DnType, IsCa, Issuer, KeyPair};
use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

pub(crate) struct Authority {
    certificate: CertificateDer<'static>,
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("random numbers");
        // Certificates name their issuer; two of the same name would be the same one with another key.
        let name = format!("authority {:?}", key.public_key_raw());
        params.distinguished_name.push(DnType::CommonName, &name[..60]);
        let certificate = params.self_signed(&key).expect("a certificate");
        let (pem, certificate) = (certificate.pem(), certificate.der().clone());
        Self { certificate, pem, issuer: Issuer::new(params, key) }
    }

    /// The certificate of the authority itself.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    fn issue(&self, name: &str) -> CertifiedKey<KeyPair> {
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let signing_key = KeyPair::generate().expect("random numbers");
        let cert = params.signed_by(&signing_key, &self.issuer).expect("a certificate");
        CertifiedKey { cert, signing_key }
    }

    /// A server with a certificate for `localhost`.
    pub(crate) fn server(&self) -> ServerTlsOptions {
        let CertifiedKey { cert, signing_key } = self.issue("localhost");
        ServerTlsOptions {
            enabled: true,
            cert_pem: cert.pem(),
            key_pem: signing_key.serialize_pem().into(),
            client_ca_pem: String::new(),
        }
    }

    /// A client that trusts this authority and shows a certificate of `own`, if there is one.
    pub(crate) fn client(
        &self,
        version: &'static SupportedProtocolVersion,
        own: Option<&Self>,
    ) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).expect("a certificate");
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(&[version]).expect("a version");
        let builder = builder.with_root_certificates(roots);
        match own.map(|own| own.issue("a client")) {
            None => builder.with_no_client_auth(),
            Some(CertifiedKey { cert, signing_key }) => {
                let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
                builder.with_client_auth_cert(vec![cert.der().clone()], key).expect("a pair")
            }
        }
    }
}

/// A handshake over any socket, for the name `localhost`.
pub(crate) async fn handshake<S>(
    socket: S,
    config: &Arc<ClientConfig>,
) -> std::io::Result<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::clone(config)).connect(name, socket).await
}

/// A socket whose handshake is done.
pub(crate) async fn connect(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
) -> TlsStream<TcpStream> {
    let socket = TcpStream::connect(address).await.expect("the server listens");
    handshake(socket, config).await.expect("a handshake")
}
