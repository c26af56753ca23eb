//! A certificate for a run with TLS: made for the run, trusted by its subscribers, shown by both contenders.
//! In: nothing → out: files for a server, a configuration for subscribers.
//! Uses rcgen and rustls; removes the files when dropped.
//! Changed here: what both sides agree on; who speaks TLS is decided in the scenarios.

use anyhow::{Context, Result};
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fanwire_load::generator::tls::SERVER_NAME;

/// The files of a run.
pub struct Certificate {
    folder: PathBuf,
    client: Arc<ClientConfig>,
}

impl Certificate {
    /// A certificate with a key on the curve P-256, as most certificates have today.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn new() -> Result<Self> {
        let own = rcgen::generate_simple_self_signed(vec![SERVER_NAME.to_owned()])?;
        let mut roots = RootCertStore::empty();
        roots.add(own.cert.der().clone())?;
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let versioned = builder.with_safe_default_protocol_versions()?;
        let mut client = versioned.with_root_certificates(roots).with_no_client_auth();
        client.resumption = Resumption::disabled();
        let name = format!("fanwire-bench-{}-certificate", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let made = Self { folder, client: Arc::new(client) };
        fs::write(made.certificate(), own.cert.pem())?;
        fs::write(made.key(), own.signing_key.serialize_pem())?;
        Ok(made)
    }

    pub fn certificate(&self) -> PathBuf {
        self.folder.join("cert.pem")
    }

    pub fn key(&self) -> PathBuf {
        self.folder.join("key.pem")
    }

    /// The configuration of subscribers. Each handshake is a full one.
    pub fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.client)
    }

    /// The section `http_server` of a server that speaks TLS to subscribers, and plain HTTP to the publisher on
    /// [`API_IP`] and the same port.
    pub fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "http_server": {
            "internal_address": API_IP,
            "tls_external": true,
            "tls": { "enabled": true, "cert_pem": self.certificate(), "key_pem": self.key() },
        }})
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The configuration of the bare loop.
///
/// # Errors
/// The files are no pair.
pub fn server_config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>> {
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let server = builder.with_safe_default_protocol_versions()?.with_no_client_auth();
    Ok(Arc::new(server.with_single_cert(chain, key)?))
}

/// The address at which a server with TLS serves its API without TLS.
pub const API_IP: &str = "127.0.0.2";
