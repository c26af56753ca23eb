//! One TLS session of a server (RFC 8446, RFC 5246) without its socket: records become plaintext, plaintext becomes records.
//! In: bytes of the peer, plaintext → out: plaintext, and bytes that the owner of the socket sends.
//! Uses rustls' unbuffered connection, which holds no buffers at rest (docs/decisions/0013); never a socket, never a clock.
//! Changed here: what a session keeps between two calls. `connection_writer::records` and the HTTP side decide when bytes are sent.

use std::{mem, sync::Arc};

use rustls::{
    Error, HandshakeKind, ServerConfig,
    server::UnbufferedServerConnection,
    unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus},
};

/// One TLS session. After its handshake it holds about 3.5 KiB of memory while nothing is received or sent.
pub struct TlsSession {
    connection: UnbufferedServerConnection,
    /// Received bytes of records or handshake messages that are not complete.
    partial: Vec<u8>,
    /// Bytes to send; the first `sent` of them are sent.
    outgoing: Vec<u8>,
    sent: usize,
    peer: PeerState,
    /// The error of the peer. rustls forgets some of these errors, and must not be called after any.
    failure: Option<Error>,
}

/// Whether the peer may send more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    Open,
    /// It sent close_notify; later bytes are ignored (RFC 8446 §6.1).
    Closed,
}

impl TlsSession {
    /// A session before its handshake.
    ///
    /// # Errors
    /// A configuration that rustls refuses.
    pub fn new(config: Arc<ServerConfig>) -> Result<Box<Self>, Error> {
        let connection = UnbufferedServerConnection::new(config)?;
        Ok(Box::new(Self {
            connection,
            partial: Vec::new(),
            outgoing: Vec::new(),
            sent: 0,
            peer: PeerState::Open,
            failure: None,
        }))
    }

    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Whether the handshake continued an earlier session.
    pub fn is_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// The protocol above TLS that both sides agreed on (RFC 7301).
    pub fn protocol(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }

    /// Processes received bytes, which are overwritten, and appends their plaintext. Answers to them, such as the next
    /// messages of the handshake or an alert, are added to [`unsent`](Self::unsent), also with an error.
    ///
    /// # Errors
    /// The peer broke the protocol; every later call returns the same error.
    pub fn receive(
        &mut self,
        bytes: &mut [u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<PeerState, Error> {
        self.check()?;
        let received = self.receive_records(bytes, plaintext);
        self.failure = received.as_ref().err().cloned();
        received
    }

    fn receive_records(
        &mut self,
        bytes: &mut [u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<PeerState, Error> {
        let mut partial = mem::take(&mut self.partial);
        if partial.is_empty() {
            let taken = self.process(bytes, plaintext)?;
            partial.extend_from_slice(&bytes[taken..]);
        } else {
            partial.extend_from_slice(bytes);
            let taken = self.process(&mut partial, plaintext)?;
            partial.drain(..taken);
            partial.shrink_to_fit();
        }
        if partial.len() > PARTIAL_BYTES_MAX {
            return Err(Error::PeerSentOversizedRecord);
        }
        self.partial = partial;
        Ok(self.peer)
    }

    /// Returns the error of an earlier call.
    fn check(&self) -> Result<(), Error> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Processes whole records. Returns how many bytes they have.
    fn process(&mut self, bytes: &mut [u8], plaintext: &mut Vec<u8>) -> Result<usize, Error> {
        let mut taken = 0;
        while self.peer == PeerState::Open {
            let UnbufferedStatus { discard, state } =
                self.connection.process_tls_records(&mut bytes[taken..]);
            taken += discard;
            match state {
                Ok(ConnectionState::ReadTraffic(mut records)) => {
                    while let Some(record) = records.next_record() {
                        let record = record?;
                        taken += record.discard;
                        plaintext.extend_from_slice(record.payload);
                    }
                }
                Ok(ConnectionState::EncodeTlsData(answer)) => encode(answer, &mut self.outgoing),
                Ok(ConnectionState::TransmitTlsData(answers)) => answers.done(),
                Ok(ConnectionState::PeerClosed) => self.peer = PeerState::Closed,
                // More bytes are needed. There is no early data, because no configuration allows it.
                Ok(_) => return Ok(taken),
                Err(error) => {
                    self.collect_alerts();
                    return Err(error);
                }
            }
        }
        Ok(bytes.len())
    }

    /// Adds alerts that an error caused.
    fn collect_alerts(&mut self) {
        while self.connection.wants_write() {
            let UnbufferedStatus { state, .. } = self.connection.process_tls_records(&mut []);
            match state {
                Ok(ConnectionState::EncodeTlsData(alert)) => encode(alert, &mut self.outgoing),
                _ => return,
            }
        }
    }

    /// Encrypts at most [`PLAINTEXT_BYTES_MAX`] bytes into `records`, which holds [`RECORDS_BYTES_MAX`]. Returns how many
    /// bytes of it are to be sent, behind those that are still [unsent](Self::unsent). They have to be sent: the next ones
    /// are invalid without them (RFC 8446 §5.3).
    ///
    /// # Errors
    /// The handshake is not over, the peer broke the protocol, the session has ended, or the keys of TLS 1.2 are used up.
    pub fn encrypt(&mut self, plaintext: &[u8], records: &mut [u8]) -> Result<usize, Error> {
        self.check()?;
        match self.connection.process_tls_records(&mut self.partial).state? {
            ConnectionState::WriteTraffic(mut traffic) => {
                traffic.encrypt(plaintext, records).map_err(|_| Error::EncryptError)
            }
            _ => Err(Error::HandshakeNotComplete),
        }
    }

    /// Encrypts at most [`PLAINTEXT_BYTES_MAX`] bytes and adds them to [`unsent`](Self::unsent).
    ///
    /// # Errors
    /// As [`encrypt`](Self::encrypt).
    pub fn push(&mut self, plaintext: &[u8]) -> Result<(), Error> {
        let mut outgoing = mem::take(&mut self.outgoing);
        let before = outgoing.len();
        outgoing.resize(before + plaintext.len() + OVERHEAD_BYTES_MAX, 0);
        let encrypted = self.encrypt(plaintext, &mut outgoing[before..]);
        outgoing.truncate(before + encrypted.as_ref().unwrap_or(&0));
        self.outgoing = outgoing;
        encrypted.map(|_| ())
    }

    /// Adds close_notify to [`unsent`](Self::unsent), once and only after the handshake (RFC 8446 §6.1). After an error the alert
    /// was the last message.
    pub fn close(&mut self) {
        if self.failure.is_some() {
            return;
        }
        self.collect_alerts();
        let state = self.connection.process_tls_records(&mut self.partial).state;
        let Ok(ConnectionState::WriteTraffic(mut traffic)) = state else { return };
        let mut alert = [0; OVERHEAD_BYTES_MAX];
        // It fails only if there is no space.
        let bytes = traffic.queue_close_notify(&mut alert).unwrap_or(0);
        self.outgoing.extend_from_slice(&alert[..bytes]);
    }

    /// The bytes to send next.
    pub fn unsent(&self) -> &[u8] {
        &self.outgoing[self.sent..]
    }

    /// Removes `count` sent bytes from [`unsent`](Self::unsent).
    pub fn advance(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.outgoing.len() {
            self.outgoing = Vec::new();
            self.sent = 0;
        }
    }

    /// Adds encrypted bytes that a socket did not take to [`unsent`](Self::unsent).
    pub(crate) fn keep_unsent(&mut self, records: &[u8]) {
        self.outgoing.extend_from_slice(records);
    }
}

/// Appends one record.
fn encode<Data>(mut record: EncodeTlsData<'_, Data>, outgoing: &mut Vec<u8>) {
    let Err(EncodeError::InsufficientSize(space)) = record.encode(&mut []) else { return };
    let before = outgoing.len();
    outgoing.resize(before + space.required_size, 0);
    record.encode(&mut outgoing[before..]).expect("there is as much space as it needs");
}

/// The plaintext of one record (RFC 8446 §5.1).
pub const PLAINTEXT_BYTES_MAX: usize = 16 << 10;

/// Space for one record, a key update before it, and the alert after the last one.
pub const RECORDS_BYTES_MAX: usize = PLAINTEXT_BYTES_MAX + OVERHEAD_BYTES_MAX;

/// Header, nonce, tag and content type are at most 30 bytes of each.
const OVERHEAD_BYTES_MAX: usize = 256;

/// Limit of what an incomplete handshake message may take, as in rustls' own buffers. Incomplete records are smaller.
const PARTIAL_BYTES_MAX: usize = 0xffff;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
