//! Asks for the presence of a channel again and again, by the server API or as a client.
//! In: an address, a face, a rate → out: how long each answer took, once it was whole and had every member.
//! Uses a thread with a `Caller`, and frames and handshake of `generator`; it looks at no more than an answer's size.
//! Change here how is asked; what is measured at the same time lives in `presence`.

use anyhow::{Result, anyhow, bail, ensure};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::CROWD;
use crate::caller::Caller;
use crate::target::API_KEY;
use fanwire_load::generator::publisher::{answer_length, http_request};
use fanwire_load::generator::{frame, handshake};
use fanwire_load::random::Random;

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
    caller: Caller,
    face: Face,
}

impl Line {
    fn open(address: SocketAddr, face: Face) -> Result<Self> {
        let mut line = Self { caller: Caller::open(address)?, face };
        if let Face::Client { compression } = face {
            let request = handshake::request("localhost", "/connection/websocket", compression);
            line.caller.send(&request)?;
            line.caller.take(|bytes| Ok(handshake::answer(bytes)?.map(|(_, length)| length)))?;
            line.send(br#"{"id":1,"connect":{}}"#)?;
            line.take_message()?;
        }
        Ok(line)
    }

    /// Asks once and returns the size of the answer in bytes, without frame header.
    fn ask(&mut self) -> Result<usize> {
        if self.face == Face::Api {
            let body = format!(r#"{{"channel":"{CROWD}"}}"#);
            self.caller.send(&http_request("presence", &body, API_KEY))?;
            return Ok(self.caller.take(answer_length)?.len());
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
        self.caller.send(&bytes)
    }

    /// The size of the next message that is no ping; pings are answered.
    fn take_message(&mut self) -> Result<usize> {
        loop {
            let mut head = (0, 0);
            let bytes = self.caller.take(|bytes| {
                let Some((frame, length)) = frame::front(bytes)? else { return Ok(None) };
                head = (frame.opcode, frame.payload.len());
                Ok(Some(length))
            })?;
            match head {
                (frame::TEXT, ..=PING_BYTES_MAX) => self.send(b"{}")?,
                (frame::TEXT, bytes) => return Ok(bytes),
                (opcode, _) => bail!("a frame with opcode {opcode} of {} bytes", bytes.len()),
            }
        }
    }
}

/// A ping is two bytes, compressed or not at most a few; every answer is longer.
const PING_BYTES_MAX: usize = 8;
