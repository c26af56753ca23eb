//! The configuration that Centrifugo 6.9.1 writes with all of its defaults: nothing to say but that no client could connect.
//! In: its JSON file, the same in YAML and TOML, its variables → out: one warning and exit code 0.
//! Uses what `centrifugo defaultconfig` and `centrifugo defaultenv` print, in `tests/defaults`. Never: keys without a value.
//! A newer release is another pair of files.

use serde_json::Value;

use super::{fanwire, file, run};

const JSON: &str = include_str!("../defaults/centrifugo-6.9.1.json");
const VARIABLES: &str = include_str!("../defaults/centrifugo-6.9.1.env");

#[test]
fn a_file_with_every_default_passes_in_each_format() {
    let tree: Value = serde_json::from_str(JSON).expect("JSON");
    let yaml = serde_saphyr::to_string(&tree).expect("a tree of YAML");
    let toml = toml::to_string(&without_null(tree)).expect("a tree of TOML");
    for (name, text) in [("all.json", JSON), ("all.yaml", &yaml), ("all.toml", &toml)] {
        let (code, output, _) = run(&["check-config", "--strict", &file(name, text)]);
        assert!(is_expected(&output) && code == 0, "{name}: {output}");
    }
}

#[test]
fn variables_with_every_default_pass() {
    let path = file("all.env", VARIABLES);
    let empty = file("none.json", "{}");
    let (code, output, _) = run(&["check-config", "--strict", &empty, "--env-file", &path]);
    assert!(is_expected(&output) && code == 0, "{output}");
    let variables = VARIABLES.lines().filter_map(|line| line.split_once('='));
    let variables = variables.map(|(name, value)| (name, value.trim_matches('"')));
    let mut command = fanwire();
    let output = command.args(["check-config", "--strict", &empty]).envs(variables).output();
    let output = String::from_utf8(output.expect("the binary runs").stdout).expect("text");
    assert!(is_expected(&output), "{output}");
}

/// One warning, which holds for a server without any configuration, too.
fn is_expected(output: &str) -> bool {
    let warnings =
        output.lines().filter(|line| line.contains("warning: ") || line.contains("error: "));
    warnings.clone().count() == 1 && output.contains("client.token has no key")
}

/// TOML has no null; a key without a value is left out.
fn without_null(tree: Value) -> Value {
    match tree {
        Value::Object(keys) => {
            let keys = keys.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(keys.map(|(key, value)| (key, without_null(value))).collect())
        }
        other => other,
    }
}
