//! Nothing that clients or other nodes send breaks a promise: the fuzz targets of `src/fuzzing.rs` as property tests.
//! In: random bytes, random filters, texts made of the pieces that patterns and commands are made of. Out: no panic.
//! Uses `fuzzing` and proptest, which prints what failed. Never: sessions.
//! A promise is written in `src/fuzzing.rs`; here is only where its input comes from.

use std::time::Instant;

use fanwire_node::fuzzing;
use fanwire_protocol::FilterNode;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

proptest! {
    #[test]
    fn any_bytes_are_a_filter_or_not(bytes in vec(any::<u8>(), 0..100)) {
        fuzzing::tag_filter(&bytes);
    }

    #[test]
    fn a_filter_keeps_its_limits_and_its_negation_chooses_everything_else(node in filter()) {
        fuzzing::filter_node(&node);
    }

    #[test]
    fn any_text_is_a_pattern_or_not(pieces in vec(pattern_piece(), 0..20), name in "[a-c,*]{0,6}") {
        fuzzing::pattern(format!("{}\n{name}", pieces.concat()).as_bytes());
    }

    #[test]
    fn any_bytes_are_a_message_of_a_node_or_not(bytes in vec(any::<u8>(), 0..100)) {
        fuzzing::node_message(&[&[1], &*bytes].concat());
    }

    #[test]
    fn sessions_leave_nothing_behind(
        settings in any::<u8>(),
        steps in vec((any::<u8>(), vec(command(), 0..3)), 0..12),
    ) {
        let steps = steps.into_iter().map(|(whose, commands)| {
            [&[whose], commands.join("\n").as_bytes()].concat()
        });
        let hello = [&b"\0"[..], b"{\"id\":1,\"connect\":{}}"].concat();
        let steps: Vec<_> = [hello].into_iter().chain(steps).collect();
        fuzzing::sessions(&[&[settings], &*steps.join(&0xff)].concat(), Instant::now());
    }

    #[test]
    fn any_bytes_leave_nothing_of_a_session(bytes in vec(any::<u8>(), 0..200)) {
        fuzzing::sessions(&bytes, Instant::now());
    }
}

fn pattern_piece() -> impl Strategy<Value = &'static str> {
    select(vec![
        "*", "?", "[", "]", "!", "^", "-", "{", "}", ",", "\\", "a", "b", "c", "é", "&&", "|",
    ])
}

/// Commands of the client protocol that a session may meet in any order.
fn command() -> impl Strategy<Value = &'static str> {
    select(vec![
        r#"{"id":1,"connect":{}}"#,
        r#"{"id":2,"connect":{"subs":{"a":{},"ns:a":{"recover":true,"offset":1}}}}"#,
        r#"{"id":3,"subscribe":{"channel":"a","delta":"fossil","join_leave":true}}"#,
        r#"{"id":4,"subscribe":{"channel":"ns:a","recover":true,"epoch":"","offset":0}}"#,
        r#"{"id":5,"subscribe":{"channel":"a","tf":{"cmp":"ex","key":"k"}}}"#,
        r#"{"id":6,"unsubscribe":{"channel":"a"}}"#,
        r#"{"id":7,"publish":{"channel":"a","data":{"a":"0123456789abcdef0123456789abcdef"}}}"#,
        r#"{"id":8,"publish":{"channel":"ns:a","data":2}}"#,
        r#"{"id":9,"history":{"channel":"a","limit":-1,"reverse":true}}"#,
        r#"{"id":10,"presence":{"channel":"a"}}"#,
        r#"{"id":11,"presence_stats":{"channel":"ns:a"}}"#,
        r#"{"id":12,"rpc":{"method":"m"}}"#,
        r#"{"id":13,"refresh":{"token":"a.b.c"}}"#,
        r#"{"id":14,"sub_refresh":{"channel":"a","token":"a.b.c"}}"#,
        "{}",
        "0123456789012345678901234567",
    ])
}

fn filter() -> impl Strategy<Value = FilterNode> {
    let cmp =
        ["eq", "neq", "in", "nin", "ex", "nex", "sw", "ew", "ct", "lt", "lte", "gt", "gte", "x"];
    let word = || select(vec!["", "a", "b", "1", "1.5", "-2", "é"]).prop_map(str::to_owned);
    let leaf = (word(), select(cmp.to_vec()), word(), vec(word(), 0..3)).prop_map(
        |(key, cmp, val, vals)| FilterNode {
            key,
            cmp: cmp.into(),
            val,
            vals,
            ..Default::default()
        },
    );
    leaf.prop_recursive(20, 160, 12, |inner| {
        (select(vec!["and", "or", "not", "nor"]), vec(inner, 0..12))
            .prop_map(|(op, nodes)| FilterNode { op: op.into(), nodes, ..Default::default() })
    })
}
