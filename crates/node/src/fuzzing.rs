//! What must hold for any bytes at all: the bodies of fuzz targets, also run as property tests by `tests/it/any_bytes.rs`.
//! In: bytes from a fuzzer. Out: nothing, or a panic that names the broken promise.
//! Uses what reads the bytes of clients and of key servers; never part of the server.
//! A new reader gets a function here; the targets that call them live in the fuzz folder.

use std::collections::BTreeMap;

use fanwire_protocol::FilterNode;
use prost::Message as _;

use crate::filter::{DEPTH_MAX, Filter, NODES_MAX};
use crate::token::{Fault, key_set_of};

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
