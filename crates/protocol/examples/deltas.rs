//! Deltas in Fossil's format on a pipe, so that other implementations can be compared with ours.
//! In: pairs of records on stdin → out: one record on stdout for each; a record is a u32 (little-endian) of bytes, then these.
//! Uses `fossil` alone; stops at the first pair that makes nothing, and says why.
//! Changed here: how pairs are read. What is expected of the deltas stands in `tests/interop`, `fossil.test.js` and `test_fossil.py`.

#![forbid(unsafe_code)]

use std::{
    error::Error,
    io::{self, Read, Write},
};

use fanwire_protocol::fossil::{self, Differ};

/// Task for each pair: the delta of a source and a target, or the target of a source and a delta.
enum Work {
    Create,
    CreateText,
    Apply,
}

fn main() -> Result<(), Box<dyn Error>> {
    let work = match std::env::args().nth(1).as_deref() {
        Some("create") => Work::Create,
        Some("create-text") => Work::CreateText,
        Some("apply") => Work::Apply,
        _ => return Err("usage: deltas create|create-text|apply < PAIRS > RECORDS".into()),
    };
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input)?;
    let mut rest = &input[..];
    let mut output = Vec::new();
    let mut differ = Differ::default();
    while !rest.is_empty() {
        let source = record(&mut rest)?;
        let second = record(&mut rest)?;
        let mut made = Vec::new();
        match work {
            Work::Create => differ.create(source, second, &mut made),
            Work::CreateText => differ.create_text(source, str::from_utf8(second)?, &mut made),
            Work::Apply => fossil::apply(source, second, usize::MAX, &mut made)?,
        }
        output.extend_from_slice(&u32::try_from(made.len())?.to_le_bytes());
        output.extend_from_slice(&made);
    }
    Ok(io::stdout().write_all(&output)?)
}

/// The next record, which `rest` then begins behind.
fn record<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Box<dyn Error>> {
    let (length, behind) = rest.split_first_chunk().ok_or("the input ends in a length")?;
    let (record, behind) = behind
        .split_at_checked(u32::from_le_bytes(*length) as usize)
        .ok_or("the input ends in a record")?;
    *rest = behind;
    Ok(record)
}
