//! Properties that hold for any bytes at all: the bodies of fuzz targets, also run as property tests by `tests/it/any_bytes.rs`.
//! In: bytes from a fuzzer. Out: nothing, or a panic that names the broken promise.
//! Uses what reads the bytes of clients, backends and other nodes; never part of the server.
//! A new reader gets a function here, whole sessions are in `fuzzing/session.rs`; the targets that call them live in the fuzz folder.

mod session;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use fanwire_protocol::FilterNode;
use prost::Message as _;

use fanwire_cluster as cluster;
use fanwire_policy::Glob;
use fanwire_policy::filter::{DEPTH_MAX, Filter, NODES_MAX};
use fanwire_policy::options::Options;

use crate::node::Node;
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

/// A message of another node: what was understood survives being written and read, and any question is answered or refused.
pub fn node_message(bytes: &[u8]) {
    static NODE: OnceLock<Arc<Node>> = OnceLock::new();
    let now = Instant::now();
    let reader = cluster::Cluster::new("reader".to_owned());
    if let cluster::Task::Answer(_) = reader.handle_message(bytes, now) {
        let node = NODE.get_or_init(|| Node::new(Options::default()).expect("valid by default"));
        node.handle_message(bytes, now);
    }
    if let Some(written) = cluster::rewritten(bytes) {
        assert_eq!(cluster::rewritten(&written), Some(written), "writing changes a message");
    }
}
