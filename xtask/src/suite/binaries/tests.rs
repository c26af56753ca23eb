//! Tests of reading what cargo says of its artifacts.
//! In: lines of JSON and of other text → out: the test programs.
//! Uses the reader only; never runs cargo.
//! Which of them a step runs is decided in `steps.rs`.

use super::*;

fn artifact(target: &str, is_test: bool, executable: &str) -> String {
    format!(
        r#"{{"reason":"compiler-artifact","package_id":"path+file:///house/crates/ws#fanwire-ws@0.1.0","manifest_path":"/house/crates/ws/Cargo.toml","target":{{"kind":["test"],"crate_types":["bin"],"name":"{target}","src_path":"/house/crates/ws/tests/it/main.rs","edition":"2024","doc":false,"doctest":false,"test":true}},"profile":{{"opt_level":"0","debuginfo":0,"debug_assertions":true,"overflow_checks":true,"test":{is_test}}},"features":[],"filenames":["/house/target/a"],"executable":{executable},"fresh":true}}"#
    )
}

#[test]
fn test_programs_are_found_among_libraries_examples_and_warnings() {
    let lines = [
        artifact("fanwire_ws", false, "null"),
        "warning: unused".to_owned(),
        artifact("it", true, "\"/house/target/debug/deps/it-1\""),
        artifact("echo", false, "\"/house/target/debug/examples/echo\""),
        r#"{"reason":"build-finished","success":true}"#.to_owned(),
    ];
    let it = Binary {
        folder: "/house/crates/ws".into(),
        target: "it".into(),
        program: "/house/target/debug/deps/it-1".into(),
    };
    assert!(it.is_it_of("crates/ws") && !it.is_it_of("crates/node"));
    assert!(it.is_of("crates/ws") && !it.is_of("crates/node"));
    assert_eq!(test_programs(&lines.join("\n")), [it]);
}

#[test]
fn diagnostics_are_shown_once_with_the_errors_of_cargo_itself() {
    let warning = r#"{"reason":"compiler-message","package_id":"path+file:///house/crates/ws#fanwire-ws@0.1.0","manifest_path":"/house/crates/ws/Cargo.toml","target":{"kind":["lib"],"crate_types":["lib"],"name":"fanwire_ws","src_path":"/house/crates/ws/src/lib.rs","edition":"2024","doc":true,"doctest":true,"test":true},"message":{"rendered":"warning: unused variable: `a`","$message_type":"diagnostic","children":[],"level":"warning","message":"unused variable: `a`","spans":[],"code":null}}"#;
    let lines = [warning, warning, "   Compiling fanwire-ws", "error: no such lock file"];
    let said = "warning: unused variable: `a`\nerror: no such lock file";
    assert_eq!(diagnostics(&lines.join("\n")), said);
    assert_eq!(diagnostics(&artifact("it", true, "null")), "");
}
