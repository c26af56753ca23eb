//! The request that a compiled filter came from, so that another program can compile it again.
//! In: a filter → out: a `FilterNode` that means the same; lists of values are sorted.
//! Pure. Never: limits; a filter that was compiled is within them.
//! Changed here: how an operator is written. `filter.rs` reads it.

use fanwire_protocol::FilterNode;

use super::{Filter, Relation, Rule, Test};

impl From<&Filter> for FilterNode {
    fn from(filter: &Filter) -> Self {
        node_of(&filter.0)
    }
}

fn node_of(rule: &Rule) -> FilterNode {
    match rule {
        Rule::All(rules) => combined("and", rules),
        Rule::Any(rules) => combined("or", rules),
        Rule::Not(rule) => combined("not", std::slice::from_ref(rule)),
        Rule::Tag(key, test) => leaf(key, test),
    }
}

fn combined(op: &str, rules: &[Rule]) -> FilterNode {
    let nodes = rules.iter().map(node_of).collect();
    FilterNode { op: op.into(), nodes, ..FilterNode::default() }
}

fn leaf(key: &str, test: &Test) -> FilterNode {
    let mut leaf =
        FilterNode { key: key.into(), cmp: name_of(test).into(), ..FilterNode::default() };
    match test {
        Test::Equals(value)
        | Test::Differs(value)
        | Test::StartsWith(value)
        | Test::EndsWith(value)
        | Test::Contains(value)
        | Test::Compares(_, value) => leaf.val = value.as_ref().into(),
        Test::In(values) | Test::NotIn(values) => {
            leaf.vals = values.iter().map(|value| value.as_ref().into()).collect();
        }
        Test::Exists | Test::IsMissing => {}
    }
    leaf
}

fn name_of(test: &Test) -> &'static str {
    match test {
        Test::Equals(_) => "eq",
        Test::Differs(_) => "neq",
        Test::In(_) => "in",
        Test::NotIn(_) => "nin",
        Test::Exists => "ex",
        Test::IsMissing => "nex",
        Test::StartsWith(_) => "sw",
        Test::EndsWith(_) => "ew",
        Test::Contains(_) => "ct",
        Test::Compares(Relation::Less, _) => "lt",
        Test::Compares(Relation::LessOrEqual, _) => "lte",
        Test::Compares(Relation::Greater, _) => "gt",
        Test::Compares(Relation::GreaterOrEqual, _) => "gte",
    }
}
