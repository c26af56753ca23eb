//! Tests of tag filters (protocol §13): each operator, each rule of validation, each limit, compared with a naive evaluator.
//! In: filters in the JSON of the protocol, tags → out: matches, refusals.
//! Uses: proptest. Never: sessions (see `tests/it/filters.rs`).
//! Changed here: operators, rules and limits of filters.

use proptest::prelude::*;

use super::*;

fn tags(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn parse(json: &str) -> FilterNode {
    serde_json::from_str(json).expect("tests write good JSON")
}

/// The filter holds for the tags of `yes` and not for those of `no`; each is the value of tag `k`, `None` = no such tag.
fn check(json: &str, yes: &[Option<&str>], no: &[Option<&str>]) {
    let filter = Filter::new(&parse(json)).expect(json);
    let matches = |tag: &Option<&str>| {
        filter.matches(&tag.map_or_else(|| tags(&[("j", "x")]), |tag| tags(&[("k", tag)])))
    };
    yes.iter().for_each(|tag| assert!(matches(tag), "{json} and {tag:?}"));
    no.iter().for_each(|tag| assert!(!matches(tag), "{json} but {tag:?}"));
}

#[test]
fn each_comparison_holds_where_the_protocol_says() {
    check(r#"{"key":"k","cmp":"eq","val":"a"}"#, &[Some("a")], &[Some("b"), Some(""), None]);
    check(r#"{"key":"k","cmp":"neq","val":"a"}"#, &[Some("b"), Some(""), None], &[Some("a")]);
    check(
        r#"{"key":"k","cmp":"in","vals":["b","a"]}"#,
        &[Some("a"), Some("b")],
        &[Some("c"), None],
    );
    check(r#"{"key":"k","cmp":"in","vals":["","a"]}"#, &[Some("a"), Some(""), None], &[Some("b")]);
    check(
        r#"{"key":"k","cmp":"nin","vals":["b","a"]}"#,
        &[Some("c"), None],
        &[Some("a"), Some("b")],
    );
    check(r#"{"key":"k","cmp":"ex"}"#, &[Some("a"), Some("")], &[None]);
    check(r#"{"key":"k","cmp":"nex"}"#, &[None], &[Some("a"), Some("")]);
    check(r#"{"key":"k","cmp":"sw","val":"ab"}"#, &[Some("ab"), Some("abc")], &[Some("a"), None]);
    check(r#"{"key":"k","cmp":"ew","val":"ab"}"#, &[Some("ab"), Some("cab")], &[Some("b"), None]);
    check(r#"{"key":"k","cmp":"ct","val":"ab"}"#, &[Some("xaby")], &[Some("axb"), None]);
}

#[test]
fn numbers_are_compared_as_decimals_and_nothing_else_is_a_number() {
    let never = [Some("x"), Some(""), Some("1e9"), None];
    let not = |more: &[Option<&'static str>]| [&never[..], more].concat();
    let one_and_a_half = |cmp: &str| format!(r#"{{"key":"k","cmp":"{cmp}","val":"1.5"}}"#);
    let (below, same, above) = ([Some("-7"), Some("1.49")], [Some("01.50")], [Some("10")]);
    check(&one_and_a_half("lt"), &below, &not(&[same, above].concat()));
    check(&one_and_a_half("lte"), &[&below[..], &same[..]].concat(), &not(&above));
    check(&one_and_a_half("gt"), &above, &not(&[&below[..], &same[..]].concat()));
    check(&one_and_a_half("gte"), &[same, above].concat(), &not(&below));
    check(r#"{"key":"k","cmp":"gt","val":"x"}"#, &[], &not(&[Some("1")]));
}

#[test]
fn nodes_combine_their_children() {
    let (a, b) = (r#"{"key":"k","cmp":"sw","val":"a"}"#, r#"{"key":"k","cmp":"ew","val":"b"}"#);
    check(
        &format!(r#"{{"op":"and","nodes":[{a},{b}]}}"#),
        &[Some("ab")],
        &[Some("a"), Some("b"), None],
    );
    check(
        &format!(r#"{{"op":"or","nodes":[{a},{b}]}}"#),
        &[Some("a"), Some("b")],
        &[Some("c"), None],
    );
    check(&format!(r#"{{"op":"not","nodes":[{a}]}}"#), &[Some("b"), None], &[Some("a")]);
}

#[test]
fn an_empty_key_is_a_tag_like_others_where_it_is_allowed() {
    let filter = Filter::new(&parse(r#"{"cmp":"ex"}"#)).expect("allowed");
    assert!(filter.matches(&tags(&[("", "x")])));
    assert!(!filter.matches(&tags(&[("k", "x")])));
}

#[test]
fn what_breaks_a_rule_is_error_107() {
    let leaf = r#"{"key":"k","cmp":"ex"}"#;
    let mut bad = vec![
        "{}".to_owned(),
        r#"{"key":"k"}"#.into(),
        r#"{"key":"k","cmp":"is","val":"a"}"#.into(),
        r#"{"key":"k","cmp":"EQ","val":"a"}"#.into(),
        r#"{"op":"xor","nodes":[]}"#.into(),
        r#"{"op":"and"}"#.into(),
        r#"{"op":"or","nodes":[]}"#.into(),
        r#"{"op":"not"}"#.into(),
        format!(r#"{{"op":"not","nodes":[{leaf},{leaf}]}}"#),
        format!(r#"{{"op":"and","nodes":[{leaf},{{}}]}}"#),
        format!(r#"{{"op":"not","nodes":[{{"op":"or","nodes":[{leaf},{{"cmp":"eq"}}]}}]}}"#),
        r#"{"op":"and","nodes":[null]}"#.into(),
    ];
    for cmp in ["eq", "neq", "sw", "ew", "ct", "lt", "lte", "gt", "gte"] {
        bad.push(format!(r#"{{"key":"k","cmp":"{cmp}"}}"#));
        bad.push(format!(r#"{{"cmp":"{cmp}","val":"1"}}"#));
        bad.push(format!(r#"{{"key":"k","cmp":"{cmp}","vals":["1"]}}"#));
        bad.push(format!(r#"{{"key":"k","cmp":"{cmp}","val":"1","vals":["1"]}}"#));
    }
    for cmp in ["in", "nin"] {
        bad.push(format!(r#"{{"key":"k","cmp":"{cmp}"}}"#));
        bad.push(format!(r#"{{"cmp":"{cmp}","vals":["1"]}}"#));
        bad.push(format!(r#"{{"key":"k","cmp":"{cmp}","val":"1"}}"#));
        bad.push(format!(r#"{{"key":"k","cmp":"{cmp}","val":"1","vals":["1"]}}"#));
    }
    for cmp in ["ex", "nex"] {
        bad.push(format!(r#"{{"key":"k","cmp":"{cmp}","val":"1"}}"#));
        bad.push(format!(r#"{{"key":"k","cmp":"{cmp}","vals":["1"]}}"#));
    }
    for json in bad {
        assert_eq!(Filter::new(&parse(&json)), Err(ErrorCode::BAD_REQUEST), "{json}");
    }
}

fn node(op: &str, nodes: Vec<FilterNode>) -> FilterNode {
    FilterNode { op: op.to_owned(), nodes, ..FilterNode::default() }
}

fn test_of(key: &str, cmp: &str, val: &str, vals: Vec<String>) -> FilterNode {
    let (key, cmp, val) = (key.to_owned(), cmp.to_owned(), val.to_owned());
    FilterNode { key, cmp, val, vals, ..FilterNode::default() }
}

fn is_allowed(node: &FilterNode) -> bool {
    Filter::new(node).is_ok()
}

#[test]
fn a_filter_may_be_as_large_as_the_limits_and_not_larger() {
    let leaf = || test_of("k", "eq", "v", Vec::new());
    let deep = |levels| (1..levels).fold(leaf(), |inner, _| node("not", vec![inner]));
    assert!(is_allowed(&deep(DEPTH_MAX)) && !is_allowed(&deep(DEPTH_MAX + 1)));
    let wide = |nodes: usize| node("or", (1..nodes).map(|_| leaf()).collect());
    assert!(is_allowed(&wide(NODES_MAX)) && !is_allowed(&wide(NODES_MAX + 1)));
    let listed = |values| test_of("k", "in", "", vec!["v".to_owned(); values]);
    assert!(is_allowed(&listed(VALUES_MAX)) && !is_allowed(&listed(VALUES_MAX + 1)));
    let halves = |values| node("and", vec![listed(values), listed(VALUES_MAX / 2)]);
    assert!(is_allowed(&halves(VALUES_MAX / 2)) && !is_allowed(&halves(VALUES_MAX / 2 + 1)));
    let long = |bytes: usize| test_of("key", "eq", &"v".repeat(bytes - 3), Vec::new());
    assert!(is_allowed(&long(BYTES_MAX)) && !is_allowed(&long(BYTES_MAX + 1)));
    let long = |bytes: usize| test_of("key", "in", "", vec!["v".repeat(bytes - 3)]);
    assert!(is_allowed(&long(BYTES_MAX)) && !is_allowed(&long(BYTES_MAX + 1)));
}

/// Straight from the table of protocol §13, on the tree as it came.
fn naive(node: &FilterNode, tags: &BTreeMap<String, String>) -> bool {
    let mut children = node.nodes.iter().map(|child| naive(child, tags));
    match node.op.as_str() {
        "and" => return children.all(|holds| holds),
        "or" => return children.any(|holds| holds),
        "not" => return !children.next().expect("one child"),
        _ => {}
    }
    let tag = tags.get(&node.key);
    let text = tag.cloned().unwrap_or_default();
    match node.cmp.as_str() {
        "eq" => tag == Some(&node.val),
        "neq" => tag != Some(&node.val),
        "in" => node.vals.contains(&text),
        "nin" => !node.vals.contains(&text),
        "ex" => tag.is_some(),
        "nex" => tag.is_none(),
        "sw" => tag.is_some() && text.starts_with(&node.val),
        "ew" => tag.is_some() && text.ends_with(&node.val),
        "ct" => tag.is_some() && text.contains(&node.val),
        cmp => match (number(&text), number(&node.val)) {
            (Some(tag), Some(value)) => match cmp {
                "lt" => tag < value,
                "lte" => tag <= value,
                "gt" => tag > value,
                _ => tag >= value,
            },
            _ => false,
        },
    }
}

/// Short numbers only, which floating point tells apart.
fn number(text: &str) -> Option<f64> {
    let pattern = regex::Regex::new(r"^[+-]?[0-9]+(\.[0-9]+)?$").expect("a pattern");
    pattern.is_match(text).then(|| text.parse().expect("a number"))
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab]{1,2}",
        "[+-]?[0-3]{1,2}(\\.[0-3]{1,2})?",
        prop::sample::select(vec!["1.", ".5", "-", "1e1", "é", "-0"]).prop_map(str::to_owned),
    ]
}

fn any_leaf() -> impl Strategy<Value = FilterNode> {
    let key = || prop::sample::select(vec!["k", "l", "m"]);
    let one = vec!["eq", "neq", "sw", "ew", "ct", "lt", "lte", "gt", "gte"];
    prop_oneof![
        (key(), prop::sample::select(one), value()).prop_map(|(key, cmp, value)| test_of(
            key,
            cmp,
            &value,
            Vec::new()
        )),
        (
            key(),
            prop::sample::select(vec!["in", "nin"]),
            prop::collection::vec(prop_oneof![value(), Just(String::new())], 1..4)
        )
            .prop_map(|(key, cmp, values)| test_of(key, cmp, "", values)),
        (key(), prop::sample::select(vec!["ex", "nex"])).prop_map(|(key, cmp)| test_of(
            key,
            cmp,
            "",
            Vec::new()
        )),
    ]
}

fn any_tree() -> impl Strategy<Value = FilterNode> {
    any_leaf().prop_recursive(5, 32, 3, |inner| {
        let children = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            (prop::sample::select(vec!["and", "or"]), children)
                .prop_map(|(op, nodes)| node(op, nodes)),
            inner.prop_map(|child| node("not", vec![child])),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_filter_matches_what_the_table_says(
        tree in any_tree(),
        tags in prop::collection::vec(
            prop::collection::btree_map("[klm]", prop_oneof![value(), Just(String::new())], 0..4),
            8,
        ),
    ) {
        let filter = Filter::new(&tree).expect("within the limits");
        for tags in tags {
            prop_assert_eq!(filter.matches(&tags), naive(&tree, &tags), "{:?}", tags);
        }
    }

    #[test]
    fn a_filter_is_compiled_again_from_what_is_written_of_it(tree in any_tree()) {
        let filter = Filter::new(&tree).expect("within the limits");
        prop_assert_eq!(Filter::new(&FilterNode::from(&filter)), Ok(filter));
    }
}

#[test]
fn both_filters_of_a_subscription_must_match() {
    let filter = |json: &str| Some(Filter::new(&parse(json)).expect(json));
    let red = filter(r#"{"key":"team","cmp":"eq","val":"red"}"#);
    let art = filter(r#"{"key":"about","cmp":"eq","val":"art"}"#);
    let of_both = [("team", "red"), ("about", "art")];
    let cases = [
        (None, None, [true, true, true, true]),
        (red.clone(), None, [false, true, false, true]),
        (None, art.clone(), [false, false, true, true]),
        (red, art, [false, false, false, true]),
    ];
    for (of_server, of_client, expected) in cases {
        let filter = SubscriptionFilter { of_server, of_client };
        let all = [&[][..], &of_both[..1], &of_both[1..], &of_both];
        assert_eq!(all.map(|pairs| filter.matches(&tags(pairs))), expected, "{filter:?}");
    }
}

#[test]
fn a_filter_of_a_backend_is_a_filter_or_a_refusal() {
    assert_eq!(Filter::of_backend(b""), Ok(None));
    let json = br#"{"key":"team","cmp":"eq","val":"red"}"#;
    let node = parse(r#"{"key":"team","cmp":"eq","val":"red"}"#);
    assert_eq!(Filter::of_backend(json), Filter::new(&node).map(Some));
    let deep = format!(
        r#"{}{{"key":"a","cmp":"ex"}}{}"#,
        r#"{"op":"not","nodes":["#.repeat(500),
        "]}".repeat(500)
    );
    for bad in ["{}", "null", "[]", "1", "{", r#"{"key":1}"#, r#"{"val":"a","val":"b"}"#, &deep] {
        assert_eq!(Filter::of_backend(bad.as_bytes()), Err(ErrorCode::PERMISSION_DENIED), "{bad}");
    }
}

#[test]
fn a_match_allocates_nothing() {
    let json = r#"{"op":"and","nodes":[{"key":"price","cmp":"gte","val":"99.5"},
        {"op":"not","nodes":[{"key":"ticker","cmp":"in","vals":["A","B"]}]},{"key":"ticker","cmp":"ct","val":"GOO"}]}"#;
    let filter = Filter::new(&parse(json)).expect("a good filter");
    let tags = tags(&[("price", "100.25"), ("ticker", "GOOG")]);
    let allocated = allocation_counter::measure(|| assert!(filter.matches(&tags)));
    assert_eq!(allocated.count_total, 0);
}
