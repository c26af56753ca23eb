//! Recordings: the commands of a room with their ticks, to run a simulation again, byte for byte.
//! In: the commands of each tick → out: a log; in: a log and a fresh simulation → out: the outputs of every tick.
//! Uses `room`, checksums of crc32fast. Never: files; the caller writes and reads the bytes.
//! Changed here: the format of recordings, with a new version number.

use std::time::Duration;

use bytes::Bytes;
use fanwire_area::{Tile, ViewChange};

use crate::{PlayerId, Room, RoomCommand, RoomOutput, Simulation};

/// Writes a recording into memory.
///
/// Format: the 8 bytes [`MAGIC`], the nanoseconds of a tick as u64, then records of length (u32), CRC-32 (u32) and body, all
/// little-endian. A body has the number of the tick and the count of its commands; a body without commands is the end.
/// Numbers in bodies are LEB128.
#[derive(Clone, Debug)]
pub struct RecordingWriter {
    log: Vec<u8>,
    body: Vec<u8>,
}

/// The reason why a recording cannot be replayed, or not to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// The file does not begin as a recording of this version.
    #[error("not a recording of this version")]
    NotARecording,
    /// The recording ends without its end record; ticks up to this one were replayed.
    #[error("the recording ends after tick {after}")]
    Cut { after: u64 },
    /// A record has the wrong checksum or contents; ticks up to this one were replayed.
    #[error("the recording is damaged after tick {after}")]
    Damaged { after: u64 },
}

/// The first bytes of a recording; the last one is the version of the format.
pub const MAGIC: &[u8; 8] = b"FWROOM\0\x02";

impl RecordingWriter {
    /// A recording of a room whose ticks advance by `duration`.
    pub fn new(duration: Duration) -> Self {
        let mut log = MAGIC.to_vec();
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        log.extend_from_slice(&ns.to_le_bytes());
        Self { log, body: Vec::new() }
    }

    /// Records the commands that a tick will apply. Ticks without commands need no call.
    pub fn record(&mut self, tick: u64, commands: &[RoomCommand]) {
        if !commands.is_empty() {
            self.write(tick, commands);
        }
    }

    /// Records the end, after the last tick.
    pub fn finish(&mut self, last_tick: u64) {
        self.write(last_tick, &[]);
    }

    /// Takes the bytes that were written since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.log)
    }

    fn write(&mut self, tick: u64, commands: &[RoomCommand]) {
        self.body.clear();
        number(tick, &mut self.body);
        number(commands.len() as u64, &mut self.body);
        commands.iter().for_each(|command| write_command(command, &mut self.body));
        let length = u32::try_from(self.body.len()).expect("a queue has limits below 4 GiB");
        self.log.extend_from_slice(&length.to_le_bytes());
        self.log.extend_from_slice(&crc32fast::hash(&self.body).to_le_bytes());
        self.log.extend_from_slice(&self.body);
    }
}

/// Runs a simulation again with the commands of a recording. `see` gets the number and the outputs of each tick.
///
/// # Errors
/// See [`RecordingError`]; the ticks before the error were run.
pub fn replay<S: Simulation>(
    recording: &[u8],
    simulation: S,
    mut see: impl FnMut(u64, &[RoomOutput]),
) -> Result<Room<S>, RecordingError> {
    let mut rest = recording.strip_prefix(MAGIC).ok_or(RecordingError::NotARecording)?;
    let ns = take::<8>(&mut rest).ok_or(RecordingError::NotARecording)?;
    let mut room = Room::new(simulation, Duration::from_nanos(u64::from_le_bytes(ns)));
    let mut run = |room: &mut Room<S>, commands| {
        let tick = room.ticks() + 1;
        see(tick, room.tick(commands));
    };
    loop {
        let (tick, commands) = next_record(&mut rest, room.ticks())?;
        let is_end = commands.is_empty();
        let without_commands = if is_end { tick } else { tick - 1 };
        while room.ticks() < without_commands {
            run(&mut room, Vec::new());
        }
        if is_end {
            return Ok(room);
        }
        run(&mut room, commands);
    }
}

/// Reads a record: its tick and commands, none at the end.
fn next_record(rest: &mut &[u8], after: u64) -> Result<(u64, Vec<RoomCommand>), RecordingError> {
    let cut = RecordingError::Cut { after };
    let length = u32::from_le_bytes(take::<4>(rest).ok_or(cut)?) as usize;
    let crc = u32::from_le_bytes(take::<4>(rest).ok_or(cut)?);
    let (mut body, later) = rest.split_at_checked(length).ok_or(cut)?;
    *rest = later;
    let damaged = RecordingError::Damaged { after };
    if crc32fast::hash(body) != crc {
        return Err(damaged);
    }
    let tick = read_number(&mut body).ok_or(damaged)?;
    let count = read_number(&mut body).ok_or(damaged)?;
    let commands: Option<Vec<_>> = (0..count).map(|_| read_command(&mut body)).collect();
    let is_later = tick > after || count == 0 && tick == after;
    match commands {
        Some(commands) if body.is_empty() && is_later => Ok((tick, commands)),
        _ => Err(damaged),
    }
}

const JOIN: u8 = 0;
const LEAVE: u8 = 1;
const INPUT: u8 = 2;
/// An input with a sequence number.
const NUMBERED_INPUT: u8 = 3;
const VIEW: u8 = 4;

fn write_command(command: &RoomCommand, out: &mut Vec<u8>) {
    match command {
        RoomCommand::Join { player, user, data } => {
            out.push(JOIN);
            number(player.0.into(), out);
            text(user.as_bytes(), out);
            text(data, out);
        }
        RoomCommand::Leave { player } => {
            out.push(LEAVE);
            number(player.0.into(), out);
        }
        RoomCommand::Input { player, sequence, data } => {
            out.push(if sequence.is_some() { NUMBERED_INPUT } else { INPUT });
            number(player.0.into(), out);
            sequence.iter().for_each(|sequence| number((*sequence).into(), out));
            text(data, out);
        }
        RoomCommand::View { player, change } => {
            out.push(VIEW);
            number(player.0.into(), out);
            tiles(&change.entered, out);
            tiles(&change.left, out);
        }
    }
}

fn read_command(body: &mut &[u8]) -> Option<RoomCommand> {
    let [tag] = take::<1>(body)?;
    let player = PlayerId(read_number(body)?.try_into().ok()?);
    Some(match tag {
        JOIN => {
            let user = str::from_utf8(read_text(body)?).ok()?.to_owned();
            RoomCommand::Join { player, user, data: Bytes::copy_from_slice(read_text(body)?) }
        }
        LEAVE => RoomCommand::Leave { player },
        INPUT | NUMBERED_INPUT => {
            let sequence = match tag {
                NUMBERED_INPUT => Some(read_number(body)?.try_into().ok()?),
                _ => None,
            };
            RoomCommand::Input { player, sequence, data: Bytes::copy_from_slice(read_text(body)?) }
        }
        VIEW => {
            let change = ViewChange { entered: read_tiles(body)?, left: read_tiles(body)? };
            RoomCommand::View { player, change }
        }
        _ => return None,
    })
}

fn tiles(tiles: &[Tile], out: &mut Vec<u8>) {
    number(tiles.len() as u64, out);
    for tile in tiles {
        for part in [tile.x, tile.y, tile.layer] {
            out.extend_from_slice(&part.to_le_bytes());
        }
        out.push(tile.ring);
    }
}

fn read_tiles(body: &mut &[u8]) -> Option<Vec<Tile>> {
    let count = read_number(body)?;
    (0..count).map(|_| read_tile(body)).collect()
}

fn read_tile(body: &mut &[u8]) -> Option<Tile> {
    let mut part = || take::<4>(body).map(i32::from_le_bytes);
    let x = part()?;
    let y = part()?;
    let layer = part()?;
    let [ring] = take::<1>(body)?;
    Some(Tile { x, y, layer, ring })
}

fn number(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read_number(body: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let [byte] = take::<1>(body)?;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn text(bytes: &[u8], out: &mut Vec<u8>) {
    number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn read_text<'a>(body: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(read_number(body)?).ok()?;
    let (text, rest) = body.split_at_checked(length)?;
    *body = rest;
    Some(text)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

#[cfg(test)]
mod tests;
