//! Snapshots of the engine in memory, and the ends of processes that have them: a planned stop, a crash, a stop of the machine.
//! In: a host → out: its process has ended, its disk has what it left.
//! Uses the snapshot of the broker. Never: a moment for all parts of a snapshot: other things happen between them.
//! Changed here: when snapshots are made, and how a process ends. What a disk keeps is in `disk.rs`.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use fanwire_broker::{ChangeMarks, MemoryBroker, SnapshotClock, SnapshotHead};

use super::carry::running;
use super::{DataLoss, Origin, World, WorldEvent};
use crate::chance::SeededRandom;
use crate::faults::ProcessEnd;

/// A host makes a snapshot, and the next one after the interval.
pub(super) fn save(world: &mut World, origin: Origin) {
    let Some(interval) = world.plan.tuning.snapshot_interval else { return };
    let broker = running(world, origin).and_then(|process| process.broker());
    let Some(broker) = broker else { return };
    let number = origin.host;
    let host = &mut world.hosts[number];
    // No snapshot begins while the process stands still, or while a new program is to take over.
    if !host.is_saving && !host.is_frozen && !host.is_paused {
        host.is_saving = true;
        save_between_events(world, origin, broker);
        world.hosts[number].is_saving = false;
    }
    world.queue.at(world.now + interval, WorldEvent::Snapshot(origin));
}

fn save_between_events(world: &mut World, origin: Origin, broker: Arc<MemoryBroker>) {
    let generation = world.hosts[origin.host].disk.next_generation();
    let list: Arc<dyn ChangeMarks> = world.hosts[origin.host].disk.begin_changes(generation);
    let clock = snapshot_clock(world, origin.host);
    let head = SnapshotHead { generation, is_planned: false, clock, connections: 0 };
    let mut random = world.random.fork("snapshot", generation);
    let events = *random.pick(&[0, 1, 5, 20]);
    let bytes = Vec::new();
    let mut out = BetweenEvents { world, origin, broker: &broker, random, events, bytes };
    let saved = broker.save(head, Some(&list), &mut out);
    let bytes = out.bytes;
    if saved.is_ok() {
        world.hosts[origin.host].disk.put(generation, bytes);
    }
}

/// A file of which parts are written between other events.
struct BetweenEvents<'a> {
    world: &'a mut World,
    origin: Origin,
    broker: &'a Arc<MemoryBroker>,
    random: SeededRandom,
    /// After how many of a hundred writes something else happens.
    events: u64,
    bytes: Vec<u8>,
}

impl Write for BetweenEvents<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(part);
        if self.random.percent(self.events) {
            let goes_on = self.world.step();
            let broker = running(self.world, self.origin).and_then(|process| process.broker());
            if !goes_on || broker.is_none_or(|broker| !Arc::ptr_eq(&broker, self.broker)) {
                return Err(io::Error::other("the process has ended"));
            }
        }
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn snapshot_clock(world: &World, host: usize) -> SnapshotClock {
    SnapshotClock { now: world.instant(), unix_ms: world.unix_ms(host) }
}

/// A process ends.
pub(super) fn end_process(world: &mut World, host: usize, end: ProcessEnd) {
    let keeps_nothing = world.plan.tuning.snapshot_interval.is_none();
    match end {
        ProcessEnd::Planned => {
            world.resume_host(host); // else it could not save
            stop(world, host);
        }
        ProcessEnd::Crash => {}
        ProcessEnd::MachineCrash => world.hosts[host].disk.lose_changes(),
    }
    world.kill(host, end == ProcessEnd::MachineCrash);
    if keeps_nothing {
        let forever = Duration::from_secs(3600);
        world.losses.push(DataLoss { at: world.now, lag: forever, until: world.now });
    }
}

/// Connections are closed, then the last snapshot is made.
fn stop(world: &mut World, host: usize) {
    let now = world.instant();
    world.hosts[host].stopped_at = Some(world.now);
    let Some(process) = &mut world.hosts[host].process else { return };
    let connections: Vec<u64> = process.connections.keys().copied().collect();
    let mut sent = Vec::new();
    connections.into_iter().for_each(|it| sent.extend(process.send_away(it, now)));
    sent.extend(process.flush(now));
    let broker = process.broker();
    world.send_to_clients(sent);
    world.settle(host);
    let clock = snapshot_clock(world, host);
    let Some(broker) = broker.filter(|_| world.plan.tuning.snapshot_interval.is_some()) else {
        return;
    };
    let disk = &mut world.hosts[host].disk;
    let generation = disk.next_generation();
    let head = SnapshotHead { generation, is_planned: true, clock, connections: 0 };
    let mut bytes = Vec::new();
    broker.save(head, None, &mut bytes).expect("a Vec grows");
    disk.put(generation, bytes);
}
