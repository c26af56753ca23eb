//! Why a server did not start, or lost a part, in words that name the key and the remedy.
//! In: errors of the parts → out: one error.
//! Uses the errors of the parts. Never: starts anything.
//! Changed here: the words for what happens at the start.

use std::{fmt, io, net::SocketAddr, sync::Arc};

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
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// An option of the node is wrong; names the key, the value and valid values.
    Options(OptionsError),
    /// The configured engine cannot be used; names its address and the remedy.
    Engine(Box<dyn std::error::Error + Send + Sync>),
    /// `http_server.address` or `internal_address` cannot be resolved.
    Address { key: &'static str, value: String, source: io::Error },
    /// The address is in use, or not of this machine. `keys` is the common prefix of its configuration keys.
    Bind { keys: &'static str, address: SocketAddr, source: io::Error },
    /// A `tls` section is invalid; `key` is its name.
    Tls { key: &'static str, source: TlsError },
    /// A key of `http_server.tls_autocert` is invalid, or its folder or address cannot be used.
    Acme(AcmeError),
    /// An event proxy cannot be made; names it.
    Proxy(ProxyError),
    /// The queue of a consumer cannot be used; names both.
    Consumer(ConsumerError),
    /// A variable of OpenTelemetry is wrong; names it.
    Traces(String),
    /// `recorder.path` cannot be used.
    Recorder { path: String, source: io::Error },
    /// Another server has the file `engine.memory.snapshot_path`.
    SnapshotInUse { path: String },
    /// Threads or pollers could not be created.
    Shards(io::Error),
    /// The listener that the program passed cannot be used.
    Listener(io::Error),
    /// The threads of the HTTP side could not be created.
    Runtime(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Options(error) => error.fmt(f),
            StartError::Engine(error) => error.fmt(f),
            StartError::Address { key, value, source } => write!(
                f,
                "{key} = {value:?} cannot be resolved ({source}): use an IP address or a name that resolves"
            ),
            StartError::Bind { keys, address, source }
                if source.kind() == io::ErrorKind::AddrInUse =>
            {
                write!(
                    f,
                    "{keys}port = {}: {address} is in use by another process: stop it, or choose another port (0 = any free port)",
                    address.port()
                )
            }
            StartError::Bind { keys, address, source } => write!(
                f,
                "{keys}address and {keys}port: cannot listen on {address} ({source}): use an address of this machine and a port you may bind"
            ),
            StartError::Tls { key, source } => write!(f, "{key}.{source}"),
            StartError::Acme(error) => error.fmt(f),
            StartError::Proxy(error) => error.fmt(f),
            StartError::Consumer(error) => error.fmt(f),
            StartError::Traces(error) => f.write_str(error),
            StartError::Recorder { path, source } => write!(
                f,
                "recorder.path is {path:?}, which cannot be used ({source}): use a folder in which this process may create files"
            ),
            StartError::SnapshotInUse { path } => write!(
                f,
                "engine.memory.snapshot_path is {path:?}, which another server has open: stop it, or choose another file"
            ),
            StartError::Shards(error) => write!(f, "cannot start the shards: {error}"),
            StartError::Listener(error) => write!(f, "cannot use the given listener: {error}"),
            StartError::Runtime(error) => write!(f, "cannot start the threads for HTTP: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// The end of a part of a running server that does not come back: the server goes on without it, and looks healthy.
///
/// A program should shut the server down and report the error, as `fanwire serve` does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ServerError {
    /// A consumer has ended for good, because its task panicked or its queue refuses it; names it and the reason.
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

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Consumer(error) = self;
        write!(f, "a consumer has ended for good: {error}")
    }
}

impl std::error::Error for ServerError {}

impl From<SectionError> for StartError {
    fn from(SectionError { key, source }: SectionError) -> Self {
        Self::Tls { key, source }
    }
}

#[cfg(test)]
mod tests;
