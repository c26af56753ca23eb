//! Certificates by ACME (RFC 8555): `http_server.tls_autocert`.
//! In: the section of the configuration → out: a resolver for TLS handshakes, a task that orders and renews, numbers for metrics.
//! Uses its modules; the orders themselves are made by instant-acme. Never: accepts TLS connections.
//! Changed here: how the parts start. When an order is due is decided in `schedule`, its steps are in `order`.

mod account;
mod cache;
mod certificate;
mod certificates;
mod challenge;
mod client;
mod order;
mod plain_http;
mod resolver;
mod schedule;
mod validity;
mod worker;

use std::{future::Future, sync::Arc};

use rustls::{pki_types::ServerName, server::ResolvesServerCert};
use tokio::net::TcpListener;

pub use self::certificates::{Certificates, NameStats};
use self::{
    cache::Cache,
    challenge::Challenge,
    client::AuthorityClient,
    plain_http::PlainHttp,
    resolver::Resolver,
    schedule::{ChallengeKind, OrderSchedule},
    worker::Worker,
};
use crate::Tls;
use crate::{AutocertOptions, TlsOptions};

/// The certificates of a server that is about to start.
pub struct Acme {
    certificates: Arc<Certificates>,
    challenge: Arc<Challenge>,
    names: Vec<Arc<str>>,
    resolver: Arc<Resolver>,
    worker: Worker,
    /// For http-01.
    listener: Option<TcpListener>,
}

/// An invalid key of the section, by the last part of its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("http_server.tls_autocert.{key}: {fault}")]
pub struct AcmeError {
    pub key: &'static str,
    pub fault: String,
}

impl Acme {
    /// Reads the cache; orders begin with [`run`](Self::run). `listener` is that of http-01.
    ///
    /// # Errors
    /// The folder cannot be used, or what [`check`](Self::check) finds.
    pub fn open(
        options: &AutocertOptions,
        listener: Option<TcpListener>,
    ) -> Result<Self, AcmeError> {
        let (names, tls) = check_all(options)?;
        let cache = Cache::open(&options.cache_dir, &options.directory_url).map_err(|error| {
            let fault = format!(
                "cannot write to {:?} ({error}): name a folder that this process may write to",
                options.cache_dir
            );
            AcmeError { key: "cache_dir", fault }
        })?;
        let challenges = if listener.is_some() { WITH_HTTP } else { WITHOUT_HTTP };
        let certificates = Arc::new(Certificates::new(names.iter().cloned()));
        let challenge = Arc::<Challenge>::default();
        let resolver = Resolver::new(certificates.clone(), challenge.clone(), &options.server_name);
        let mut worker = Worker {
            directory_url: options.directory_url.clone(),
            email: options.email.clone(),
            client: AuthorityClient::new(tls),
            cache,
            schedule: OrderSchedule::new(names.iter().cloned(), challenges),
            certificates: certificates.clone(),
            challenge: challenge.clone(),
            account: None,
        };
        worker.load(&names);
        let resolver = Arc::new(resolver);
        Ok(Self { certificates, challenge, names, resolver, worker, listener })
    }

    /// The errors that can be found without files and sockets.
    ///
    /// # Errors
    /// There is no name, one is not that of a host, or `directory_ca_pem` cannot be read.
    pub fn check(options: &AutocertOptions) -> Result<(), AcmeError> {
        check_all(options).map(drop)
    }

    /// The source of certificates for a TLS listener. Its protocols must include [`ACME_PROTOCOL`](crate::ACME_PROTOCOL), last;
    /// it closes a connection that negotiated it after the handshake.
    pub fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        self.resolver.clone()
    }

    /// For metrics.
    pub fn certificates(&self) -> Arc<Certificates> {
        self.certificates.clone()
    }

    /// Orders, renews, and answers http-01, until it is dropped.
    pub fn run(self) -> impl Future<Output = ()> + Send + 'static {
        let Self { challenge, names, worker, listener, .. } = self;
        async move {
            match listener {
                Some(listener) => {
                    tokio::join!(
                        worker.run(),
                        plain_http::serve(listener, PlainHttp { challenge, names })
                    );
                }
                None => worker.run().await,
            }
        }
    }
}

fn check_all(options: &AutocertOptions) -> Result<(Vec<Arc<str>>, Tls), AcmeError> {
    let names: Vec<Arc<str>> = options.names().into_iter().map(Arc::from).collect();
    let is_host = |name: &str| matches!(ServerName::try_from(name), Ok(ServerName::DnsName(_)));
    let wrong = names.iter().find(|name| !is_host(name));
    if names.is_empty() || wrong.is_some() {
        let wrong = wrong.map_or_else(String::new, |name| format!(", not {name:?}"));
        let fault = format!(
            "it needs the names of this server{wrong}: certificates are ordered for them alone"
        );
        return Err(AcmeError { key: "host_whitelist", fault });
    }
    let server_ca_pem = options.directory_ca_pem.clone();
    let tls = TlsOptions { enabled: true, server_ca_pem, ..TlsOptions::default() };
    let tls = Tls::new(&tls)
        .map_err(|error| AcmeError { key: "directory_ca_pem", fault: error.fault })?;
    Ok((names, tls))
}

const WITHOUT_HTTP: &[ChallengeKind] = &[ChallengeKind::TlsAlpn];
const WITH_HTTP: &[ChallengeKind] = &[ChallengeKind::TlsAlpn, ChallengeKind::Http];

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
