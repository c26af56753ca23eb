//! The bare send loop: one epoll loop, one send(2) of one frame per socket per publication, and nothing else.
//! In: a control connection that names a payload length per publication → out: that frame to every other connection; the answer to an upgrade.
//! Uses mio only, and for a run with TLS rustls. It is the limit that Fanwire is measured against, so nothing may be added to it.
//! Change nothing here that makes it slower; the other side of the measurement lives in `fanout`.

mod records;

use anyhow::{Context, Result};
use clap::Args;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;

use fanwire_load::generator::frame;
use fanwire_load::machine;

use crate::certificate;
use records::Encrypted;

/// Run the bare send loop by itself (fanout starts it for you).
#[derive(Args)]
pub struct Bare {
    /// Address to listen on; port 0 takes a free one, which is printed.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: std::net::SocketAddr,
    /// Speak TLS to subscribers, with this certificate.
    #[arg(long, value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,
    /// The private key of the certificate.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

impl Bare {
    /// Serves until it is killed or the control connection closes.
    pub fn run(self) -> Result<()> {
        machine::raise_descriptor_limit();
        match self.certificate.as_deref().zip(self.key.as_deref()) {
            Some((certificate, key)) => {
                self.serve::<Encrypted>(certificate::server_config(certificate, key)?)
            }
            None => self.serve::<Plain>(()),
        }
    }

    fn serve<S: Subscriber>(&self, settings: S::Settings) -> Result<()> {
        let mut listener = TcpListener::bind(self.listen)?;
        println!("{}", listener.local_addr()?);
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let subscribers = Vec::<S>::new();
        let mut limit = Loop { poll, listener, control: None, subscribers, settings };
        let mut events = Events::with_capacity(1024);
        let mut buffer = vec![0; READ_BYTES_MAX];
        let mut controlled = true;
        while controlled {
            limit.poll.poll(&mut events, None)?;
            for event in &events {
                match event.token() {
                    LISTENER => limit.accept()?,
                    CONTROL => controlled = limit.command()?,
                    Token(index) if event.is_writable() => {
                        limit.subscribers[index].flush()?;
                        if event.is_readable() {
                            limit.subscribers[index].readable(&mut buffer)?;
                        }
                    }
                    Token(index) if event.is_readable() => {
                        limit.subscribers[index].readable(&mut buffer)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// The trigger for one publication: the payload length, little-endian.
pub fn trigger(payload_bytes: usize) -> Vec<u8> {
    u32::try_from(payload_bytes).expect("a payload below 4 GiB").to_le_bytes().to_vec()
}

/// A subscriber, as the loop sees it.
trait Subscriber: Sized {
    type Settings;

    fn accepted(stream: TcpStream, settings: &Self::Settings) -> io::Result<Self>;
    /// Sends one frame, and keeps what the socket does not take.
    fn send(&mut self, frame: &[u8]) -> io::Result<()>;
    /// Sends what was kept.
    fn flush(&mut self) -> io::Result<()>;
    /// Reads what the peer sent; `buffer` is scratch space.
    fn readable(&mut self, buffer: &mut [u8]) -> io::Result<()>;
}

struct Loop<S: Subscriber> {
    poll: Poll,
    listener: TcpListener,
    control: Option<TcpStream>,
    subscribers: Vec<S>,
    settings: S::Settings,
}

impl<S: Subscriber> Loop<S> {
    /// The first connection is the control connection, all others are subscribers.
    fn accept(&mut self) -> Result<()> {
        loop {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("accepting"),
            };
            stream.set_nodelay(true)?;
            if self.control.is_none() {
                self.poll.registry().register(&mut stream, CONTROL, Interest::READABLE)?;
                self.control = Some(stream);
                continue;
            }
            let token = Token(self.subscribers.len());
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut stream, token, interest)?;
            self.subscribers.push(S::accepted(stream, &self.settings)?);
        }
    }

    /// Reads whole triggers and publishes each; false when the control connection is closed.
    fn command(&mut self) -> Result<bool> {
        self.accept()?; // subscribers that connected before the trigger was sent get the publication
        let mut frame = Vec::new();
        loop {
            let mut trigger = [0; 4];
            let control = self.control.as_mut().context("no control connection")?;
            match control.read(&mut trigger) {
                Ok(0) => return Ok(false),
                Ok(4) => {}
                Ok(_) => control.read_exact(&mut trigger).context("a cut trigger")?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error).context("reading a trigger"),
            }
            let payload = vec![b'x'; u32::from_le_bytes(trigger) as usize];
            frame.clear();
            frame::encode_text(&payload, &mut frame);
            self.subscribers.iter_mut().try_for_each(|subscriber| subscriber.send(&frame))?;
        }
    }
}

struct Plain {
    stream: TcpStream,
    /// Bytes that the socket did not accept yet.
    queue: Vec<u8>,
}

impl Subscriber for Plain {
    type Settings = ();

    fn accepted(stream: TcpStream, (): &()) -> io::Result<Self> {
        Ok(Self { stream, queue: Vec::new() })
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let sent = if self.queue.is_empty() { send(&mut self.stream, frame)? } else { 0 };
        self.queue.extend_from_slice(&frame[sent..]);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.queue.is_empty() {
            let sent = send(&mut self.stream, &self.queue)?;
            self.queue.drain(..sent);
        }
        Ok(())
    }

    /// Answers a whole upgrade request, if one has come. The answer is a constant, that of the generator's key.
    fn readable(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let length = match self.stream.read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            length => length?,
        };
        let request = &buffer[..length];
        if request.starts_with(b"GET ") && request.ends_with(b"\r\n\r\n") {
            self.send(UPGRADED.as_bytes())?;
        }
        Ok(())
    }
}

/// One send(2); 0 when the socket would block.
fn send(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    match stream.write(bytes) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        sent => sent,
    }
}

const UPGRADED: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
     Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
const READ_BYTES_MAX: usize = 64 << 10;
const LISTENER: Token = Token(usize::MAX - 1);
const CONTROL: Token = Token(usize::MAX - 2);
