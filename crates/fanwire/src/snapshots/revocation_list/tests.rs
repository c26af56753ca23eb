//! The file of blocks and revocations: what a later start reads of it.
//! In: changes, files that are torn or spoiled → out: entries.
//! Uses a folder of the test's own.
//! Changed here: expectations of `revocation_list.rs`.

use fanwire_testing::Folder;
use proptest::prelude::*;

use super::*;

fn a_change() -> impl Strategy<Value = RevocationChange> {
    let kind = prop::sample::select(KINDS.to_vec()).prop_map(|(_, kind)| kind);
    let parts = (kind, ".{0,8}", prop::option::of(".{0,8}"), any::<u64>(), any::<u64>());
    parts.prop_map(|(kind, subject, channel, expire_at, issued_before)| RevocationChange {
        kind,
        subject,
        channel,
        expire_at,
        issued_before,
    })
}

fn file_of(changes: &[RevocationChange]) -> Vec<u8> {
    let lines: String = changes.iter().map(line).collect();
    format!("{MAGIC}{lines}").into_bytes()
}

proptest! {
    #[test]
    fn a_file_has_what_was_changed(changes in prop::collection::vec(a_change(), 0..20)) {
        let mut entries = RevocationEntries::default();
        changes.iter().cloned().for_each(|change| entries.apply(change));
        prop_assert_eq!(RevocationEntries::decoded(&file_of(&changes)), Some(entries));
    }

    #[test]
    fn a_torn_file_has_all_changes_before_the_last_one(
        changes in prop::collection::vec(a_change(), 1..5),
        cut in 1..200_usize,
    ) {
        let bytes = file_of(&changes);
        let end = bytes.len() - cut.min(line(&changes[changes.len() - 1]).len());
        let before = file_of(&changes[..changes.len() - 1]);
        prop_assert_eq!(RevocationEntries::decoded(&bytes[..end]), RevocationEntries::decoded(&before));
    }

    #[test]
    fn a_file_with_a_changed_byte_is_refused_or_means_the_same(
        changes in prop::collection::vec(a_change(), 1..5),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let bytes = file_of(&changes);
        let mut spoiled = bytes.clone();
        spoiled[at.index(bytes.len())] = byte;
        let last = bytes.len() - 1;
        if at.index(bytes.len()) != last {
            let decoded = RevocationEntries::decoded(&spoiled);
            prop_assert!(decoded.is_none() || decoded == RevocationEntries::decoded(&bytes));
        }
    }
}

#[test]
fn an_earlier_time_replaces_no_later_one_that_lasts_as_long() {
    let invalid = |issued_before, expire_at| RevocationChange {
        kind: RevocationKind::InvalidateTokens,
        issued_before,
        expire_at,
        ..RevocationChange::default()
    };
    for (made, entry) in [
        ([invalid(20, 9), invalid(10, 9)], invalid(20, 9)),
        ([invalid(20, 0), invalid(10, 0)], invalid(20, 0)),
        ([invalid(20, 9), invalid(10, 0)], invalid(10, 0)),
        ([invalid(10, 0), invalid(20, 9)], invalid(20, 9)),
    ] {
        let entries = RevocationEntries::decoded(&file_of(&made)).expect("it is whole");
        assert_eq!(entries.0.into_values().collect::<Vec<_>>(), [entry]);
    }
}

fn open(path: &Path) -> RevocationList {
    RevocationList::open(path.to_owned(), 1000).expect("the folder is writable")
}

fn subjects(list: &RevocationList) -> Vec<String> {
    let page = list.page(RevocationCursor::default()).wait().expect("a page");
    let mut subjects: Vec<_> = page.entries.into_iter().map(|entry| entry.subject).collect();
    subjects.sort();
    subjects
}

fn blocked(user: &str) -> RevocationChange {
    RevocationChange { subject: user.to_owned(), ..RevocationChange::default() }
}

#[test]
fn what_was_answered_is_there_after_the_next_start_and_what_has_ended_is_not() {
    let folder = Folder::new("revocations");
    let path = folder.join("list");
    let list = open(&path);
    let changes = [
        blocked("ada"),
        blocked("bob"),
        RevocationChange { expire_at: 1000, ..blocked("ended") },
        RevocationChange { kind: RevocationKind::UnblockUser, ..blocked("bob") },
    ];
    for change in &changes {
        assert_eq!(list.change(change, Instant::now()).wait(), Ok(()));
    }
    drop(list);
    assert_eq!(subjects(&open(&path)), ["ada"]);
    fs::write(&path, "something else").expect("a file");
    assert_eq!(subjects(&open(&path)), [""; 0]);
    assert!(folder.join("list.unusable").exists());
}
