//! A client of `names`: it subscribes to some channels at once, leaves them, and waits for every reply.
//! In: names of channels → out: nothing but errors.
//! Uses a `Caller`, and frames, messages and handshake of `generator`.
//! Change here what the client sends; how often it does so lives in `names`.

use anyhow::{Result, ensure};
use std::net::SocketAddr;

use crate::caller::Caller;
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::{frame, handshake};

pub struct Client {
    caller: Caller,
}

impl Client {
    /// # Errors
    /// A connection or a connect that is refused.
    pub fn open(address: SocketAddr) -> Result<Self> {
        let mut client = Self { caller: Caller::open(address)? };
        client.caller.send(&handshake::request("localhost", Encoding::Json.path(), false))?;
        client.caller.take(|bytes| Ok(handshake::answer(bytes)?.map(|(_, length)| length)))?;
        client.ask(&[r#"{"id":1,"connect":{}}"#.to_owned()])?;
        Ok(client)
    }

    /// Subscribes to channels and leaves them again.
    ///
    /// # Errors
    /// An error reply, or a connection that is gone.
    pub fn come_and_go(&mut self, channels: impl Iterator<Item = String>) -> Result<()> {
        let both = channels.map(|channel| {
            ["subscribe", "unsubscribe"]
                .map(|verb| format!(r#"{{"id":1,"{verb}":{{"channel":"{channel}"}}}}"#))
        });
        let (come, go): (Vec<_>, Vec<_>) = both.map(|[come, go]| (come, go)).unzip();
        self.ask(&come)?;
        self.ask(&go)
    }

    /// Sends commands in one message and waits for as many replies; pings are answered.
    fn ask(&mut self, commands: &[String]) -> Result<()> {
        self.send(commands.join("\n").as_bytes())?;
        let mut replies = 0;
        while replies < commands.len() {
            let payload = self.take_message()?;
            let mut rest = &payload[..];
            while let Some(message) = Encoding::Json.next_message(&mut rest)? {
                if Encoding::Json.is_ping(message) {
                    self.send(Encoding::Json.pong())?;
                } else if Encoding::Json.reply_id(message)?.is_some() {
                    replies += 1;
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, text: &[u8]) -> Result<()> {
        let mut bytes = Vec::new();
        frame::encode_masked(frame::TEXT, text, &mut bytes);
        self.caller.send(&bytes)
    }

    fn take_message(&mut self) -> Result<Vec<u8>> {
        let mut payload = Vec::new();
        self.caller.take(|bytes| {
            let Some((frame, length)) = frame::front(bytes)? else { return Ok(None) };
            ensure!(frame.opcode == frame::TEXT, "a frame with opcode {}", frame.opcode);
            payload = frame.payload.to_vec();
            Ok(Some(length))
        })?;
        Ok(payload)
    }
}
