//! Nothing that clients or key servers send breaks a promise: the fuzz targets of `src/fuzzing.rs` as property tests.
//! In: random bytes, random filters, texts made of the pieces that key sets, tokens, patterns and commands are made of. Out: no panic.
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
    fn any_bytes_are_a_key_set_or_not(bytes in vec(any::<u8>(), 0..100)) {
        fuzzing::key_set(&bytes);
    }

    #[test]
    fn almost_key_sets_are_read_or_refused(keys in vec(key(), 0..4)) {
        fuzzing::key_set(format!(r#"{{"keys":[{}]}}"#, keys.join(",")).as_bytes());
    }

    #[test]
    fn any_bytes_are_a_token_or_not(bytes in vec(any::<u8>(), 0..100)) {
        fuzzing::token(&bytes);
    }

    #[test]
    fn almost_tokens_are_of_one_kind_and_need_a_signature(pieces in vec(token_piece(), 0..12)) {
        let claims = format!("{{{}}}", pieces.join(","));
        fuzzing::token(&[b"{\"alg\":\"HS256\"}\xff", claims.as_bytes()].concat());
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

fn token_piece() -> impl Strategy<Value = &'static str> {
    select(vec![
        r#""sub":"1""#,
        r#""sub":1"#,
        r#""channel":"a""#,
        r#""channel":"""#,
        r#""exp":1700000001"#,
        r#""exp":-1"#,
        r#""exp":1e30"#,
        r#""nbf":1"#,
        r#""iat":null"#,
        r#""aud":["a"]"#,
        r#""info":{"a":[1]}"#,
        r#""b64info":"AA==""#,
        r#""channels":["a"]"#,
        r#""subs":{"a":{"override":{"presence":{"value":true}}}}"#,
        r#""expire_at":0"#,
        r#""meta":{}"#,
        r#""x":[[[]]]"#,
    ])
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

/// A key whose parts are right often enough to be read.
fn key() -> impl Strategy<Value = String> {
    let part = |choices: &[&'static str]| select(choices.to_vec());
    let numbers = [P256_X, P256_Y, ED25519_X, "AQAB", "AQ", "", "AAAA", "not base64!"];
    let modulus = prop_oneof![
        vec(any::<u8>(), 256).prop_map(|bytes| base64(&bytes)),
        part(&numbers).prop_map(str::to_owned),
    ];
    (
        part(&["RSA", "EC", "OKP", "oct", ""]),
        part(&["P-256", "P-384", "P-521", "Ed25519", "X25519"]),
        part(&["sig", "sig", "sig", "enc"]),
        part(&["", r#""alg":"RS256","#, r#""alg":"ES256","#, r#""alg":"none","#, r#""alg":"HS256","#]),
        (part(&numbers), part(&numbers), modulus, part(&numbers)),
    )
        .prop_map(|(kty, crv, used, alg, (x, y, n, e))| {
            format!(
                r#"{{"kty":"{kty}","crv":"{crv}","use":"{used}",{alg}"kid":"k{kty}{crv}","x":"{x}","y":"{y}","n":"{n}","e":"{e}"}}"#
            )
        })
}

/// Base64url without padding (RFC 4648 §5).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            text.push(char::from(LETTERS[(bits >> (18 - 6 * place)) as usize & 63]));
        }
    }
    text
}

/// The key of RFC 7515 §A.3.
const P256_X: &str = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
const P256_Y: &str = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";
/// The key of RFC 8037 §A.2.
const ED25519_X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPJHURo";
