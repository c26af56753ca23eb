//! Tests of the count of crates that define a name.
//! In: made-up crates → out: the names that too many define.
//! Uses the count only; never reads a file.
//! Which public names may have two meanings is a list in `types.rs`.

use super::*;

fn check_names(texts: &[&str], shared: &[&'static str], findings: usize) {
    let source =
        |(number, text): (usize, &&str)| Source::new(&format!("crates/c{number}/src/a.rs"), text);
    let sources: Vec<Source> = texts.iter().enumerate().map(source).collect();
    let rows: Vec<Shared> = shared.iter().map(|name| Shared { name, why: "a test" }).collect();
    assert_eq!(check_with(&sources, &rows).len(), findings, "{texts:?} {shared:?}");
}

#[test]
fn two_crates_may_have_a_type_of_the_same_name_and_three_may_not() {
    check_names(&["pub struct Found;", "enum Found { A }"], &[], 0);
    check_names(&["pub struct Found;", "enum Found { A }", "pub(crate) trait Found {}"], &[], 1);
    check_names(
        &["type Found = u8;", "pub(super) type Found = u8;", "struct Found<T>(T);"],
        &[],
        1,
    );
}

#[test]
fn associated_types_and_comments_define_nothing() {
    let associated = "impl A for B {\n    type Found = u8;\n}\n";
    check_names(&["struct Found;", "struct Found;", associated, "// struct Found\n"], &[], 0);
}

#[test]
fn a_public_type_has_a_name_of_its_own() {
    check_names(&["pub struct Found;", "pub trait Found {}"], &[], 1);
    check_names(&["pub struct Found;", "pub(crate) struct Found;"], &[], 0);
}

#[test]
fn a_name_is_listed_as_long_as_it_is_public_in_two_crates() {
    let texts = ["pub struct Found;", "pub enum Found {}", "struct Other;"];
    check_names(&texts, &["Found"], 0);
    check_names(&texts[1..], &["Found"], 1);
}
