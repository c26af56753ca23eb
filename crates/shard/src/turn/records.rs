//! Reading from connections with TLS: records are decrypted in the shard's buffers, and their plaintext goes the usual way.
//! In: readiness of a socket → out: plaintext for the reader of the connection, the end of connections.
//! Uses the session of the connection; never keeps plaintext, which `turn` does for connections that wait.
//! Changed here: what the records of a peer mean for its connection. Writing lives in `connection_writer::records`.

use std::io::{ErrorKind, Read};

use super::{Application, SlotKey, Turn, share::Share};
use crate::connection::any;
use crate::tls::PeerState;

impl<A: Application> Turn<A> {
    /// Reads records once. Returns whether there may be more.
    pub(super) fn read_records(
        &mut self,
        key: SlotKey,
        to_the_end: bool,
        buffer: &mut [u8],
        share: &mut Share,
    ) -> bool {
        let Some(connection) = any(&mut self.out.connections, key) else { return false };
        match connection.socket.read(buffer) {
            Ok(0) => self.out.peer_ended(key),
            Ok(count) => {
                share.read(count);
                self.receive_records(key, &mut buffer[..count], share);
                let rest = any(&mut self.out.connections, key)
                    .map(|connection| !connection.rest.is_empty());
                return count == buffer.len() || to_the_end || rest == Some(true);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => return true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.out.abort(key),
        }
        false
    }

    fn receive_records(&mut self, key: SlotKey, records: &mut [u8], share: &mut Share) {
        let Some(connection) = any(&mut self.out.connections, key) else { return };
        let transport = connection.transport;
        let is_binary = connection.is_binary;
        let before = connection.unsent_records();
        let Some(session) = connection.tls_mut() else { return };
        let mut plaintext = std::mem::take(&mut self.plaintext);
        let received = session.receive(records, &mut plaintext);
        self.out.counters.of(transport, is_binary).wire_bytes_in.add(records.len() as u64);
        let connection = &mut self.out.connections[key.index as usize];
        self.out.sockets.count_answers(connection, key.index, before);
        self.feed(key, &mut plaintext, share);
        plaintext.clear();
        self.plaintext = plaintext;
        match received {
            Ok(PeerState::Open) => {}
            // As the end of a stream without TLS: WebSocket has closes of its own, and a stream has no further commands.
            Ok(PeerState::Closed) => self.out.peer_ended(key),
            Err(_) => {
                self.out.counters.protocol_failures.add(1);
                self.out.abort(key);
            }
        }
    }
}
