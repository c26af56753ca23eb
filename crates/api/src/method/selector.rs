//! The connections of a request: a user, and what narrows them.
//! In: the fields of a request. Out: a selector of the node, with a checked filter.
//! Uses the node's check of filters.
//! The node's hub finds the connections; what narrows them is changed here.

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

/// Declares a request for selected connections: its own fields, and those that select.
macro_rules! selecting {
    ($(#[$attribute:meta])* pub struct $request:ident { $($own:tt)* }) => {
        #[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
        #[serde(default)]
        $(#[$attribute])*
        pub struct $request {
            $($own)*
            /// Exact match; "" is the anonymous user.
            #[serde(deserialize_with = "or_default")]
            pub user: String,
            /// Only this client id; "" means any.
            #[serde(deserialize_with = "or_default")]
            pub client: String,
            /// Only this session id; "" means any.
            #[serde(deserialize_with = "or_default")]
            pub session: String,
            /// Only connections whose labels match.
            #[schemars(with = "super::selector::LabelFilter")]
            pub label_filter: Option<fanwire_node::protocol::FilterNode>,
            /// Without `user`: the connections of all users, on every node.
            #[serde(deserialize_with = "or_default")]
            pub all_users: bool,
        }

        impl $request {
            /// Takes the fields that select.
            ///
            /// # Errors
            /// 107 for an invalid filter.
            fn take_target(&mut self) -> Result<ConnectionSelector, ApiError> {
                let target = ConnectionSelector {
                    user: std::mem::take(&mut self.user),
                    client: std::mem::take(&mut self.client),
                    session: std::mem::take(&mut self.session),
                    ..ConnectionSelector::default()
                };
                super::selector::checked(target, self.label_filter.take(), self.all_users)
            }
        }
    };
}

pub(super) use selecting;

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
