//! Tests of the counts of packed statements.
//! In: code → out: how often a shape stands in it; counts against ceilings → out: the findings.
//! Uses nothing but the rule; never reads the workspace.
//! Changed here: examples of the shapes, whose ceilings stand in `packing.rs`.

use super::*;

const PAIR: &str = "fn a() {\n    let (a, b) = (f(x), g(y));\n}\n";

#[test]
fn a_let_with_a_tuple_of_values_is_counted() {
    assert_eq!(tuple_lets(PAIR), 1);
    assert_eq!(tuple_lets("\n    let (Some(a), b) = (f(x), 1) else { return (1, 2) };\n"), 1);
    assert_eq!(tuple_lets("\n    let (a, b) = (f(x) & g(y)).split(1, 2);\n"), 0);
    assert_eq!(tuple_lets("\n    let pair = (a, b);\n    let (a, b) = pair;\n"), 0);
    assert_eq!(tuple_lets("\n    if let (Some(a), Some(b)) = (a, b) {\n    }\n"), 0);
}

#[test]
fn a_tuple_of_defaults_is_counted() {
    assert_eq!(default_tuples("\n    let (mut a, b) = Default::default();\n"), 1);
    assert_eq!(default_tuples("\n    let a: (u8, u8) = Default::default();\n"), 0);
}

#[test]
fn a_tuple_as_a_parameter_is_counted() {
    assert_eq!(tuple_parameters("fn a<T>(&self, (a, b): Pair, c: &mut (A, [B; 2])) {}"), 2);
    assert_eq!(tuple_parameters("fn a(list: &[(A, B)], run: impl Fn((A, B))) -> (A, B) {}"), 0);
}

#[test]
fn a_name_that_the_next_statement_binds_again_is_counted() {
    let twice = "\n    let mut a: u8 = 1;\n    let a = f(a);\n    let b = 1;\n";
    assert_eq!(bound_again(twice), 1);
    assert_eq!(bound_thrice(twice), 0);
    let thrice = "\n    let a = 1;\n    let a = f(a);\n    let a = g(a);\n";
    assert_eq!(bound_again(thrice), 2);
    assert_eq!(bound_thrice(thrice), 1);
    assert_eq!(bound_again("\n    let _ = f(a);\n    let _ = g(a);\n"), 0);
    assert_eq!(bound_again("\n    let a = 1;\n    f(a);\n    let a = 2;\n"), 0);
}

#[test]
fn a_count_that_is_not_the_ceiling_is_found() {
    let rust = [Source::new("crates/ws/src/a.rs", PAIR)];
    let check = |most| {
        let row = Ceiling { shape: "tuple", count: tuple_lets, most };
        check_with(&rust, &[row]).into_iter().map(|it| it.what).collect::<Vec<_>>()
    };
    assert_eq!(check(0), ["tuple: 1, not 0: unpack the new one {\"crates/ws\": 1}"]);
    assert_eq!(check(1), [""; 0]);
    assert_eq!(check(2), ["tuple: 1, not 2: lower the number {\"crates/ws\": 1}"]);
}

#[test]
fn tests_and_fuzz_targets_are_not_counted() {
    let paths = ["crates/ws/src/a/tests.rs", "fuzz/fuzz_targets/a.rs"];
    let rust = paths.map(|path| Source::new(path, PAIR));
    let row = Ceiling { shape: "tuple", count: tuple_lets, most: 0 };
    assert_eq!(check_with(&rust, &[row]), []);
}
