//! Asks for the presence of a channel again and again, by the server API or as a client.
//! In: an address, a face, a rate → out: how long each answer took, once it was whole and had every member.
//! Uses a thread with a blocking socket, and frames and handshake of `generator`; it looks at no more than an answer's size.
//! Change here how is asked; what is measured meanwhile lives in `presence`.

use anyhow::{Context, Result, anyhow, bail, ensure};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::CROWD;
use crate::generator::{frame, handshake};
use crate::random::Random;
use crate::target::API_KEY;

/// By what is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Face {
    Api,
    Client { compression: bool },
}

/// A thread that asks.
pub struct Asker {
    thread: JoinHandle<Result<Vec<f64>>>,
    is_over: Arc<AtomicBool>,
}

impl Asker {
    /// Connects, and begins to ask some `rate` times a second; every answer must have `members` members.
    ///
    /// # Errors
    /// No connection.
    pub fn start(address: SocketAddr, face: Face, rate: f64, members: usize) -> Result<Self> {
        let mut line = Line::open(address, face)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        // At random, so that questions meet publications, and those of others, as chance will have it.
        let mut random = Random(u64::from(face == Face::Api));
        let mut pause = move || random.below(2_000) as f64 / 1_000.0 / rate;
        let thread = thread::spawn(move || {
            let mut answers = Vec::new();
            while !over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_secs_f64(pause()));
                let asked = Instant::now();
                let bytes = line.ask()?;
                answers.push(asked.elapsed().as_secs_f64() * 1e3);
                line.check(bytes, members)?;
            }
            Ok(answers)
        });
        Ok(Self { thread, is_over })
    }

    /// The milliseconds that each answer took.
    ///
    /// # Errors
    /// What went wrong while asking.
    pub fn stop(self) -> Result<Vec<f64>> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the asking thread has failed"))?
    }
}

/// A connection to ask on.
struct Line {
    stream: TcpStream,
    face: Face,
    received: Vec<u8>,
    buffer: Box<[u8]>,
}

impl Line {
    fn open(address: SocketAddr, face: Face) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let buffer = vec![0; READ_BYTES_MAX].into();
        let mut line = Self { stream, face, received: Vec::new(), buffer };
        if let Face::Client { compression } = face {
            let request = handshake::request("localhost", "/connection/websocket", compression);
            line.stream.write_all(&request)?;
            let answer =
                line.take(|bytes| Ok(handshake::answer(bytes)?.map(|(_, length)| length)))?;
            ensure!(answer > 0, "the upgrade has an answer");
            line.send(br#"{"id":1,"connect":{}}"#)?;
            line.take_message()?;
        }
        Ok(line)
    }

    /// Asks once and returns the size of the answer in bytes, without frame header.
    fn ask(&mut self) -> Result<usize> {
        if self.face == Face::Api {
            let body = format!(r#"{{"channel":"{CROWD}"}}"#);
            let request = format!(
                "POST /api/presence HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {API_KEY}\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            );
            self.stream.write_all(request.as_bytes())?;
            return self.take(http_answer);
        }
        let command = format!(r#"{{"id":2,"presence":{{"channel":"{CROWD}"}}}}"#);
        self.send(command.as_bytes())?;
        self.take_message()
    }

    /// # Errors
    /// The answer is too small for so many members. Compressed ones hold two random ids of 16 bytes per member, in text.
    fn check(&self, bytes: usize, members: usize) -> Result<()> {
        let least = match self.face {
            Face::Client { compression: true } => 16,
            _ => 72,
        };
        ensure!(bytes > members * least, "{bytes} bytes for {members} members");
        Ok(())
    }

    fn send(&mut self, text: &[u8]) -> Result<()> {
        let mut bytes = Vec::new();
        frame::encode_masked(frame::TEXT, text, &mut bytes);
        Ok(self.stream.write_all(&bytes)?)
    }

    /// The size of the next message that is no ping; pings are answered.
    fn take_message(&mut self) -> Result<usize> {
        loop {
            let mut head = (0, 0);
            let length = self.take(|bytes| {
                let Some((frame, length)) = frame::front(bytes)? else { return Ok(None) };
                head = (frame.opcode, frame.payload.len());
                Ok(Some(length))
            })?;
            match head {
                (frame::TEXT, ..=PING_BYTES_MAX) => self.send(b"{}")?,
                (frame::TEXT, bytes) => return Ok(bytes),
                (opcode, _) => bail!("a frame with opcode {opcode} of {length} bytes"),
            }
        }
    }

    /// Reads until `whole` knows the length of what is in front, and takes that away.
    fn take(&mut self, mut whole: impl FnMut(&[u8]) -> Result<Option<usize>>) -> Result<usize> {
        loop {
            if let Some(length) = whole(&self.received)? {
                self.received.drain(..length);
                return Ok(length);
            }
            let length = self.stream.read(&mut self.buffer).context("waiting for an answer")?;
            ensure!(length > 0, "the server closed the connection");
            self.received.extend_from_slice(&self.buffer[..length]);
        }
    }
}

/// The length of a whole good answer at the front.
fn http_answer(bytes: &[u8]) -> Result<Option<usize>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..end])?;
    ensure!(head.starts_with("HTTP/1.1 200 "), "the API said {head}");
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let (_, length) = length.context("an answer without content-length")?;
    let whole = end + 4 + length.trim().parse::<usize>()?;
    Ok((bytes.len() >= whole).then_some(whole))
}

const PATIENCE: Duration = Duration::from_secs(10);
const READ_BYTES_MAX: usize = 256 * 1024;
/// A ping is two bytes, compressed or not at most a few; every answer is longer.
const PING_BYTES_MAX: usize = 8;
