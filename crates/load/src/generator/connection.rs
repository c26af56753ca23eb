//! One subscriber, of a WebSocket or an event stream: connect and subscribe, or connect with channels, then publications and pings
//! (RFC 6455, client protocol v2).
//! In: bytes of its socket as they came → out: each message to the handler, pongs to the socket.
//! Uses the other rooms of `generator`; the only write is a short one to its own socket.
//! Changed here: the sequence of a connection; polling and opening many of them lives in `generator`.

use anyhow::{Context, Result, bail};
use mio::net::TcpStream;
use std::io::Write;

use super::events::{self, Head};
use super::frame::{self, ServerFrame};
use super::handshake::{self, CompressionAgreement};
use super::inflate::Inflater;
use super::messages::{self, Encoding};
use super::tls::ClientTls;
use super::{Closed, ConnectTarget, Profile, PublicationHandler, SubscriberTransport};

pub struct ClientConnection {
    pub stream: TcpStream,
    tls: Option<ClientTls>,
    encoding: Encoding,
    phase: ConnectionPhase,
    window: Window,
    transport: SubscriberTransport,
    /// The request that answers a ping, of an event stream that has connected.
    pong: Option<Box<[u8]>>,
    /// The start of a frame whose end has not come yet; nearly always empty.
    partial: Vec<u8>,
}

/// State that all connections of a generator share.
pub struct GeneratorState {
    /// Inflate every publication; otherwise compressed ones are handed out as they came ("sealed").
    pub inflate: bool,
    pub subscribed: usize,
    pub pings: u64,
    /// Requests with the answers of event streams to pings, not sent yet.
    pub pongs: Vec<Box<[u8]>>,
    pub endpoint: ConnectTarget,
    /// Version in the first connect reply.
    pub server_version: Option<String>,
    inflater: Inflater,
    plain: Vec<u8>,
    decrypted: Vec<u8>,
    out: Vec<u8>,
}

impl GeneratorState {
    pub fn new(inflate: bool) -> Self {
        Self {
            inflate,
            subscribed: 0,
            pings: 0,
            pongs: Vec::new(),
            endpoint: ConnectTarget::default(),
            server_version: None,
            inflater: Inflater::default(),
            plain: Vec::new(),
            decrypted: Vec::new(),
            out: Vec::new(),
        }
    }
}

impl ClientConnection {
    /// Sends the upgrade request, and to a plain target nothing but its side of TLS.
    pub fn open(
        mut stream: TcpStream,
        profile: &Profile,
        state: &mut GeneratorState,
    ) -> Result<Self> {
        let ConnectTarget { tls, host, .. } = &state.endpoint;
        let begun = tls.as_ref().map(|config| ClientTls::begin(config, host, &mut stream));
        let tls = begun.transpose()?;
        let mut connection = Self {
            stream,
            tls,
            encoding: profile.encoding,
            phase: ConnectionPhase::Live,
            window: Window::Absent,
            transport: if profile.plain {
                SubscriberTransport::WebSocket
            } else {
                state.endpoint.transport
            },
            pong: None,
            partial: Vec::new(),
        };
        if profile.plain {
            if connection.tls.is_some() {
                connection.phase = ConnectionPhase::Encrypting;
            } else {
                state.subscribed += 1;
            }
            return Ok(connection);
        }
        let ConnectTarget { host, path, token, transport, subscribe, .. } = &state.endpoint;
        let commands = match transport {
            transport if transport.is_unidirectional() => {
                messages::connect_request(token.as_deref(), &profile.channels)
            }
            SubscriberTransport::UpgradeOnly => Vec::new(),
            _ => profile.encoding.commands(token.as_deref(), &profile.channels, *subscribe),
        };
        if transport.is_events() {
            let wanted = commands.split(|byte| *byte == b'\n').count() as u32;
            connection.phase = ConnectionPhase::Requesting { wanted };
            let request =
                events::request(host, events::path(*transport), &commands, profile.compression);
            connection.write(&request).context("sending the request")?;
            return Ok(connection);
        }
        let path = match transport {
            SubscriberTransport::UniWebSocket => UNI_PATH,
            _ => path.as_deref().unwrap_or(profile.encoding.path()),
        };
        let request = handshake::request(host, path, profile.compression);
        connection.write(&request).context("sending the upgrade request")?;
        connection.phase = ConnectionPhase::Upgrading { commands };
        Ok(connection)
    }

    /// Takes the bytes of one read; `index` is this connection's number in front of the handler.
    ///
    /// # Errors
    /// Anything a right server would not send: the connection cannot go on.
    pub fn receive(
        &mut self,
        index: usize,
        bytes: &[u8],
        state: &mut GeneratorState,
        handler: &mut impl PublicationHandler,
    ) -> Result<()> {
        let Some(tls) = &mut self.tls else {
            return self.receive_plaintext(index, bytes, state, handler);
        };
        let mut plaintext = std::mem::take(&mut state.decrypted);
        plaintext.clear();
        tls.receive(bytes, &mut self.stream, &mut plaintext)?;
        if !tls.is_handshaking() && matches!(self.phase, ConnectionPhase::Encrypting) {
            self.phase = ConnectionPhase::Live;
            state.subscribed += 1;
        }
        self.receive_plaintext(index, &plaintext, state, handler)?;
        state.decrypted = plaintext;
        Ok(())
    }

    fn receive_plaintext(
        &mut self,
        index: usize,
        bytes: &[u8],
        state: &mut GeneratorState,
        handler: &mut impl PublicationHandler,
    ) -> Result<()> {
        if self.transport.is_events() && !matches!(self.window, Window::Absent) {
            return self.take_compressed(index, bytes, state, handler);
        }
        if self.partial.is_empty() {
            let taken = self.take_frames(index, bytes, state, handler)?;
            self.partial.extend_from_slice(&bytes[taken..]);
            return Ok(());
        }
        let mut joined = std::mem::take(&mut self.partial);
        joined.extend_from_slice(bytes);
        let taken = self.take_frames(index, &joined, state, handler)?;
        joined.drain(..taken);
        self.partial = joined;
        Ok(())
    }

    fn take_frames(
        &mut self,
        index: usize,
        bytes: &[u8],
        state: &mut GeneratorState,
        handler: &mut impl PublicationHandler,
    ) -> Result<usize> {
        if self.transport.is_events() {
            return self.take_events(index, bytes, state, handler);
        }
        let mut rest = bytes;
        if let ConnectionPhase::Upgrading { .. } = self.phase {
            let Some((agreement, length)) = handshake::answer(rest)? else { return Ok(0) };
            rest = &rest[length..];
            self.upgraded(agreement, state)?;
        }
        while let Some((frame, length)) = frame::front(rest)? {
            rest = &rest[length..];
            match frame.opcode {
                frame::TEXT | frame::BINARY => self.data(index, frame, state, handler)?,
                frame::PING => self.send(frame::PONG, frame.payload, state)?,
                frame::PONG => {}
                frame::CLOSE => return Err(closed(frame.payload).into()),
                other => bail!("a frame with opcode {other}"),
            }
        }
        Ok(bytes.len() - rest.len())
    }

    fn take_events(
        &mut self,
        index: usize,
        bytes: &[u8],
        state: &mut GeneratorState,
        handler: &mut impl PublicationHandler,
    ) -> Result<usize> {
        let mut rest = bytes;
        if let ConnectionPhase::Requesting { wanted } = self.phase {
            let Some(Head { length, is_gzip }) = events::head(rest)? else { return Ok(0) };
            rest = &rest[length..];
            self.phase = ConnectionPhase::Replying { replied: 0, wanted };
            if is_gzip {
                self.window = Window::Kept(Box::default());
                self.take_compressed(index, rest, state, handler)?;
                return Ok(bytes.len());
            }
        }
        while let Some((message, length)) = events::front(rest)? {
            rest = &rest[length..];
            self.messages(index, message, state, handler)?;
        }
        Ok(bytes.len() - rest.len())
    }

    /// Takes bytes of a compressed stream. What is kept in `partial` is plaintext, and in a sealed stream bytes as they
    /// came.
    fn take_compressed(
        &mut self,
        index: usize,
        bytes: &[u8],
        state: &mut GeneratorState,
        handler: &mut impl PublicationHandler,
    ) -> Result<()> {
        let mut partial = std::mem::take(&mut self.partial);
        let mut taken = 0;
        if let Window::Kept(inflater) = &mut self.window {
            inflater.piece(bytes, &mut partial)?;
            while let Some((message, length)) = events::front(&partial[taken..])? {
                self.messages(index, message, state, handler)?;
                taken += length;
            }
            let is_live = matches!(self.phase, ConnectionPhase::Live);
            if is_live && !state.inflate && events::is_flushed(bytes) {
                self.window = Window::Sealed;
            }
        } else {
            partial.extend_from_slice(bytes);
            while let Some((message, length)) = events::front_sealed(&partial[taken..]) {
                handler.publication(index, message)?;
                taken += length;
            }
        }
        partial.drain(..taken);
        self.partial = partial;
        Ok(())
    }

    fn upgraded(
        &mut self,
        agreement: CompressionAgreement,
        state: &mut GeneratorState,
    ) -> Result<()> {
        self.window = match agreement {
            CompressionAgreement::Raw => Window::Absent,
            CompressionAgreement::Standalone => Window::Reset,
            CompressionAgreement::Context => Window::Kept(Box::default()),
        };
        let next = ConnectionPhase::Replying { replied: 0, wanted: 0 };
        let ConnectionPhase::Upgrading { commands } = std::mem::replace(&mut self.phase, next)
        else {
            unreachable!("only an upgrading connection is upgraded");
        };
        if commands.is_empty() {
            self.phase = ConnectionPhase::Live;
            state.subscribed += 1;
            return Ok(());
        }
        let mut rest = &commands[..];
        while self.encoding.next_message(&mut rest)?.is_some() {
            let ConnectionPhase::Replying { wanted, .. } = &mut self.phase else {
                unreachable!("just set")
            };
            *wanted += 1;
        }
        self.send(self.encoding.opcode(), &commands, state)
    }

    fn data(
        &mut self,
        index: usize,
        frame: ServerFrame<'_>,
        state: &mut GeneratorState,
        handler: &mut impl PublicationHandler,
    ) -> Result<()> {
        if !frame.rsv1 {
            return self.messages(index, frame.payload, state, handler);
        }
        let mut plain = std::mem::take(&mut state.plain);
        plain.clear();
        match &mut self.window {
            Window::Absent => bail!("a compressed frame, though no compression was agreed"),
            Window::Sealed => handler.publication(index, frame.payload)?,
            Window::Reset => {
                state.inflater.reset();
                state.inflater.message(frame.payload, &mut plain)?;
            }
            Window::Kept(inflater) => inflater.message(frame.payload, &mut plain)?,
        }
        self.messages(index, &plain, state, handler)?;
        state.plain = plain;
        Ok(())
    }

    fn messages(
        &mut self,
        index: usize,
        mut payload: &[u8],
        state: &mut GeneratorState,
        handler: &mut impl PublicationHandler,
    ) -> Result<()> {
        while let Some(message) = self.encoding.next_message(&mut payload)? {
            if self.encoding.is_ping(message) {
                self.pong(state)?;
            } else if let ConnectionPhase::Live = self.phase {
                handler.publication(index, message)?;
            } else {
                self.reply(index, message, state, handler)?;
            }
        }
        Ok(())
    }

    fn reply(
        &mut self,
        index: usize,
        message: &[u8],
        state: &mut GeneratorState,
        handler: &mut impl PublicationHandler,
    ) -> Result<()> {
        let ConnectionPhase::Replying { replied, wanted } = &mut self.phase else { return Ok(()) };
        // The connect push of a unidirectional connection has no id.
        let is_reply =
            self.transport.is_unidirectional() || self.encoding.reply_id(message)?.is_some();
        *replied += u32::from(is_reply);
        if self.transport == SubscriberTransport::EventStream && self.pong.is_none() {
            self.pong = events::pong(&state.endpoint.host, message).map(Vec::into_boxed_slice);
        }
        if state.server_version.is_none() {
            state.server_version = self.encoding.server_version(message);
        }
        if replied == wanted {
            self.phase = ConnectionPhase::Live;
            state.subscribed += 1;
            handler.subscribed(index);
            let is_websocket = !self.transport.is_events();
            if is_websocket && !state.inflate && !matches!(self.window, Window::Absent) {
                self.window = Window::Sealed;
            }
        }
        Ok(())
    }

    /// Ends the connection in order; an error of the socket changes nothing.
    pub fn close(&mut self, state: &mut GeneratorState) {
        if !self.has_failed() && !self.transport.is_events() {
            let _ = self.send(frame::CLOSE, &NORMAL_CLOSURE.to_be_bytes(), state);
        }
        self.fail(state);
    }

    /// The connection is not used again.
    pub fn fail(&mut self, state: &mut GeneratorState) {
        state.subscribed -= usize::from(matches!(self.phase, ConnectionPhase::Live));
        self.phase = ConnectionPhase::Failed;
    }

    pub fn has_failed(&self) -> bool {
        matches!(self.phase, ConnectionPhase::Failed)
    }

    /// Sends a message of the client protocol.
    ///
    /// # Errors
    /// The socket does not take all of it.
    pub fn send_message(&mut self, message: &[u8], state: &mut GeneratorState) -> Result<()> {
        self.send(self.encoding.opcode(), message, state)
    }

    fn pong(&mut self, state: &mut GeneratorState) -> Result<()> {
        state.pings += 1;
        if self.transport != SubscriberTransport::WebSocket {
            state.pongs.extend(self.pong.clone());
            return Ok(()); // a unidirectional client answers the native ping alone
        }
        self.send(self.encoding.opcode(), self.encoding.pong(), state)
    }

    fn send(&mut self, opcode: u8, payload: &[u8], state: &mut GeneratorState) -> Result<()> {
        state.out.clear();
        frame::encode_masked(opcode, payload, &mut state.out);
        self.write(&state.out).context("sending to the server")
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.tls {
            Some(tls) => tls.write(bytes, &mut self.stream),
            None => Ok(self.stream.write_all(bytes)?),
        }
    }
}

enum ConnectionPhase {
    /// TLS handshake of a plain target.
    Encrypting,
    /// Requests of an event stream.
    Requesting {
        wanted: u32,
    },
    Upgrading {
        commands: Vec<u8>,
    },
    Replying {
        replied: u32,
        wanted: u32,
    },
    Live,
    Failed,
}

/// Source of the plaintext of a compressed frame.
enum Window {
    /// Compression was not negotiated.
    Absent,
    /// Messages stand alone. The shared inflater is reset before each.
    Reset,
    /// Context takeover: this connection's own inflater.
    Kept(Box<Inflater>),
    /// Negotiated, but only counted: a light generator does not inflate. In a stream each flush counts as one frame. A
    /// compressed frame is always a publication, because a ping is too short to be compressed. The length of a frame
    /// shows nothing: a repeated publication can take as few bytes as a ping.
    Sealed,
}

fn closed(payload: &[u8]) -> Closed {
    match payload {
        [high, low, reason @ ..] => Closed {
            code: Some(u16::from_be_bytes([*high, *low])),
            reason: String::from_utf8_lossy(reason).into_owned(),
        },
        _ => Closed::without("a code"),
    }
}

/// Fanwire's path of unidirectional WebSockets.
const UNI_PATH: &str = "/connection/uni_websocket";

/// RFC 6455 §7.4.1.
const NORMAL_CLOSURE: u16 = 1000;
