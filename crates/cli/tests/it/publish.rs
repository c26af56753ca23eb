//! `fanwire publish` with a running server: one message, files, refusals, no server.
//! In: arguments, files → out: exit code, stdout, stderr.
//! Uses the binary on both sides. Never: fixed ports.
//! Pace and lines are tested next to the command.

use super::serve::{start, stop};
use super::{file, run};

#[test]
fn messages_are_published_and_mistakes_are_named() {
    let (child, lines) = start(&[]);
    let address = lines[0].rsplit(' ').next().expect("the address ends the line");
    let key = lines.iter().find_map(|line| line.trim_start().strip_prefix("API key "));
    let key = key.and_then(|rest| rest.split_whitespace().next()).expect("a key was made");
    let url = format!("http://{address}/api");
    let publish = |more: &[&str]| {
        let all = [&["publish", "--url", &url, "--key", key], more].concat();
        run(&all)
    };
    let (code, out, error) = publish(&["demo", r#"{"n":1}"#]);
    assert!(code == 0 && out.starts_with("published 1 of 1 in "), "{out}{error}");

    let messages: String = (0..500).map(|number| format!("{{\"n\":{number}}}\n")).collect();
    let path = file("publish.jsonl", &messages);
    let (code, out, error) = publish(&["demo", "--file", &path, "--delivery", "latest"]);
    assert!(code == 0 && out.starts_with("published 500 of 500 in "), "{out}{error}");

    let (code, out, error) = run(&["top", "--url", &url, "--key", key]);
    assert!(
        code == 0 && out.starts_with(&format!("{address}: 1 nodes, 0 clients")),
        "{out}{error}"
    );

    let (code, out, error) = publish(&["nowhere:a", "--file", &path]);
    assert!(code == 1 && out.starts_with("published 0 of 500 in "), "{out}");
    assert!(
        error
            .starts_with("fanwire: message 1: error 102, unknown channel: channel.namespaces has "),
        "{error}"
    );
    assert!(error.ends_with("; and 490 more\n"), "{error}");

    let (code, _, error) = publish(&["demo", "hello"]);
    assert!(code == 1 && error.contains("a text needs quotes"), "{error}");
    let (code, _, error) = run(&["publish", "demo", "1", "--url", &url, "--key", "wrong"]);
    assert!(code == 1 && error.contains("refuses the API key: give --key"), "{error}");
    let other = format!("http://{address}/other");
    let (code, _, error) = run(&["publish", "demo", "1", "--url", &other, "--key", key]);
    assert!(code == 1 && error.contains("has no /other/stream: check --url"), "{error}");

    assert_eq!(stop(child), Some(0));
    let (code, _, error) = publish(&["demo", "1"]);
    assert!(code == 1 && error.contains(&format!("no server answers at {address}")), "{error}");
}

#[test]
fn usage_errors_end_with_2() {
    for arguments in [
        &["publish"][..],
        &["publish", "a"],
        &["publish", "a", "1", "--file", "b"],
        &["publish", "a", "1", "--rate", "0"],
        &["publish", "a", "1", "--tag", "x"],
        &["publish", "a", "1", "--delivery", "newest"],
    ] {
        assert_eq!(run(arguments).0, 2, "{arguments:?}");
    }
}
