//! Idle WebSockets in streams of HTTP/2 without TLS, with prior knowledge (RFC 9113 §3.3, RFC 8441).
//! In: numbers of WebSockets → out: open ones, as many on each socket as was asked for, whose pings are answered.
//! Uses h2 on tokio, with a task for each WebSocket; frames and messages are those of `fanwire_load`.
//! Changed here: how a client opens a stream; what is measured lives in `idle`.

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use h2::client::{self, SendRequest};
use h2::ext::Protocol;
use h2::{RecvStream, SendStream};
use http::{Method, Request, StatusCode};
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Channels, IdleConnections};
use fanwire_load::generator::SubscribeForm;
use fanwire_load::generator::frame;
use fanwire_load::generator::inflate::Inflater;
use fanwire_load::generator::messages::Encoding;

/// The tasks run only while `open` or `rest` does, as the generator's connections do.
pub(super) struct Http2Connections {
    runtime: Runtime,
    client: Client,
}

struct Client {
    address: SocketAddr,
    compression: bool,
    channels: Channels,
    streams_max: usize,
    /// A socket whose last sender is dropped would close.
    sockets: Vec<SendRequest<Bytes>>,
    /// Streams of the last socket.
    streams: usize,
    pings: Arc<AtomicU64>,
    failures: UnboundedReceiver<anyhow::Error>,
    failed: UnboundedSender<anyhow::Error>,
}

impl Http2Connections {
    /// Opens at most `streams_max` WebSockets on a socket.
    ///
    /// # Errors
    /// No runtime.
    pub(super) fn new(
        address: SocketAddr,
        streams_max: u16,
        compression: bool,
        channels: Channels,
    ) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (failed, failures) = unbounded_channel();
        let client = Client {
            address,
            compression,
            channels,
            streams_max: streams_max.into(),
            sockets: Vec::new(),
            streams: 0,
            pings: Arc::default(),
            failures,
            failed,
        };
        Ok(Self { runtime, client })
    }
}

impl IdleConnections for Http2Connections {
    fn open(&mut self, numbers: Range<usize>) -> Result<()> {
        self.runtime.block_on(self.client.open(numbers))
    }

    fn rest(&mut self, stretch: Duration) -> Result<()> {
        let failure = self.client.failures.recv();
        match self.runtime.block_on(async { timeout(stretch, failure).await }) {
            Err(_) => Ok(()),
            Ok(failure) => Err(failure.context("a sender is kept")?),
        }
    }

    fn pings(&self) -> u64 {
        self.client.pings.load(Relaxed)
    }
}

impl Client {
    async fn open(&mut self, mut numbers: Range<usize>) -> Result<()> {
        while !numbers.is_empty() {
            let mut opening = JoinSet::new();
            for number in numbers.by_ref().take(OPENING_MAX) {
                let sender = self.sender().await?;
                opening.spawn(open(sender, self.channels.name(number), self.compression));
            }
            while let Some(opened) = timeout(PATIENCE, opening.join_next()).await? {
                let websocket = opened??;
                let pings = Arc::clone(&self.pings);
                let failed = self.failed.clone();
                tokio::spawn(async move {
                    let Err(error) = answer_pings(websocket, &pings).await;
                    let _ = failed.send(error);
                });
            }
        }
        Ok(())
    }

    /// The last socket, or a new one if that has as many streams as it may have.
    async fn sender(&mut self) -> Result<SendRequest<Bytes>> {
        if self.sockets.is_empty() || self.streams == self.streams_max {
            let socket = timeout(PATIENCE, connect(self.address, self.failed.clone()));
            self.sockets.push(socket.await.context("waiting for the server's settings")??);
            self.streams = 0;
        }
        self.streams += 1;
        Ok(self.sockets.last().expect("one was opened").clone())
    }
}

/// A socket whose server has announced extended CONNECT.
async fn connect(
    address: SocketAddr,
    failed: UnboundedSender<anyhow::Error>,
) -> Result<SendRequest<Bytes>> {
    let socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    let (sender, connection) = client::Builder::new().enable_push(false).handshake(socket).await?;
    tokio::spawn(async move {
        let error = match connection.await {
            Err(error) => error.into(),
            Ok(()) => anyhow::anyhow!("the server closed a connection"),
        };
        let _ = failed.send(error);
    });
    while !sender.is_extended_connect_protocol_enabled() {
        sleep(Duration::from_millis(1)).await;
    }
    Ok(sender)
}

struct WebSocket {
    to_server: SendStream<Bytes>,
    from_server: RecvStream,
    /// The start of a frame whose end has not come yet; empty at rest.
    partial: Vec<u8>,
}

/// Opens a WebSocket in a stream, connects and subscribes.
async fn open(sender: SendRequest<Bytes>, channel: String, compression: bool) -> Result<WebSocket> {
    let uri = format!("http://localhost{}", Encoding::Json.path());
    let mut request = Request::builder().method(Method::CONNECT).uri(uri);
    request = request.header("sec-websocket-version", "13");
    if compression {
        let offer = "permessage-deflate; client_max_window_bits";
        request = request.header("sec-websocket-extensions", offer);
    }
    let request = request.extension(Protocol::from_static("websocket")).body(())?;
    let (response, to_server) = sender.ready().await?.send_request(request, false)?;
    let response = response.await?;
    ensure!(response.status() == StatusCode::OK, "the upgrade was refused: {}", response.status());
    let from_server = response.into_body();
    let mut websocket = WebSocket { to_server, from_server, partial: Vec::new() };
    let commands = Encoding::Json.commands(None, &[channel], SubscribeForm::default());
    websocket.send(frame::TEXT, &commands)?;
    let mut missing = commands.split(|byte| *byte == b'\n').count();
    // The window of the server's messages is not needed after the replies: pings are too short to be compressed.
    let mut inflater = Inflater::default();
    let mut plaintext = Vec::new();
    while missing > 0 {
        let (_, rsv1, mut payload) = websocket.receive().await?;
        if rsv1 {
            plaintext.clear();
            inflater.message(&payload, &mut plaintext)?;
            payload.clone_from(&plaintext);
        }
        let mut rest = &payload[..];
        while let Some(message) = Encoding::Json.next_message(&mut rest)? {
            missing -= usize::from(Encoding::Json.reply_id(message)?.is_some());
        }
    }
    Ok(websocket)
}

/// Returns when the server closes, or sends anything but pings.
async fn answer_pings(mut websocket: WebSocket, pings: &AtomicU64) -> Result<Infallible> {
    loop {
        let (opcode, _, payload) = websocket.receive().await?;
        match opcode {
            frame::PING => websocket.send(frame::PONG, &payload)?,
            frame::TEXT if Encoding::Json.is_ping(&payload) => {
                pings.fetch_add(1, Relaxed);
                websocket.send(frame::TEXT, Encoding::Json.pong())?;
            }
            _ => bail!("an idle WebSocket received {opcode} {}", payload.escape_ascii()),
        }
    }
}

impl WebSocket {
    /// Its payloads are so short that no window of the server stops them.
    fn send(&mut self, opcode: u8, payload: &[u8]) -> Result<()> {
        let mut bytes = Vec::new();
        frame::encode_masked(opcode, payload, &mut bytes);
        Ok(self.to_server.send_data(bytes.into(), false)?)
    }

    /// Opcode, RSV1 and payload of the next frame.
    async fn receive(&mut self) -> Result<(u8, bool, Vec<u8>)> {
        loop {
            if let Some((frame, length)) = frame::front(&self.partial)? {
                let received = (frame.opcode, frame.rsv1, frame.payload.to_vec());
                self.partial.drain(..length);
                return Ok(received);
            }
            let received = poll_fn(|context| self.from_server.poll_data(context)).await;
            let bytes = received.context("the server ended a stream")??;
            self.from_server.flow_control().release_capacity(bytes.len())?;
            self.partial.extend_from_slice(&bytes);
        }
    }
}

/// WebSockets that are being opened at a time.
const OPENING_MAX: usize = 100;
const PATIENCE: Duration = Duration::from_secs(10);
