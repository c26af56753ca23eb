//! Tests of command lines of Centrifugo.
//! In: words → out: whether Centrifugo was called, flags of keys, or a usage error.
//! Uses clap. Never: runs a command.
//! A spelling of a command line is a test here; whole starts are in `tests/it/centrifugo.rs`.

use super::*;

fn parse(words: &[&str]) -> Result<CommandLine, clap::Error> {
    CommandLine::parse(words.iter().map(OsString::from).collect())
}

#[test]
fn the_name_is_the_program_or_the_first_word() {
    let called = |words: &[&str]| parse(words).expect("a right line").is_centrifugo;
    assert!(called(&["centrifugo"]) && called(&["/usr/local/bin/centrifugo", "version"]));
    assert!(called(&["fanwire", "centrifugo"]) && called(&["centrifugo", "centrifugo"]));
    assert!(called(&["fanwire", "centrifugo", "serve"]));
    assert!(!called(&["fanwire"]) && !called(&["fanwire", "publish", "centrifugo", "1"]));
    assert!(!called(&["/opt/centrifugo/fanwire"]) && !called(&[]));
}

#[test]
fn flags_from_before_v6_are_read_under_the_name_and_refused_otherwise() {
    let words = ["--health", "--log_level=debug", "--redis_address", "r:1", "--port=9000"];
    let line = parse(&[&["centrifugo"], &words[..]].concat()).expect("they are known");
    let mut flags = line.arguments.serve.keys.0;
    flags.sort();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let expected = [
        pair("engine.redis.address", "r:1"),
        pair("health.enabled", "true"),
        pair("http_server.port", "9000"),
        pair("log.level", "debug"),
    ];
    assert_eq!((flags.as_slice(), line.remarks.len()), (&expected[..], 4));
    let error = parse(&["fanwire", "--health"]).expect_err("it is of another program");
    assert!(error.to_string().contains("since Centrifugo v6 it is --health.enabled"), "{error}");
    for words in [&["centrifugo", "--no-such-flag"][..], &["centrifugo", "gentoken", "--port", "1"]]
    {
        assert!(parse(words).is_err(), "{words:?}");
    }
}
