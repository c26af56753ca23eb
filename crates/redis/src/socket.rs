//! Opens a socket to a Redis or a Sentinel, in plain or over TLS (RFC 8446), and logs in.
//! In: an address → out: a connection that is logged in, and ends with its last handle or with a given future.
//! Uses the crate `redis`, RESP3; rustls with a configuration that was made elsewhere. Never: waits without a limit.
//! Changed here: how a connection begins. The checks of a Redis are in `dial.rs`, the commands for a Sentinel in `sentinel.rs`.

use std::fmt;
use std::io::ErrorKind;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::aio::MultiplexedConnection;
use redis::{
    Arg, AsyncConnectionConfig, Cmd, ProtocolVersion, PushInfo, PushKind, RedisConnectionInfo,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::address::Address;
use super::error::RedisError;

/// TLS settings: trusted and own certificates.
#[derive(Clone)]
pub struct RedisTls {
    pub config: Arc<ClientConfig>,
    /// The name that certificates must have; "" = that of the address.
    pub server_name: String,
}

/// A connection. Its socket is closed with the last handle, even if replies are missing.
#[derive(Clone)]
pub(crate) struct Connection {
    commands: MultiplexedConnection,
    /// The id of the replication history that the Redis is in; "" = unknown.
    replication_history: Arc<str>,
    _driver: Arc<SocketTask>,
}

/// The task that reads and writes.
struct SocketTask(AbortHandle);

/// Gets the pushes of a connection and its end.
pub(crate) type PushHandler = Arc<dyn Fn(PushInfo) + Send + Sync>;

/// Time limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// Time limit for the socket, and the same again for TLS.
    pub(crate) connect: Duration,
    /// Time limit for a reply.
    pub(crate) io: Duration,
    /// After the greeting, the user of the connection checks for late replies.
    pub(crate) has_own_timeout: bool,
}

/// Opens a connection. `pushed` gets pushes and the end of the connection; it must not block. The connection ends when
/// `master_replaced` completes.
///
/// # Errors
/// A [`RedisError`] with the address, after the limits at the latest.
pub(crate) fn open<'a>(
    address: &'a Address,
    tls: Option<&'a RedisTls>,
    timeouts: Timeouts,
    pushed: PushHandler,
    master_replaced: BoxFuture<'static, ()>,
) -> BoxFuture<'a, Result<Connection, RedisError>> {
    Box::pin(connect(address, tls, timeouts, pushed, master_replaced))
}

async fn connect(
    address: &Address,
    tls: Option<&RedisTls>,
    timeouts: Timeouts,
    pushed: PushHandler,
    master_replaced: BoxFuture<'static, ()>,
) -> Result<Connection, RedisError> {
    if address.is_unix() {
        let socket = timeout(timeouts.connect, UnixStream::connect(&address.host)).await;
        let socket =
            socket.map_err(|_| RedisError::late(address, "connecting", timeouts.connect))?;
        let socket = socket.map_err(|error| RedisError::unreachable(address, error))?;
        return greet(address, socket, timeouts, pushed, master_replaced).await;
    }
    let endpoint = (address.host.as_str(), address.port);
    let socket = timeout(timeouts.connect, TcpStream::connect(endpoint)).await;
    let socket = socket.map_err(|_| RedisError::late(address, "connecting", timeouts.connect))?;
    let socket = socket.map_err(|error| RedisError::unreachable(address, error))?;
    let _ = socket.set_nodelay(true); // only slower without
    if !address.is_tls {
        return greet(address, socket, timeouts, pushed, master_replaced).await;
    }
    let tls = tls.expect("options with a TLS address have TLS settings");
    let secure = timeout(timeouts.connect, tls.connect(address, socket)).await;
    let late =
        |_| RedisError::tls_suspected(address, format_args!("within {:?}", timeouts.connect));
    let secure = secure.map_err(late);
    greet(address, secure??, timeouts, pushed, master_replaced).await
}

impl RedisTls {
    async fn connect(
        &self,
        address: &Address,
        socket: TcpStream,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, RedisError> {
        let wrong = |why: &dyn fmt::Display| RedisError::Tls {
            address: address.clone(),
            why: why.to_string(),
        };
        let name = if self.server_name.is_empty() { &address.host } else { &self.server_name };
        let name = ServerName::try_from(name.clone()).map_err(|error| wrong(&error))?;
        let connector = TlsConnector::from(Arc::clone(&self.config));
        connector.connect(name, socket).await.map_err(|error| match error.kind() {
            ErrorKind::InvalidData => wrong(&error),
            _ => RedisError::tls_suspected(address, error),
        })
    }
}

/// Logs in on a socket.
async fn greet(
    address: &Address,
    socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    timeouts: Timeouts,
    pushed: PushHandler,
    master_replaced: BoxFuture<'static, ()>,
) -> Result<Connection, RedisError> {
    let push_handler = Arc::clone(&pushed);
    let config = AsyncConnectionConfig::new()
        .set_response_timeout((!timeouts.has_own_timeout).then_some(timeouts.io))
        .set_pipeline_buffer_size(BATCHES_MAX)
        .set_push_sender(move |push| {
            push_handler(push);
            Ok::<(), ()>(())
        });
    let settings = settings(address);
    let greeted = MultiplexedConnection::new_with_config(&settings, socket, config);
    let greeted = timeout(timeouts.io, greeted).await;
    let greeted = greeted.map_err(|_| RedisError::late(address, "the greeting", timeouts.io))?;
    let (commands, driver) = greeted.map_err(|error| {
        if error.is_connection_dropped() && !address.is_tls {
            RedisError::tls_suspected(address, error)
        } else {
            RedisError::of(address, &error, timeouts.io)
        }
    })?;
    let task = tokio::spawn(async move {
        tokio::select! {
            () = driver => {}
            () = master_replaced => pushed(PushInfo { kind: PushKind::Disconnection, data: Vec::new() }),
        }
    });
    Ok(Connection {
        commands,
        replication_history: "".into(),
        _driver: Arc::new(SocketTask(task.abort_handle())),
    })
}

fn settings(address: &Address) -> RedisConnectionInfo {
    let Address { user, password, db, .. } = address;
    let mut settings = RedisConnectionInfo::default()
        .set_protocol(ProtocolVersion::RESP3)
        .set_skip_set_lib_name()
        .set_db((*db).into());
    if !user.is_empty() {
        settings = settings.set_username(user);
    }
    if !password.is_empty() {
        settings = settings.set_password(password);
    }
    settings
}

impl Connection {
    /// Sets the id that the Redis reported.
    pub(crate) fn set_replication_history(&mut self, replication_history: String) {
        self.replication_history = replication_history.into();
    }

    /// Appends the id of the replication history to a call of a script, as its last arguments. It is known only when
    /// the call is sent; scripts that do not need it ignore it.
    pub(crate) fn append_replication_history(&self, command: &mut Cmd) {
        if matches!(command.args_iter().next(), Some(Arg::Simple(b"EVALSHA"))) {
            command.arg("history").arg(&*self.replication_history);
        }
    }
}

impl Deref for Connection {
    type Target = MultiplexedConnection;

    fn deref(&self) -> &MultiplexedConnection {
        &self.commands
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut MultiplexedConnection {
        &mut self.commands
    }
}

impl Drop for SocketTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Equal when both use the same configuration object.
impl PartialEq for RedisTls {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.config, &other.config) && self.server_name == other.server_name
    }
}

impl fmt::Debug for RedisTls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RedisTls").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

/// Batches of commands that a connection queues without waiting.
pub(crate) const BATCHES_MAX: usize = 64;
