//! Tests of the syntax of `.env`.
//! In: the text of a file → out: its variables, or the error's text.
//! Uses `parse` alone; never the environment of the test process.
//! A case is a line of the table.

use super::parse;

fn check(text: &str, expected: &[(&str, &str)]) {
    let variables = parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    let variables: Vec<_> = variables.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(variables, expected, "{text:?}");
}

#[test]
fn the_variables_of_a_dot_env_file_are_read() {
    check("# comment\n\nA=debug\n  export B = 1\n\nC=\n", &[("A", "debug"), ("B", "1"), ("C", "")]);
    check("\u{feff}A=1\r\nB: two words \r\n", &[("A", "1"), ("B", "two words")]);
    check("A=\"x y\"\nB='z=1'\nC=ü", &[("A", "x y"), ("B", "z=1"), ("C", "ü")]);
}

#[test]
fn comments_begin_behind_a_blank() {
    check("A=\"abc\" # prod\nB='d' #\nC=e # f", &[("A", "abc"), ("B", "d"), ("C", "e")]);
    check("A=a#b\nB=\"#1 # 2\"\nC= # none", &[("A", "a#b"), ("B", "#1 # 2"), ("C", "")]);
}

#[test]
fn quoted_values_may_have_several_lines() {
    check(
        "A=\"-----BEGIN\nkey\n-----END\"\nB=1",
        &[("A", "-----BEGIN\nkey\n-----END"), ("B", "1")],
    );
    check(
        r#"A="a\nb\"c\\"
B='a\n"b'"#,
        &[("A", "a\nb\"c\\"), ("B", "a\\n\"b")],
    );
}

#[test]
fn variables_above_are_put_in() {
    check(
        "A=1\nB=${A}2\nC=\"$A-$X.\"\nD='$A'\nE=\"\\$A\"\nF=5$ $a ${A",
        &[("A", "1"), ("B", "12"), ("C", "1-."), ("D", "$A"), ("E", "$A"), ("F", "5$ $a ${A")],
    );
}

#[test]
fn what_is_no_variable_is_refused_with_its_line() {
    for (text, expected) in [
        ("A=1\n\nnot a variable\n", "line 3 has neither = nor :"),
        ("=1", "line 1: \"\" is no name"),
        ("two words=1", "line 1: \"two words\" is no name"),
        ("A=1\nB=\"x\ny", "line 2: the quote that begins the value of B is not closed"),
        ("A=\"x\" y", "line 1: \"y\" stands behind the quoted value of A"),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
