//! The file of a snapshot: a magic number with the version, then sections with length and checksum, and an end with totals.
//! In: sections, or the bytes of a file → out: bytes, or all sections of a whole file; an error for any other bytes.
//! Uses: CRC-32. Never: half of a file; a file without its end is an error.
//! Changed here: the frame of a section, the version. What sections contain is in `records.rs`.

use std::io::{self, Read, Write};

use crc32fast::Hasher;

/// Writes sections.
pub(super) struct SectionWriter<'a> {
    out: &'a mut dyn Write,
    totals: Totals,
}

/// The content of a file, as its end says it.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Totals {
    /// Sections before the end.
    #[prost(uint64, tag = "1")]
    pub sections: u64,
    /// Bytes before the end.
    #[prost(uint64, tag = "2")]
    pub bytes: u64,
}

/// Why a file is not a snapshot that can be loaded.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// It could not be read.
    #[error("it cannot be read ({0})")]
    Io(io::Error),
    /// It is no snapshot of this program.
    #[error("it is not a snapshot of Fanwire")]
    Foreign,
    /// Its format is that of another version of this program.
    #[error("its format is version {0}, and this program reads version {SNAPSHOT_VERSION}")]
    Version(u8),
    /// A part is missing or was changed.
    #[error("a part of it is missing or was changed")]
    Spoiled,
}

impl<'a> SectionWriter<'a> {
    pub(super) fn begin(out: &'a mut dyn Write) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        out.write_all(&[SNAPSHOT_VERSION])?;
        let bytes = MAGIC.len() as u64 + 1;
        Ok(Self { out, totals: Totals { sections: 0, bytes } })
    }

    pub(super) fn section(&mut self, kind: u8, record: &impl prost::Message) -> io::Result<()> {
        self.raw_section(kind, &record.encode_to_vec())
    }

    pub(super) fn raw_section(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        let head = SectionHead::new(kind, payload);
        self.out.write_all(&head.0)?;
        self.out.write_all(payload)?;
        self.totals.sections += 1;
        self.totals.bytes += (SectionHead::BYTES + payload.len()) as u64;
        Ok(())
    }

    pub(super) fn end(mut self) -> io::Result<Totals> {
        let totals = self.totals;
        self.section(END, &totals)?;
        Ok(totals)
    }
}

/// Calls `section` with the kind and the payload of each section. What it has got is worth nothing after an error.
pub(super) fn read_sections(
    source: &mut dyn Read,
    mut section: impl FnMut(u8, &[u8]) -> Result<(), SnapshotError>,
) -> Result<(), SnapshotError> {
    let mut start = [0; MAGIC.len() + 1];
    source.read_exact(&mut start).map_err(too_short(SnapshotError::Foreign))?;
    let [magic @ .., version] = start;
    if magic != MAGIC {
        return Err(SnapshotError::Foreign);
    }
    if version != SNAPSHOT_VERSION {
        return Err(SnapshotError::Version(version));
    }
    let mut totals = Totals { sections: 0, bytes: start.len() as u64 };
    let mut payload = Vec::new();
    loop {
        let mut head = SectionHead([0; SectionHead::BYTES]);
        source.read_exact(&mut head.0).map_err(too_short(SnapshotError::Spoiled))?;
        payload.clear();
        // Grows with what is there, not with what a spoiled length says.
        source.take(head.length()).read_to_end(&mut payload).map_err(SnapshotError::Io)?;
        if head.0 != SectionHead::new(head.kind(), &payload).0 {
            return Err(SnapshotError::Spoiled);
        }
        if head.kind() == END {
            let end: Totals = decode(&payload)?;
            let has_more = source.read(&mut [0]).map_err(SnapshotError::Io)? > 0;
            return if end == totals && !has_more { Ok(()) } else { Err(SnapshotError::Spoiled) };
        }
        section(head.kind(), &payload)?;
        totals.sections += 1;
        totals.bytes += (SectionHead::BYTES + payload.len()) as u64;
    }
}

/// Decodes a record. Payloads in it are copies.
pub(super) fn decode<T: prost::Message + Default>(payload: &[u8]) -> Result<T, SnapshotError> {
    T::decode(payload).map_err(|_| SnapshotError::Spoiled)
}

fn too_short(end: SnapshotError) -> impl FnOnce(io::Error) -> SnapshotError {
    |error| {
        if error.kind() == io::ErrorKind::UnexpectedEof { end } else { SnapshotError::Io(error) }
    }
}

/// Kind, length and checksum of a section: the checksum is that of kind, length and payload.
struct SectionHead([u8; Self::BYTES]);

impl SectionHead {
    const BYTES: usize = 1 + 8 + 4;

    fn new(kind: u8, payload: &[u8]) -> Self {
        let mut head = [0; Self::BYTES];
        head[0] = kind;
        head[1..9].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        let mut checksum = Hasher::new();
        checksum.update(&head[..9]);
        checksum.update(payload);
        head[9..].copy_from_slice(&checksum.finalize().to_le_bytes());
        Self(head)
    }

    fn kind(&self) -> u8 {
        self.0[0]
    }

    fn length(&self) -> u64 {
        let length = self.0[1..9].try_into().expect("a slice of 8 bytes");
        u64::from_le_bytes(length)
    }
}

const MAGIC: [u8; 7] = *b"FANWIRE";
/// The version of the format. A field that a record gets in addition needs no other version.
pub const SNAPSHOT_VERSION: u8 = 1;
/// The kind of the last section.
const END: u8 = 0;
