//! Writing to connections with TLS: frames are encrypted as they are written (RFC 8446 §5).
//! In: queues and sessions → out: records on sockets; the part that a socket does not take stays in its session.
//! Uses `send` of `connection_writer` and buffers that all connections share; never makes a frame and never calls the application.
//! Changed here: how frames are divided into records. When bytes are written is decided in `connection_writer::flush`.

use mio::net::TcpStream;
use rustix::io::Errno;

use super::{joined::JoinedFrames, send};
use crate::{
    connection::Connection,
    queue::{Lists, Queue},
    tls::{PLAINTEXT_BYTES_MAX, RECORDS_BYTES_MAX, TlsSession},
};

/// Buffers for one record, which all connections of a shard share.
#[derive(Default)]
pub(super) struct RecordBuffers {
    plaintext: Vec<u8>,
    records: Vec<u8>,
}

/// As `sockets::write`, encrypting what is written.
pub(super) fn write(
    connection: &mut Connection,
    lists: &mut Lists,
    joined: &mut JoinedFrames,
    buffers: &mut RecordBuffers,
) -> (usize, rustix::io::Result<()>) {
    let Connection { rare: Some(rare), queue, socket, progress, .. } = connection else {
        return (0, Ok(()));
    };
    let Some(session) = &mut rare.tls else { return (0, Ok(())) };
    let mut total = 0;
    while !queue.is_empty() {
        let result = if session.unsent().is_empty() {
            write_frames(session, queue, socket, lists, joined, buffers)
        } else {
            write_records(session, queue, socket, lists)
        };
        match result {
            Ok(0) => return (total, Err(Errno::PIPE)),
            Ok(count) => {
                total += count;
                *progress = progress.wrapping_add(1);
            }
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(error) => return (total, Err(error)),
        }
    }
    (total, Ok(()))
}

/// Writes records that the socket did not take before.
fn write_records(
    session: &mut TlsSession,
    queue: &mut Queue,
    socket: &TcpStream,
    lists: &mut Lists,
) -> rustix::io::Result<usize> {
    let count = send(socket, session.unsent())?;
    session.advance(count);
    queue.remove_encrypted(count, lists);
    Ok(count)
}

/// Encrypts frames and writes them. They cannot be encrypted a second time, so the part that the socket does not take is
/// kept.
fn write_frames(
    session: &mut TlsSession,
    queue: &mut Queue,
    socket: &TcpStream,
    lists: &mut Lists,
    joined: &mut JoinedFrames,
    RecordBuffers { plaintext, records }: &mut RecordBuffers,
) -> rustix::io::Result<usize> {
    records.resize(RECORDS_BYTES_MAX, 0);
    let plaintext = next_plaintext(queue, joined, plaintext);
    // An error comes from used-up keys of TLS 1.2, or from an earlier one of the peer.
    let bytes = session.encrypt(plaintext, records).map_err(|_| Errno::PROTO)?;
    let plaintext_bytes = plaintext.len();
    queue.advance(plaintext_bytes, lists);
    let result = send(socket, &records[..bytes]);
    let rest = &records[result.unwrap_or(0)..bytes];
    session.keep_unsent(rest);
    queue.add_encrypted(rest.len(), lists);
    result
}

/// The first queued bytes: as many as fit into one record.
fn next_plaintext<'a>(
    queue: &'a Queue,
    joined: &'a mut JoinedFrames,
    space: &'a mut Vec<u8>,
) -> &'a [u8] {
    if let Some(frame) = queue.single() {
        return &frame[..frame.len().min(PLAINTEXT_BYTES_MAX)];
    }
    if let Some(frames) = joined.bytes_of(queue) {
        return frames;
    }
    space.clear();
    for slice in queue.slices() {
        let left = PLAINTEXT_BYTES_MAX - space.len();
        space.extend_from_slice(&slice[..slice.len().min(left)]);
    }
    space
}

/// Sends close_notify, or the alert that ended the session, to a connection that is removed. A socket that takes no
/// bytes does not get it.
pub(super) fn end(connection: &mut Connection) {
    let Connection { rare: Some(rare), socket, .. } = connection else { return };
    let Some(session) = &mut rare.tls else { return };
    session.close();
    let _ = send(socket, session.unsent());
}

#[cfg(test)]
mod tests;
