//! The format of files with logs of ended connections: records one behind the other, each with a mark and a checksum.
//! In: a record → out: its bytes in a file; bytes of a file → out: its whole records.
//! Uses checksums of crc32fast. Pure. Never: the file system, what is in a record.
//! Changed here: how records and files are distinguished. What is in a record is decided in `fanwire_node`.

/// The bytes of a record in a file.
pub fn encode(record: &[u8]) -> Vec<u8> {
    let mut bytes = MARK.to_vec();
    bytes.extend((record.len() as u32).to_le_bytes());
    bytes.extend(record);
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

/// Passes the whole records of a file to `each`. Returns how many bytes are in none: damaged ones, and a cut record.
pub fn read(mut file: &[u8], mut each: impl FnMut(&[u8])) -> usize {
    let mut damaged = 0;
    while !file.is_empty() {
        if let Some((record, rest)) = first(file) {
            each(record);
            file = rest;
        } else {
            damaged += 1;
            file = &file[1..];
        }
    }
    damaged
}

/// The record with which bytes begin, and the bytes behind it.
fn first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, _) = bytes.strip_prefix(&MARK)?.split_first_chunk()?;
    let end = HEAD_BYTES + u32::from_le_bytes(*length) as usize;
    let (checked, rest) = bytes.split_at_checked(end)?;
    let (checksum, rest) = rest.split_first_chunk()?;
    let is_whole = crc32fast::hash(checked).to_le_bytes() == *checksum;
    is_whole.then_some((&checked[HEAD_BYTES..], rest))
}

/// The name of a file: 0 is the one that is written, and greater numbers are older.
pub fn name(number: u32) -> String {
    format!("connections.{number}.fwlog")
}

/// How many files there are at most.
pub const FILES_MAX: u32 = 16;

/// Begin of a record. No text in UTF-8 has the first byte; the last one is the version of the format.
const MARK: [u8; 4] = *b"\xfeFW\x01";
const HEAD_BYTES: usize = MARK.len() + size_of::<u32>();

#[cfg(test)]
mod tests;
