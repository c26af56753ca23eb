//! Tests of what the fields of a result grant.
//! In: results in JSON → out: grants.
//! Uses the reader of JSON. Never: calls.
//! Changed here: cases of fields.

use proptest::prelude::*;

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
fn a_filter_is_granted_as_json_and_one_that_is_none_is_no_answer() {
    let team = r#"{"key":"team","cmp":"eq","val":"red"}"#;
    let granted = options(&format!(r#"{{"server_tags_filter":{team}}}"#)).expect("granted");
    assert_eq!(granted.server_tags_filter, team);
    let subs = format!(r#"{{"subs":{{"a":{{"server_tags_filter":{team}}}}}}}"#);
    let connected = connect(pb::read(subs.as_bytes()).expect("a result")).expect("granted");
    assert_eq!(connected.channels["a"].server_tags_filter, team);
    for absent in ["{}", r#"{"server_tags_filter":null}"#] {
        assert_eq!(options(absent).expect("granted").server_tags_filter, "");
    }
    for bad in ["{}", r#"{"op":"xor"}"#] {
        let answer = options(&format!(r#"{{"server_tags_filter":{bad}}}"#));
        assert!(matches!(answer, Err(Rejection::Unavailable(_))), "{bad}");
    }
}

#[test]
fn a_refresh_of_a_subscription_may_have_a_filter() {
    let team = r#"{"key":"team","cmp":"eq","val":"red"}"#;
    let refreshed = |json: &str| sub_refresh(pb::read(json.as_bytes()).expect("a result"));
    let renewal = refreshed(&format!(r#"{{"expire_at":7,"server_tags_filter":{team}}}"#));
    assert_eq!(renewal.expect("renewed").expect("renewed").server_tags_filter, team);
    let renewal = refreshed(r#"{"expire_at":7}"#).expect("renewed").expect("renewed");
    assert_eq!((renewal.expire_at, renewal.server_tags_filter), (Some(7), Bytes::new()));
    assert_eq!(refreshed(r#"{"expired":true,"expire_at":7}"#), Ok(None));
    assert!(refreshed(r#"{"expire_at":7,"server_tags_filter":{}}"#).is_err());
}

#[test]
fn an_expired_refresh_renews_nothing() {
    let result = pb::RefreshResult { expired: true, expire_at: 5, ..Default::default() };
    assert_eq!(refresh(result), Ok(None));
}

#[test]
fn a_refresh_without_a_new_end_renews_nothing() {
    for json in ["{}", r#"{"expire_at":0}"#, r#"{"expire_at":-1}"#, r#"{"info":{"a":1},"meta":{}}"#]
    {
        let result = pb::read(json.as_bytes()).expect("a result");
        assert_eq!(refresh(result), Ok(None), "{json}");
    }
    let renewed = pb::RefreshResult { expire_at: 7, ..Default::default() };
    assert_eq!(refresh(renewed).expect("renewed").and_then(|one| one.expire_at), Some(7));
}

#[test]
fn data_of_a_publish_result_wins_over_base64() {
    let result = |json: &str| publish(pb::read(json.as_bytes()).expect("a result"));
    for (json, expected) in [
        ("{}", None),
        (r#"{"data":1}"#, Some("1")),
        (r#"{"data":1,"b64data":"Mg=="}"#, Some("1")),
        (r#"{"b64data":"Mg=="}"#, Some("2")),
    ] {
        let data = result(json).expect("a grant").data;
        assert_eq!(data.as_deref(), expected.map(str::as_bytes), "{json}");
    }
}

#[test]
fn a_disconnect_code_that_is_none_is_left_to_the_node() {
    let Rejection::Disconnect(found) = disconnect(70_000, "x".into()) else {
        panic!("no disconnect")
    };
    assert!(!found.is_close_code());
}

/// Answers of each kind that name every field of their result, and what must be read from them.
const RESULTS: [(&str, Reader); 5] = [
    (
        r#"{"result":{"user":"u","expire_at":7,"info":{"User":1},"b64info":"e30=","data":1,"b64data":"MQ==","channels":["A"],
            "subs":{"User":{"expire_at":1,"info":1,"b64info":"","data":{"Data":[]},"b64data":"","override":{"presence":
            {"value":true},"join_leave":{"value":true},"force_recovery":{"value":true},"force_positioning":{"value":true},
            "force_push_join_leave":{"value":true}},"server_tags_filter":{"op":"or","nodes":[{"key":"a","cmp":"in","vals":["b"]},
            {"key":"a","cmp":"eq","val":"B"}]}}},"meta":{"Meta":1},"labels":{"User":"EU"}}}"#,
        |text| format!("{:?}", part::<pb::ConnectResponse>(text).map(|one| one.map(connect))),
    ),
    (
        r#"{"result":{"expired":false,"expire_at":7,"info":{"Info":1},"b64info":"e30=","meta":{"Meta":1}}}"#,
        |text| format!("{:?}", part::<pb::RefreshResponse>(text).map(|one| one.map(refresh))),
    ),
    (
        r#"{"result":{"expire_at":7,"info":1,"b64info":"e30=","data":1,"b64data":"MQ==","override":{"presence":{"value":false}}}}"#,
        |text| format!("{:?}", part::<pb::SubscribeResponse>(text).map(|one| one.map(subscribe))),
    ),
    (
        r#"{"result":{"data":{"Data":1},"b64data":"MQ==","skip_history":true,"tags":{"Data":"A","DATA":"a"},"idempotency_key":"K",
            "delta":true,"version":7,"version_epoch":"E"}}"#,
        |text| {
            let result = part::<pb::PublishResponse>(text);
            format!("{:?}", result.map(|one| one.map(publish)))
        },
    ),
    (r#"{"result":{"data":{"Data":1},"b64data":"MQ=="}}"#, |text| {
        format!("{:?}", part::<pb::RpcResponse>(text).map(|one| one.map(rpc)))
    }),
];

/// Reads an answer of one kind. Returns the decision in words.
type Reader = fn(&str) -> String;

fn part<R: ProxyResponse>(text: &str) -> Result<Option<R::Result>, Rejection> {
    let unread =
        |error: fanwire_protocol::DecodeError| Rejection::Unavailable(error.to_string().into());
    result(pb::read_response::<R>(text.as_bytes()).map_err(unread)?)
}

/// The text with the names of fields, which are those before a colon and in lower case, in other cases.
fn spelled(text: &str, mut letters: impl FnMut() -> bool) -> String {
    let mut parts = text.split('"').map(str::to_owned).collect::<Vec<_>>();
    for index in (1..parts.len()).step_by(2) {
        let is_key = parts[index + 1].starts_with(':');
        if is_key && parts[index].bytes().all(|letter| !letter.is_ascii_uppercase()) {
            let any_case =
                |letter: char| if letters() { letter.to_ascii_uppercase() } else { letter };
            parts[index] = parts[index].chars().map(any_case).collect();
        }
    }
    parts.join("\"")
}

proptest! {
    #[test]
    fn an_answer_in_any_spelling_is_obeyed(seed in any::<u64>()) {
        let mut random = seed | 1;
        let mut letters = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random & 1 == 1
        };
        for (text, read) in RESULTS {
            let spelling = spelled(text, &mut letters);
            prop_assert_eq!(read(&spelling), read(text), "{}", spelling);
            for refusal in [
                r#"{"error":{"code":403,"message":"No","temporary":true}}"#,
                r#"{"disconnect":{"code":4501,"reason":"No"}}"#,
                r#"{"result":{},"error":{"code":403}}"#,
                r#"{"result":{},"disconnect":{"code":4501}}"#,
            ] {
                let spelling = spelled(refusal, &mut letters);
                let answer = read(&spelling);
                prop_assert_eq!(&answer, &read(refusal), "{}", &spelling);
                prop_assert!(answer.starts_with("Err("), "{spelling}: {answer}");
            }
        }
    }

    #[test]
    fn an_answer_that_names_no_part_is_refused(name in "[a-zA-Zſı_ ]{0,10}") {
        let is_part = ["result", "error", "disconnect"].iter().any(|part| part.eq_ignore_ascii_case(&name));
        prop_assume!(!is_part);
        for (_, read) in RESULTS {
            let text = format!(r#"{{"{name}":{{"code":4501}}}}"#);
            prop_assert!(read(&text).starts_with("Err(Unavailable"), "{text}");
        }
    }
}
