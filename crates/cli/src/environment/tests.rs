//! Tests of the syntax of `.env`.
//! In: the text of a file → out: its variables.
//! Uses `parse` alone; never the environment of the test process.
//! A case is a line of the table.

use super::parse;

#[test]
fn the_variables_of_a_dot_env_file_are_read() {
    let text =
        "# comment\n\nFANWIRE_LOG_LEVEL=debug\nexport A = 1\nB=\"x y\"\nC='z=1'\nnot a variable\n";
    let variables: Vec<(String, String)> = parse(text).into_iter().collect();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        variables,
        [pair("A", "1"), pair("B", "x y"), pair("C", "z=1"), pair("FANWIRE_LOG_LEVEL", "debug")]
    );
}
