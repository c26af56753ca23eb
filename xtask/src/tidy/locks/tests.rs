//! Tests of the lock-file rules.
//! In: lines of lock files → out: the findings.
//! Uses nothing but the check; never runs npm or pip.
//! The real lock files stand below `tests/interop`.

use super::*;

fn check_text(path: &str, text: &str, findings: usize) {
    assert_eq!(check(&[Source::new(path, text)]).len(), findings, "{text:?}");
}

#[test]
fn an_npm_lock_records_no_registry() {
    let path = "tests/interop/package-lock.json";
    check_text(path, "\"version\": \"5.8.0\",\n\"integrity\": \"sha512-a\"\n", 0);
    check_text(path, "  \"resolved\": \"https://registry.example/a.tgz\",\n", 1);
}

#[test]
fn a_python_lock_pins_and_names_no_index() {
    let path = "tests/interop/python/requirements.txt";
    check_text(path, "# made by a tool\nwebsockets==17.4 \\\n    --hash=sha256:00\n", 0);
    check_text(path, "websockets>=17\n", 1);
    check_text(path, "--find-links /somewhere\n", 1);
}
