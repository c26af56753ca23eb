//! A server inside a program that has no async runtime: it starts on threads of its own and stops with its value.
//! In: a configuration, or a builder → out: a running server and its calls.
//! Uses `server`, one thread for the runtime. Contains no behaviour of the server.
//! Changed here: how a program without a runtime starts and stops a server.

use std::{
    net::SocketAddr,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use fanwire_config::Config;
use fanwire_metrics::ServerMetrics;
use tokio::{
    runtime,
    sync::{oneshot, watch},
};

use crate::{Builder, Handle, ServerError, ServerStats, StartError};

/// A server on threads of its own. Programs with a tokio runtime can use [`Server`](crate::Server) instead, and [`Builder`]
/// passes a listener and hooks.
///
/// Dropping it begins a graceful shutdown and does not wait for its end.
///
/// ```
/// let mut config = fanwire::config::Config::default();
/// config.http_server.address = "127.0.0.1".to_owned();
/// config.http_server.port = 0; // any free port
/// config.client.insecure = true; // no tokens
/// let server = fanwire::EmbeddedServer::start(config)?;
/// println!("ws://{}/connection/websocket", server.address());
///
/// let handle = server.handle();
/// let publisher = std::thread::spawn(move || handle.publish("news", r#"{"text":"hello"}"#).wait());
/// publisher.join().expect("the thread ends")?;
/// server.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct EmbeddedServer {
    address: SocketAddr,
    handle: Handle,
    metrics: Arc<ServerMetrics>,
    failure: watch::Receiver<Option<ServerError>>,
    /// Dropping it stops the server.
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Builder {
    /// Starts a server on threads of its own, which also run the hooks. Blocks until it listens.
    ///
    /// # Errors
    /// See [`StartError`]; nothing keeps running after an error.
    pub fn start_embedded(self) -> Result<EmbeddedServer, StartError> {
        EmbeddedServer::run(self)
    }
}

impl EmbeddedServer {
    /// Starts a server at the addresses of its configuration. Blocks until it listens.
    ///
    /// # Errors
    /// See [`StartError`]; nothing keeps running after an error.
    pub fn start(config: Config) -> Result<Self, StartError> {
        Builder::new(config).start_embedded()
    }

    fn run(builder: Builder) -> Result<Self, StartError> {
        let runtime = runtime::Builder::new_multi_thread()
            .thread_name("fanwire-http")
            .enable_all()
            .build()
            .map_err(StartError::Runtime)?;
        let (sender, started) = mpsc::sync_channel(1);
        let (stop, stopped) = oneshot::channel();
        let serve = async move {
            let server = match builder.start().await {
                Ok(server) => server,
                Err(error) => return drop(sender.send(Err(error))),
            };
            let parts = (server.address(), server.handle(), server.metrics(), server.failure());
            let _ = sender.send(Ok(parts));
            // Either a message or a dropped sender.
            let _ = stopped.await;
            server.shutdown().await;
        };
        let thread = thread::Builder::new()
            .name("fanwire".to_owned())
            .spawn(move || runtime.block_on(serve))
            .map_err(StartError::Runtime)?;
        let (address, handle, metrics, failure) =
            started.recv().expect("the thread sends one result")?;
        Ok(Self { address, handle, metrics, failure, stop, thread })
    }

    /// The bound address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The calls of the server, for any thread.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The totals of the server.
    pub fn stats(&self) -> ServerStats {
        ServerStats::of(&self.metrics)
    }

    /// The error of a part of the server that has ended for good; `None` while all parts work.
    pub fn failure(&self) -> Option<ServerError> {
        self.failure.borrow().clone()
    }

    /// Closes every connection with 3001 as [`Server::shutdown`](crate::Server::shutdown) does. Blocks until the server has ended.
    pub fn shutdown(self) {
        drop(self.stop);
        // A panic of that thread was logged by the panic hook; there is nothing left to stop.
        let _ = self.thread.join();
    }
}
