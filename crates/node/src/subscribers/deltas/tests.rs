//! Tests of marks: who is sent a patch after what, and that lists stay in step with their channel.
//! In: agreements, broadcasts, leaves → out: shapes.
//! Uses: broadcasts made by hand. Never: a hub.
//! Whole subscriptions are tested in `tests/it/deltas.rs`.

use std::time::Instant;

use fanwire_broker::{Delta, Epoch};
use fanwire_protocol::Publication;

use super::*;

fn data(number: usize) -> Bytes {
    format!("the data of the publication with the number {number}").into()
}

/// The publication of this number, with a place in the stream or not.
fn broadcast(number: usize, offset: u64, delta: Delta) -> Broadcast {
    let publication = Publication { data: data(number), offset, ..Publication::default() };
    let id = crate::NamespaceId::default();
    let mut broadcast =
        Broadcast::new("a".into(), id, publication, Epoch::random(), Instant::now());
    broadcast.allow_delta(delta);
    broadcast
}

/// The offset is the number.
fn next(number: usize) -> Broadcast {
    broadcast(number, number as u64, Delta::Against(data(number - 1)))
}

fn off_stream(number: usize) -> Broadcast {
    broadcast(number, 0, Delta::Alone)
}

fn deltas(mark: DeltaState) -> Deltas {
    let mut deltas = Deltas::new(1);
    deltas.agree(SubscriberIndex(0), Encoding::Json, mark);
    deltas
}

fn send(deltas: &mut Deltas, broadcast: &Broadcast) -> DeltaMode {
    let delta_mode = deltas.send(SubscriberIndex(0), broadcast, false);
    deltas.settle(broadcast);
    delta_mode
}

#[test]
fn a_mark_takes_one_byte() {
    assert_eq!(size_of::<DeltaState>(), 1);
}

#[test]
fn who_has_not_agreed_is_sent_everything_plainly() {
    let mut deltas = deltas(DeltaState::AwaitsStream);
    deltas.push();
    for number in 1..4 {
        assert_eq!(deltas.send(SubscriberIndex(1), &next(number), false), DeltaMode::Plain);
    }
}

#[test]
fn who_follows_the_stream_is_sent_patches_while_it_holds_the_one_before() {
    let mut deltas = deltas(DeltaState::AwaitsStream);
    assert_eq!(send(&mut deltas, &next(1)), DeltaMode::Full);
    assert_eq!(send(&mut deltas, &next(2)), DeltaMode::Patch);
    assert_eq!(send(&mut deltas, &broadcast(3, 3, Delta::Off)), DeltaMode::Full);
    assert_eq!(send(&mut deltas, &next(4)), DeltaMode::Patch);
    deltas.skip(SubscriberIndex(0));
    assert_eq!(send(&mut deltas, &next(6)), DeltaMode::Full);
    assert_eq!(send(&mut deltas, &off_stream(7)), DeltaMode::Full);
    assert_eq!(send(&mut deltas, &next(8)), DeltaMode::Full);
    assert_eq!(send(&mut deltas, &next(9)), DeltaMode::Patch);
}

#[test]
fn who_recovered_holds_a_base_from_the_start() {
    assert_eq!(send(&mut deltas(DeltaState::HasStream), &next(2)), DeltaMode::Patch);
}

#[test]
fn who_has_no_position_and_no_latest_publication_is_sent_everything_in_full() {
    let mut deltas = deltas(DeltaState::Full);
    for number in 1..4 {
        assert_eq!(send(&mut deltas, &next(number)), DeltaMode::Full);
    }
    assert_eq!(deltas.latest, None, "nothing is kept for nobody");
}

#[test]
fn the_latest_publication_is_a_base_with_a_stream_and_without() {
    let mut deltas = deltas(DeltaState::AwaitsLatest);
    assert_eq!(send(&mut deltas, &off_stream(1)), DeltaMode::Full);
    assert_eq!(send(&mut deltas, &off_stream(2)), DeltaMode::Patch);
    assert_eq!(send(&mut deltas, &next(3)), DeltaMode::Patch, "2 was the latest");
    assert_eq!(send(&mut deltas, &next(5)), DeltaMode::Full, "3 was the latest, and 4 is its base");
    assert_eq!(send(&mut deltas, &off_stream(6)), DeltaMode::Patch);
    deltas.skip(SubscriberIndex(0));
    deltas.settle(&off_stream(7));
    assert_eq!(send(&mut deltas, &off_stream(8)), DeltaMode::Full);
    assert_eq!(send(&mut deltas, &broadcast(9, 0, Delta::Off)), DeltaMode::Full);
    assert_eq!(send(&mut deltas, &off_stream(10)), DeltaMode::Patch);
}

#[test]
fn the_first_shard_proposes_the_base_and_others_follow_or_send_all_of_it() {
    let mut shards = [deltas(DeltaState::AwaitsLatest), deltas(DeltaState::AwaitsLatest)];
    let first = off_stream(1);
    assert_eq!(shards.each_mut().map(|one| send(one, &first)), [DeltaMode::Full; 2]);
    let second = off_stream(2);
    assert_eq!(shards.each_mut().map(|one| send(one, &second)), [DeltaMode::Patch; 2]);
    assert_eq!(send(&mut shards[1], &off_stream(3)), DeltaMode::Patch);
    let fourth = off_stream(4);
    let shapes = shards.each_mut().map(|one| send(one, &fourth));
    assert_eq!(shapes, [DeltaMode::Patch, DeltaMode::Full], "the second one has 3");
}

#[test]
fn leaves_keep_the_marks_in_step_and_the_last_one_ends_them() {
    let mut deltas = Deltas::new(2);
    deltas.agree(SubscriberIndex(1), Encoding::Json, DeltaState::AwaitsStream);
    deltas.push();
    deltas.agree(SubscriberIndex(2), Encoding::Protobuf, DeltaState::AwaitsLatest);
    assert_eq!((deltas.json(), deltas.unpositioned), (1, 1));
    assert!(
        !deltas.remove(SubscriberIndex(0), Encoding::Json),
        "the last one is moved to its place"
    );
    assert_eq!(deltas.marks, [DeltaState::AwaitsLatest, DeltaState::AwaitsStream]);
    assert!(!deltas.remove(SubscriberIndex(1), Encoding::Json));
    assert_eq!((deltas.json(), deltas.unpositioned), (0, 1));
    assert!(deltas.remove(SubscriberIndex(0), Encoding::Protobuf));
    assert_eq!(deltas.unpositioned, 0);
}
