//! Tests of the search for cycles of modules.
//! In: made-up crates → out: what is said of their cycles.
//! Uses the search only; never reads a file.
//! A way to write a path is a test here.

use super::*;

fn check_crate(files: &[(&str, &str)], expect: Option<&str>) {
    let source = |(path, text): &(&str, &str)| Source::new(&format!("crates/ws/src/{path}"), text);
    let mut sources: Vec<Source> = files.iter().map(source).collect();
    if !files.iter().any(|(path, _)| *path == "lib.rs") {
        sources.push(Source::new("crates/ws/src/lib.rs", "mod a;\nmod b;\nmod c;\n"));
    }
    let found: Vec<String> = check(&sources).into_iter().map(|found| found.what).collect();
    assert_eq!(found.first().map(String::as_str), expect, "{files:?}");
}

#[test]
fn modules_that_use_each_other_in_one_direction_are_no_cycle() {
    check_crate(&[("a.rs", "use crate::b::B;\n"), ("b.rs", "use crate::c;\n"), ("c.rs", "")], None);
}

#[test]
fn a_cycle_shows_where_each_of_its_arrows_is() {
    let text = "2 modules are in a cycle, such as a → b (crates/ws/src/a.rs:2), b → a (crates/ws/src/b.rs:1)";
    check_crate(
        &[("a.rs", "\nuse crate::b::B;\n"), ("b.rs", "fn f() { super::a::f() }\n")],
        Some(text),
    );
}

#[test]
fn groups_are_taken_apart() {
    let text = "2 modules are in a cycle, such as a → b (crates/ws/src/a.rs:1), b → a (crates/ws/src/b.rs:1)";
    check_crate(
        &[
            ("a.rs", "use crate::{c::{X, Y}, b};\n"),
            ("b.rs", "use super::{c, a::Z};\n"),
            ("c.rs", ""),
        ],
        Some(text),
    );
}

#[test]
fn the_longer_way_round_is_found_too() {
    let text = "3 modules are in a cycle, such as a → b (crates/ws/src/a.rs:1), \
                b → c (crates/ws/src/b.rs:1), c → a (crates/ws/src/c/d.rs:1)";
    let files =
        [("a.rs", "use crate::b;"), ("b.rs", "use crate::c;"), ("c/d.rs", "use super::super::a;")];
    check_crate(&files, Some(text));
}

#[test]
fn a_name_that_the_root_hands_on_leads_to_its_module() {
    let root = "mod a;\nmod b;\npub use a::{A, inner::Deep as Known};\n";
    let text = "2 modules are in a cycle, such as a → b (crates/ws/src/a.rs:1), b → a (crates/ws/src/b.rs:1)";
    check_crate(
        &[("lib.rs", root), ("a.rs", "use crate::b;"), ("b.rs", "use crate::Known;")],
        Some(text),
    );
}

#[test]
fn files_of_a_folder_make_a_cycle_at_any_depth() {
    let text = "2 modules are in a cycle, such as \
                x → y (crates/ws/src/a/m/x.rs:1), y → x (crates/ws/src/a/m/y/z.rs:1)";
    let files = [
        ("a.rs", "mod m;"),
        ("a/m.rs", "mod x;\nmod y;"),
        ("a/m/x.rs", "use crate::a::m::y::Y;"),
        ("a/m/y.rs", "mod z;"),
        ("a/m/y/z.rs", "use super::super::{x::{self}, Item};"),
    ];
    check_crate(&files, Some(text));
}

#[test]
fn a_name_that_the_module_of_a_folder_hands_on_leads_to_its_file() {
    let text = "2 modules are in a cycle, such as x → y (crates/ws/src/a/x.rs:1), y → x (crates/ws/src/a/y.rs:1)";
    let files = [
        ("lib.rs", "mod a;\npub use a::X;"),
        ("a.rs", "mod x;\nmod y;\npub(crate) use self::{x::X, y::Y as Known};"),
        ("a/x.rs", "use super::Known;"),
        ("a/y.rs", "use crate::X;"),
    ];
    check_crate(&files, Some(text));
}

#[test]
fn the_module_of_a_folder_and_all_in_it_may_use_each_other() {
    let files = [
        ("a.rs", "mod b;\nmod x;\nmod y;\nuse x::X;\nuse crate::b::B;\npub(crate) struct Item;"),
        ("a/x.rs", "use super::{Item, y::Y};"),
        ("a/y.rs", "use super::Item;\npub(in super::x) fn f(y: crate::b::B) {}"),
        ("a/b.rs", "use super::x;"),
        ("b.rs", ""),
    ];
    check_crate(&files, None);
}

#[test]
fn children_parents_tests_and_comments_make_no_cycle() {
    check_crate(
        &[
            ("a.rs", "mod x;\nuse crate::b;\n"),
            ("a/x.rs", "use super::b;\nuse crate::a::A;\n"),
            ("b.rs", "// crate::a\npub(crate) fn f() {}\n"),
            ("b/tests.rs", "use crate::a;\n"),
        ],
        None,
    );
}
