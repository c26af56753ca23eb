//! Tests of the table: each kind of entry, ends, replaced entries, the limit, and its bytes.
//! In: changes at Unix seconds → out: the answers of checks, the number of entries.
//! Uses: the table alone. Time is a number.
//! Changed here: tests of the table. Its effects on connections are in `tests/it/revocations.rs`.

use super::*;

const NOW: u64 = 1_800_000_000;

#[test]
fn a_blocked_user_is_blocked_until_the_end() {
    let table = RevocationTable::<()>::default();
    assert!(!table.blocks("ada", NOW));
    table.insert(Subject::User("ada"), 0, NOW + 10, None).expect("there is room");
    table.insert(Subject::User("bob"), 0, 0, None).expect("there is room");
    for (user, unix, is_blocked) in [
        ("ada", NOW, true),
        ("ada", NOW + 9, true),
        ("ada", NOW + 10, false),
        ("ada", NOW + 9, true), // the clock steps back
        ("bob", NOW * 2, true),
        ("eve", NOW, false),
        ("", NOW, false),
    ] {
        assert_eq!(table.blocks(user, unix), is_blocked, "{user} at {unix}");
    }
    table.remove(Subject::User("bob"));
    table.remove(Subject::User("bob"));
    assert!(!table.blocks("bob", NOW));
    assert_eq!(table.entries.load(Relaxed), 1);
}

#[test]
fn a_later_entry_replaces_an_earlier_one() {
    let table = RevocationTable::<()>::default();
    for expire_at in [0, NOW + 10, NOW + 5] {
        table.insert(Subject::User("ada"), 0, expire_at, None).expect("there is room");
    }
    assert!(table.blocks("ada", NOW + 4));
    assert!(!table.blocks("ada", NOW + 5));
}

#[test]
fn a_revoked_token_is_refused_by_its_jti() {
    let table = RevocationTable::<()>::default();
    table.insert(Subject::Token("7"), 0, 0, None).expect("there is room");
    for (uid, channel, is_refused) in
        [("7", None, true), ("7", Some("news"), true), ("8", None, false), ("", None, false)]
    {
        let token = TokenId::new(uid, NOW);
        assert_eq!(table.refuses(&token, "ada", channel, NOW), is_refused, "{uid}");
    }
    assert!(!table.blocks("7", NOW), "a jti is no user");
}

#[test]
fn older_tokens_of_a_user_are_refused() {
    let table = RevocationTable::<()>::default();
    table.insert(Subject::TokensOf("ada", None), NOW, NOW + 100, None).expect("there is room");
    table.insert(Subject::TokensOf("bob", Some("news")), NOW, 0, None).expect("there is room");
    for (user, channel, issued_at, is_refused) in [
        ("ada", None, NOW - 1, true),
        ("ada", None, NOW, false),
        ("ada", None, NOW + 1, false),
        ("ada", None, 0, true),
        ("ada", Some("news"), NOW - 1, true),
        ("ada", Some("news"), NOW, false),
        ("bob", None, NOW - 1, false),
        ("bob", Some("news"), NOW - 1, true),
        ("bob", Some("new"), NOW - 1, false),
        ("eve", Some("news"), 0, false),
    ] {
        let token = TokenId::new("", issued_at);
        assert_eq!(table.refuses(&token, user, channel, NOW), is_refused, "{user} {channel:?}");
    }
    assert!(!table.refuses(&TokenId::new("", 0), "ada", None, NOW + 100), "the entry has ended");
}

/// A call that failed at first may be executed after a newer one.
#[test]
fn an_earlier_time_does_not_replace_a_later_one_that_lasts_as_long() {
    for (end, later_end, is_refused) in [
        (0, 0, true),
        (0, NOW + 9, true),
        (NOW + 9, NOW + 9, true),
        (NOW + 9, NOW + 10, false),
        (NOW + 9, 0, false),
    ] {
        let table = RevocationTable::<()>::default();
        let all = Subject::TokensOf("ada", None);
        assert_eq!(table.insert(all, NOW, end, None), Ok(true));
        assert_eq!(table.insert(all, NOW - 5, later_end, None), Ok(!is_refused));
        let token = TokenId::new("", NOW - 1);
        assert_eq!(table.refuses(&token, "ada", None, NOW), is_refused, "{end} {later_end}");
    }
}

#[test]
fn the_limit_counts_entries_until_they_are_swept() {
    let table = RevocationTable::<()>::with_limit(3);
    for user in ["a", "b", "c", "a"] {
        assert!(table.insert(Subject::User(user), 0, NOW + 1, None).is_ok(), "{user}");
    }
    assert_eq!(table.insert(Subject::User("d"), 0, 0, None), Err(TableFull));
    let sweeps = STRIPES / STRIPES_AT_ONCE;
    (0..sweeps).for_each(|_| table.sweep(NOW));
    assert_eq!(table.entries.load(Relaxed), 3);
    (0..sweeps).for_each(|_| table.sweep(NOW + 1));
    assert_eq!(table.entries.load(Relaxed), 0);
    assert_eq!(table.insert(Subject::User("d"), 0, 0, None), Ok(true));
}

#[test]
fn a_million_revoked_tokens_take_less_than_64_mb() {
    let table = RevocationTable::<()>::default();
    for number in 0..ENTRIES_MAX {
        table.insert(Subject::Token(&number.to_string()), 0, NOW, None).expect("there is room");
    }
    let bytes = table.stripes.iter().map(|stripe| stripe.read().allocation_size());
    let bytes = bytes.sum::<usize>();
    assert!(bytes <= 64_000_000, "{bytes}");
    let (token, began) = (TokenId::new("1000001", NOW), std::time::Instant::now());
    (0..100_000).for_each(|_| assert!(!table.refuses(&token, "ada", None, NOW)));
    println!("{bytes} bytes, {} ns a check", began.elapsed().as_nanos() / 100_000);
    assert_eq!(table.insert(Subject::Token("x"), 0, 0, None), Err(TableFull));
    (0..STRIPES / STRIPES_AT_ONCE).for_each(|_| table.sweep(NOW));
    let capacity = table.stripes.iter().map(|stripe| stripe.read().capacity());
    assert_eq!((table.entries.load(Relaxed), capacity.sum::<usize>()), (0, 0));
}

#[test]
fn a_load_removes_what_the_list_does_not_have_and_keeps_what_the_list_has_lost() {
    let table = RevocationTable::<()>::default();
    table.expect_load();
    let load = |users: &[&str], has_lost_entries| {
        table.begin_load();
        for user in users {
            table.insert(Subject::User(user), 0, 0, None).expect("there is room");
        }
        table.end_load(has_lost_entries);
        ["ada", "bob", "eve"].into_iter().filter(|user| table.blocks(user, NOW)).collect::<Vec<_>>()
    };
    assert!(!table.is_complete());
    assert_eq!(load(&["ada", "bob"], false), ["ada", "bob"]);
    assert!(table.is_complete());
    table.begin_load(); // it fails after one page
    table.insert(Subject::User("eve"), 0, 0, None).expect("there is room");
    assert_eq!(load(&["bob"], false), ["bob"]);
    assert_eq!(load(&["eve"], true), ["bob", "eve"], "bob is kept");
    assert_eq!(load(&[], false), ["bob"], "also after the next load");
    table.remove(Subject::User("bob"));
    assert_eq!(load(&[], false), [""; 0]);
    assert_eq!(
        table.counts().collect::<Vec<_>>(),
        [("blocked", 0), ("revoked", 0), ("invalidated", 0)]
    );
}

#[test]
fn what_the_list_has_lost_is_returned_until_it_is_inserted_again() {
    let table = RevocationTable::default();
    let subjects = [
        (Subject::User("ada"), 0),
        (Subject::User(""), NOW + 5),
        (Subject::Token("ж\0\r\n"), NOW + 6),
        (Subject::TokensOf("ada", None), 0),
        (Subject::TokensOf("ada", Some("")), 0),
        (Subject::TokensOf("a", Some("da")), NOW + 7),
    ];
    let insert = |number: usize| {
        let (subject, expire_at) = subjects[number];
        table.insert(subject, 0, expire_at, Some(Box::new(number))).expect("there is room");
    };
    let lost = |unix, max| {
        let mut found = table.lost(unix, max);
        found.sort_unstable();
        found
    };
    table.begin_load();
    (0..6).for_each(insert);
    table.insert(Subject::User("of no list"), 0, 0, None).expect("there is room");
    table.end_load(false);
    assert_eq!(lost(NOW, 10), [0; 0]);
    table.begin_load();
    table.end_load(true);
    assert_eq!(lost(NOW, 10), [0, 1, 2, 3, 4, 5]);
    assert_eq!(lost(NOW, 4).len(), 4);
    assert_eq!(lost(NOW + 6, 10), [0, 3, 4, 5]);
    table.remove(Subject::User("ada"));
    (2..6).for_each(insert);
    assert_eq!(lost(NOW, 10), [1]);
}

#[test]
fn an_equal_entry_is_no_news() {
    let table = RevocationTable::<()>::default();
    for (before, expire_at, is_news) in
        [(5, 0, true), (5, 0, false), (6, 0, true), (6, NOW, true), (6, NOW, false)]
    {
        let inserted = table.insert(Subject::TokensOf("ada", None), before, expire_at, None);
        assert_eq!(inserted, Ok(is_news), "{before} {expire_at}");
    }
}
