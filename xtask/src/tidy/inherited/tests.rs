//! Tests of the list of dependencies: what counts as used.
//! In: made-up manifests → out: the lines of dependencies that no member uses.
//! Uses nothing but the check; never asks cargo.
//! That the real list obeys is checked by `cargo xtask tidy` itself.

use super::*;

fn check_one(member: &str, lines: &[usize]) {
    let root = "[workspace]\nmembers = []\n[workspace.dependencies]\n# Bytes.\nbytes = \"1\"\nhttp = \"1\"\n[profile.dev]\ndebug = 1\n";
    let sources = [Source::new("Cargo.toml", root), Source::new("crates/a/Cargo.toml", member)];
    let found: Vec<_> = check(&sources).into_iter().map(|finding| finding.line).collect();
    assert_eq!(found, lines, "{member:?}");
}

#[test]
fn every_dependency_of_the_list_is_inherited_by_a_member() {
    check_one("bytes.workspace = true\nhttp = { workspace = true, features = [] }\n", &[]);
    check_one("bytes.workspace = true\n", &[6]);
    check_one("bytes = \"1\"\n# http.workspace = true\n", &[5, 6]);
}
