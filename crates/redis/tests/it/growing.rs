//! Growing messages of several nodes: two append by turns, one stops while text waits, and what Redis forgets.
//! In: fragments through two engines on one Redis → out: what both deliver and store.
//! Uses `node` and `server`. Never: sleeps; text that waits is published by the test.
//! Promises of all engines are in the conformance suite.

use std::time::{Duration, Instant};

use fanwire_broker::{
    Append, AppendError, AppendLimits, Appended, Broker as _, Fragment, Query, Retention,
};

use crate::node::{Node, retention};
use crate::server::RedisServer;

fn append(
    node: &Node,
    keep: Retention,
    limits: AppendLimits,
    fragment: Option<(u64, &str)>,
) -> Result<Appended, AppendError> {
    let fragment = fragment.map(|(at, text)| Fragment {
        text: text.into(),
        at: Some(at),
        head: "\"".into(),
        is_final: text.ends_with('.'),
        ..Fragment::default()
    });
    let append = Append { key: "k".into(), fragment, limits, ..Append::default() };
    let answer = node.redis.append("a", append, keep, Instant::now());
    answer.wait().unwrap_or_else(|_| panic!("{:?}", node.redis.health().current_error()))
}

/// The stored texts.
fn stored(node: &Node) -> Vec<String> {
    let slice = node.redis.history("a", Query::default(), retention(), Instant::now());
    let publications = slice.wait().expect("Redis is there").publications.into_iter();
    publications.map(|one| String::from_utf8_lossy(&one.data).into()).collect()
}

#[test]
fn two_nodes_that_append_by_turns_make_one_text() {
    let server = RedisServer::start(&[]);
    let nodes = [Node::start(&server.options()), Node::start(&server.options())];
    nodes.iter().for_each(|node| node.subscribe("a"));
    let limits = AppendLimits { interval: Duration::ZERO, ..AppendLimits::default() };
    let mut text = String::new();
    for number in 0..200_usize {
        let piece = format!("{number} ");
        let node = &nodes[number % 2];
        let at = text.len() as u64;
        let appended = append(node, retention(), limits, Some((at, &piece))).expect("it fits");
        text.push_str(&piece);
        assert_eq!(appended.length, text.len() as u64);
        let other = append(&nodes[(number + 1) % 2], retention(), limits, Some((at, "no")));
        assert_eq!(other, Err(AppendError::At(appended.length)));
    }
    append(&nodes[0], retention(), limits, Some((text.len() as u64, "."))).expect("it ends");
    let whole = format!("\"{text}.\"");
    for node in &nodes {
        let arrived: Vec<_> = (0..201).map(|_| node.event()).collect();
        let is_next = |pair: &[(_, String, fanwire_broker::Position)]| {
            let before = pair[0].1.trim_end_matches('"');
            pair[1].1.starts_with(before) && pair[1].2.offset == pair[0].2.offset + 1
        };
        assert!(arrived.windows(2).all(is_next), "{arrived:?}");
        assert_eq!(arrived[200].1, whole);
    }
    assert_eq!(stored(&nodes[1]), [whole]);
}

#[test]
fn text_that_waits_in_a_node_that_stops_is_published_by_another() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    let other = Node::start(&server.options());
    other.subscribe("a");
    let limits = AppendLimits { interval: Duration::from_secs(600), ..AppendLimits::default() };
    append(&node, retention(), limits, Some((0, "A"))).expect("at once");
    let waits = append(&node, retention(), limits, Some((1, "B"))).expect("it waits");
    assert!(waits.publish_after.is_some());
    drop(node);
    let again = append(&other, retention(), limits, Some((1, "B"))).expect("it is there");
    assert!(again.is_duplicate && again.publish_after.is_none(), "{again:?}");
    let flushed = append(&other, retention(), limits, None).expect("nothing to refuse");
    assert_eq!(flushed.position.offset, 2);
    append(&other, retention(), limits, Some((2, "C."))).expect("at once");
    let texts: Vec<_> = (0..3).map(|_| other.event().1).collect();
    assert_eq!(texts, [r#""A""#, r#""AB""#, r#""ABC.""#]);
}

#[test]
fn a_redis_that_lost_its_data_says_where_to_begin() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    let limits = AppendLimits::default();
    let first = append(&node, retention(), limits, Some((0, "Once "))).expect("it is new");
    let kinds = ["stream.{:a}", "meta.{:a}", "message.1.{:a}.k", "growing.{:a}"];
    for kind in kinds {
        assert_eq!(server.ask(&format!("DEL fanwire.{kind}")), ":1\r\n");
    }
    let refused = append(&node, retention(), limits, Some((5, "upon")));
    assert_eq!(refused, Err(AppendError::At(0)));
    let again = append(&node, retention(), limits, Some((0, "Once upon"))).expect("it is new");
    assert_ne!(again.position.epoch, first.position.epoch);
    assert_eq!(stored(&node), [r#""Once upon""#]);
}

#[test]
fn an_expired_history_counts_as_dropped_and_the_message_goes_on() {
    let server = RedisServer::start(&[]);
    let node = Node::start(&server.options());
    let limits = AppendLimits { interval: Duration::ZERO, ..AppendLimits::default() };
    for (at, text) in [(0, "A"), (1, "B")] {
        append(&node, retention(), limits, Some((at, text))).expect("it fits");
    }
    assert_eq!(server.ask("DEL fanwire.stream.{:a}"), ":1\r\n");
    let top = || {
        let read = node.redis.history("a", Query::TOP, retention(), Instant::now()).wait();
        let slice = read.expect("Redis is there");
        (slice.top.offset, slice.dropped)
    };
    assert_eq!(top(), (2, Some(2)));
    append(&node, retention(), limits, Some((2, "C."))).expect("it fits");
    assert_eq!((top(), stored(&node)), ((3, Some(2)), vec![r#""ABC.""#.to_owned()]));
    let ends = server.ask("PTTL fanwire.message.1.{:a}.k");
    let ends: u64 = ends.trim().trim_start_matches(':').parse().expect("a number");
    assert!(ends <= 300_000, "{ends}");
    assert_eq!(server.ask("EXISTS fanwire.growing.{:a}"), ":0\r\n");
}
