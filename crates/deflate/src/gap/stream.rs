//! A publication as a message of a compressed stream (RFC 1951), which has bytes around each message.
//! The steps of a parse, an envelope and a reference → whole blocks and a sync flush.
//! Uses the steps as they are for every peer; allocates only where `out` grows.
//! Changed here: how the bytes around a publication are written. Its own are `parse`.

use super::parse::{Parse, ParseBody, Steps, append};
use super::{Depth, Reference};
use crate::FLUSH_TAIL;
use crate::bits::BitWriter;
use crate::block::{
    write_fixed, write_fixed_copy, write_fixed_end, write_fixed_head, write_sync_flush,
};
use crate::stream::Envelope;
use crate::tables::LENGTH_MIN;

impl Parse {
    /// Emits the parse as [`emit`](Self::emit) does, for a stream with these bytes around each message: appends the
    /// message with its envelope and a sync flush with its tail, and returns true.
    ///
    /// Returns false and appends nothing if there is an envelope and the parse has the same bits for every peer: then the
    /// message and its envelope are to be compressed together. `reference` is for the position behind the prefix. The
    /// publications that it refers to have the same envelope, except at [`Depth::Embedded`].
    pub fn emit_in_stream(
        &self,
        envelope: Envelope,
        reference: &Reference,
        out: &mut Vec<u8>,
    ) -> bool {
        match &*self.0 {
            ParseBody::Payload(payload) => {
                let has_none = envelope == Envelope::NONE;
                if has_none {
                    out.extend_from_slice(payload);
                    out.extend_from_slice(&FLUSH_TAIL);
                }
                has_none
            }
            ParseBody::Steps(steps) => {
                let room = steps.room + 2 * envelope.bytes() + ENVELOPE_ROOM;
                append(out, room, |writer| write(steps, envelope, reference, writer));
                true
            }
        }
    }
}

fn write(steps: &Steps, envelope: Envelope, reference: &Reference, writer: &mut BitWriter<'_>) {
    let Envelope { prefix, suffix } = envelope;
    let gaps = reference.gaps();
    if steps.is_fixed() {
        // One block for all.
        write_fixed_head(writer);
        write_prefix(prefix, reference, writer);
        steps.write_symbols(gaps, writer);
        write_fixed(suffix, writer);
        write_fixed_end(writer);
    } else {
        in_own_block(prefix, writer, |writer| write_prefix(prefix, reference, writer));
        steps.write(gaps, writer);
        in_own_block(suffix, writer, |writer| write_fixed(suffix, writer));
    }
    write_sync_flush(writer);
}

/// Writes a block with the static codes that contains `bytes`, which `write` writes; none if there are none.
fn in_own_block<'a>(
    bytes: &[u8],
    writer: &mut BitWriter<'a>,
    write: impl FnOnce(&mut BitWriter<'a>),
) {
    if !bytes.is_empty() {
        write_fixed_head(writer);
        write(writer);
        write_fixed_end(writer);
    }
}

/// The same bytes are before the newest publication in the window, where a copy of them takes half the bits.
fn write_prefix(prefix: &[u8], reference: &Reference, writer: &mut BitWriter<'_>) {
    match reference.gaps() {
        [gap, ..] if reference.depth() != Depth::Embedded && prefix.len() >= LENGTH_MIN => {
            write_fixed_copy(prefix.len(), *gap as usize, writer);
        }
        _ => write_fixed(prefix, writer),
    }
}

/// Heads and ends of two more blocks, and the tail of the flush.
const ENVELOPE_ROOM: usize = 12;
