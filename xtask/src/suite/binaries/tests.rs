//! Tests of reading what cargo says of its artifacts.
//! In: lines of JSON and of other text → out: what is shown.
//! Uses the reader only; never runs cargo.
//! How the tests are run is decided in `nextest.rs`.

use super::*;

const ARTIFACT: &str = r#"{"reason":"compiler-artifact","package_id":"path+file:///workspace/crates/ws#fanwire-ws@0.1.0","manifest_path":"/workspace/crates/ws/Cargo.toml","target":{"kind":["test"],"crate_types":["bin"],"name":"it","src_path":"/workspace/crates/ws/tests/it/main.rs","edition":"2024","doc":false,"doctest":false,"test":true},"profile":{"opt_level":"0","debuginfo":0,"debug_assertions":true,"overflow_checks":true,"test":true},"features":[],"filenames":["/workspace/target/a"],"executable":null,"fresh":true}"#;

#[test]
fn diagnostics_are_shown_once_with_the_errors_of_cargo_itself() {
    let warning = r#"{"reason":"compiler-message","package_id":"path+file:///workspace/crates/ws#fanwire-ws@0.1.0","manifest_path":"/workspace/crates/ws/Cargo.toml","target":{"kind":["lib"],"crate_types":["lib"],"name":"fanwire_ws","src_path":"/workspace/crates/ws/src/lib.rs","edition":"2024","doc":true,"doctest":true,"test":true},"message":{"rendered":"warning: unused variable: `a`","$message_type":"diagnostic","children":[],"level":"warning","message":"unused variable: `a`","spans":[],"code":null}}"#;
    let lines = [warning, warning, "   Compiling fanwire-ws", "error: no such lock file"];
    let said = "warning: unused variable: `a`\nerror: no such lock file";
    assert_eq!(diagnostics(&lines.join("\n")), said);
    assert_eq!(diagnostics(ARTIFACT), "");
}
