//! Snapshots of the memory broker: what it has in memory as a file, and a broker that goes on from a file.
//! In: a broker, or the bytes of a file and what changed after it → out: those bytes, or the state of the next broker.
//! Uses: the locks of stripes, for a part of a stripe at a time. Never: files, clocks.
//! Changed here: which parts there are, and what a start may take over (docs/decisions/0031). The format is in `snapshot/format.rs`,
//! records and times in `saved/`; each part saves and restores itself in its own file.

mod format;

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::sync::Arc;

use super::epochs::EpochKey;
use super::maps::Map;
use super::marks::{Bucket, ChangeMarks};
use super::results::ResultsMemory;
use super::stream::Stream;
use super::{MemoryBroker, MemoryState, STRIPES, Seeds, Stripe};
use crate::Chance;
use crate::saved::{
    EpochsSection, HashesRecord, Head, MapRecord, MapsSection, ResultRecord, ResultsSection,
    SnapshotClock, StreamRecord, StreamsSection,
};
pub use format::{SNAPSHOT_VERSION, SnapshotError, Totals};
use format::{SectionWriter, decode, read_sections};

/// The description of a snapshot by itself.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotHead {
    /// Its number: each snapshot of a file has a larger one.
    pub generation: u64,
    /// Nothing changes any more.
    pub is_planned: bool,
    /// When it is made.
    pub clock: SnapshotClock,
    /// The connections that a planned stop closes.
    pub connections: u64,
}

/// A snapshot that was read to its end.
#[derive(Debug, Default)]
pub struct Snapshot {
    head: Head,
    streams: Vec<StreamRecord>,
    maps: Vec<MapRecord>,
    results: Vec<ResultRecord>,
    epochs: Vec<EpochsSection>,
}

/// The changes after a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangesSince {
    /// There are none: the snapshot was made at a planned stop, and no process has gone on from it.
    None,
    /// They are in these buckets.
    In(HashSet<Bucket>),
}

/// How a start goes on from a snapshot.
pub struct RestoreOptions<'a> {
    pub changes: &'a ChangesSince,
    /// That of the start.
    pub clock: SnapshotClock,
    /// Channels that begin with nothing, because the snapshot does not have all of them.
    pub is_left_out: &'a dyn Fn(&str) -> bool,
}

impl MemoryBroker {
    /// Writes a snapshot. Changes of a part that was written are reported to `marks` from then on; `None` for one that replaces no
    /// other.
    ///
    /// No stripe is locked for longer than it takes to copy some hundred publications, or one channel, or the results of a stripe. So a
    /// snapshot during publications has parts of different moments: what changed in between is in `marks`.
    ///
    /// # Errors
    /// Those of `out`; then the file is worth nothing.
    pub fn save(
        &self,
        head: SnapshotHead,
        marks: Option<&Arc<dyn ChangeMarks>>,
        out: &mut dyn Write,
    ) -> io::Result<Totals> {
        let SnapshotHead { generation, is_planned, clock, connections } = head;
        let hashes = self.seeds.lock().record();
        let mut file = SectionWriter::begin(out)?;
        let unix_ms = clock.unix_ms;
        file.section(HEAD, &Head { generation, is_planned, unix_ms, hashes, connections })?;
        for (index, stripe) in self.stripes.iter().enumerate() {
            if let Some(marks) = marks {
                stripe.lock().marks.begin(Some(Arc::clone(marks)));
            }
            let mut next = Some(0);
            while let Some(from) = next {
                let (section, rest) = stripe.lock().streams.save(from, &clock);
                file.section(STREAMS, &section)?;
                next = rest;
            }
            let mut names = stripe.lock().maps.names();
            while !names.is_empty() {
                let section = stripe.lock().maps.save(&mut names, &clock);
                file.section(MAPS, &section)?;
            }
            let results = stripe.lock().results.save(&clock);
            file.section(RESULTS, &results)?;
            let client_results = stripe.lock().client_results.save(&clock);
            file.section(RESULTS, &client_results)?;
            let epochs = stripe.lock().save_epochs(index);
            file.section(EPOCHS, &epochs)?;
        }
        file.end()
    }

    /// Reports changes to `marks` from now on, as if everything had just been saved.
    pub fn mark_changes(&self, marks: &Arc<dyn ChangeMarks>) {
        self.stripes.iter().for_each(|stripe| stripe.lock().marks.begin(Some(Arc::clone(marks))));
    }
}

impl Stripe {
    fn save_epochs(&mut self, index: usize) -> EpochsSection {
        EpochsSection {
            stripe: index as u32,
            streams: self.streams.epochs().save(),
            maps: self.maps.epochs().save(),
        }
    }
}

impl Snapshot {
    /// Reads a file to its end.
    ///
    /// # Errors
    /// See [`SnapshotError`].
    pub fn read(source: &mut dyn Read) -> Result<Self, SnapshotError> {
        let mut snapshot = None;
        read_sections(source, |kind, payload| {
            let Some(snapshot) = &mut snapshot else {
                if kind != HEAD {
                    return Err(SnapshotError::Spoiled);
                }
                snapshot = Some(Self { head: decode(payload)?, ..Self::default() });
                return Ok(());
            };
            snapshot.add(kind, payload)
        })?;
        snapshot.ok_or(SnapshotError::Spoiled)
    }

    fn add(&mut self, kind: u8, payload: &[u8]) -> Result<(), SnapshotError> {
        match kind {
            STREAMS => self.streams.extend(decode::<StreamsSection>(payload)?.streams),
            MAPS => self.maps.extend(decode::<MapsSection>(payload)?.maps),
            RESULTS => self.results.extend(decode::<ResultsSection>(payload)?.results),
            EPOCHS => self.epochs.push(decode(payload)?),
            _ => return Err(SnapshotError::Spoiled),
        }
        Ok(())
    }

    /// See [`SnapshotHead::generation`].
    pub fn generation(&self) -> u64 {
        self.head.generation
    }

    /// See [`SnapshotHead::is_planned`].
    pub fn is_planned(&self) -> bool {
        self.head.is_planned
    }

    /// See [`SnapshotHead::connections`].
    pub fn connections(&self) -> u64 {
        self.head.connections
    }

    /// The changes after it, from the lists of changes that were found, by generation; a list is `None` if it is not whole. `None` if it is
    /// not known what changed.
    pub fn changes_since(
        &self,
        lists: impl IntoIterator<Item = (u64, Option<Vec<Bucket>>)>,
    ) -> Option<ChangesSince> {
        let first = self.head.generation;
        let mut has_first = false;
        let mut newer = Vec::new();
        for (generation, list) in lists.into_iter().filter(|(generation, _)| *generation >= first) {
            has_first |= generation == first;
            newer.push(list);
        }
        if !self.head.is_planned && !has_first {
            return None;
        }
        if newer.is_empty() {
            return Some(ChangesSince::None);
        }
        let changed: Vec<Vec<Bucket>> = newer.into_iter().collect::<Option<_>>()?;
        Some(ChangesSince::In(changed.into_iter().flatten().collect()))
    }

    /// The state with which a broker goes on, without the channels that changed after the snapshot.
    ///
    /// # Errors
    /// [`SnapshotError::Spoiled`] if a record contradicts itself.
    pub fn restore(
        self,
        options: &RestoreOptions<'_>,
        chance: &dyn Chance,
    ) -> Result<MemoryState, SnapshotError> {
        let changes = options.changes;
        let clock = options.clock.not_before(self.head.unix_ms);
        let saved = Seeds::restore(&self.head.hashes);
        let seeds = match (changes, saved) {
            (ChangesSince::None, Some(seeds)) => seeds,
            // Channels without a stream get new epochs: their streams that began after the snapshot are unknown.
            (ChangesSince::In(_), Some(seeds)) => {
                Seeds { table: seeds.table, ..Seeds::random(chance) }
            }
            (ChangesSince::None, None) => Seeds::random(chance),
            // The hash functions of this program are others, so the buckets are unknown.
            (ChangesSince::In(_), None) => return Ok(MemoryState::new(Seeds::random(chance))),
        };
        let mut state = MemoryState::new(seeds);
        if *changes == ChangesSince::None && saved.is_some() {
            self.epochs.into_iter().try_for_each(|section| state.restore_epochs(section))?;
        }
        let is_kept = |state: &mut MemoryState, name: &str| {
            let (channel, stripe) = state.seeds.channel(name);
            if (options.is_left_out)(name) {
                state.stripes[stripe].streams.epochs().end(channel.hash);
                state.stripes[stripe].maps.epochs().end(channel.hash);
                return false;
            }
            match changes {
                ChangesSince::None => true,
                ChangesSince::In(buckets) => !buckets.contains(&Bucket::of(channel.hash)),
            }
        };
        for record in self.streams {
            if is_kept(&mut state, &record.channel) {
                state.restore_stream(record, &clock)?;
            }
        }
        for record in self.maps {
            if is_kept(&mut state, &record.channel) {
                state.restore_map(record, &clock)?;
            }
        }
        for record in self.results {
            if is_kept(&mut state, &record.channel) {
                state.restore_result(&record, &clock)?;
            }
        }
        Ok(state)
    }
}

impl MemoryState {
    /// Nothing.
    pub(super) fn new(seeds: Seeds) -> Self {
        Self {
            seeds,
            stripes: (0..STRIPES).map(|_| Stripe::new(seeds.streams, seeds.maps)).collect(),
            streams_bytes: 0,
            results_memory: ResultsMemory::default(),
            client_results_memory: ResultsMemory::default(),
        }
    }

    fn restore_stream(
        &mut self,
        record: StreamRecord,
        clock: &SnapshotClock,
    ) -> Result<(), SnapshotError> {
        let name = record.channel.clone();
        let stream = Stream::restore(record, clock).ok_or(SnapshotError::Spoiled)?;
        let (channel, stripe) = self.seeds.channel(&name);
        self.streams_bytes += self.stripes[stripe].streams.restore(channel, stream);
        Ok(())
    }

    fn restore_map(
        &mut self,
        record: MapRecord,
        clock: &SnapshotClock,
    ) -> Result<(), SnapshotError> {
        let name = record.channel.clone();
        let map = Map::restore(record, clock).ok_or(SnapshotError::Spoiled)?;
        let (channel, stripe) = self.seeds.channel(&name);
        self.stripes[stripe].maps.restore(channel, map);
        Ok(())
    }

    fn restore_result(
        &mut self,
        record: &ResultRecord,
        clock: &SnapshotClock,
    ) -> Result<(), SnapshotError> {
        let (_, stripe) = self.seeds.channel(&record.channel);
        let stripe = &mut self.stripes[stripe];
        let is_valid = if record.owner.is_empty() {
            stripe.results.restore(record, clock, &self.results_memory)
        } else {
            stripe.client_results.restore(record, clock, &self.client_results_memory)
        };
        if is_valid { Ok(()) } else { Err(SnapshotError::Spoiled) }
    }

    fn restore_epochs(&mut self, section: EpochsSection) -> Result<(), SnapshotError> {
        let stripe = self.stripes.get_mut(section.stripe as usize);
        let is_valid = stripe.is_some_and(|stripe| {
            stripe.streams.epochs().restore(section.streams)
                && stripe.maps.epochs().restore(section.maps)
        });
        if is_valid { Ok(()) } else { Err(SnapshotError::Spoiled) }
    }
}

impl Seeds {
    fn record(&self) -> HashesRecord {
        HashesRecord {
            seed: self.table,
            streams: self.streams.parts().to_vec(),
            maps: self.maps.parts().to_vec(),
            check: self.check(),
        }
    }

    /// The seeds of a record; `None` if the functions of this program have other results than those of the program that wrote it.
    fn restore(record: &HashesRecord) -> Option<Self> {
        let seeds = Self {
            table: record.seed,
            streams: EpochKey::restore(&record.streams)?,
            maps: EpochKey::restore(&record.maps)?,
        };
        (seeds.check() == record.check).then_some(seeds)
    }

    fn check(&self) -> u64 {
        self.hash(CHECKED_NAME) ^ self.streams.hash(CHECKED_NAME, 1).rotate_left(1)
    }
}

/// Any name.
const CHECKED_NAME: &str = "a channel of which the hashes are compared";

// Kinds of sections; 0 is the end.
const HEAD: u8 = 1;
const STREAMS: u8 = 2;
const RESULTS: u8 = 3;
const EPOCHS: u8 = 4;
const MAPS: u8 = 5;

#[cfg(test)]
mod tests;
