//! Tests of `fanwire tune`: input files and results.
//! In: files of messages, valid and invalid → out: exit code, stdout, stderr, a page.
//! Uses the binary. Never: asserts a time.
//! A promise or an error of the command is a test here.

use std::path::Path;

use super::{file, run};

/// Similar messages.
fn states(count: usize) -> String {
    let state = |at: usize| {
        format!(
            "{{\"match\":5117,\"home\":\"Harbour Town\",\"away\":\"Upper Valley\",\"minute\":{at}}}\n"
        )
    };
    (0..count).map(state).collect()
}

/// Incompressible records.
fn noise(records: usize) -> Vec<u8> {
    let mut state = 7u64;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    let record =
        |_| [&300u32.to_le_bytes()[..], &(0..300).map(|_| byte()).collect::<Vec<_>>()].concat();
    (0..records).flat_map(record).collect()
}

fn binary(name: &str, bytes: &[u8]) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).expect("the folder for tests is writable");
    path.into_os_string().into_string().expect("a path in UTF-8")
}

/// Asserts that the command fails with 1, prints nothing to stdout, and one line with this text to stderr.
fn refused(arguments: &[&str], expect: &str) {
    let (code, out, error) = run(&[&["tune"], arguments].concat());
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(error.starts_with("fanwire: ") && error.contains(expect), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn tune_recommends_context_for_messages_that_are_alike() {
    let path = file("alike.jsonl", &states(40));
    let (code, out, error) = run(&["tune", &path]);
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(out.starts_with("alike.jsonl: 40 JSON messages of "), "{out}");
    for heading in
        ["standalone: ", "a compressor per connection", "Fossil delta", "gap coding, 5 channels"]
    {
        assert!(out.contains(heading), "{heading} in {out}");
    }
    assert!(out.contains("\nRecommendation: compression: context\n"), "{out}");
    assert!(out.contains("    channel:\n      namespaces:\n        - name: alike\n"), "{out}");
}

#[test]
fn the_lines_to_paste_are_a_configuration_without_findings() {
    let clients = "    client: {allow_anonymous_connect_without_token: true}\n";
    let (alike, noise) = (file("pasted.jsonl", &states(30)), binary("pasted.bin", &noise(10)));
    for path in [alike, noise] {
        let (_, out, _) = run(&["tune", &path]);
        let (_, lines) = out.rsplit_once("\n\n    websocket:").expect("lines to paste");
        let name = "- name: pasted\n";
        let permission = format!("{name}          allow_subscribe_for_client: true\n");
        let lines = lines.replacen(name, &permission, 1);
        let config = file("pasted.yaml", &format!("{clients}    websocket:{lines}"));
        let (code, out, error) = run(&["check-config", &config]);
        assert_eq!((code, error.as_str()), (0, ""));
        assert!(out.ends_with(": fine\n"), "{out}");
    }
}

#[test]
fn tune_recommends_off_for_noise_in_binary_records() {
    let path = binary("noise.bin", &noise(30));
    let (code, out, _) = run(&["tune", &path]);
    assert_eq!(code, 0);
    assert!(out.starts_with("noise.bin: 30 binary messages of 300.0 B"), "{out}");
    assert!(out.contains("\nRecommendation: compression: off\n"), "{out}");
}

#[test]
fn tune_takes_several_files_and_writes_one_page() {
    let (one, other) = (file("one.jsonl", &states(20)), binary("other.bin", &noise(5)));
    let page = file("page.html", "old");
    let arguments =
        ["tune", &one, &other, "--html", &page, "--price=0.5", "--rate=2", "--fan-out=7"];
    let (code, out, error) = run(&arguments);
    assert_eq!((code, error), (0, format!("wrote {page}\n")));
    assert!(out.contains("one.jsonl: ") && out.contains("\nother.bin: "), "{out}");
    assert!(out.contains("At 2 publications a second to 7 receivers, 30 days, $0.5 a GB"), "{out}");
    let html = std::fs::read_to_string(&page).expect("it was written");
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
    assert_eq!(html.matches("<svg ").count(), 8);
}

#[test]
fn tune_reads_no_more_messages_than_its_limit() {
    let path = file("many.jsonl", &(states(10) + "not JSON\n"));
    let (code, out, _) = run(&["tune", &path, "--messages-max", "4", "--channels=1"]);
    assert_eq!(code, 0);
    assert!(out.starts_with("many.jsonl: the first 4 JSON messages"), "{out}");
    assert!(!out.contains("interleaved"), "{out}");
}

#[test]
fn a_file_without_messages_is_reported_with_the_expected_format() {
    let expected = "two or more messages of one channel: one JSON text a line (.jsonl)";
    let empty = file("empty.jsonl", "");
    refused(&[&empty], "empty.jsonl holds no message; give a file with");
    refused(&[&empty], expected);
    refused(&[&file("single.jsonl", "{}\n")], "single.jsonl holds one message, and context needs");
    let array = file("array.json", "[{\"a\":1},{\"a\":2}]\n");
    refused(&[&array], "array.json holds one message, an array; put its elements on lines");
    let text = file("text.jsonl", "{}\n{}\nhello\n");
    refused(&[&text], "text.jsonl:3:1: not JSON: expected value; give a file with");
    let cut = binary("cut.bin", &noise(3)[..700]);
    refused(&[&cut], "cut.bin: record 3 is cut off: 300 bytes are announced and 88 are there");
    refused(&[env!("CARGO_TARGET_TMPDIR")], "is a directory; give a file with");
    refused(&["no/such.jsonl"], "no/such.jsonl: there is no such file; give a file with");
}

#[test]
fn one_invalid_file_stops_before_the_work() {
    let good = file("good.jsonl", &states(20));
    refused(&[&good, "no/such.jsonl"], "no/such.jsonl: there is no such file");
}

#[test]
fn a_page_does_not_overwrite_an_input_file() {
    let path = file("precious.jsonl", &states(3));
    refused(&[&path, "--html", &path], "--html would overwrite");
    assert_eq!(std::fs::read_to_string(&path).expect("still there"), states(3));
}

#[test]
fn a_page_that_cannot_be_written_stops_before_the_work() {
    let path = file("tabled.jsonl", &states(3));
    refused(
        &[&path, "--html", "no/such/page.html"],
        "the page no/such/page.html cannot be written",
    );
    refused(&[&path, "--html", env!("CARGO_TARGET_TMPDIR")], "cannot be written");
}

#[test]
fn options_out_of_range_are_usage_errors_with_the_valid_range() {
    let path = file("options.jsonl", &states(3));
    let wrong = [
        ("--price=-1", "from 0 to 1000"),
        ("--price=NaN", "from 0 to 1000"),
        ("--price=much", "from 0 to 1000"),
        ("--rate=0", "above 0 and up to 1000000"),
        ("--rate=inf", "above 0 and up to 1000000"),
        ("--fan-out=0", "from 1 to 1000000000"),
        ("--fan-out=1.5", "from 1 to 1000000000"),
        ("--level=10", "from 1 to 9"),
        ("--channels=0", "from 1 to 128"),
        ("--messages-max=1", "from 2 to 1000000"),
    ];
    for (option, expected) in wrong {
        let (code, out, error) = run(&["tune", &path, option]);
        assert_eq!((code, out.as_str()), (2, ""), "{option}");
        assert!(error.contains(expected), "{option}: {error}");
    }
    let (_, _, error) = run(&["tune", &path, "--price", "-1"]);
    assert!(error.contains("from 0 to 1000"), "{error}");
    assert_eq!(run(&["tune"]).0, 2, "no file");
}
