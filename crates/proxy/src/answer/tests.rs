//! Tests of what the fields of a result grant.
//! In: results in JSON → out: grants.
//! Uses the reader of JSON. Never: calls.
//! Changed here: cases of fields.

use super::*;

fn options(json: &str) -> Result<SubscribeGrant, Rejection> {
    subscribe(pb::read(json.as_bytes()).expect("a result"))
}

#[test]
fn base64_wins_over_json_and_null_is_nothing() {
    let grant = options(r#"{"info":{"a":1},"b64info":"e30=","data":null}"#).expect("granted");
    assert_eq!((grant.info, grant.data), ("{}".into(), Bytes::new()));
    assert!(options(r#"{"b64info":"e30"}"#).is_err(), "without padding");
}

#[test]
fn an_end_of_zero_or_less_is_never() {
    for (written, expected) in [(0, None), (-1, None), (1, Some(1))] {
        let grant = options(&format!(r#"{{"expire_at":{written}}}"#)).expect("granted");
        assert_eq!(grant.expire_at, expected);
    }
}

#[test]
fn a_connect_has_channels_of_both_lists_and_subs_win() {
    let json = r#"{"user":"42","channels":["a","b"],"meta":null,"labels":{"region":"eu"},
        "subs":{"b":{"info":{"x":1},"override":{"presence":{"value":true},"join_leave":{}}}}}"#;
    let grant = connect(pb::read(json.as_bytes()).expect("a result")).expect("granted");
    assert_eq!(grant.channels.keys().collect::<Vec<_>>(), ["a", "b"]);
    let b = &grant.channels["b"];
    assert_eq!(b.info, r#"{"x":1}"#);
    assert_eq!((b.overrides.presence, b.overrides.join_leave), (Some(true), Some(false)));
    assert_eq!((b.overrides.force_recovery, grant.meta), (None, Bytes::new()));
    assert_eq!(grant.labels, BTreeMap::from([("region".to_owned(), "eu".to_owned())]));
    assert!(grant.ignores_request);
}

#[test]
fn an_expired_refresh_renews_nothing() {
    let result = pb::RefreshResult { expired: true, expire_at: 5, ..Default::default() };
    assert_eq!(refresh(result), Ok(None));
}

#[test]
fn data_of_a_publish_result_wins_over_base64() {
    let result = |json: &str| publish(pb::read(json.as_bytes()).expect("a result"), "0".into());
    for (json, expected) in [
        ("{}", "0"),
        (r#"{"data":1}"#, "1"),
        (r#"{"data":1,"b64data":"Mg=="}"#, "1"),
        (r#"{"b64data":"Mg=="}"#, "2"),
    ] {
        let Ok(PublishGrant::Publish { data, .. }) = result(json) else { panic!("{json}") };
        assert_eq!(data, expected, "{json}");
    }
}

#[test]
fn a_disconnect_code_that_is_none_is_left_to_the_node() {
    let Rejection::Disconnect(found) = disconnect(70_000, "x".into()) else {
        panic!("no disconnect")
    };
    assert!(!found.is_close_code());
}
