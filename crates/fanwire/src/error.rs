//! Why a server did not start, or lost a part, in words that name the key and the remedy.
//! In: errors of the parts → out: one error.
//! Uses the errors of the parts. Never: starts anything.
//! Changed here: the words for what happens at the start.

use std::{io, net::SocketAddr, sync::Arc};

use fanwire_auth::OptionsError;
use fanwire_consumers::ConsumerError;
use fanwire_proxy::ProxyError;
use fanwire_tls::{AcmeError, SectionError, TlsError};
use tokio::sync::watch;

/// Why a server did not start. Its text names the configuration key and the remedy.
///
/// ```
/// use fanwire::{EmbeddedServer, StartError, config::Config};
///
/// let other = std::net::TcpListener::bind("127.0.0.1:0")?;
/// let mut config = Config::default();
/// config.http_server.address = "127.0.0.1".to_owned();
/// config.http_server.port = other.local_addr()?.port();
/// let error = EmbeddedServer::start(config).err().expect("the address is in use");
/// assert!(matches!(error, StartError::Bind { .. }));
/// assert!(error.to_string().contains("choose another port"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An option of the node is wrong; names the key, the value and valid values.
    #[error("{0}")]
    Options(OptionsError),
    /// The configured engine cannot be used; names its address and the remedy.
    #[error("{0}")]
    Engine(Box<dyn std::error::Error + Send + Sync>),
    /// `engine.type` is another one than that of the program from which this one is to take over.
    #[error("engine.type has changed since the server was started: restart it")]
    EngineChanged,
    /// `http_server.address` or `internal_address` cannot be resolved.
    #[error(
        "{key} = {value:?} cannot be resolved ({source}): use an IP address or a name that resolves"
    )]
    Address { key: &'static str, value: String, source: io::Error },
    /// The address is in use, or not of this machine. `keys` is the common prefix of its configuration keys.
    #[error("{}", bind_error(keys, *address, source))]
    Bind { keys: &'static str, address: SocketAddr, source: io::Error },
    /// A `tls` section is invalid; `key` is its name.
    #[error("{key}.{source}")]
    Tls { key: &'static str, source: TlsError },
    /// A key of `http_server.tls_autocert` is invalid, or its folder or address cannot be used.
    #[error("{0}")]
    Acme(AcmeError),
    /// An event proxy cannot be made; names it.
    #[error("{0}")]
    Proxy(ProxyError),
    /// The queue of a consumer cannot be used; names both.
    #[error("{0}")]
    Consumer(ConsumerError),
    /// A variable of OpenTelemetry is wrong; names it.
    #[error("{0}")]
    Traces(String),
    /// `recorder.path` cannot be used.
    #[error(
        "recorder.path is {path:?}, which cannot be used ({source}): use a folder in which this process may create files"
    )]
    Recorder { path: String, source: io::Error },
    /// Another server has the file `engine.memory.snapshot_path`.
    #[error(
        "engine.memory.snapshot_path is {path:?}, which another server has open: stop it, or choose another file"
    )]
    SnapshotInUse { path: String },
    /// Threads or pollers could not be created.
    #[error("cannot start the shards: {0}")]
    Shards(io::Error),
    /// The listener that the program passed cannot be used.
    #[error("cannot use the given listener: {0}")]
    Listener(io::Error),
    /// The threads of the HTTP side could not be created.
    #[error("cannot start the threads for HTTP: {0}")]
    Runtime(io::Error),
}

fn bind_error(keys: &str, address: SocketAddr, source: &io::Error) -> String {
    let port = address.port();
    if source.kind() == io::ErrorKind::AddrInUse {
        format!(
            "{keys}port = {port}: {address} is in use by another process: stop it, or choose another port (0 = any free port)"
        )
    } else {
        format!(
            "{keys}address and {keys}port: cannot listen on {address} ({source}): use an address of this machine and a port you may bind"
        )
    }
}

/// The end of a part of a running server that does not come back: the server goes on without it, and looks healthy.
///
/// A program should shut the server down and report the error, as `fanwire serve` does.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// A consumer has ended for good, because its task panicked or its queue refuses it; names it and the reason.
    #[error("a consumer has ended for good: {0}")]
    Consumer(Arc<ConsumerError>),
}

/// Waits for an error that was reported.
pub(crate) async fn reported(mut failure: watch::Receiver<Option<ServerError>>) -> ServerError {
    match failure.wait_for(Option::is_some).await.as_deref() {
        Ok(Some(error)) => error.clone(),
        // The consumers have ended without an error: there is none to report any more.
        _ => std::future::pending().await,
    }
}

impl From<SectionError> for StartError {
    fn from(SectionError { key, source }: SectionError) -> Self {
        Self::Tls { key, source }
    }
}

#[cfg(test)]
mod tests;
