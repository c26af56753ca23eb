//! The connections of a request: a user, and what narrows them.
//! In: the fields of a request. Out: a selector of the node, with a checked filter.
//! Uses the node's check of filters.
//! The node's hub finds the connections; the fields stand in each request.

use fanwire_node::protocol::FilterNode;
use fanwire_node::{ConnectionSelector, check_filter};
use schemars::JsonSchema;

use crate::ApiError;

/// The schema of a label filter: a leaf compares a label, an inner node combines others. A missing label is compared as "" by
/// `in` and `nin`, passes `neq` and `nex`, and nothing else.
#[derive(JsonSchema)]
#[schemars(rename = "FilterNode")]
#[expect(dead_code, reason = "it only describes the JSON")]
pub(super) struct LabelFilter {
    /// `and`, `or`, `not` (of one node), or "" for a leaf.
    op: String,
    /// Name of the label.
    key: String,
    /// Comparison of a leaf: `eq`, `neq`, `in`, `nin`, `ex`, `nex`, `sw`, `ew`, `ct`, `lt`, `lte`, `gt` or `gte`.
    cmp: String,
    /// The text to compare with; for the last four a decimal number.
    val: String,
    /// The texts of `in` and `nin`.
    vals: Vec<String>,
    /// The nodes that `op` combines.
    nodes: Vec<LabelFilter>,
}

/// Checks the filter of a selector.
///
/// # Errors
/// 107 for a filter that breaks a rule of the client protocol §13.
pub(super) fn checked(
    target: ConnectionSelector,
    label_filter: Option<FilterNode>,
    all_users: bool,
) -> Result<ConnectionSelector, ApiError> {
    if label_filter.as_ref().is_some_and(|filter| check_filter(filter).is_err()) {
        return Err(ApiError::BAD_REQUEST.because(INVALID));
    }
    Ok(ConnectionSelector { label_filter: label_filter.map(Box::new), all_users, ..target })
}

const INVALID: &str = "label_filter is no valid filter, or has too many nodes, values or bytes";
