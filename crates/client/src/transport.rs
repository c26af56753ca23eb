//! Opens the transport of a connection: TCP, TLS, and the WebSocket handshake (RFC 6455 §4.1).
//! An address and options → a socket with its codec, and the bytes that came behind the response.
//! Uses tokio, rustls and httparse; never looks at a message.
//! Changed here: how a connection is opened. What goes over it is `codec`.

use std::sync::{Arc, OnceLock};

use fanwire_ws::client::{ClientHandshake, ExtensionOffer, HandshakeResponse, ResponseError};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig as TlsConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::address::WebSocketUrl;
use crate::codec::MessageCodec;
use crate::{ClientConfig, ClientError};

/// An open connection after its handshake.
pub(crate) struct OpenTransport {
    pub(crate) socket: Box<dyn Socket>,
    pub(crate) codec: MessageCodec,
    /// Bytes of the first frames.
    pub(crate) early: Vec<u8>,
}

/// A stream of bytes, with TLS or without.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

/// Opens a connection; the caller limits the time.
pub(crate) async fn open(
    url: WebSocketUrl,
    config: ClientConfig,
) -> Result<OpenTransport, ClientError> {
    let socket = TcpStream::connect((url.host.as_str(), url.port)).await.map_err(transport)?;
    // Commands are small and wait for their replies.
    socket.set_nodelay(true).map_err(transport)?;
    let mut socket: Box<dyn Socket> = if url.is_tls {
        Box::new(with_tls(&url, &config, socket).await?)
    } else {
        Box::new(socket)
    };
    // JSON is the default of every server; some proxies do not pass a subprotocol on.
    let subprotocol = config.encoding.is_binary().then(|| config.encoding.subprotocol());
    let offer =
        config.compression.map(|it| ExtensionOffer { server: it.server, client: it.client });
    let handshake = ClientHandshake::new(rand::random(), subprotocol, offer);
    let request =
        handshake.request(&url.authority, &url.path, &config.headers).map_err(transport)?;
    socket.write_all(request.as_bytes()).await.map_err(transport)?;
    socket.flush().await.map_err(transport)?;
    let mut head = Vec::new();
    let (agreement, head_bytes) = loop {
        if head.len() > HEAD_BYTES_MAX {
            return Err(ClientError::Transport("the server's response is too long".to_owned()));
        }
        if socket.read_buf(&mut head).await.map_err(transport)? == 0 {
            return Err(ClientError::Transport(CLOSED.to_owned()));
        }
        if let Some(checked) = check(&handshake, &head)? {
            break checked;
        }
    };
    let early = head.split_off(head_bytes);
    let codec = MessageCodec::new(
        config.encoding,
        agreement,
        config.compression.as_ref(),
        config.message_size_max,
    );
    Ok(OpenTransport { socket, codec, early })
}

/// The agreement and the length of the response's head; `None` while it is not complete.
fn check(
    handshake: &ClientHandshake,
    head: &[u8],
) -> Result<Option<(Option<fanwire_ws::client::ClientAgreement>, usize)>, ClientError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head_bytes) = response.parse(head).map_err(transport)? else {
        return Ok(None);
    };
    let status = response.code.unwrap_or_default();
    let value = |name: &str| {
        let named = response.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        let values: Vec<&str> =
            named.filter_map(|header| std::str::from_utf8(header.value).ok()).collect();
        (!values.is_empty()).then(|| values.join(","))
    };
    let upgrade = value("upgrade");
    let connection = value("connection");
    let accept = value("sec-websocket-accept");
    let subprotocol = value("sec-websocket-protocol");
    let extensions = value("sec-websocket-extensions");
    let checked = handshake.check(&HandshakeResponse {
        status,
        upgrade: upgrade.as_deref(),
        connection: connection.as_deref(),
        accept: accept.as_deref(),
        subprotocol: subprotocol.as_deref(),
        extensions: extensions.as_deref(),
    });
    match checked {
        Ok(agreement) => Ok(Some((agreement, head_bytes))),
        Err(ResponseError::Status { status }) => Err(ClientError::Status { status }),
        Err(error) => Err(transport(error)),
    }
}

async fn with_tls(
    url: &WebSocketUrl,
    config: &ClientConfig,
    socket: TcpStream,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, ClientError> {
    let tls = config.tls.clone().unwrap_or_else(system_tls);
    let host = match config.tls_server_name.as_str() {
        "" => &url.host,
        name => name,
    };
    let name = ServerName::try_from(host.to_owned()).map_err(transport)?;
    TlsConnector::from(tls).connect(name, socket).await.map_err(transport)
}

/// TLS with the authorities of the system, which are read once.
fn system_tls() -> Arc<TlsConfig> {
    static TLS: OnceLock<Arc<TlsConfig>> = OnceLock::new();
    let make = || {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = TlsConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has suites of both versions");
        Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
    };
    Arc::clone(TLS.get_or_init(make))
}

fn transport(error: impl std::fmt::Display) -> ClientError {
    ClientError::Transport(error.to_string())
}

const CLOSED: &str = "the server closed the connection during the handshake";
const HEAD_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;
