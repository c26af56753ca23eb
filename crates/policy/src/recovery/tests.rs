//! Tests of the rules of recovery: each line of protocol §9.
//! In: claims and stretches of a stream that keeps the offsets 6 to 9 → out: which offsets are recovered.
//! Uses: the rules only.
//! What is replied is tested in `tests/it/recovery.rs`, with a model in `tests/it/streams.rs`.

use fanwire_broker::{Epoch, Position};
use fanwire_protocol::FilterNode;

use super::*;
use crate::filter::Filter;

/// A stream with the top 9, read as the rules ask for.
fn read(query: Query, oldest: u64) -> StreamSlice {
    let epoch = Epoch::parse("epochone").expect("eight notices");
    let is_wanted = |offset: &u64| query.since.is_none_or(|since| *offset > since);
    let mut offsets: Vec<u64> = (oldest..10).filter(is_wanted).collect();
    if query.reverse {
        offsets.reverse();
    }
    offsets.truncate(query.limit.unwrap_or(usize::MAX));
    let publication = |offset| Publication { offset, ..Publication::default() };
    let publications = offsets.into_iter().map(publication).collect();
    let before = Epoch::parse("epochold").expect("eight notices");
    let inherited = Position { offset: 7, epoch: before };
    StreamSlice { publications, top: Position { offset: 9, epoch }, inherited, dropped: None }
}

fn check(mode: RecoveryMode, claimed: (u64, &str), limit: usize, expect: Option<&[u64]>) {
    check_from(6, mode, claimed, limit, expect);
}

fn check_from(
    oldest: u64,
    mode: RecoveryMode,
    (offset, epoch): (u64, &str),
    limit: usize,
    expect: Option<&[u64]>,
) {
    let claimed = ClaimedPosition { offset, epoch };
    let recovered = recover(mode, claimed, read(query(mode, claimed, limit, false), oldest), None);
    let offsets = recovered.map(|all| all.iter().map(|one| one.offset).collect::<Vec<_>>());
    assert_eq!(offsets.as_deref(), expect, "{mode:?} {claimed:?}");
}

#[test]
fn a_stream_is_recovered_when_everything_after_the_claim_is_there() {
    let stream = RecoveryMode::Stream;
    check(stream, (9, "epochone"), 300, Some(&[]));
    check(stream, (7, "epochone"), 300, Some(&[8, 9]));
    check(stream, (5, "epochone"), 300, Some(&[6, 7, 8, 9]));
    check(stream, (4, "epochone"), 300, None);
    check(stream, (0, "epochone"), 300, None);
}

#[test]
fn the_cause_of_a_missing_recovery_is_named() {
    let mode = RecoveryMode::Stream;
    let check = |oldest, (offset, epoch), limit, history_size, expect| {
        let claimed = ClaimedPosition { offset, epoch };
        let read = read(query(mode, claimed, limit, false), oldest);
        assert_eq!(Unrecovered::cause(mode, claimed, &read, history_size), expect);
        assert_eq!(recover(mode, claimed, read, None), None);
    };
    check(6, (7, "epochtwo"), 300, 10, Unrecovered::Epoch);
    check(6, (10, "epochone"), 300, 10, Unrecovered::Epoch);
    check(6, (5, "epochone"), 2, 10, Unrecovered::Limit);
    check(6, (4, "epochone"), 300, 4, Unrecovered::Size);
    check(6, (4, "epochone"), 300, 5, Unrecovered::Ttl);
    check(10, (4, "epochone"), 300, 5, Unrecovered::Ttl);
}

/// A message grew at the offsets 3, 5, 7 and 9; another publication is at 6; those up to 2 are gone.
#[test]
fn publications_that_their_message_replaced_are_not_missing() {
    let epoch = Epoch::parse("epochone").expect("eight notices");
    let check = |offset, limit, expect: Result<&[u64], Unrecovered>| {
        let claimed = ClaimedPosition { offset, epoch: "epochone" };
        let after = [6, 9].into_iter().filter(|one| *one > offset).take(limit);
        let publications = after.map(|offset| Publication { offset, ..Publication::default() });
        let publications = publications.collect();
        let top = Position { offset: 9, epoch };
        let read =
            StreamSlice { publications, top, dropped: Some(2), inherited: Position::default() };
        let cause = Unrecovered::cause(RecoveryMode::Stream, claimed, &read, 2);
        let recovered = recover(RecoveryMode::Stream, claimed, read, None).ok_or(cause);
        let offsets = recovered.map(|all| Vec::from_iter(all.iter().map(|one| one.offset)));
        assert_eq!(offsets, expect.map(<[u64]>::to_vec), "{offset}");
    };
    check(9, 300, Ok(&[]));
    check(7, 300, Ok(&[9]));
    check(6, 300, Ok(&[9]));
    check(5, 300, Ok(&[6, 9]));
    check(2, 300, Ok(&[6, 9]));
    check(1, 300, Err(Unrecovered::Size));
    check(10, 300, Err(Unrecovered::Epoch));
    check(4, 1, Err(Unrecovered::Limit));
}

#[test]
fn a_publication_without_a_place_is_after_no_claim() {
    let claimed = ClaimedPosition { offset: u64::MAX, epoch: "" };
    let top = Position { offset: 0, epoch: Epoch::parse("epochone").expect("eight notices") };
    let publications = vec![Publication::default()];
    let read = StreamSlice { publications, top, ..read(Query::TOP, 6) };
    assert_eq!(recover(RecoveryMode::Stream, claimed, read, None), None);
}

#[test]
fn a_foreign_epoch_and_a_future_offset_are_not_recovered_but_an_empty_epoch_is_any() {
    let stream = RecoveryMode::Stream;
    check(stream, (7, ""), 300, Some(&[8, 9]));
    check(stream, (9, ""), 300, Some(&[]));
    check(stream, (9, "epochtwo"), 300, None);
    check(stream, (0, "_"), 300, None);
    check(stream, (10, "epochone"), 300, None);
    check(stream, (u64::MAX, ""), 300, None);
}

#[test]
fn what_an_epoch_inherited_is_recovered_and_what_the_one_before_had_beyond_is_not() {
    for mode in [RecoveryMode::Stream, RecoveryMode::Cache] {
        let newest = mode == RecoveryMode::Cache;
        check(mode, (7, "epochold"), 300, Some(if newest { &[9] } else { &[8, 9] }));
    }
    check(RecoveryMode::Stream, (6, "epochold"), 300, Some(&[7, 8, 9]));
    check(RecoveryMode::Stream, (8, "epochold"), 300, None);
    check(RecoveryMode::Stream, (9, "epochold"), 300, None);
    check(RecoveryMode::Cache, (9, "epochold"), 300, Some(&[9]));
}

#[test]
fn more_than_the_limit_is_not_recovered() {
    let stream = RecoveryMode::Stream;
    check(stream, (7, ""), 2, Some(&[8, 9]));
    check(stream, (6, ""), 2, None);
    check(stream, (5, ""), 0, Some(&[6, 7, 8, 9]));
}

#[test]
fn a_cache_gives_the_newest_publication_to_whoever_does_not_have_it() {
    let cache = RecoveryMode::Cache;
    check(cache, (9, "epochone"), 300, Some(&[]));
    check(cache, (3, "epochone"), 300, Some(&[9]));
    check(cache, (9, "epochtwo"), 300, Some(&[9]));
    check(cache, (9, ""), 300, Some(&[9]));
    check(cache, (0, "_"), 300, Some(&[9]));
}

#[test]
fn an_empty_cache_recovers_only_who_is_there() {
    let cache = RecoveryMode::Cache;
    check_from(10, cache, (9, "epochone"), 300, Some(&[]));
    check_from(10, cache, (8, "epochone"), 300, None);
    check_from(10, cache, (9, ""), 300, None);
    check_from(10, cache, (0, ""), 300, None);
}

/// The same stream with a filter that wants only these offsets.
fn check_filtered(
    mode: RecoveryMode,
    (offset, epoch): (u64, &str),
    limit: usize,
    wanted: &[u64],
    expect: Option<&[u64]>,
) {
    let claimed = ClaimedPosition { offset, epoch };
    let mut slice = read(query(mode, claimed, limit, true), 6);
    for publication in &mut slice.publications {
        publication.tags.insert("offset".into(), publication.offset.to_string());
    }
    let node = FilterNode {
        key: "offset".into(),
        cmp: "in".into(),
        vals: wanted.iter().map(u64::to_string).collect(),
        ..FilterNode::default()
    };
    let of_client = Some(Filter::new(&node).expect("a good filter"));
    let filter = SubscriptionFilter { of_server: None, of_client };
    let recovered = recover(mode, claimed, slice, Some(&filter));
    let offsets = recovered.map(|all| all.iter().map(|one| one.offset).collect::<Vec<_>>());
    assert_eq!(offsets.as_deref(), expect, "{mode:?} {claimed:?}");
}

#[test]
fn what_a_filter_drops_counts_as_seen() {
    let stream = RecoveryMode::Stream;
    check_filtered(stream, (5, "epochone"), 300, &[7, 9], Some(&[7, 9]));
    check_filtered(stream, (5, "epochone"), 300, &[1], Some(&[]));
    check_filtered(stream, (9, "epochone"), 300, &[9], Some(&[]));
    check_filtered(stream, (4, "epochone"), 300, &[7, 9], None);
    check_filtered(stream, (5, "epochone"), 3, &[7], None);
    check_filtered(stream, (7, "epochtwo"), 300, &[9], None);
}

#[test]
fn a_cache_gives_the_newest_publication_that_matches() {
    let cache = RecoveryMode::Cache;
    check_filtered(cache, (0, "_"), 300, &[7, 8], Some(&[8]));
    check_filtered(cache, (7, "epochone"), 300, &[7, 8], Some(&[8]));
    check_filtered(cache, (7, "epochtwo"), 300, &[7], Some(&[7]));
    for offset in [7, 8, 9] {
        check_filtered(cache, (offset, "epochone"), 300, &[7], Some(&[])); // known
    }
    check_filtered(cache, (10, "epochone"), 300, &[7], Some(&[7]));
}

#[test]
fn a_cache_without_a_match_recovers_only_who_has_seen_what_is_older() {
    let cache = RecoveryMode::Cache;
    check_filtered(cache, (0, "_"), 300, &[1], None);
    check_filtered(cache, (0, "_"), 2, &[7], None);
    check_filtered(cache, (9, "epochone"), 300, &[1], Some(&[]));
    check_filtered(cache, (7, "epochone"), 2, &[1], Some(&[]));
    check_filtered(cache, (6, "epochone"), 2, &[1], None);
    check_filtered(cache, (7, "epochtwo"), 2, &[1], None);
    check_filtered(cache, (10, "epochone"), 300, &[1], None); // the stream lost its end
}
