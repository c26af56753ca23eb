//! What must hold for any bytes at all: the bodies of fuzz targets, also run as property tests by `tests/it/any_bytes.rs`.
//! In: bytes from a fuzzer. Out: nothing, or a panic that names the broken promise.
//! Uses what reads the bytes of clients, backends, key servers and other nodes; never part of the server.
//! A new reader gets a function here, whole sessions are in `fuzzing/session.rs`; the targets that call them live in the fuzz folder.

mod session;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fanwire_protocol::FilterNode;
use prost::Message as _;

use crate::cluster;
use crate::filter::{DEPTH_MAX, Filter, NODES_MAX};
use crate::glob::Glob;
use crate::options::TokenOptions;
use crate::token::{Fault, Verifier, key_set_of};

pub use session::sessions;

/// A filter of a client, in Protobuf: it keeps its limits, and its negation chooses everything else.
pub fn tag_filter(bytes: &[u8]) {
    let Ok(node) = FilterNode::decode(bytes) else { return };
    filter_node(&node);
}

/// A filter of a client.
pub fn filter_node(node: &FilterNode) {
    let Ok(filter) = Filter::new(node) else { return };
    let (depth, nodes) = size(node);
    assert!(depth <= DEPTH_MAX && nodes <= NODES_MAX, "{nodes} nodes on {depth} levels");
    let negation =
        FilterNode { op: "not".into(), nodes: vec![node.clone()], ..FilterNode::default() };
    let negation = Filter::new(&negation);
    assert_eq!(negation.is_ok(), depth < DEPTH_MAX && nodes < NODES_MAX, "a level and a node more");
    for tags in [BTreeMap::new(), values(node)] {
        let opposite = negation.as_ref().map_or(!filter.matches(&tags), |it| it.matches(&tags));
        assert_ne!(filter.matches(&tags), opposite, "its negation chooses the same");
    }
}

/// Levels, and nodes of all of them.
fn size(node: &FilterNode) -> (usize, usize) {
    let (depths, nodes): (Vec<usize>, Vec<usize>) = node.nodes.iter().map(size).unzip();
    (1 + depths.into_iter().max().unwrap_or(0), 1 + nodes.iter().sum::<usize>())
}

/// Tags with the values that a filter looks for.
fn values(node: &FilterNode) -> BTreeMap<String, String> {
    let own = node.vals.first().unwrap_or(&node.val);
    let below = node.nodes.iter().flat_map(values);
    below.chain([(node.key.clone(), own.clone())]).collect()
}

/// A document of keys: no key of it takes an algorithm that is none of public keys, and the rest is decided without a panic.
pub fn key_set(bytes: &[u8]) {
    let Some(set) = key_set_of(bytes) else { return };
    for key in set.values() {
        for alg in ["none", "", "HS256", "HS512"] {
            let found = key.verify(alg, b"signed", Vec::new());
            assert_eq!(found, Err(Fault::Algorithm), "{alg:?} is taken");
        }
        let taken = ["RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "EdDSA"].map(|alg| {
            [0, 64, 96, 132, 256].map(|length| key.verify(alg, b"signed", vec![7; length]).err())
        });
        let types = taken.iter().filter(|found| !found.contains(&Some(Fault::Algorithm))).count();
        assert!(types <= 3, "one type of key takes {types} algorithms");
    }
}

/// A token of a client, taken apart: header and claims, with a byte between them that no text has. Its claims make it a
/// token of one kind or of none, and without the key's signature nobody believes it.
pub fn token(bytes: &[u8]) {
    static BELIEVING: LazyLock<Verifier> = LazyLock::new(|| verifier(true));
    static STRICT: LazyLock<Verifier> = LazyLock::new(|| verifier(false));
    let mut parts = bytes.splitn(2, |byte| *byte == SEPARATOR);
    let header = parts.next().filter(|header| !header.is_empty()).unwrap_or(b"{\"alg\":\"HS256\"}");
    let [header, claims] =
        [header, parts.next().unwrap_or(b"{}")].map(|it| URL_SAFE_NO_PAD.encode(it));
    let signed = format!("{header}.{claims}.AAAA");
    let mut tokens = vec![signed.as_str()];
    tokens.extend(str::from_utf8(bytes).ok());
    for token in tokens {
        for now in [0, 1_700_000_000, u64::MAX] {
            let of_connection = BELIEVING.verify_connection(token, now);
            let of_subscription = BELIEVING.verify_subscription(token, now);
            assert!(of_connection.is_err() || of_subscription.is_err(), "a token of two kinds");
            if let Ok(claims) = of_subscription {
                assert!(!claims.channel.is_empty(), "a token for no channel");
            }
            assert!(STRICT.verify_connection(token, now).is_err(), "believed without a signature");
            assert!(
                STRICT.verify_subscription(token, now).is_err(),
                "believed without a signature"
            );
        }
    }
}

fn verifier(skip_signature: bool) -> Verifier {
    let options = TokenOptions { hmac_secret_key: "secret".into(), ..TokenOptions::default() };
    Verifier::new(&options, "client.token", skip_signature).expect("good options")
}

/// A pattern of a backend, and behind a line feed the name of a channel: what it matches, it matches behind anything, too;
/// and every name is matched by itself, escaped.
pub fn pattern(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let (pattern, name) = text.split_once('\n').unwrap_or((text, text));
    if let Some(glob) = Glob::new(pattern)
        && let Some(behind) = Glob::new(&format!("*{pattern}"))
        && !pattern.is_empty()
        && glob.matches(name)
    {
        assert!(behind.matches(name) && behind.matches(&format!("x{name}")), "a star is anything");
    }
    let escaped: String = name.chars().flat_map(|character| ['\\', character]).collect();
    if let Some(glob) = Glob::new(&escaped).filter(|_| !name.is_empty()) {
        assert!(glob.matches(name), "not matched by itself");
        assert!(!glob.matches(&format!("{name}x")), "more than itself is matched");
    }
}

/// A message of another node: what was understood survives being written and read.
pub fn node_message(bytes: &[u8]) {
    if let Some(written) = cluster::rewritten(bytes) {
        assert_eq!(cluster::rewritten(&written), Some(written), "writing changes a message");
    }
}

/// Between the parts of an input. UTF-8 does not have it.
const SEPARATOR: u8 = 0xff;
