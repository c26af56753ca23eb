//! Tests of the rules of versions: gaps, lists that were lost, changes during a reading, other nodes that are ahead.
//! In: positions in any order → out: what is made, and when the list is read.
//! Uses: the rules alone; a list of texts stands for the table.
//! Changed here: tests of the rules. Nodes with a store are in `tests/it/shared_revocations.rs`.

use super::*;

fn at(offset: u64, epoch: &str) -> Position {
    Position { offset, epoch: Epoch::parse(epoch).expect("eight letters or none") }
}

fn block(user: &str) -> RevocationChange {
    RevocationChange { subject: user.into(), ..RevocationChange::default() }
}

fn unblock(user: &str) -> RevocationChange {
    RevocationChange { kind: fanwire_broker::RevocationKind::UnblockUser, ..block(user) }
}

const OLD: &str = "aaaaaaaa";
const NEW: &str = "bbbbbbbb";

/// A node that has read a list.
fn at_position(offset: u64, epoch: &str) -> RevocationSync {
    let mut sync = RevocationSync::default();
    assert!(sync.begin());
    assert!(sync.page(at(offset, epoch), false));
    assert_eq!(sync.end(), AfterPages::Done { has_lost_entries: false, has_news: false });
    sync
}

#[test]
fn the_next_change_is_made_an_old_one_is_not_and_after_a_gap_the_list_is_read() {
    for (known, position, expect) in [
        (at(5, OLD), at(6, OLD), Received::Next),
        (at(5, OLD), at(5, OLD), Received::Known),
        (at(5, OLD), at(1, OLD), Received::Known),
        (at(5, OLD), at(7, OLD), Received::Ahead),
        (at(5, OLD), at(6, NEW), Received::Ahead),
        (at(5, OLD), at(1, NEW), Received::Ahead),
        (at(0, ""), at(1, NEW), Received::Next),
        (at(0, ""), at(2, NEW), Received::Ahead),
    ] {
        let mut sync = at_position(known.offset, known.epoch.as_str());
        assert_eq!(sync.receive(position, &block("ada")), expect, "{position:?} after {known:?}");
        let is_made = expect == Received::Next;
        assert_eq!(sync.known(), Some(if is_made { position } else { known }));
    }
}

#[test]
fn after_a_reading_the_last_change_of_each_subject_that_the_pages_may_lack_is_made() {
    let mut sync = RevocationSync::default();
    assert!(sync.begin());
    for (offset, change) in [
        (4, block("before the first page")),
        (5, block("ada")),
        (6, block("bob")),
        (7, unblock("ada")),
        (8, block("eve")),
    ] {
        assert_eq!(sync.receive(at(offset, OLD), &change), Received::Known);
    }
    assert!(sync.page(at(4, OLD), true) && sync.page(at(8, OLD), false));
    assert_eq!(sync.end(), AfterPages::Make(vec![block("bob"), unblock("ada"), block("eve")]));
    assert_eq!(sync.receive(at(9, OLD), &block("zoe")), Received::Known, "it still ends");
    assert_eq!(sync.end(), AfterPages::Make(vec![block("zoe")]));
    assert_eq!(sync.end(), AfterPages::Done { has_lost_entries: false, has_news: true });
    assert_eq!(sync.known(), Some(at(9, OLD)));
}

#[test]
fn a_reading_with_a_gap_fails_and_the_next_one_is_due() {
    type Event = fn(&mut RevocationSync);
    let cases: [(&str, Event); 5] = [
        ("a gap is reported", |sync| assert!(!sync.begin())),
        ("a change is missing", |sync| {
            sync.receive(at(5, OLD), &block("ada"));
            sync.receive(at(7, OLD), &block("bob"));
        }),
        ("the first change is missing", |sync| {
            sync.receive(at(6, OLD), &block("ada"));
        }),
        ("a change of another list", |sync| {
            sync.receive(at(1, NEW), &block("ada"));
        }),
        ("a page of another list", |sync| assert!(!sync.page(at(0, ""), false))),
    ];
    for (number, (case, event)) in cases.into_iter().enumerate() {
        let mut sync = RevocationSync::default();
        assert!(!sync.is_due([].into_iter()), "{case}");
        assert!(sync.begin() && sync.page(at(4, OLD), false));
        event(&mut sync);
        assert!(!sync.is_due([].into_iter()), "{case}: it runs");
        if number == 4 {
            assert_eq!(sync.fail(), []);
        } else {
            assert!(matches!(sync.end(), AfterPages::Failed(_)), "{case}");
        }
        assert_eq!(sync.known(), None, "{case}");
        assert!(sync.is_due([].into_iter()) && sync.begin(), "{case}");
    }
}

#[test]
fn a_reading_that_fails_loses_no_change() {
    let mut sync = at_position(4, OLD);
    assert!(sync.begin());
    sync.receive(at(5, OLD), &block("ada"));
    assert_eq!(sync.fail(), [block("ada")]);
}

/// The table has the news of a reading that failed, and the sessions are checked after the next one.
#[test]
fn a_reading_that_fails_leaves_its_news_to_the_next_one() {
    let mut sync = at_position(4, OLD);
    assert!(sync.begin() && sync.page(at(5, OLD), true));
    assert!(!sync.begin(), "a gap");
    assert_eq!(sync.end(), AfterPages::Failed(Vec::new()));
    for has_news in [true, false] {
        assert!(sync.begin() && sync.page(at(5, OLD), false));
        assert_eq!(sync.end(), AfterPages::Done { has_lost_entries: false, has_news });
    }
}

#[test]
fn a_list_of_another_epoch_or_without_its_end_has_lost_entries() {
    for (known, read, has_lost_entries) in [
        (at(5, OLD), at(5, OLD), false),
        (at(5, OLD), at(6, OLD), false),
        (at(5, OLD), at(4, OLD), true),
        (at(5, OLD), at(9, NEW), true),
        (at(5, OLD), at(0, ""), true),
        (at(0, ""), at(9, NEW), false),
    ] {
        let mut sync = at_position(known.offset, known.epoch.as_str());
        assert!(sync.begin() && sync.page(read, false));
        assert_eq!(sync.end(), AfterPages::Done { has_lost_entries, has_news: false }, "{read:?}");
        assert_eq!(sync.known(), Some(read));
    }
}

#[test]
fn the_list_is_read_once_for_a_node_that_stays_ahead() {
    let mut sync = at_position(5, OLD);
    let mut is_due = |others: &[Position]| sync.is_due(others.iter().copied());
    assert!(!is_due(&[at(5, OLD), at(4, OLD), at(0, "")]));
    assert!(!is_due(&[at(6, OLD)]), "its change may be on the way");
    assert!(!is_due(&[at(7, OLD)]), "so may the next one");
    assert!(is_due(&[at(7, OLD), at(6, OLD)]));
    assert!(!is_due(&[at(7, OLD)]), "the list was read for it");
    assert!(!is_due(&[at(1, NEW)]));
    assert!(is_due(&[at(1, NEW)]));
    assert!(!is_due(&[at(0, "")]));
    assert!(is_due(&[at(0, "")]), "the list has lost its entries");
    assert!(!is_due(&[at(0, "")]));
}
