//! Tests of the count of methods per type.
//! In: made-up impls → out: which types have too many methods, and how many.
//! Uses the count only; never reads a file.
//! The limit is a constant of `methods.rs`.

use super::*;

/// An impl block with so many methods.
fn block(head: &str, methods: usize) -> String {
    let method =
        |n: usize| format!("    pub(crate) fn m{n}(&self) {{\n        nested(|| {{}});\n    }}\n");
    let methods: String = (0..methods).map(method).collect();
    format!("{head} {{\n{methods}}}\n\n")
}

fn check_files(files: &[(&str, String)], expect: &[&str]) {
    let sources: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
    let found: Vec<String> = check(&sources).into_iter().map(|finding| finding.what).collect();
    assert_eq!(found, expect);
}

#[test]
fn methods_of_all_files_of_a_crate_are_counted_together() {
    let (first, second) = ("crates/a/src/hub.rs", "crates/a/src/hub/timers.rs");
    check_files(&[(first, block("impl Hub", 50))], &[]);
    check_files(
        &[(first, block("impl Hub", 50)), (second, block("impl super::Hub", 1))],
        &["`Hub` has 51 methods; a type stops at 50"],
    );
    check_files(
        &[(first, block("impl<'a, T: Into<U>> Turn<'a, T>", 51))],
        &["`Turn` has 51 methods; a type stops at 50"],
    );
}

#[test]
fn traits_tests_and_types_of_other_crates_do_not_count() {
    let (hub, other) = ("crates/a/src/hub.rs", "crates/b/src/hub.rs");
    check_files(&[(hub, block("impl Outbox for Hub", 51))], &[]);
    check_files(&[(hub, block("impl<T> From<T> for Hub", 51))], &[]);
    check_files(&[(hub, block("impl Hub", 50)), (other, block("impl Hub", 50))], &[]);
    check_files(&[("crates/a/src/hub/tests.rs", block("impl Hub", 51))], &[]);
    check_files(&[("crates/a/src/testing.rs", block("impl Hub", 51))], &[]);
}

#[test]
fn functions_inside_methods_do_not_count() {
    let nested = "    fn f() {\n        fn g() {}\n        fn h() {}\n    }\n".repeat(50);
    check_files(&[("crates/a/src/hub.rs", format!("impl Hub {{\n{nested}}}\n"))], &[]);
}
