//! Tests of labels from claims: paths, texts, wrong options.
//! In: paths and claims as JSON → out: labels, errors.
//! May use: the module alone.
//! Tests of whole tokens are in `verifier/tests.rs`.

use super::*;

fn label(path: &str) -> ClaimLabel {
    ClaimLabel { key: "label".to_owned(), path: path.to_owned() }
}

#[test]
fn a_path_leads_to_a_text() {
    let claims =
        br#"{"a":"x","b":{"c":[1.5,{"d":true}],"e.f":"dot"},"n":null,"labels":{"label":"old"}}"#;
    for (path, expect) in [
        ("a", Some("x")),
        ("b.c.0", Some("1.5")),
        ("b.c.1.d", Some("true")),
        ("b.c", Some(r#"[1.5,{"d":true}]"#)),
        (r"b.e\.f", Some("dot")),
        ("b.e.f", None),
        ("b.c.2", None),
        ("b.c.x", None),
        ("a.b", None),
        ("n", None),
        ("missing", None),
    ] {
        let mut labels = BTreeMap::new();
        add(&[label(path)], claims, &mut labels);
        assert_eq!(labels.get("label").map(String::as_str), expect, "{path}");
        let mut labels = BTreeMap::from([("label".to_owned(), "old".to_owned())]);
        add(&[label(path)], claims, &mut labels);
        assert_eq!(
            labels["label"],
            expect.unwrap_or("old"),
            "{path}: it replaces the claim labels"
        );
    }
    let mut labels = BTreeMap::new();
    add(&[label("a")], b"no JSON", &mut labels);
    assert!(labels.is_empty());
}

#[test]
fn wrong_options_are_named() {
    let sources = [label("a.b"), label(""), label("a..b"), label("a.#.b"), ClaimLabel::default()];
    let found: Vec<_> =
        mistakes(&sources, "client.token").iter().map(ToString::to_string).collect();
    let path = |index, value| {
        format!(
            "client.token.labels_from_claim[{index}].value is {value:?}, expected names of claims and indices with dots between \
             them, as in roles.0"
        )
    };
    let no_key = "client.token.labels_from_claim[4].key is \"\", expected the name of a label";
    assert_eq!(found, [path(1, ""), path(2, "a..b"), path(3, "a.#.b"), no_key.to_owned()]);
}
