//! Tests of citations: which numbers a line cites, and which of them lead nowhere.
//! In: made-up pages and lines of code → out: the sections that are missing.
//! Uses nothing but the check; never reads the real pages.
//! That the real ones agree is checked by `cargo xtask tidy` itself.

use super::*;

fn check_one(code: &str, missing: &[&str]) {
    let sources = [
        Source::new("docs/protocol.md", "# Protocol\n## 1. Life\n### 1.1 Order\n## 2. Codes\n"),
        Source::new("docs/server-api.md", "# API\n## 3. Methods\n"),
        Source::new("crates/ws/rfc/6455.txt", "# List\n9a A rule | of others\n"),
        Source::new("crates/ws/rfc/7692.txt", ""),
        Source::new("crates/node/src/hub.rs", code),
    ];
    let found: Vec<_> = check(&sources).into_iter().map(|finding| finding.what).collect();
    let is_named = |missing: &&str| found.iter().any(|what| what.contains(&format!("§{missing} ")));
    assert_eq!(found.len(), missing.len(), "{code:?}: {found:?}");
    assert!(missing.iter().all(is_named), "{code:?}: {found:?}");
}

#[test]
fn a_citation_names_a_heading_of_its_document() {
    check_one("/// Late (protocol §1, the server API §3 publish).\n", &[]);
    check_one("/// Late (protocol §1.1, RFC 6455 §9).\n", &[]);
    check_one("/// Protocol §3, word by word.\n", &["3"]);
    check_one("/// Server API §1.\n", &["1"]);
}

#[test]
fn lists_and_ranges_are_looked_at_one_by_one() {
    check_one("// client protocol §1, §2; §7\n", &[]);
    check_one("// client protocol §1–§2, §4.\n", &["4"]);
    check_one("// protocol §1.1–1.9: and so on\n", &["1.9"]);
}

#[test]
fn a_document_that_is_not_there_has_no_sections() {
    let found = check(&[Source::new("a.rs", "// protocol §1\n")]);
    assert_eq!(found.iter().filter(|finding| finding.path == "a.rs").count(), 1);
    assert_eq!(found.len(), 1 + RFCS.len(), "the lists are missing, too");
}

#[test]
fn a_sentence_of_an_rfc_is_cited_by_code_and_by_a_test_unless_it_does_not_apply() {
    let list = "# A list\n1.1a Do this.\n1.1b Do that.\n2a Never. | we are no client\n3a Once.\n";
    let sources = [
        Source::new("crates/ws/rfc/6455.txt", list),
        Source::new("crates/ws/rfc/7692.txt", ""),
        Source::new("crates/ws/src/a.rs", "// RFC 6455 §1.1a, §1.1b: both\n// RFC 6455 §3, §3c\n"),
        Source::new("crates/ws/src/a/tests.rs", "// RFC 6455 §1.1a; RFC 6455 §3a.\n"),
    ];
    let found: Vec<_> = check(&sources).iter().map(Finding::to_string).collect();
    assert_eq!(
        found,
        [
            "crates/ws/src/a.rs:2: §3c is no sentence of crates/ws/rfc/6455.txt",
            "crates/ws/rfc/6455.txt:3: §1.1b is cited in no test",
            "crates/ws/rfc/6455.txt:5: §3a is cited in no code",
        ]
    );
}
