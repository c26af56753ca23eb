//! Tests of the three file formats.
//! In: texts → out: one tree for all of them, or the parser's complaint with its place.
//! Uses `parse`; reads no files but those it finds missing.
//! A format's peculiarity is a test here.

use std::path::Path;

use serde_json::json;

use super::{Format, parse, read};

#[test]
fn the_three_formats_give_the_same_tree() {
    let tree = json!({
        "shards": 2,
        "client": {"allowed_origins": ["https://a.example"], "insecure": false},
        "channel": {"namespaces": [{"name": "chat"}, {"name": "news"}]},
    });
    let yaml = "
shards: 2
client:
  allowed_origins: [https://a.example]
  insecure: false
channel:
  namespaces:
    - name: chat
    - name: news
";
    let toml = r#"
shards = 2
[client]
allowed_origins = ["https://a.example"]
insecure = false
[[channel.namespaces]]
name = "chat"
[[channel.namespaces]]
name = "news"
"#;
    assert_eq!(parse(Format::Json, &tree.to_string()), Ok(tree.clone()));
    assert_eq!(parse(Format::Yaml, yaml), Ok(tree.clone()));
    assert_eq!(parse(Format::Toml, toml), Ok(tree));
}

#[test]
fn a_key_that_stands_twice_is_an_error_in_every_format() {
    for (format, text) in [
        (Format::Json, "{\"log\": {\"level\": \"info\", \"level\": \"warn\"}}"),
        (Format::Yaml, "log:\n  level: info\n  level: warn\n"),
        (Format::Toml, "[log]\nlevel = \"info\"\nlevel = \"warn\"\n"),
    ] {
        let reason = parse(format, text).expect_err("the key stands twice");
        assert!(reason.contains("twice") || reason.contains("duplicate"), "{format}: {reason}");
    }
}

#[test]
fn complaints_about_yaml_hold_nothing_of_the_parser() {
    let bomb = (b'b'..=b'i').fold("a: &a [x]\n".to_owned(), |text, name| {
        let (name, before) = (char::from(name), char::from(name - 1));
        text + &format!("{name}: &{name} [{}]\n", vec![format!("*{before}"); 9].join(","))
    });
    let texts = [
        "log: {}\nlog: {}\n",
        "log:\n  level: info\n level: x\n",
        "log: {}\n---\nlog: {}\n",
        "~: 1\n",
        "a: &a [*a]\n",
        &bomb,
    ];
    for text in texts {
        let reason = parse(Format::Yaml, text).expect_err("the text is broken");
        assert!(reason.starts_with("line "), "{reason}");
        for word in ["Option", "<input>", "error:", "from_str", "budget", "recursion"] {
            assert!(!reason.contains(word), "{word}: {reason}");
        }
    }
}

#[test]
fn broken_files_name_the_line() {
    for (format, text, place) in [
        (Format::Json, "{\n\"log\": {,\n}", "line 2"),
        (Format::Yaml, "log:\n  level: info\n level: x\n", "3"),
        (Format::Toml, "[log]\nlevel = info\n", "line 2"),
    ] {
        let reason = parse(format, text).expect_err("the text is broken");
        assert!(reason.contains(place), "{format}: {reason}");
    }
}

#[test]
fn an_empty_file_says_nothing() {
    for format in [Format::Json, Format::Yaml, Format::Toml] {
        assert_eq!(parse(format, " \n"), Ok(json!(null)), "{format}");
    }
    assert_eq!(parse(Format::Yaml, "# only a comment\n"), Ok(json!(null)));
}

#[test]
fn yaml_reads_words_as_yaml_1_2_does() {
    let tree = parse(Format::Yaml, "a: no\nb: 25s\nc: on\nd: ~\ne: \"true\"\n");
    let expected = json!({"a": "no", "b": "25s", "c": "on", "d": null, "e": "true"});
    assert_eq!(tree, Ok(expected));
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    for (format, text) in [
        (Format::Json, format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000))),
        (Format::Yaml, format!("a: {}1{}", "[".repeat(100_000), "]".repeat(100_000))),
        (Format::Toml, format!("a = {}1{}", "[".repeat(100_000), "]".repeat(100_000))),
    ] {
        assert!(parse(format, &text).is_err(), "{format}");
    }
}

#[test]
fn a_number_that_json_does_not_have_is_an_error_and_not_nothing() {
    for (format, text) in [
        (Format::Json, "{\"port\": 1e999}"),
        (Format::Yaml, "port: .inf\n"),
        (Format::Toml, "port = inf\n"),
        (Format::Toml, "port = -nan\n"),
    ] {
        assert!(parse(format, text).is_err(), "{format}: {text}");
    }
}

#[test]
fn a_date_is_the_text_that_it_was_written_as() {
    assert_eq!(parse(Format::Toml, "a = 1979-05-27\n"), Ok(json!({"a": "1979-05-27"})));
    assert_eq!(parse(Format::Yaml, "a: 1979-05-27\n"), Ok(json!({"a": "1979-05-27"})));
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_text() {
    for (format, text) in
        [(Format::Json, "{\"a\": 1}"), (Format::Yaml, "a: 1\n"), (Format::Toml, "a = 1\n")]
    {
        assert_eq!(parse(format, &format!("\u{feff}{text}")), Ok(json!({"a": 1})), "{format}");
        assert_eq!(parse(format, "\u{feff}"), Ok(json!(null)), "{format}");
    }
}

#[test]
fn files_that_give_nothing_say_what_would_be_right() {
    let check = |path: &str, text: &str| {
        let error = read(Path::new(path)).expect_err("there is no such file");
        assert!(error.to_string().starts_with(text), "{error}");
    };
    check("fanwire.ini", "fanwire.ini: unknown format, expected a name that ends in .json");
    check("fanwire", "fanwire: unknown format");
    check("/nowhere/fanwire.json", "/nowhere/fanwire.json: cannot be read: No such file");
}

#[test]
fn formats_are_known_by_their_endings() {
    let check = |path: &str, format| assert_eq!(Format::of(Path::new(path)), format, "{path}");
    check("a.json", Some(Format::Json));
    check("a.b.YML", Some(Format::Yaml));
    check("dir/a.yaml", Some(Format::Yaml));
    check("a.toml", Some(Format::Toml));
    check("json", None);
}
