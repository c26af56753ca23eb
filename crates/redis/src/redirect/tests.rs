//! Tests of redirects: which error replies name another node.
//! In: error replies as Redis sends them → out: a redirect, or none.
//! Uses the parser of the crate `redis`. Never: connections.
//! A new error reply is a row here.

use redis::{Value, parse_redis_value};

use super::*;

fn refusal(text: &str) -> ServerError {
    match parse_redis_value(format!("-{text}\r\n").as_bytes()) {
        Ok(Value::ServerError(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn slot_errors_are_redirects() {
    let node = Address::default();
    let at = |port| Address { port, ..node.clone() };
    for (text, is_of_slot, expected) in [
        ("MOVED 3999 127.0.0.1:6381", true, Some(Redirect::Moved(at(6381)))),
        ("ASK 3999 :6382", true, Some(Redirect::Ask(at(6382)))),
        ("TRYAGAIN Multiple keys request during rehashing of slot", true, Some(Redirect::TryAgain)),
        ("CLUSTERDOWN Hash slot not served", true, None),
        ("READONLY You can't write against a read only replica.", true, None),
        ("MOVED somewhere", true, None),
        ("ERR unknown command", false, None),
        ("WRONGTYPE Operation against a key", false, None),
    ] {
        let error = refusal(text);
        assert_eq!(is_of_slots(&error), is_of_slot, "{text}");
        assert_eq!(Redirect::of(&node, &error), expected, "{text}");
    }
}

#[test]
fn a_refusal_points_to_an_address() {
    let asked =
        || Address { host: "seed".into(), port: 1, user: "ada".into(), ..Address::default() };
    let at = |host: &str, port| Some(Address { host: host.into(), port, ..asked() });
    assert_eq!(target(&asked(), "3999 127.0.0.1:6381"), at("127.0.0.1", 6381));
    assert_eq!(target(&asked(), "3999 ::1:6381"), at("::1", 6381));
    assert_eq!(target(&asked(), "3999 :6381"), at("seed", 6381));
    for wrong in ["", "3999", "3999 host", "3999 host:port"] {
        assert_eq!(target(&asked(), wrong), None, "{wrong}");
    }
}

#[test]
fn a_redis_that_became_a_replica_is_left_whatever_its_version() {
    for (text, ends) in [
        (
            "READONLY You can't write against a read only replica. script: f, on @user_script:9.",
            true,
        ),
        (
            "ERR Error running script (call to f_0): @user_script:9: @user_script: 9: -READONLY You can't write against a read only replica.",
            true,
        ),
        ("ERR Error running script (call to f_0): @user_script:9: -OOM command not allowed", false),
        ("OOM command not allowed when used memory > 'maxmemory'.", false),
        ("LOADING Redis is loading the dataset in memory", true),
    ] {
        assert_eq!(ends_connection(&refusal(text)), ends, "{text}");
    }
}

#[test]
fn no_redirects_outside_of_clusters() {
    let redirects = ClusterRedirects::default();
    assert!(!redirects.is_cluster() && redirects.redirector().is_none());
    redirects.request_refresh();
}
