//! Both ends of TLS: a listener with the resolver under test, and clients.
//! In: a resolver, names → out: the certificate that a client gets.
//! Uses tokio-rustls. Never: HTTP.
//! Changed here: what a client believes.

use std::{sync::Arc, time::Instant};

use rustls::{ServerConfig, crypto::aws_lc_rs, server::ResolvesServerCert};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

use crate::TlsOptions;
use crate::{ACME_PROTOCOL, Tls};

/// Accepts handshakes and closes each connection after it.
pub(super) fn listen(
    listener: TcpListener,
    resolver: Arc<dyn ResolvesServerCert>,
) -> JoinHandle<()> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has suites")
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.alpn_protocols = vec![b"http/1.1".to_vec(), ACME_PROTOCOL.to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let accept = acceptor.accept(socket);
            tokio::spawn(async move {
                if let Ok(mut stream) = accept.await {
                    let _ = stream.shutdown().await;
                    let _ = stream.read(&mut [0]).await;
                }
            });
        }
    })
}

/// A client that believes this root, or anything without one.
pub(super) fn client(root: Option<&str>) -> Tls {
    let options = TlsOptions {
        enabled: true,
        server_ca_pem: root.unwrap_or_default().to_owned(),
        insecure_skip_verify: root.is_none(),
        ..TlsOptions::default()
    };
    Tls::new(&options).expect("PEM")
}

/// The certificate that the client gets for a name.
pub(super) async fn shown(client: &Tls, port: u16, name: &str) -> Option<Vec<u8>> {
    let socket = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    let stream = client.connect(name, socket).await.ok()?;
    Some(stream.get_ref().1.peer_certificates()?.first()?.to_vec())
}

/// Asks until the certificate is as wanted.
pub(super) async fn shown_when(
    client: &Tls,
    port: u16,
    name: &str,
    is_wanted: impl Fn(&[u8]) -> bool,
) -> Vec<u8> {
    let give_up = Instant::now() + super::PATIENCE;
    loop {
        if let Some(certificate) = shown(client, port, name).await.filter(|shown| is_wanted(shown))
        {
            return certificate;
        }
        assert!(Instant::now() < give_up, "no such certificate of {name}");
    }
}
