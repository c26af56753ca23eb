//! Options of `fanwire bench` as a plan.
//! In: options → out: addresses, ways to publish, lines of the terminal.
//! Uses addresses of this machine only. Never: connections.
//! Runs against a server are in `tests/it/bench.rs`.

use clap::Parser as _;
use fanwire_load::Second;

use super::*;
use crate::arguments::{Arguments, CliCommand};

fn parsed(arguments: &[&str]) -> Plan {
    let all = ["fanwire", "bench", "--url", "ws://127.0.0.1:1/a"].iter().chain(arguments);
    match Arguments::try_parse_from(all).expect("good options").command {
        Some(CliCommand::Bench(bench)) => plan(&bench.server, &bench.load).expect("a plan"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_key_chooses_the_server_api_and_its_absence_a_client() {
    assert!(matches!(parsed(&[]).publish, PublishMethod::Client));
    let with_key = parsed(&["--key", "k", "--api-url", "http://127.0.0.1:2/api"]);
    let PublishMethod::Api { api, connections: 8 } = with_key.publish else { panic!("by the API") };
    assert_eq!((&*api.key, &*api.address.path, api.address.socket.port()), ("k", "/api", 2));
    assert!(matches!(parsed(&["--key", "k", "--publish=client"]).publish, PublishMethod::Client));
}

#[test]
fn protobuf_is_asked_for_in_the_path_once() {
    assert_eq!(parsed(&["--protobuf"]).server.path, "/a?format=protobuf");
    assert_eq!(parsed(&[]).server.path, "/a");
}

#[test]
fn the_pace_is_an_open_loop_unless_a_closed_one_is_asked_for() {
    assert_eq!(parsed(&["--rate", "7"]).pace, Pace::Open { rate: 7.0 });
    assert_eq!(parsed(&["--closed", "7"]).pace, Pace::Closed { outstanding: 7 });
    assert_eq!(parsed(&["--zipf"]).popularity, Popularity::Zipf { exponent: 1.0 });
}

#[test]
fn the_terminal_shows_what_happens() {
    assert_eq!(line(RunStatus::Connecting { open: 3, of: 9 }), "connecting: 3 of 9");
    let second =
        Second { published: 5, deliveries: 50, p50_ms: 0.5, p99_ms: 1.25, ..Second::default() };
    let status = RunStatus::Second { second: &second, is_warm_up: true, lost: 2 };
    let expected = "warm-up: 5 published/s, 50 delivered/s, p50 0.50 ms, p99 1.25 ms, 2 lost";
    assert_eq!(line(status), expected);
}
