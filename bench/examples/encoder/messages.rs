//! The messages of a corpus as they are on the wire.
//! In: a file of JSON lines, or of binary messages behind their lengths → out: pushes of publications in JSON.
//! Uses: files. Never: what is made of them.
//! Change here the envelope.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// The messages of a file as they are on the wire: as publications of the JSON protocol.
pub(crate) fn messages(path: &Path, name: &str) -> Result<Vec<Vec<u8>>> {
    let file = fs::read(path).with_context(|| path.display().to_string())?;
    let payloads: Vec<Vec<u8>> = if path.extension().is_some_and(|extension| extension == "jsonl") {
        file.split(|byte| *byte == b'\n').filter(|l| !l.is_empty()).map(<[u8]>::to_vec).collect()
    } else {
        split(&file)?
    };
    let envelope = |(offset, payload): (usize, &Vec<u8>)| {
        let head = format!(r#"{{"push":{{"channel":"{name}","pub":{{"data":"#);
        let tail = format!(r#","offset":{}}}}}}}"#, offset + 1);
        [head.as_bytes(), payload, tail.as_bytes()].concat()
    };
    Ok(payloads.iter().enumerate().map(envelope).collect())
}

/// Binary messages; the envelope around them stands for that of Protobuf.
fn split(mut file: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut messages = Vec::new();
    while let Some((length, rest)) = file.split_first_chunk::<4>() {
        let (message, rest) = rest
            .split_at_checked(u32::from_le_bytes(*length) as usize)
            .context("a message is cut off")?;
        messages.push(message.to_vec());
        file = rest;
    }
    Ok(messages)
}
