//! Tests of the checks of a Redis: accepted and refused fields of `INFO`.
//! In: replies of `INFO`, refusals → out: errors with address and remedy.
//! Uses no sockets: those are in `tests/it`.
//! A new condition on a Redis is a row here.

use super::*;

fn dialer() -> Dialer {
    Dialer::new(&Address::default(), &RedisOptions::default(), Arc::new(RedisClock::new()))
}

fn verified(server: &'static str, replication: &'static str) -> Result<(), String> {
    let [server, replication] =
        [server, replication].map(|text| Bytes::from_static(text.as_bytes()));
    let verified =
        verify_info(&Address::default(), Expected::Standalone, Some(&server), Some(&replication));
    verified.map_err(|error| error.to_string())
}

#[test]
fn a_standalone_master_of_our_time_will_do() {
    for version in ["6.2.0", "7.0.15", "8.4.1", "255.255.255"] {
        let server = format!("# Server\r\nredis_version:{version}\r\nredis_mode:standalone\r\n");
        let server = Bytes::from(server);
        let replication = Bytes::from_static(b"# Replication\r\nrole:master\r\n");
        let address = Address::default();
        assert_eq!(
            verify_info(&address, Expected::Standalone, Some(&server), Some(&replication)),
            Ok(()),
            "{version}"
        );
    }
    assert_eq!(verified("", ""), Ok(()), "a store without these fields");
    assert_eq!(verify_info(&Address::default(), Expected::Standalone, None, None), Ok(()));
}

#[test]
fn others_are_refused_with_the_reason() {
    let rows = [
        ("redis_version:6.0.16", "", "has version 6.0.16: 6.2 or newer is needed"),
        ("redis_version:x", "", "has version x"),
        ("redis_mode:cluster", "role:master", "give it as engine.redis.cluster_address"),
        ("redis_mode:sentinel", "", "is a Sentinel, which keeps nothing"),
        ("server_mode:cluster", "role:master", "give it as engine.redis.cluster_address"),
        ("redis_mode:standalone", "role:slave", "is a replica: name its master"),
    ];
    for (server, replication, expected) in rows {
        let message = verified(server, replication).expect_err("refused");
        assert!(message.contains(expected) && message.contains("127.0.0.1:6379"), "{message}");
    }
}

#[test]
fn nodes_of_a_cluster_are_judged_by_other_rules() {
    let rows = [
        (Expected::ClusterMaster, "redis_version:7.0.15\r\nredis_mode:cluster", "role:master", ""),
        (Expected::ClusterNode, "redis_mode:cluster", "role:slave", ""),
        (Expected::ClusterMaster, "redis_mode:cluster", "role:slave", "is a replica"),
        (Expected::ClusterNode, "redis_version:6.2.9", "", "in a Cluster 7.0 or newer is needed"),
        (Expected::ClusterNode, "redis_mode:standalone", "", "engine.redis.address instead of"),
        (Expected::ClusterMaster, "redis_mode:sentinel", "", "is no node of a Cluster"),
    ];
    for (role, server, replication, expected) in rows {
        let [server, replication] =
            [server, replication].map(|text: &'static str| Bytes::from(text));
        let verified = verify_info(&Address::default(), role, Some(&server), Some(&replication));
        let message = verified.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(
            message.contains(expected) && message.is_empty() == expected.is_empty(),
            "{message}"
        );
    }
}

#[test]
fn a_replication_history_is_a_process_and_its_replication_id() {
    let replication_history = |server: &'static str, replication: &'static str| {
        let [server, replication] =
            [server, replication].map(|text| Bytes::from_static(text.as_bytes()));
        replication_history_of(Some(&server), Some(&replication))
    };
    let run_id = "run_id:0123456789abcdef0123456789abcdef01234567\r\n";
    let replication = "master_replid:fedcba9876543210fedcba9876543210fedcba98\r\n";
    assert_eq!(replication_history(run_id, replication), "0123456789abcdeffedcba9876543210");
    assert_eq!(replication_history(run_id, ""), "0123456789abcdef");
    assert_eq!(replication_history("", ""), "", "a store without these fields");
    assert_eq!(replication_history_of(None, None), "");
}

#[test]
fn refusals_of_credentials_are_told_apart() {
    let denied = dialer().refused("WRONGPASS", Some("invalid username-password pair"));
    assert!(matches!(denied, RedisError::Denied { .. }) && denied.is_permanent());
    assert!(denied.to_string().contains("engine.redis.password"));
    let busy = dialer().refused("LOADING", Some("Redis is loading the dataset in memory"));
    assert!(matches!(busy, RedisError::Refused { .. }) && !busy.is_permanent());
}

#[test]
fn refusals_of_a_database_name_the_key_that_says_another() {
    let refused = |reply| {
        let error = dialer().refused("ERR", Some(reply));
        assert!(error.to_string().contains("127.0.0.1:6379"), "{error}");
        (error.is_permanent(), error.to_string())
    };
    let (is_permanent, message) = refused("SELECT is not allowed in cluster mode");
    assert!(
        is_permanent && message.contains("give it as engine.redis.cluster_address"),
        "{message}"
    );
    let (is_permanent, message) = refused("DB index is out of range");
    assert!(is_permanent && message.contains("check engine.redis.db"), "{message}");
    let (is_permanent, message) = refused("max number of clients reached");
    assert!(!is_permanent && message.contains("refuses: ERR max number"), "{message}");
}

#[test]
fn the_time_is_seconds_and_microseconds() {
    let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    assert_eq!(unix_ms(Value::Array(vec![text("12"), text("345678")])), Some(12_345));
    for wrong in [vec![], vec![text("12")], vec![text("x"), text("1")], vec![text("-1"), text("1")]]
    {
        assert_eq!(unix_ms(Value::Array(wrong)), None);
    }
    assert_eq!(unix_ms(Value::Array(vec![text("18446744073709551615"), text("1")])), None);
}
