//! Filters (protocol §13): a tree that selects publications by their tags, or connections by their labels.
//! In: a `FilterNode` of a request or a JSON text of a backend, once → out: a checked filter; then tags → whether they match.
//! Uses: `filter/decimal`. Never: sessions, positions; evaluation never allocates.
//! Changed here: operators of a filter and its limits. `hub/notices.rs`, `recovery.rs` and `hub/control_commands.rs` evaluate it.

mod decimal;
mod source;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use fanwire_protocol::proxy::read_filter;
use fanwire_protocol::{ErrorCode, FilterNode};

use decimal::Decimal;

/// Checks a filter.
///
/// # Errors
/// 107 for a tree that breaks a rule of protocol §13 or is too large.
pub fn check_filter(node: &FilterNode) -> Result<(), ErrorCode> {
    Filter::new(node).map(drop)
}

/// A compiled filter. Made once per subscription, with at most [`NODES_MAX`] nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(Rule);

impl Filter {
    /// Checks and copies a filter.
    ///
    /// # Errors
    /// 107 for a tree that breaks a rule of protocol §13 or is larger than the limits of this file.
    pub fn new(node: &FilterNode) -> Result<Self, ErrorCode> {
        let mut budget = Budget { nodes: NODES_MAX, values: VALUES_MAX, bytes: BYTES_MAX };
        rule(node, DEPTH_MAX, &mut budget).map(Self).ok_or(ErrorCode::BAD_REQUEST)
    }

    /// Reads and checks a filter that a token or a hook has as JSON; `None` for an empty text.
    ///
    /// # Errors
    /// 103, as for other grants that the node does not accept.
    pub fn of_backend(json: &[u8]) -> Result<Option<Self>, ErrorCode> {
        if json.is_empty() {
            return Ok(None);
        }
        let node = read_filter(json).map_err(|_| ErrorCode::PERMISSION_DENIED)?;
        Self::new(&node).map(Some).map_err(|_| ErrorCode::PERMISSION_DENIED)
    }

    /// Whether tags match. At most [`DEPTH_MAX`] levels of recursion.
    pub fn matches(&self, tags: &BTreeMap<String, String>) -> bool {
        self.0.holds(tags)
    }
}

/// The filters of one subscription. A publication must match both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionFilter {
    /// The one that the token or the hook sets; the client neither sees nor changes it.
    pub of_server: Option<Filter>,
    /// The one of the subscribe command.
    pub of_client: Option<Filter>,
}

impl SubscriptionFilter {
    /// The filter for its subscription; `None` when every publication matches.
    pub fn shared(self) -> Option<Arc<Self>> {
        let is_set = self.of_server.is_some() || self.of_client.is_some();
        is_set.then(|| Arc::new(self))
    }

    /// Whether a publication with these tags may be sent.
    pub fn matches(&self, tags: &BTreeMap<String, String>) -> bool {
        let both = [&self.of_server, &self.of_client];
        both.into_iter().flatten().all(|filter| filter.matches(tags))
    }
}

/// One node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    All(Box<[Rule]>),
    Any(Box<[Rule]>),
    Not(Box<Rule>),
    Tag(Box<str>, Test),
}

/// A condition on one tag.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Equals(Box<str>),
    /// The comparison is also true for a missing tag.
    Differs(Box<str>),
    /// Sorted; a missing tag is compared as "".
    In(Box<[Box<str>]>),
    NotIn(Box<[Box<str>]>),
    Exists,
    IsMissing,
    StartsWith(Box<str>),
    EndsWith(Box<str>),
    Contains(Box<str>),
    /// Compares decimal numbers; false when one is not a number.
    Compares(Relation, Box<str>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Rule {
    fn holds(&self, tags: &BTreeMap<String, String>) -> bool {
        match self {
            Self::All(rules) => rules.iter().all(|rule| rule.holds(tags)),
            Self::Any(rules) => rules.iter().any(|rule| rule.holds(tags)),
            Self::Not(rule) => !rule.holds(tags),
            Self::Tag(key, test) => test.holds(tags.get(key.as_ref()).map(String::as_str)),
        }
    }
}

impl Test {
    fn holds(&self, tag: Option<&str>) -> bool {
        let is_and = |test: &dyn Fn(&str) -> bool| tag.is_some_and(test);
        match self {
            Self::Equals(value) => tag == Some(value),
            Self::Differs(value) => tag != Some(value),
            Self::In(values) => has(values, tag.unwrap_or_default()),
            Self::NotIn(values) => !has(values, tag.unwrap_or_default()),
            Self::Exists => tag.is_some(),
            Self::IsMissing => tag.is_none(),
            Self::StartsWith(value) => is_and(&|tag| tag.starts_with(value.as_ref())),
            Self::EndsWith(value) => is_and(&|tag| tag.ends_with(value.as_ref())),
            Self::Contains(value) => is_and(&|tag| tag.contains(value.as_ref())),
            Self::Compares(relation, value) => is_and(&|tag| {
                let numbers = Decimal::parse(tag).zip(Decimal::parse(value));
                numbers.is_some_and(|(tag, value)| relation.holds(tag.cmp(&value)))
            }),
        }
    }
}

impl Relation {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

fn has(sorted: &[Box<str>], tag: &str) -> bool {
    sorted.binary_search_by(|value| value.as_ref().cmp(tag)).is_ok()
}

/// The rest of the limits while a tree is read.
struct Budget {
    nodes: usize,
    values: usize,
    bytes: usize,
}

impl Budget {
    fn take_node(&mut self, node: &FilterNode) -> Option<()> {
        self.nodes = self.nodes.checked_sub(1)?;
        self.values = self.values.checked_sub(node.vals.len())?;
        let bytes = node.vals.iter().map(String::len).sum::<usize>();
        self.bytes = self.bytes.checked_sub(bytes + node.key.len() + node.val.len())?;
        Some(())
    }
}

/// Compiles a node with at most `depth` levels; `None` when it breaks a rule.
fn rule(node: &FilterNode, depth: usize, budget: &mut Budget) -> Option<Rule> {
    let depth = depth.checked_sub(1)?;
    budget.take_node(node)?;
    match node.op.as_str() {
        "" => leaf(node),
        "and" => rules(node, depth, budget).map(Rule::All),
        "or" => rules(node, depth, budget).map(Rule::Any),
        "not" => match node.nodes.as_slice() {
            [only] => rule(only, depth, budget).map(|rule| Rule::Not(Box::new(rule))),
            _ => None,
        },
        _ => None,
    }
}

fn rules(node: &FilterNode, depth: usize, budget: &mut Budget) -> Option<Box<[Rule]>> {
    let rules: Option<Box<[Rule]>> =
        node.nodes.iter().map(|child| rule(child, depth, budget)).collect();
    rules.filter(|rules| !rules.is_empty())
}

fn leaf(node: &FilterNode) -> Option<Rule> {
    let test = test(node)?;
    let needs_key = !matches!(test, Test::Exists | Test::IsMissing);
    (!needs_key || !node.key.is_empty()).then(|| Rule::Tag(node.key.as_str().into(), test))
}

fn test(node: &FilterNode) -> Option<Test> {
    let value = || (!node.val.is_empty() && node.vals.is_empty()).then(|| node.val.as_str().into());
    let compares = |relation| Some(Test::Compares(relation, value()?));
    match node.cmp.as_str() {
        "eq" => value().map(Test::Equals),
        "neq" => value().map(Test::Differs),
        "in" => values(node).map(Test::In),
        "nin" => values(node).map(Test::NotIn),
        "ex" => nothing(node).map(|()| Test::Exists),
        "nex" => nothing(node).map(|()| Test::IsMissing),
        "sw" => value().map(Test::StartsWith),
        "ew" => value().map(Test::EndsWith),
        "ct" => value().map(Test::Contains),
        "lt" => compares(Relation::Less),
        "lte" => compares(Relation::LessOrEqual),
        "gt" => compares(Relation::Greater),
        "gte" => compares(Relation::GreaterOrEqual),
        _ => None,
    }
}

fn nothing(node: &FilterNode) -> Option<()> {
    (node.val.is_empty() && node.vals.is_empty()).then_some(())
}

fn values(node: &FilterNode) -> Option<Box<[Box<str>]>> {
    if node.vals.is_empty() || !node.val.is_empty() {
        return None;
    }
    let mut values: Vec<Box<str>> = node.vals.iter().map(|value| value.as_str().into()).collect();
    values.sort_unstable();
    values.dedup();
    Some(values.into())
}

/// Levels of a filter; its evaluation recurses as deep.
pub const DEPTH_MAX: usize = 16;
/// Nodes of a filter, all levels together: each may be evaluated for every publication.
pub const NODES_MAX: usize = 128;
/// Values in the lists of `in` and `nin`, all nodes together.
pub const VALUES_MAX: usize = 256;
/// Bytes of keys and values, all nodes together: a connection stores them for each of its subscriptions.
pub const BYTES_MAX: usize = 8 * 1024;

#[cfg(test)]
mod tests;
