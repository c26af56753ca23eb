//! One client that comes and goes: it connects, recovers, listens, and ends in one of several ways.
//! In: sockets and their bytes → out: what it saw goes to its streams, what it did to the tally.
//! Uses the frames and the handshake of `generator`; never decides when to come or go.
//! Changed here: what a client does on a connection; when, and how often, lives in `churn`.

use anyhow::{Result, ensure};
use mio::net::TcpStream;
use socket2::SockRef;
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use super::messages::{self, Message};
use super::stream::{Faults, Stream};
use fanwire_load::generator::frame::{self, ServerFrame};
use fanwire_load::generator::handshake::{self, CompressionAgreement};
use fanwire_load::generator::inflate::Inflater;

/// A client and all it remembers between connections.
pub struct Client {
    stream: Option<TcpStream>,
    phase: Phase,
    /// Bytes of a frame, or of the upgrade's answer, whose rest has not come yet.
    partial: Vec<u8>,
    inflater: Option<Box<Inflater>>,
    /// Forget the window before each message.
    standalone: bool,
    pub subscriptions: Vec<Subscription>,
    /// The step at which this connection attempt is broken off.
    break_off: Option<Stage>,
    /// When to do the next thing: end a connection, or open one.
    pub due: Instant,
    /// When this return began, until it has caught up.
    since: Option<Instant>,
}

pub struct Subscription {
    /// Its number among all channels.
    pub channel: usize,
    name: String,
    pub stream: Stream,
    /// How many publications there were when the client began to return.
    goal: u64,
}

/// How a connection begins.
pub struct Attempt {
    pub stream: TcpStream,
    /// When connecting began.
    pub since: Instant,
    /// Offer permessage-deflate.
    pub compression: bool,
    pub break_off: Option<Stage>,
}

/// The step at which a TCP reset ends a connection attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Half of the upgrade request was sent.
    Request,
    /// All of it, and nothing was read.
    Upgrade,
    /// Connect and subscribe, and no reply was read.
    Commands,
}

/// Counts of what all clients did and saw together.
#[derive(Default)]
pub struct Tally {
    pub faults: Faults,
    /// Messages other than pings: as long as there are some, the run moves on.
    pub messages: u64,
    /// Publications that came as pushes.
    pub publications: u64,
    /// Publications that came in subscribe replies.
    pub caught_up: u64,
    /// Subscribe replies that recovered.
    pub recoveries: u64,
    pub returns: u64,
    pub resets: u64,
    pub closes: u64,
    pub broken_off: u64,
    /// Times from the start of a connect until everything had arrived that was published before it.
    pub return_ms: Vec<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Away,
    Upgrading,
    /// So many replies are still to come.
    Replying(usize),
    Live,
    /// A close frame was sent; what still comes is not looked at.
    Closing,
}

impl Client {
    pub fn new(channels: impl Iterator<Item = (usize, String)>, now: Instant) -> Self {
        let subscription =
            |(channel, name)| Subscription { channel, name, stream: Stream::default(), goal: 0 };
        Self {
            stream: None,
            phase: Phase::Away,
            partial: Vec::new(),
            inflater: None,
            standalone: false,
            subscriptions: channels.map(subscription).collect(),
            break_off: None,
            due: now,
            since: None,
        }
    }

    pub fn is_away(&self) -> bool {
        self.phase == Phase::Away
    }

    pub fn is_live(&self) -> bool {
        self.phase == Phase::Live
    }

    /// Whether it is there and has everything of the first `tops[channel]` publications of its channels.
    pub fn has_all(&self, tops: &[u64]) -> bool {
        let has = |of: &Subscription| of.stream.has_reached(tops[of.channel]);
        self.is_live() && self.subscriptions.iter().all(has)
    }

    /// Begins a connection on an open socket; `tops` says how many publications each channel has had.
    ///
    /// # Errors
    /// A socket that does not take a request.
    pub fn open(&mut self, attempt: Attempt, tops: &[u64], tally: &mut Tally) -> Result<()> {
        let Attempt { mut stream, since, compression, break_off } = attempt;
        if self.subscriptions.iter().any(|of| of.stream.position().is_some()) {
            tally.returns += 1;
            self.since = Some(since);
            self.subscriptions.iter_mut().for_each(|of| of.goal = tops[of.channel]);
        }
        let request = handshake::request("localhost", "/connection/websocket", compression);
        let sent =
            if break_off == Some(Stage::Request) { request.len() / 2 } else { request.len() };
        stream.write_all(&request[..sent])?;
        self.stream = Some(stream);
        self.phase = Phase::Upgrading;
        self.break_off = break_off;
        self.partial.clear();
        if matches!(break_off, Some(Stage::Request | Stage::Upgrade)) {
            self.cut(tally);
        }
        Ok(())
    }

    pub fn socket(&mut self) -> Option<&mut TcpStream> {
        self.stream.as_mut()
    }

    /// Ends the connection by a TCP reset: what was on its way to the client is gone.
    pub fn reset(&mut self, tally: &mut Tally) {
        tally.resets += 1;
        self.tear();
    }

    /// Ends the connection by a close frame; the server's answer ends it for good.
    ///
    /// # Errors
    /// A socket that does not take it.
    pub fn close(&mut self, tally: &mut Tally) -> Result<()> {
        tally.closes += 1;
        self.phase = Phase::Closing;
        self.send(frame::CLOSE, &1000_u16.to_be_bytes())
    }

    /// Reads what is there and acts on it.
    ///
    /// # Errors
    /// Anything that no right server sends.
    pub fn read(&mut self, buffer: &mut [u8], tally: &mut Tally) -> Result<()> {
        while let Some(stream) = &mut self.stream {
            match stream.read(buffer) {
                Ok(0) => self.ended(tally),
                Ok(length) => self.receive(&buffer[..length], tally)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.ended(tally),
            }
        }
        Ok(())
    }

    fn receive(&mut self, bytes: &[u8], tally: &mut Tally) -> Result<()> {
        let mut joined = std::mem::take(&mut self.partial);
        joined.extend_from_slice(bytes);
        let mut rest = &joined[..];
        if self.phase == Phase::Upgrading
            && let Some((agreement, length)) = handshake::answer(rest)?
        {
            rest = &rest[length..];
            self.upgraded(agreement, tally)?;
        }
        while !matches!(self.phase, Phase::Away | Phase::Upgrading) {
            let Some((frame, length)) = frame::front(rest)? else { break };
            rest = &rest[length..];
            self.frame(frame, tally)?;
        }
        let taken = joined.len() - rest.len();
        joined.drain(..taken);
        self.partial = joined;
        Ok(())
    }

    fn upgraded(&mut self, agreement: CompressionAgreement, tally: &mut Tally) -> Result<()> {
        self.inflater = (agreement != CompressionAgreement::Raw).then(Box::default);
        self.standalone = agreement == CompressionAgreement::Standalone;
        self.phase = Phase::Replying(1 + self.subscriptions.len());
        let streams = self.subscriptions.iter().map(|of| (of.name.as_str(), &of.stream));
        let commands = messages::commands(streams);
        self.send(frame::TEXT, &commands)?;
        if self.break_off == Some(Stage::Commands) {
            self.cut(tally);
        }
        Ok(())
    }

    fn frame(&mut self, frame: ServerFrame<'_>, tally: &mut Tally) -> Result<()> {
        match frame.opcode {
            frame::CLOSE => {
                self.ended(tally);
                Ok(())
            }
            frame::PING => self.send(frame::PONG, frame.payload),
            frame::TEXT if self.phase == Phase::Closing => Ok(()),
            frame::TEXT if frame.rsv1 => {
                let text = self.inflated(frame.payload)?;
                self.messages(&text, tally)
            }
            _ => self.messages(frame.payload, tally),
        }
    }

    fn inflated(&mut self, payload: &[u8]) -> Result<Vec<u8>> {
        ensure!(self.inflater.is_some(), "a compressed frame, though no compression was agreed");
        let mut plain = Vec::new();
        if let Some(inflater) = &mut self.inflater {
            if self.standalone {
                inflater.reset();
            }
            inflater.message(payload, &mut plain)?;
        }
        Ok(plain)
    }

    fn messages(&mut self, payload: &[u8], tally: &mut Tally) -> Result<()> {
        for text in payload.split(|byte| *byte == b'\n') {
            let message = messages::message(text)?;
            tally.messages += u64::from(message != Message::Ping);
            match message {
                Message::Ping => self.send(frame::TEXT, b"{}")?,
                Message::Connected => self.replied(tally),
                Message::Subscribed(number, answer, missed) => {
                    let is_return = self.subscriptions[number].stream.position().is_some();
                    tally.recoveries += u64::from(is_return && answer.recovered);
                    tally.caught_up += missed.len() as u64;
                    let stream = &mut self.subscriptions[number].stream;
                    stream.subscribed(answer, &mut tally.faults);
                    for publication in missed {
                        let offset = publication.offset;
                        let number = publication.data.n;
                        stream.publication(offset, number, &mut tally.faults);
                    }
                    self.replied(tally);
                }
                Message::Publication(channel, publication) => {
                    tally.publications += 1;
                    let of = self.subscriptions.iter_mut().find(|of| of.name == channel);
                    let Some(of) = of else { anyhow::bail!("a publication of {channel}") };
                    let offset = publication.offset;
                    let number = publication.data.n;
                    of.stream.publication(offset, number, &mut tally.faults);
                    self.check_return(tally);
                }
                Message::Ended => tally.faults.ended += 1,
            }
        }
        Ok(())
    }

    fn replied(&mut self, tally: &mut Tally) {
        if let Phase::Replying(left) = self.phase {
            self.phase = if left > 1 { Phase::Replying(left - 1) } else { Phase::Live };
            self.check_return(tally);
        }
    }

    /// Notes how long a return took, once all is there that had been published when it began.
    fn check_return(&mut self, tally: &mut Tally) {
        let has = |of: &Subscription| of.stream.has_reached(of.goal);
        if self.phase == Phase::Live
            && let Some(since) = self.since
            && self.subscriptions.iter().all(has)
        {
            tally.return_ms.push(since.elapsed().as_secs_f64() * 1e3);
            self.since = None;
        }
    }

    /// The connection is over: as wished, or because the server ended it.
    fn ended(&mut self, tally: &mut Tally) {
        if self.phase != Phase::Closing {
            tally.faults.ended += 1;
        }
        self.stream = None;
        self.phase = Phase::Away;
    }

    /// Breaks a connection attempt off.
    fn cut(&mut self, tally: &mut Tally) {
        tally.broken_off += 1;
        self.tear();
    }

    fn tear(&mut self) {
        if let Some(stream) = self.stream.take() {
            // Without lingering a close is a reset; where that fails it is an end, which does as well.
            let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
        }
        self.phase = Phase::Away;
    }

    fn send(&mut self, opcode: u8, payload: &[u8]) -> Result<()> {
        let mut bytes = Vec::new();
        frame::encode_masked(opcode, payload, &mut bytes);
        if let Some(stream) = &mut self.stream {
            stream.write_all(&bytes)?;
        }
        Ok(())
    }
}
