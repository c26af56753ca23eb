//! One subscriber: upgrade, connect and subscribe, then publications and pings (RFC 6455, client protocol v2).
//! In: bytes of its socket as they came → out: each message to the handler, pongs to the socket.
//! Uses the other rooms of `generator`; the only write is a short one to its own socket.
//! Change here the sequence of a connection; polling and opening many of them lives in `generator`.

use anyhow::{Context, Result, bail};
use mio::net::TcpStream;
use std::io::Write;

use super::frame::{self, ServerFrame};
use super::handshake::{self, Agreement};
use super::inflate::Inflater;
use super::messages::Encoding;
use super::{Profile, PublicationHandler};

pub struct ClientConnection {
    pub stream: TcpStream,
    encoding: Encoding,
    phase: ConnectionPhase,
    window: Window,
    /// The start of a frame whose end has not come yet; nearly always empty.
    partial: Vec<u8>,
}

/// What all connections of a generator share.
pub struct GeneratorState {
    /// Inflate every publication; otherwise compressed ones are handed out as they came ("sealed").
    pub inflate: bool,
    pub subscribed: usize,
    pub pings: u64,
    inflater: Inflater,
    plain: Vec<u8>,
    out: Vec<u8>,
}

impl GeneratorState {
    pub fn new(inflate: bool) -> Self {
        let (plain, out) = (Vec::new(), Vec::new());
        Self { inflate, subscribed: 0, pings: 0, inflater: Inflater::default(), plain, out }
    }
}

impl ClientConnection {
    /// Sends the upgrade request, and nothing to a plain target.
    pub fn open(stream: TcpStream, profile: &Profile, shared: &mut GeneratorState) -> Result<Self> {
        let mut connection = Self {
            stream,
            encoding: profile.encoding,
            phase: ConnectionPhase::Live,
            window: Window::Absent,
            partial: Vec::new(),
        };
        if profile.plain {
            shared.subscribed += 1;
            return Ok(connection);
        }
        let path = profile.encoding.path();
        let request = handshake::request("localhost", path, profile.compression);
        connection.stream.write_all(&request).context("sending the upgrade request")?;
        connection.phase =
            ConnectionPhase::Upgrading { commands: profile.encoding.commands(&profile.channels) };
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
        shared: &mut GeneratorState,
        handler: &mut impl PublicationHandler,
    ) -> Result<()> {
        if self.partial.is_empty() {
            let taken = self.take_frames(index, bytes, shared, handler)?;
            self.partial.extend_from_slice(&bytes[taken..]);
            return Ok(());
        }
        let mut joined = std::mem::take(&mut self.partial);
        joined.extend_from_slice(bytes);
        let taken = self.take_frames(index, &joined, shared, handler)?;
        joined.drain(..taken);
        self.partial = joined;
        Ok(())
    }

    fn take_frames(
        &mut self,
        index: usize,
        bytes: &[u8],
        shared: &mut GeneratorState,
        handler: &mut impl PublicationHandler,
    ) -> Result<usize> {
        let mut rest = bytes;
        if let ConnectionPhase::Upgrading { .. } = self.phase {
            let Some((agreement, length)) = handshake::answer(rest)? else { return Ok(0) };
            rest = &rest[length..];
            self.upgraded(agreement, shared)?;
        }
        while let Some((frame, length)) = frame::front(rest)? {
            rest = &rest[length..];
            match frame.opcode {
                frame::TEXT | frame::BINARY => self.data(index, frame, shared, handler)?,
                frame::PING => self.send(frame::PONG, frame.payload, shared)?,
                frame::PONG => {}
                frame::CLOSE => bail!("the server closed: {}", close_text(frame.payload)),
                other => bail!("a frame with opcode {other}"),
            }
        }
        Ok(bytes.len() - rest.len())
    }

    fn upgraded(&mut self, agreement: Agreement, shared: &mut GeneratorState) -> Result<()> {
        self.window = match agreement {
            Agreement::Raw => Window::Absent,
            Agreement::Standalone => Window::Reset,
            Agreement::Context => Window::Kept(Box::default()),
        };
        let next = ConnectionPhase::Replying { replied: 0, wanted: 0 };
        let ConnectionPhase::Upgrading { commands } = std::mem::replace(&mut self.phase, next)
        else {
            unreachable!("only an upgrading connection is upgraded");
        };
        let mut rest = &commands[..];
        while self.encoding.next_message(&mut rest)?.is_some() {
            let ConnectionPhase::Replying { wanted, .. } = &mut self.phase else {
                unreachable!("just set")
            };
            *wanted += 1;
        }
        self.send(self.encoding.opcode(), &commands, shared)
    }

    fn data(
        &mut self,
        index: usize,
        frame: ServerFrame<'_>,
        shared: &mut GeneratorState,
        handler: &mut impl PublicationHandler,
    ) -> Result<()> {
        if !frame.rsv1 {
            return self.messages(index, frame.payload, shared, handler);
        }
        let mut plain = std::mem::take(&mut shared.plain);
        plain.clear();
        match &mut self.window {
            Window::Absent => bail!("a compressed frame, though no compression was agreed"),
            Window::Sealed => handler.publication(index, frame.payload)?,
            Window::Reset => {
                shared.inflater.reset();
                shared.inflater.message(frame.payload, &mut plain)?;
            }
            Window::Kept(inflater) => inflater.message(frame.payload, &mut plain)?,
        }
        self.messages(index, &plain, shared, handler)?;
        shared.plain = plain;
        Ok(())
    }

    fn messages(
        &mut self,
        index: usize,
        mut payload: &[u8],
        shared: &mut GeneratorState,
        handler: &mut impl PublicationHandler,
    ) -> Result<()> {
        while let Some(message) = self.encoding.next_message(&mut payload)? {
            if self.encoding.is_ping(message) {
                self.pong(shared)?;
            } else if let ConnectionPhase::Live = self.phase {
                handler.publication(index, message)?;
            } else {
                self.reply(message, shared)?;
            }
        }
        Ok(())
    }

    fn reply(&mut self, message: &[u8], shared: &mut GeneratorState) -> Result<()> {
        let ConnectionPhase::Replying { replied, wanted } = &mut self.phase else { return Ok(()) };
        *replied += u32::from(self.encoding.reply_id(message)?.is_some());
        if replied == wanted {
            self.phase = ConnectionPhase::Live;
            shared.subscribed += 1;
            if !shared.inflate && !matches!(self.window, Window::Absent) {
                self.window = Window::Sealed;
            }
        }
        Ok(())
    }

    fn pong(&mut self, shared: &mut GeneratorState) -> Result<()> {
        shared.pings += 1;
        self.send(self.encoding.opcode(), self.encoding.pong(), shared)
    }

    fn send(&mut self, opcode: u8, payload: &[u8], shared: &mut GeneratorState) -> Result<()> {
        shared.out.clear();
        frame::encode_masked(opcode, payload, &mut shared.out);
        self.stream.write_all(&shared.out).context("sending to the server")
    }
}

enum ConnectionPhase {
    Upgrading { commands: Vec<u8> },
    Replying { replied: u32, wanted: u32 },
    Live,
}

/// Where the plaintext of a compressed frame comes from.
enum Window {
    /// Not negotiated.
    Absent,
    /// Standalone messages: the shared inflater, reset before each.
    Reset,
    /// Context takeover: this connection's own inflater.
    Kept(Box<Inflater>),
    /// Negotiated, but only counted: a light generator does not inflate. A compressed frame is always a publication,
    /// because a ping is too short to be compressed; how short the frame is says nothing, as one that repeats an earlier
    /// publication takes no more bytes than a ping would.
    Sealed,
}

fn close_text(payload: &[u8]) -> String {
    match payload {
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            format!("{code} {}", String::from_utf8_lossy(reason))
        }
        _ => "without a code".to_owned(),
    }
}
