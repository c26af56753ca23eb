//! The parts of a snapshot of the memory engine: the records of its parts, and their times.
//! In: values of streams, maps and results → out: messages that prost reads and writes.
//! Uses: prost. Never: the parts themselves, which make their own records.
//! Changed here: limits of all records. A file for each kind; the file that they are in is made by `broker/memory/snapshot.rs`.

mod clock;
mod map_value;
mod memory;
mod records;
mod stored;

pub use clock::SnapshotClock;
pub(crate) use map_value::MapValue;
pub(crate) use memory::{MemberRecord, MemoryRecord, RevocationRecord, StatusRecord};
pub(crate) use records::{
    ChangeRecord, EntryRecord, EpochsSection, GrowingRecord, GrowthRecord, HashesRecord, Head,
    MapRecord, MapsSection, ResultRecord, ResultsSection, RetentionRecord, StreamRecord,
    StreamsSection,
};
pub(crate) use stored::Stored;

/// Slots, publications and entries that are saved under one lock, and then to the end of a channel.
pub(crate) const SAVED_ENTRIES: usize = 512;
/// A larger offset of a file is wrong: it is not counted up to in any lifetime.
pub(crate) const OFFSET_MAX: u64 = i64::MAX as u64;
