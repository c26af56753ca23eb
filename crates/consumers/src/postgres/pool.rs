//! Connections to a PostgreSQL: a bounded number, reused, with TLS as the DSN or the section `tls` says.
//! In: a DSN → out: clients that run statements.
//! Uses tokio-postgres, rustls with the settings of `tls`. Never: the meaning of a statement.
//! Changed here: time limits, how TLS is chosen.

use std::error::Error as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use fanwire_tls::Tls;
use fanwire_tls::TlsOptions;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{Client, Config, Connection, Error, SimpleQueryMessage, Socket};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as RustlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::dsn::Dsn;
use crate::OpenError;
use crate::runner::QueueError;

/// How to connect.
pub(super) struct PgServer {
    config: Config,
    tls: MakeTls,
    connections_max: usize,
}

impl PgServer {
    /// # Errors
    /// Returns the error of the DSN, which is the value of `key`, or of its TLS.
    pub(super) fn new(dsn: &str, tls: &TlsOptions, key: &'static str) -> Result<Self, OpenError> {
        let dsn = Dsn::split(dsn);
        let mut config: Config = dsn.rest.parse().map_err(|error: Error| {
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            OpenError::new(
                key,
                format!("{why}, expected postgres://user:password@host:port/database"),
            )
        })?;
        let is_verified = matches!(&*dsn.sslmode, "verify-ca" | "verify-full");
        config.ssl_mode(match &*dsn.sslmode {
            _ if tls.enabled || is_verified => SslMode::Require,
            "require" => SslMode::Require,
            "disable" => SslMode::Disable,
            "" | "prefer" | "allow" => SslMode::Prefer,
            other => return Err(OpenError::new(key, format!("its sslmode is {other:?}"))),
        });
        // As libpq does: without verify-… or a section `tls` any certificate will do.
        let tls = if tls.enabled {
            tls.clone()
        } else {
            TlsOptions {
                enabled: true,
                server_ca_pem: dsn.sslrootcert,
                cert_pem: dsn.sslcert,
                key_pem: dsn.sslkey.into(),
                insecure_skip_verify: !is_verified,
                ..TlsOptions::default()
            }
        };
        let tls = Tls::new(&tls).map_err(|error| OpenError::new("tls", error))?;
        if !dsn.settings.is_empty() {
            let options = config.get_options().unwrap_or_default().to_owned() + &dsn.settings;
            config.options(options.trim_start());
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        // A server that vanished must not keep a partition waiting.
        config.keepalives_idle(KEEPALIVE).keepalives_interval(KEEPALIVE).keepalives_retries(3);
        config.tcp_user_timeout(KEEPALIVE * 4);
        if config.get_application_name().is_none() {
            config.application_name("fanwire");
        }
        let connections_max = dsn.connections_max.unwrap_or(CONNECTIONS_MAX).max(1);
        Ok(Self { config, tls: MakeTls(Arc::new(tls)), connections_max })
    }

    pub(super) async fn connect(&self) -> Result<(Client, Connection<Socket, PgStream>), Error> {
        self.config.connect(self.tls.clone()).await
    }
}

/// At most `pool_max_conns` connections.
pub(super) struct PgPool {
    server: PgServer,
    idle: Mutex<Vec<Client>>,
    permits: Arc<Semaphore>,
}

/// A connection that is given back, or ends with its transaction.
pub(super) struct PooledClient {
    pool: Arc<PgPool>,
    client: Client,
    _permit: OwnedSemaphorePermit,
}

impl PgPool {
    pub(super) fn new(server: PgServer) -> Self {
        let permits = Arc::new(Semaphore::new(server.connections_max));
        Self { server, idle: Mutex::default(), permits }
    }

    /// An idle connection, or a new one.
    pub(super) async fn client(self: &Arc<Self>) -> Result<PooledClient, QueueError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(QueueError::new)?;
        let idle = {
            let mut idle = self.idle.lock();
            idle.retain(|client| !client.is_closed());
            idle.pop()
        };
        let client = match idle {
            Some(client) => client,
            None => {
                let connected = self.server.connect().await;
                let (client, connection) =
                    connected.map_err(|error| QueueError::new(describe(&error)))?;
                // Its end is seen by the client.
                tokio::spawn(connection);
                client
            }
        };
        Ok(PooledClient { pool: Arc::clone(self), client, _permit: permit })
    }
}

impl PooledClient {
    /// Runs statements and returns their rows as texts. They are not prepared, so that poolers in transaction mode can be used.
    pub(super) async fn run(&self, sql: &str) -> Result<Vec<SimpleQueryMessage>, QueueError> {
        let answers = self.client.simple_query(sql).await;
        answers.map_err(|error| QueueError::new(describe(&error)))
    }

    /// Whether the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// After a transaction that has ended well. A connection that is dropped instead is closed.
    pub(super) fn give_back(self) {
        let Self { pool, client, .. } = self;
        pool.idle.lock().push(client);
    }
}

/// The words of the server, or of the system.
pub(super) fn describe(error: &Error) -> String {
    if let Some(db) = error.as_db_error() {
        return format!("{} (SQLSTATE {})", db.message(), db.code().code());
    }
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Makes connections of PostgreSQL secure.
#[derive(Clone)]
pub(super) struct MakeTls(Arc<Tls>);

/// The same for one host.
pub(super) struct ConnectTls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// A connection over TLS.
pub(super) struct PgStream(Box<RustlsStream<Socket>>);

impl MakeTlsConnect<Socket> for MakeTls {
    type Stream = PgStream;
    type TlsConnect = ConnectTls;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<ConnectTls> {
        let name = if self.0.server_name().is_empty() { host } else { self.0.server_name() };
        // A socket of this machine has no name and no TLS.
        let name = if name.is_empty() { "localhost" } else { name };
        let name = ServerName::try_from(name.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(ConnectTls { config: Arc::clone(self.0.config()), name })
    }
}

impl TlsConnect<Socket> for ConnectTls {
    type Stream = PgStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<PgStream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        let connected = TlsConnector::from(self.config).connect(self.name, socket);
        Box::pin(async move { Ok(PgStream(Box::new(connected.await?))) })
    }
}

impl TlsStream for PgStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for PgStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for PgStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// As many as pgx opens on a machine with few cores.
const CONNECTIONS_MAX: usize = 4;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const KEEPALIVE: Duration = Duration::from_secs(10);
