//! Inputs of a world: steps, channels, namespaces, commands, data.
//! In: numbers → out: names, options, bytes.
//! Uses nothing of a world.
//! Changed here: which channels and steps there are. `world` takes the steps.

use std::time::Duration;

use fanwire_node::options::{Namespace, RecoveryMode};

use super::CHANNELS;
use fanwire_shard::{Coding, Compression, Transport};

#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Clients agree to deltas in channels without history.
    pub(super) with_deltas: bool,
    pub(super) is_binary: bool,
    pub(super) compression: Compression,
    pub(super) channels: Vec<bool>,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Publish {
        channel: usize,
        seed: u32,
        rows: usize,
    },
    /// A publication of this JSON text.
    Json {
        channel: usize,
        text: String,
    },
    /// A publication that does not compress.
    Noise {
        channel: usize,
        bytes: usize,
    },
    /// A message to one client only.
    Reply {
        client: usize,
        bytes: usize,
    },
    /// Subscribes or unsubscribes.
    Toggle {
        client: usize,
        channel: usize,
    },
    /// Resubscribes to the channels with history, in one message, after the client missed this many publications.
    Return {
        client: usize,
        behind: u64,
    },
    Open(Plan),
    /// Opens a response with this body.
    OpenBody(Plan, (Transport, Option<Coding>)),
    Sweep,
}

/// A command with an id and one request: the channel and the encoded `rest` of its fields.
pub(super) fn protobuf(id: u8, field: u8, channel: &str, rest: &[u8]) -> Vec<u8> {
    let (length, request) = (channel.len() as u8, (channel.len() + 2 + rest.len()) as u8);
    let mut bytes = vec![request + 4, 0x08, id, field, request, 0x0a, length];
    bytes.extend_from_slice(channel.as_bytes());
    bytes.extend_from_slice(rest);
    bytes
}

pub(super) fn with_history(name: &str, mode: RecoveryMode) -> Namespace {
    Namespace {
        name: name.to_owned(),
        history_size: 6,
        history_ttl: Duration::from_secs(3600),
        force_recovery: true,
        force_recovery_mode: mode,
        ..Namespace::default()
    }
}

/// Letters that compress badly.
pub(super) fn noise(bytes: usize) -> String {
    let mut state = bytes as u64 | 1;
    let mut step = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'0' + (state >> 58) as u8)
    };
    (0..bytes).map(|_| step()).filter(|letter| *letter != '\\').collect()
}

pub(super) fn name(channel: usize) -> String {
    assert!(channel < CHANNELS);
    match channel {
        3 => "stream:c3".to_owned(),
        4 => "cache:c4".to_owned(),
        _ => format!("c{channel}"),
    }
}
