//! Tests of the command line.
//! In: arguments → out: commands and flags of keys, or a usage error.
//! Uses clap's own checks. Never: runs a command.
//! A form of a flag is a test here.

use clap::{CommandFactory, Parser};

use super::{Arguments, CliCommand};

fn flags(arguments: &[&str]) -> Vec<(String, String)> {
    let all = ["fanwire"].iter().chain(arguments);
    let parsed = Arguments::try_parse_from(all).expect("the test's arguments are right");
    match parsed.command {
        Some(CliCommand::Serve(serve)) => serve.keys.0,
        Some(other) => panic!("not serve: {other:?}"),
        None => parsed.serve.keys.0,
    }
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn the_command_line_is_consistent() {
    Arguments::command().debug_assert();
}

#[test]
fn flags_of_keys_work_with_and_without_the_command() {
    for command in [&[][..], &["serve"]] {
        let flags = |rest: &[&str]| flags(&[command, rest].concat());
        assert_eq!(flags(&["--client.insecure"]), [pair("client.insecure", "true")]);
        assert_eq!(flags(&["--client.insecure=false"]), [pair("client.insecure", "false")]);
        assert_eq!(flags(&["--http_api.key", "x"]), [pair("http_api.key", "x")]);
        assert_eq!(flags(&["--http_api.key=-x"]), [pair("http_api.key", "-x")]);
        assert_eq!(flags(&["-p", "9000"]), [pair("http_server.port", "9000")]);
        assert_eq!(flags(&["-a", "::1"]), [pair("http_server.address", "::1")]);
        assert_eq!(flags(&[]), []);
    }
}

#[test]
fn flags_of_unsupported_keys_are_accepted() {
    assert_eq!(flags(&["--engine.type=redis"]), [pair("engine.type", "redis")]);
}

#[test]
fn an_unknown_flag_is_a_usage_error_with_the_nearest_one() {
    let error =
        Arguments::try_parse_from(["fanwire", "--client.insecur"]).expect_err("no such flag");
    assert!(error.to_string().contains("--client.insecure"), "{error}");
}

#[test]
fn help_lists_every_supported_key_and_no_other() {
    let help = Arguments::command().render_long_help().to_string();
    for entry in fanwire_config::entries() {
        let name = &entry.name;
        let listed = help.contains(&format!("--{name} <")) || help.contains(&format!("--{name}[="));
        assert_eq!(listed, entry.works(), "{name}");
    }
}

#[test]
fn short_help_fits_on_a_screen() {
    let help = Arguments::command().render_help().to_string();
    assert!(help.lines().count() <= 30, "{help}");
}

#[test]
fn help_says_which_address_a_url_is_and_which_file_the_configuration_is() {
    let help = |name: &str| {
        let mut command = Arguments::command();
        let found = command.find_subcommand_mut(name).expect("a command");
        found.render_help().to_string()
    };
    for (name, addresses) in [
        ("publish", &["http://HOST:PORT/api"][..]),
        ("bench", &["ws://HOST:PORT/connection/websocket", "http://HOST:PORT/api"][..]),
    ] {
        let help = help(name);
        for said in addresses.iter().copied().chain(["The server's configuration file"]) {
            assert!(help.contains(said), "{name}: {said}: {help}");
        }
    }
    assert!(help("bench").contains("-c is --connections here"));
}
