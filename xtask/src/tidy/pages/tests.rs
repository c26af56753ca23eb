//! Tests of the rules for ARCHITECTURE.md.
//! In: made-up pages → out: the findings.
//! Uses nothing but the check; never reads the real page.
//! That the real page obeys is checked by `cargo xtask tidy` itself.

use super::*;

fn check_one(text: &str, findings: usize) {
    let member = |folder: &str| Crate { name: "a".into(), folder: folder.into(), uses: vec![] };
    let crates = [member("crates/ws"), member("bench")];
    assert_eq!(check(&[Source::new(PAGE, text)], &crates).len(), findings, "{text:?}");
}

#[test]
fn every_crate_is_named_by_its_folder() {
    check_one("`crates/ws/` and `bench/`\n", 0);
    check_one("`crates/ws` only\n", 1);
}

#[test]
fn the_page_stops_at_three_hundred_lines() {
    check_one(&format!("`crates/ws` `bench`\n{}", "a\n".repeat(300)), 1);
}

#[test]
fn the_glossary_has_a_limit() {
    let words = "**a** one ·\n**b, c** two · ".repeat(GLOSSARY_MAX / 2);
    let page = |more: &str| {
        format!("`crates/ws` `bench` **bold**\n## Glossary\n{words}{more}\n## More\n**x**\n")
    };
    check_one(&page(""), 0);
    check_one(&page("**d**"), 1);
}

#[test]
fn a_missing_page_is_no_finding() {
    assert_eq!(check(&[], &[]), []);
}
