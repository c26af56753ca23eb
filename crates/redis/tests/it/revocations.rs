//! Blocks and revocations in Redis: they outlive nodes, reach every node, and leave Redis when they have ended.
//! In: calls of the server API on several nodes, a Redis that dies or loses its data → out: tables, notices, keys.
//! Uses nodes with an inbox instead of shards, a real process. Never: sleeps; it waits for what must happen.
//! A promise about the store is a test here; what a client gets is tested in the crate `node`.

use std::sync::Arc;
use std::time::Instant;

use fanwire_broker::{Answer, RevocationCursor, RevocationStore as _};
use fanwire_node::{Node, Notice, RevocationChange, RevocationKind};
use fanwire_protocol::ErrorCode;
use fanwire_redis::{Redis, RedisOptions};
use fanwire_testing::wait_for;

use crate::conformance::fresh;
use crate::control::Member;
use crate::node::{WAIT_MAX, runtime};
use crate::server::RedisServer;
use crate::slots::Slots;

const ALL_KINDS: [RevocationKind; 3] =
    [RevocationKind::BlockUser, RevocationKind::RevokeToken, RevocationKind::InvalidateTokens];

fn change(subject: &str) -> RevocationChange {
    RevocationChange { subject: subject.into(), ..RevocationChange::default() }
}

fn begin(node: &Node, kind: RevocationKind, subject: &str) -> Answer<(), ErrorCode> {
    node.revocations()
        .revoke(kind, change(subject), Instant::now(), node.unix(Instant::now()))
        .expect("it is possible")
}

fn revoke(node: &Node, kind: RevocationKind, subject: &str) -> Result<(), ErrorCode> {
    begin(node, kind, subject).wait()
}

/// Revokes as soon as the connection is there.
fn until_back(node: &Node, kind: RevocationKind, subject: &str) {
    wait_for(|| revoke(node, kind, subject).is_ok(), WAIT_MAX);
}

/// Entries of the tables `blocked`, `revoked`, `invalidated`.
fn counts(node: &Node) -> [u64; 3] {
    let counts: Vec<u64> = node.revocations().counts().map(|(_, count)| count).collect();
    counts.try_into().expect("three tables")
}

/// Ticks until it is so.
fn wait_until(nodes: &[&Member], what: &str, is_so: impl Fn(&Node) -> bool) {
    let attempt = || {
        nodes.iter().for_each(|member| member.node.tick(Instant::now()));
        let states = || nodes.iter().map(|member| counts(&member.node)).collect::<Vec<_>>();
        let are_all = nodes.iter().all(|member| is_so(&member.node));
        are_all.then_some(()).ok_or_else(|| format!("{what}: {:?}", states()))
    };
    wait_for(attempt, WAIT_MAX);
}

fn loaded(options: RedisOptions) -> Member {
    let member = Member::start(options);
    wait_until(&[&member], "the list is read", |node| node.revocations().are_known());
    member
}

#[test]
fn entries_reach_the_other_node_and_outlive_all_nodes() {
    let server = RedisServer::start(&[]);
    let cluster = Slots::start(0);
    for options in [server.options(), fresh(cluster.options())] {
        let here = loaded(options.clone());
        let there = loaded(options.clone());
        let _ = there.notices.try_iter().count();
        for (kind, subject) in ALL_KINDS.into_iter().zip(["ada", "7", "eve"]) {
            assert_eq!(revoke(&here.node, kind, subject), Ok(()), "{subject}");
            let notice = there.notices.recv_timeout(WAIT_MAX);
            let notice = notice.expect("connections of the other node end");
            match kind {
                RevocationKind::BlockUser => assert!(matches!(notice, Notice::Disconnect { .. })),
                _ => assert!(matches!(notice, Notice::CheckTokens { .. })),
            }
        }
        let of_channel = RevocationChange { channel: Some("news".into()), ..change("eve") };
        let done = here.node.revocations().revoke(
            RevocationKind::InvalidateTokens,
            of_channel,
            Instant::now(),
            here.node.unix(Instant::now()),
        );
        assert_eq!(done.map(Answer::wait), Ok(Ok(())));
        drop((here, there));
        let here = loaded(options.clone());
        let there = loaded(options.clone());
        assert_eq!([&here, &there].map(|member| counts(&member.node)), [[1, 1, 2]; 2]);
        assert_eq!(revoke(&there.node, RevocationKind::UnblockUser, "ada"), Ok(()));
        wait_until(&[&here, &there], "unblocked", |node| counts(node) == [0, 1, 2]);
        assert_eq!(counts(&loaded(options).node), [0, 1, 2]);
    }
}

#[test]
fn every_field_of_an_entry_is_read_back_whatever_its_texts() {
    let server = RedisServer::start(&[]);
    let runtime = runtime();
    let redis = Arc::new(Redis::start(&server.options(), runtime.handle()));
    redis.listen(Box::new(|_| {}));
    let mut expect = Vec::new();
    for kind in ALL_KINDS {
        for subject in ["a", "*[?]", "3.ada", "{x}", &"ж".repeat(5_000)] {
            let is_of_tokens = kind == RevocationKind::InvalidateTokens;
            for channel in
                [None, Some("news"), Some("2.x")].into_iter().take(if is_of_tokens { 3 } else { 1 })
            {
                let issued_before = if is_of_tokens { 1_700_000_000 } else { 0 };
                let subject = subject.to_owned();
                let channel = channel.map(str::to_owned);
                let expire_at = 4_000_000_000;
                expect.push(RevocationChange { kind, subject, channel, expire_at, issued_before });
            }
        }
    }
    for change in &expect {
        wait_for(|| redis.change(change, Instant::now()).wait().is_ok(), WAIT_MAX);
    }
    let mut found = Vec::new();
    let mut next = Some(RevocationCursor::default());
    while let Some(cursor) = next {
        let page = redis.page(cursor).wait().expect("it is there");
        assert!(page.position.offset >= expect.len() as u64);
        found.extend(page.entries);
        next = page.next;
    }
    let key = |change: &RevocationChange| format!("{change:?}");
    found.sort_by_key(key);
    expect.sort_by_key(key);
    assert_eq!(found, expect);
    // An entry that has ended goes with the next change, and its time with it.
    for member in ["1.a", "1.anews"] {
        server.ask(&format!("ZADD fanwire.{{revocations}}.invalidated 1000 {member}"));
    }
    assert_eq!(redis.change(&change("x"), Instant::now()).wait(), Ok(()));
    let left = server.ask("ZCARD fanwire.{revocations}.invalidated");
    assert_eq!(
        (left.trim(), server.ask("HLEN fanwire.{revocations}.before").trim()),
        (":13", ":13")
    );
}

/// A node that knows an older time stores its entry again, and one that the list does not have.
#[test]
fn what_is_stored_again_replaces_no_newer_entry() {
    let server = RedisServer::start(&[]);
    let runtime = runtime();
    let redis = Arc::new(Redis::start(&server.options(), runtime.handle()));
    redis.listen(Box::new(|_| {}));
    let invalid = |subject: &str, issued_before| RevocationChange {
        kind: RevocationKind::InvalidateTokens,
        issued_before,
        ..change(subject)
    };
    wait_for(|| redis.change(&invalid("ada", 20), Instant::now()).wait().is_ok(), WAIT_MAX);
    for older in [invalid("ada", 10), invalid("bob", 10)] {
        assert_eq!(redis.restore(&older, Instant::now()).wait(), Ok(()));
    }
    let page = redis.page(RevocationCursor { table: 2, scan: 0 }).wait().expect("it is there");
    assert_eq!(page.position.offset, 2, "one of both was stored");
    assert_eq!(page.entries, [invalid("ada", 20), invalid("bob", 10)]);
}

/// A call waits in a connection until after a newer one.
#[test]
fn an_earlier_time_replaces_no_later_one_that_lasts_as_long() {
    let server = RedisServer::start(&[]);
    let runtime = runtime();
    let redis = Arc::new(Redis::start(&server.options(), runtime.handle()));
    redis.listen(Box::new(|_| {}));
    let invalid = |issued_before, expire_at| RevocationChange {
        kind: RevocationKind::InvalidateTokens,
        issued_before,
        expire_at,
        ..change("ada")
    };
    let soon = 4_000_000_000;
    let late = soon + 1;
    for (made, entry, offset) in [
        (invalid(20, soon), invalid(20, soon), 1),
        (invalid(10, soon), invalid(20, soon), 1),
        (invalid(20, soon), invalid(20, soon), 2),
        (invalid(15, late), invalid(15, late), 3),
        (invalid(14, 0), invalid(14, 0), 4),
        (invalid(13, 0), invalid(14, 0), 4),
        (invalid(13, late), invalid(14, 0), 4),
        (invalid(16, soon), invalid(16, soon), 5),
    ] {
        wait_for(|| redis.change(&made, Instant::now()).wait().is_ok(), WAIT_MAX);
        let page = redis.page(RevocationCursor { table: 2, scan: 0 }).wait().expect("it is there");
        assert_eq!((page.position.offset, page.entries), (offset, vec![entry]), "{made:?}");
    }
}

#[test]
fn a_node_with_many_entries_lets_nobody_in_before_all_are_read() {
    let server = RedisServer::start(&[]);
    let name = b"fanwire.{revocations}.blocked".as_slice();
    for thousand in 0..100 {
        let users: Vec<String> =
            (0..1000).map(|number| format!("user{thousand}.{number}")).collect();
        let members = users.iter().flat_map(|user| [b"+inf".as_slice(), user.as_bytes()]);
        let command: Vec<&[u8]> = [b"ZADD".as_slice(), name].into_iter().chain(members).collect();
        assert_eq!(server.ask_with(&command).trim(), ":1000");
    }
    let began = Instant::now();
    let member = Member::start(server.options());
    wait_for(|| member.node.revocations().are_known(), WAIT_MAX);
    assert_eq!(counts(&member.node), [100_000, 0, 0]);
    println!("100,000 entries were read in {:?}", began.elapsed());
}

#[test]
fn blocks_and_unblocks_from_two_nodes_have_one_order() {
    let server = RedisServer::start(&[]);
    let members = [loaded(server.options()), loaded(server.options())];
    for round in 0..10 {
        let mut answers = Vec::new();
        for number in 0..100 {
            for (at, member) in members.iter().enumerate() {
                let is_block = (number + round + at) % 2 == 0;
                let kind =
                    if is_block { RevocationKind::BlockUser } else { RevocationKind::UnblockUser };
                answers.push(begin(&member.node, kind, "ada"));
            }
        }
        assert!(answers.into_iter().all(|answer| answer.wait() == Ok(())));
        // A node makes its own change at once. That of the other comes after all changes before it.
        for (at, member) in members.iter().enumerate() {
            let token = format!("{round}.{at}");
            assert_eq!(revoke(&member.node, RevocationKind::RevokeToken, &token), Ok(()));
        }
        let has_all = |node: &Node| counts(node)[1] == 2 * (round as u64 + 1);
        wait_until(&[&members[0], &members[1]], "all changes", has_all);
        let stored = server.ask("ZCARD fanwire.{revocations}.blocked");
        for member in &members {
            assert_eq!(format!(":{}", counts(&member.node)[0]), stored.trim(), "round {round}");
        }
    }
}

#[test]
fn a_redis_that_was_away_or_has_lost_its_data() {
    let mut server = RedisServer::start(&[]);
    let old = [loaded(server.options()), loaded(server.options())];
    assert_eq!(revoke(&old[0].node, RevocationKind::BlockUser, "ada"), Ok(()));
    wait_until(&[&old[0], &old[1]], "blocked", |node| counts(node) == [1, 0, 0]);
    server.kill();
    assert_eq!(revoke(&old[0].node, RevocationKind::BlockUser, "bob"), Err(ErrorCode::INTERNAL));
    assert_eq!(counts(&old[0].node), [2, 0, 0], "it is executed here");
    let late = Member::start(server.options());
    assert!(!late.node.revocations().are_known());
    server.restart(); // without persistence
    wait_until(&[&late], "the list is read", |node| node.revocations().are_known());
    assert_eq!(counts(&late.node), [0; 3]);
    // The others keep what they know, store it again, and follow new changes.
    until_back(&old[1].node, RevocationKind::BlockUser, "eve");
    wait_until(&[&old[0], &old[1], &late], "stored again", |node| counts(node) == [3, 0, 0]);
    assert!(late.notices.try_iter().any(|notice| matches!(notice, Notice::Disconnect { .. })));
    server.ask("FLUSHALL");
    until_back(&late.node, RevocationKind::RevokeToken, "7");
    wait_until(&[&old[0], &old[1], &late], "stored again", |node| counts(node) == [3, 1, 0]);
    // A node that reads the empty list shows the others that it is empty.
    server.ask("FLUSHALL");
    let last = loaded(server.options());
    let all = [&old[0], &old[1], &late, &last];
    wait_until(&all, "stored again", |node| counts(node) == [3, 1, 0]);
    drop((old, late, last));
    assert_eq!(counts(&loaded(server.options()).node), [3, 1, 0]);
}

#[test]
fn many_entries_that_redis_has_lost_are_stored_again_with_their_ends() {
    let server = RedisServer::start(&[]);
    // 5,000 calls wait for each other.
    let options = || RedisOptions { io_timeout: WAIT_MAX, ..server.options() };
    let members = [loaded(options()), loaded(options())];
    let revoke_until = |number: u64| {
        let expire_at = 4_000_000_000 + number;
        let change = RevocationChange { expire_at, ..change(&format!("token {number}")) };
        let node = &members[0].node;
        let now = Instant::now();
        node.revocations().revoke(RevocationKind::RevokeToken, change, now, node.unix(now))
    };
    let answers: Vec<_> = (0..5_000).map(|number| revoke_until(number).expect("room")).collect();
    assert!(answers.into_iter().all(|answer| answer.wait() == Ok(())));
    let all = [&members[0], &members[1]];
    wait_until(&all, "revoked", |node| counts(node) == [0, 5_000, 0]);
    let ends = || server.ask("ZRANGE fanwire.{revocations}.revoked 0 -1 WITHSCORES");
    let before = ends();
    server.ask("FLUSHALL");
    until_back(&members[1].node, RevocationKind::BlockUser, "ada");
    let is_stored = |_: &Node| server.ask("ZCARD fanwire.{revocations}.revoked").trim() == ":5000";
    wait_until(&all, "stored again", is_stored);
    assert_eq!(ends(), before);
    wait_until(&all, "known", |node| counts(node) == [1, 5_000, 0]);
}
