//! Tests of `recording`: a recorded minute gives the same bytes again; damage has a name.
//! In: random joins, leaves and inputs of 50 players. Out: nothing.
//! Uses proptest, a simulation with a checksum of everything that happened.
//! Changed here: tests of recordings.

use std::collections::BTreeMap;

use fanwire_area::{Grid, Objects, Place, Shape, View};
use proptest::prelude::*;

use super::*;
use crate::{CommandQueue, InputKind, InputLimits, RoomContext};

/// Sends what depends on every byte that it received so far.
struct Checksums {
    players: BTreeMap<PlayerId, u32>,
    all: u32,
    objects: Objects,
}

impl Default for Checksums {
    fn default() -> Self {
        let (players, all) = Default::default();
        Self { players, all, objects: Objects::new(Grid::new(10, 9)) }
    }
}

impl Checksums {
    fn mix(&mut self, player: PlayerId, bytes: &[u8]) {
        let of_player = self.players.entry(player).or_default();
        *of_player = of_player.wrapping_mul(31).wrapping_add(crc32fast::hash(bytes));
        self.all = self.all.rotate_left(5) ^ *of_player;
    }
}

impl Simulation for Checksums {
    fn join(&mut self, player: PlayerId, user: &str, data: &[u8], context: &mut RoomContext<'_>) {
        self.mix(player, user.as_bytes());
        self.mix(player, data);
        context.reliable_to(player, self.all.to_string());
    }

    fn leave(&mut self, player: PlayerId, context: &mut RoomContext<'_>) {
        self.players.remove(&player);
        context.reliable(format!("{} left", player.0));
    }

    fn input(&mut self, player: PlayerId, input: &[u8], context: &mut RoomContext<'_>) {
        self.mix(player, input);
        let place = Place { x: input.len() as f64, ..Place::default() };
        self.objects.put(player.0.into(), place, self.all.to_string()).expect("a place");
        if let Some(sequence) = context.sequence(player) {
            let (x, y) = (f64::from(sequence % 100), 0.0);
            let shape = Shape::Circle { radius: 5.0 };
            context.set_view(player, View { x, y, layer: 0, shape, margin: 0.0 });
            context.latest_to(player, sequence.to_string());
        }
    }

    fn tick(&mut self, context: &mut RoomContext<'_>) {
        self.all = self.all.wrapping_add(context.tick() as u32);
        context.latest(self.all.to_string());
        if context.tick().is_multiple_of(3) {
            context.publish_objects(&mut self.objects);
        }
    }
}

/// Small and good enough to be different each time (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)) % bound
    }
}

const DURATION: Duration = Duration::from_nanos(16_666_666);

fn random_change(random: &mut Random) -> ViewChange {
    let mut tiles = || -> Vec<_> {
        let part = |random: &mut Random| random.below(1 << 32) as i32;
        (0..random.below(3))
            .map(|_| Tile {
                x: part(random),
                y: part(random),
                layer: part(random),
                ring: random.below(4) as u8,
            })
            .collect()
    };
    ViewChange { entered: tiles(), left: tiles() }
}

/// Runs a room with random players and returns its recording and its messages.
fn recorded(ticks: u64, players: u64, seed: u64) -> (Vec<u8>, Vec<Vec<RoomOutput>>) {
    let mut random = Random(seed);
    let mut queue = CommandQueue::new(InputLimits::default());
    let mut room = Room::new(Checksums::default(), DURATION);
    let (mut recorder, mut log) = (RecordingWriter::new(DURATION), Vec::new());
    let mut all = Vec::new();
    for tick in 1..=ticks {
        for _ in 0..random.below(players) {
            let client = random.below(players).to_string();
            let sequence = Some(random.below(1 << 32) as u32).filter(|odd| odd % 2 == 1);
            let kind = InputKind { kind: 0, newest_wins: random.below(2) == 0, sequence };
            let input = vec![random.below(256) as u8; random.below(40) as usize];
            let now = DURATION * u32::try_from(tick).expect("a short test");
            let change = random_change(&mut random);
            match random.below(20) {
                0 => drop(queue.join(&client, "ada ✓", input.into())),
                1 => drop(queue.leave(&client)),
                2 => queue.view(&client, change),
                _ => drop(queue.input(&client, kind, input.into(), now)),
            }
        }
        let commands = queue.drain(Vec::new());
        recorder.record(tick, &commands);
        all.push(room.tick(commands).to_vec());
        log.extend(recorder.take());
    }
    recorder.finish(ticks);
    log.extend(recorder.take());
    (log, all)
}

#[test]
fn a_recorded_minute_replays_to_the_same_bytes() {
    let (log, expected) = recorded(3600, 50, 7);
    assert!(log.len() > 100_000, "{} bytes: inputs were accepted", log.len());
    let mut replayed = Vec::new();
    let room = replay(&log, Checksums::default(), |tick, messages| {
        replayed.push(messages.to_vec());
        assert_eq!(tick, replayed.len() as u64);
    });
    assert_eq!(room.expect("a whole log").ticks(), 3600);
    assert!(replayed == expected);
}

#[test]
fn a_recording_of_nothing_and_other_bytes() {
    let mut recorder = RecordingWriter::new(DURATION);
    recorder.finish(0);
    let log = recorder.take();
    assert_eq!(replay(&log, Checksums::default(), |_, _| {}).expect("a log").ticks(), 0);
    for wrong in [&b""[..], b"FWROOM", b"FWROOM\0\x01\0\0\0\0\0\0\0\0", b"{}"] {
        let result = replay(wrong, Checksums::default(), |_, _| {});
        assert_eq!(result.err(), Some(RecordingError::NotARecording));
    }
}

proptest! {
    #[test]
    fn a_cut_recording_gives_the_ticks_before_the_cut(seed: u64, cut in 0.0..1.0_f64) {
        let (log, expected) = recorded(60, 8, seed);
        let log = &log[..(log.len() as f64 * cut) as usize];
        let mut replayed = Vec::new();
        let error = replay(log, Checksums::default(), |_, messages| replayed.push(messages.to_vec()));
        prop_assert!(expected.starts_with(&replayed));
        let after = replayed.len() as u64;
        let is_named = matches!(error, Err(RecordingError::NotARecording))
            || error.err() == Some(RecordingError::Cut { after });
        prop_assert!(is_named);
    }

    #[test]
    fn a_damaged_recording_never_gives_other_messages(seed: u64, at in 0.0..1.0_f64, bit in 0..8_u8) {
        let (mut log, expected) = recorded(60, 8, seed);
        let head = MAGIC.len() + 8;
        let at = head + ((log.len() - head) as f64 * at) as usize;
        log[at] ^= 1 << bit;
        let mut replayed = Vec::new();
        let result = replay(&log, Checksums::default(), |_, messages| replayed.push(messages.to_vec()));
        prop_assert!(result.is_err());
        prop_assert!(expected.starts_with(&replayed));
    }

    #[test]
    fn any_bytes_are_replayed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let log: Vec<u8> = MAGIC.iter().copied().chain(bytes).collect();
        let _ = replay(&log, Checksums::default(), |_, _| {});
    }
}
