//! Corpus files as publications.
//! In: a folder → out: one source per file with its messages, and the requests that publish them in turn.
//! Uses the file system and the publisher's request; never a socket.
//! Changed here: what a corpus file may look like; who receives it is decided in `corpus`.

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fs;
use std::path::{Path, PathBuf};

use crate::target::API_KEY;
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::publisher::publish_request;

/// The messages of one file and the channel they go to, which is named after the file.
pub struct Source {
    pub channel: String,
    /// The messages are not JSON. They are published as `b64data`, to Protobuf subscribers only.
    pub binary: bool,
    pub messages: Vec<Vec<u8>>,
}

/// The field of a publish request that holds a message: of JSON `"data":…`, of a `binary` one `"b64data":"…"`.
pub fn payload(binary: bool, message: &[u8]) -> String {
    if binary {
        format!("\"b64data\":\"{}\"", STANDARD.encode(message))
    } else {
        format!("\"data\":{}", String::from_utf8_lossy(message))
    }
}

/// Reads a file of messages, by its name: `*.jsonl` one JSON text a line, `*.bin` a length (u32, little-endian) before each.
/// Says whether they are binary; `None` for a file of another name.
///
/// # Errors
/// An empty file, a line that is not JSON, or a record beyond the end.
pub fn read(path: &Path) -> Result<Option<(bool, Vec<Vec<u8>>)>> {
    let binary = match path.extension().and_then(|extension| extension.to_str()) {
        Some("jsonl") => false,
        Some("bin") => true,
        _ => return Ok(None),
    };
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    let messages = if binary { records(&bytes) } else { lines(&bytes) };
    Ok(Some((binary, messages.with_context(|| path.display().to_string())?)))
}

impl Source {
    pub fn reaches(&self, encoding: Encoding) -> bool {
        encoding == Encoding::Protobuf || !self.binary
    }

    fn request(&self, message: &[u8]) -> Vec<u8> {
        publish_request(&self.channel, &payload(self.binary, message), API_KEY)
    }
}

/// Reads all `*.jsonl` and `*.bin` files of a folder in the order of their names, `per_file` messages of each (0: all).
///
/// # Errors
/// A folder without such files, an empty file, or a record beyond its end.
pub fn load(dir: &Path, per_file: usize) -> Result<Vec<Source>> {
    let entries = fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    paths.sort();
    let mut sources = Vec::new();
    for path in paths {
        let Some((binary, mut messages)) = read(&path)? else { continue };
        messages.truncate(if per_file == 0 { usize::MAX } else { per_file });
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        sources.push(Source { channel: format!("corpus-{stem}"), binary, messages });
    }
    ensure!(!sources.is_empty(), "{} has neither *.jsonl nor *.bin files", dir.display());
    Ok(sources)
}

/// The first message of each source, then the second of each, and so on: source number and request.
pub fn interleaved(sources: &[Source]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    let longest = sources.iter().map(|source| source.messages.len()).max().unwrap_or_default();
    (0..longest).flat_map(move |place| {
        let numbered = sources.iter().enumerate();
        numbered.filter_map(move |(number, source)| {
            source.messages.get(place).map(|message| (number, source.request(message)))
        })
    })
}

fn lines(bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
    let lines: Vec<Vec<u8>> = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    ensure!(!lines.is_empty(), "no lines");
    for (line, number) in lines.iter().zip(1..) {
        serde_json::from_slice::<serde::de::IgnoredAny>(line)
            .with_context(|| format!("line {number}"))?;
    }
    Ok(lines)
}

fn records(mut bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut records = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let Some((record, rest)) = rest.split_at_checked(length) else {
            bail!("record {} of {length} bytes goes beyond the end", records.len() + 1);
        };
        records.push(record.to_vec());
        bytes = rest;
    }
    ensure!(bytes.is_empty() && !records.is_empty(), "{} bytes after the last record", bytes.len());
    Ok(records)
}

#[cfg(test)]
mod tests;
