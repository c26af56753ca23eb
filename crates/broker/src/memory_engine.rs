//! The memory engine as a whole, which gives its state to the engine of another program on this machine.
//! In: an engine at rest → out: bytes; those bytes, and an engine that nothing has used → an engine that goes on.
//! Uses: the snapshot of the broker, prost. Never: files, clocks.
//! Changed here: what moves. What outlives a stop of the machine is in `broker/memory/snapshot.rs`.

use std::io::{self, Read, Write};
use std::sync::Arc;

use prost::Message as _;

use crate::saved::{MemoryRecord, RevocationRecord};
use crate::{
    ChangesSince, MemoryBroker, MemoryPresence, MemoryUserStatuses, RestoreOptions,
    RevocationChange, Snapshot, SnapshotClock, SnapshotError, SnapshotHead, SystemChance,
};

/// The stores of a node whose engine is in memory.
#[derive(Clone)]
pub struct MemoryEngine {
    pub broker: Arc<MemoryBroker>,
    pub presence: Arc<MemoryPresence>,
    pub user_statuses: Arc<MemoryUserStatuses>,
}

impl MemoryEngine {
    /// Writes everything in it, and the blocks and revocations of its node, when nothing changes any more. A snapshot that the broker
    /// has is still the newest one.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn save(
        &self,
        revocations: &[RevocationChange],
        clock: SnapshotClock,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let record = MemoryRecord {
            members: self.presence.save(&clock),
            statuses: self.user_statuses.save(),
            revocations: revocations.iter().map(RevocationRecord::from).collect(),
        };
        let length = record.encoded_len() as u64;
        out.write_all(&length.to_le_bytes())?;
        out.write_all(&record.encode_to_vec())?;
        let head = SnapshotHead { generation: 0, is_planned: true, clock, connections: 0 };
        self.broker.save(head, None, out)?;
        Ok(())
    }

    /// Goes on with a state that another program saved, in place of its own. Returns the blocks and revocations.
    ///
    /// # Errors
    /// See [`SnapshotError`]; then nothing has changed.
    pub fn restore(
        &self,
        saved: &mut dyn Read,
        clock: SnapshotClock,
    ) -> Result<Vec<RevocationChange>, SnapshotError> {
        let record = read_record(saved)?;
        let changes = record.revocations.into_iter().map(RevocationRecord::change);
        let revocations = changes.collect::<Option<_>>().ok_or(SnapshotError::Spoiled)?;
        let snapshot = Snapshot::read(saved)?;
        let options =
            RestoreOptions { changes: &ChangesSince::None, clock, is_left_out: &|_| false };
        self.broker.replace(snapshot.restore(&options, &SystemChance)?);
        self.presence.restore(record.members, &clock);
        self.user_statuses.restore(record.statuses);
        Ok(revocations)
    }
}

fn read_record(saved: &mut dyn Read) -> Result<MemoryRecord, SnapshotError> {
    let mut length = [0; 8];
    saved.read_exact(&mut length).map_err(SnapshotError::Io)?;
    let mut message = Vec::new();
    // Grows with what is there, not with what a wrong length says.
    saved.take(u64::from_le_bytes(length)).read_to_end(&mut message).map_err(SnapshotError::Io)?;
    MemoryRecord::decode(message.as_slice()).map_err(|_| SnapshotError::Spoiled)
}

#[cfg(test)]
mod tests;
