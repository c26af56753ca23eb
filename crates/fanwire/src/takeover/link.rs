//! The pair of sockets between the old program and the new one: messages in order, with descriptors (SCM_RIGHTS, unix(7)).
//! In: messages with descriptors of this program → out: the same in the other program, with descriptors of its own.
//! Uses rustix. Never: what a message means; a wait without a limit.
//! Changed here: the bytes around a message. Their order is in `hand_over` and `take_over`.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use fanwire_shard::GIVEN_MAX;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// One end of the pair.
pub(super) struct ProgramLink {
    socket: UnixStream,
    /// The end of all waits.
    deadline: Option<Instant>,
}

/// The kinds of messages. Their numbers, and the content of the first three, are the same in all versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum MessageKind {
    /// The old program's version and state, with its listening sockets.
    Hello = 1,
    /// The new program can serve.
    Ready = 2,
    /// The new program cannot serve; the reason in words.
    Refused = 3,
    /// A part of the engine.
    Engine = 4,
    /// Records of connections, with their sockets.
    Connections = 5,
    /// Everything was sent.
    Complete = 6,
    /// The new program has everything, and serves.
    Serving = 7,
    /// The channels of the old program, in Redis.
    Channels = 8,
    /// The new program is subscribed to them.
    Subscribed = 9,
}

/// A message that has arrived.
pub(super) struct LinkMessage {
    pub(super) kind: MessageKind,
    pub(super) payload: Vec<u8>,
    pub(super) descriptors: Vec<OwnedFd>,
}

impl MessageKind {
    const ALL: [Self; 9] = [
        Self::Hello,
        Self::Ready,
        Self::Refused,
        Self::Engine,
        Self::Connections,
        Self::Complete,
        Self::Serving,
        Self::Channels,
        Self::Subscribed,
    ];
}

impl ProgramLink {
    pub(super) fn new(socket: UnixStream) -> Self {
        Self { socket, deadline: None }
    }

    /// From now on all sends and receives together take at most this time.
    pub(super) fn limit(&mut self, patience: Duration) {
        self.deadline = Some(Instant::now() + patience);
    }

    fn apply_limit(&self) -> io::Result<()> {
        let Some(deadline) = self.deadline else { return Ok(()) };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.socket.set_read_timeout(Some(left))?;
        self.socket.set_write_timeout(Some(left))
    }

    /// Sends a message with at most [`DESCRIPTORS_MAX`] descriptors, and copies them into the other program.
    pub(super) fn send(
        &mut self,
        kind: MessageKind,
        payload: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        self.apply_limit()?;
        let length = u32::try_from(payload.len()).map_err(|_| ErrorKind::InvalidInput)?;
        let mut header = [0; HEADER_BYTES];
        header[0] = kind as u8;
        header[1] = u8::try_from(descriptors.len()).map_err(|_| ErrorKind::InvalidInput)?;
        header[2..].copy_from_slice(&length.to_le_bytes());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors))
        {
            return Err(ErrorKind::InvalidInput.into());
        }
        let parts = [IoSlice::new(&header)];
        let sent = loop {
            match sendmsg(&self.socket, &parts, &mut ancillary, SendFlags::empty()) {
                Err(rustix::io::Errno::INTR) => {}
                result => break result?,
            }
        };
        self.socket.write_all(&header[sent..])?;
        self.socket.write_all(payload)
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// `UnexpectedEof` when the other program has ended, `InvalidData` for a message of no known kind; those of the socket.
    pub(super) fn receive(&mut self) -> io::Result<LinkMessage> {
        self.apply_limit()?;
        let mut header = [0; HEADER_BYTES];
        let mut descriptors = Vec::new();
        let received = self.receive_header(&mut header, &mut descriptors)?;
        self.socket.read_exact(&mut header[received..])?;
        let [kind, count, length @ ..] = header;
        let known = MessageKind::ALL.into_iter().find(|known| *known as u8 == kind);
        let kind = known.ok_or(ErrorKind::InvalidData)?;
        let length = u32::from_le_bytes(length);
        let mut payload = Vec::new();
        (&self.socket).take(length.into()).read_to_end(&mut payload)?;
        if payload.len() < length as usize {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if descriptors.len() != usize::from(count) {
            return Err(io::Error::other(
                "some descriptors did not arrive: is their limit reached?",
            ));
        }
        Ok(LinkMessage { kind, payload, descriptors })
    }

    /// Waits for a message of this kind, and returns its payload.
    ///
    /// # Errors
    /// As those of [`receive`](Self::receive); the reason of a program that refuses; `InvalidData` for another kind.
    pub(super) fn expect(&mut self, expected: MessageKind) -> io::Result<Vec<u8>> {
        let LinkMessage { kind, payload, .. } = self.receive()?;
        match kind {
            kind if kind == expected => Ok(payload),
            MessageKind::Refused => Err(io::Error::other(String::from_utf8_lossy(&payload))),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }

    /// Receives the beginning of a header, with which the descriptors come. Returns its bytes.
    fn receive_header(
        &self,
        header: &mut [u8; HEADER_BYTES],
        descriptors: &mut Vec<OwnedFd>,
    ) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = loop {
            let mut parts = [IoSliceMut::new(header)];
            match recvmsg(&self.socket, &mut parts, &mut ancillary, flags) {
                Err(rustix::io::Errno::INTR) => {}
                result => break result?,
            }
        };
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                descriptors.extend(received);
            }
        }
        if received.bytes == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(received.bytes)
    }
}

pub(super) const DESCRIPTORS_MAX: usize = GIVEN_MAX;

/// MessageKind, number of descriptors, bytes of the payload.
const HEADER_BYTES: usize = 6;

#[cfg(test)]
mod tests;
