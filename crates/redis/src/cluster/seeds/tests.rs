//! Tests of parsing the addresses of a Cluster.
//! In: texts → out: addresses or errors.
//! Uses nothing else. Never: connections.
//! A new syntax is a row here.

use super::*;

fn places(text: &str) -> Vec<String> {
    let seeds = Address::parse_cluster(text).expect("a Cluster");
    seeds.iter().map(|seed| format!("{}:{}@{seed}", seed.user, seed.password)).collect()
}

#[test]
fn nodes_are_listed_or_stand_in_a_url() {
    assert_eq!(places("one:7000"), [":@one:7000"]);
    assert_eq!(places("one:7000, two:7001,three"), [":@one:7000", ":@two:7001", ":@three:6379"]);
    assert_eq!(
        places("redis+cluster://ada:a%40b@one:7000?addr=two:7001&addr=[::1]:7002"),
        ["ada:a@b@one:7000", "ada:a@b@two:7001", "ada:a@b@[::1]:7002"]
    );
    assert_eq!(places("redis+cluster://:secret@one,two:1"), [":secret@one:6379", ":secret@two:1"]);
    assert!(
        Address::is_of_cluster("redis+cluster://one") && !Address::is_of_cluster("redis://one")
    );
}

#[test]
fn what_is_wrong_is_said_without_passwords() {
    for (text, wrong) in [
        ("redis://:secret@one:7000", "the scheme of a Cluster is redis+cluster"),
        ("redis+cluster://:secret@one:7000/3", "a Cluster has database 0 only"),
        ("redis+cluster://:secret@one?db=3", "only addr=host:port may follow"),
        ("one:7000,", "it has no host"),
        ("redis+cluster://:secret@one:x", "its port is not a number"),
    ] {
        let said = Address::parse_cluster(text).expect_err("it is wrong").to_string();
        assert!(said.contains(wrong) && !said.contains("secret"), "{said}");
    }
}
