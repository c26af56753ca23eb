//! Tests of Centrifugo's claims in connection and subscription tokens (the claims of Centrifugo v6).
//! In: the payload of a genuine token → out: what the session gets.
//! May use: `fixture.rs`. Time is a number.
//! Signatures and lifetimes of tokens are tested in `verifier/tests.rs`.

use super::super::{Fault, TokenError};
use super::*;
use crate::fixture::{NOW, hmac, hs256};

fn connection(payload: &str) -> Result<ConnectionClaims, TokenError> {
    hmac().verify_connection(&hs256(payload), NOW)
}

fn subscription(payload: &str) -> Result<SubscriptionClaims, TokenError> {
    hmac().verify_subscription(&hs256(payload), NOW)
}

const WRONG: TokenError = TokenError::Invalid(Fault::Claims);

#[test]
fn connection_token_carries_user_info_channels_meta_and_expiry() {
    let payload = r#"{"sub":"ada","info":{"name": "Ada"},"channels":["news","chat:1","news"],
        "meta":{"role":"x"},"labels":{"region":"eu"},"exp":1700000060,"iat":1,"jti":"7"}"#;
    let expect = ConnectionClaims {
        user: "ada".to_owned(),
        info: Bytes::from_static(br#"{"name": "Ada"}"#),
        expire_at: Some(NOW + 60),
        channels: ["news", "chat:1"]
            .map(|channel| (channel.to_owned(), ChannelGrant::default()))
            .into(),
        meta: Bytes::from_static(br#"{"role":"x"}"#),
        labels: BTreeMap::from([("region".to_owned(), "eu".to_owned())]),
        uid: "7".to_owned(),
        issued_at: 1,
    };
    assert_eq!(connection(payload), Ok(expect));
    assert_eq!(connection("{}"), Ok(ConnectionClaims::default()));
}

#[test]
fn null_claims_are_absent() {
    let payload = r#"{"sub":null,"exp":null,"nbf":null,"aud":null,"iss":null,"info":null,"b64info":null,
        "channels":null,"subs":null,"meta":null,"labels":null,"expire_at":null,"channel":null,"jti":null,"iat":null}"#;
    assert_eq!(connection(payload), Ok(ConnectionClaims::default()));
}

#[test]
fn base64_info_wins_over_json_info() {
    let info = |payload| connection(payload).map(|claims| claims.info);
    assert_eq!(info(r#"{"b64info":"/wA=","info":1}"#), Ok(Bytes::from_static(b"\xff\x00")));
    assert_eq!(info(r#"{"b64info":"","info":1}"#), Ok(Bytes::from_static(b"1")));
    assert_eq!(info(r#"{"b64info":"_wA="}"#), Err(WRONG));
    assert_eq!(info(r#"{"b64info":"/wA"}"#), Err(WRONG));
}

#[test]
fn expire_at_wins_over_exp_and_zero_is_never() {
    let expire_at = |payload| connection(payload).map(|claims| claims.expire_at);
    assert_eq!(expire_at(r#"{"exp":1700000060}"#), Ok(Some(1_700_000_060)));
    assert_eq!(expire_at(r#"{"exp":1700000060,"expire_at":1800000000}"#), Ok(Some(1_800_000_000)));
    assert_eq!(expire_at(r#"{"exp":1700000060,"expire_at":0}"#), Ok(None));
    assert_eq!(expire_at(r#"{"exp":1700000060,"expire_at":-1}"#), Ok(None));
    assert_eq!(expire_at(r#"{"expire_at":1}"#), Ok(Some(1)));
    assert_eq!(expire_at(r#"{"exp":1,"expire_at":1800000000}"#), Err(TokenError::Expired));
    assert_eq!(expire_at(r#"{"expire_at":"1800000000"}"#), Ok(Some(1_800_000_000)));
}

#[test]
fn subs_win_over_channels_and_carry_their_own_payloads() {
    let payload = r#"{"channels":["lost"],"subs":{
        "news":{},
        "chat:1":{"info":{"a":1},"b64data":"/w==","data":2,"override":{
            "presence":{"value":true},"join_leave":{"value":false},"force_recovery":{},
            "force_positioning":null,"unknown":{"value":true}},
            "server_tags_filter":{"key":"team", "cmp":"ex"}}}}"#;
    let chat = ChannelGrant {
        info: Bytes::from_static(br#"{"a":1}"#),
        data: Bytes::from_static(b"\xff"),
        overrides: Overrides {
            presence: Some(true),
            join_leave: Some(false),
            force_recovery: Some(false),
            force_positioning: None,
            force_push_join_leave: None,
        },
        server_tags_filter: Bytes::from_static(br#"{"key":"team", "cmp":"ex"}"#),
    };
    let expect = [("chat:1".to_owned(), chat), ("news".to_owned(), ChannelGrant::default())];
    assert_eq!(connection(payload).map(|claims| claims.channels), Ok(expect.into()));
    let channels = connection(r#"{"subs":{},"channels":["news"]}"#).map(|claims| claims.channels);
    assert_eq!(channels, Ok([("news".to_owned(), ChannelGrant::default())].into()));
}

#[test]
fn subscription_token_cannot_connect() {
    assert_eq!(connection(r#"{"sub":"ada","channel":"news"}"#), Err(WRONG));
    assert_eq!(connection(r#"{"channel":1}"#), Err(WRONG));
    assert_eq!(connection(r#"{"channel":""}"#), Ok(ConnectionClaims::default()));
}

#[test]
fn connection_claims_of_a_wrong_type_are_refused() {
    let payloads = [
        r#"{"channels":"news"}"#,
        r#"{"channels":[1]}"#,
        r#"{"subs":["news"]}"#,
        r#"{"subs":{"news":1}}"#,
        r#"{"subs":{"news":{"override":1}}}"#,
        r#"{"subs":{"news":{"override":{"presence":true}}}}"#,
        r#"{"subs":{"news":{"b64info":"?"}}}"#,
        r#"{"b64info":1}"#,
        r#"{"meta":1,"meta":2}"#,
    ];
    for payload in payloads {
        assert_eq!(connection(payload), Err(WRONG), "{payload}");
    }
}

#[test]
fn subscription_token_carries_channel_client_payloads_and_overrides() {
    let payload = r#"{"sub":"ada","channel":"$news","client":"c1","info":[1],"data":{"x":2},
        "exp":1700000060,"jti":"7","iat":2,"override":{"force_push_join_leave":{"value":true}},
        "server_tags_filter":{"key":"k"}}"#;
    let expect = SubscriptionClaims {
        user: "ada".to_owned(),
        channel: "$news".to_owned(),
        client: "c1".to_owned(),
        info: Bytes::from_static(b"[1]"),
        data: Bytes::from_static(br#"{"x":2}"#),
        expire_at: Some(NOW + 60),
        overrides: Overrides { force_push_join_leave: Some(true), ..Overrides::default() },
        server_tags_filter: Bytes::from_static(br#"{"key":"k"}"#),
        uid: "7".to_owned(),
        issued_at: 2,
    };
    assert_eq!(subscription(payload), Ok(expect));
}

#[test]
fn connection_token_cannot_subscribe() {
    for payload in
        [r#"{"sub":"ada"}"#, r#"{"channel":""}"#, r#"{"channel":null}"#, r#"{"channel":1}"#]
    {
        assert_eq!(subscription(payload), Err(WRONG), "{payload}");
    }
}

#[test]
fn subscription_token_is_for_one_user_channel_and_maybe_client() {
    let claims = |payload| subscription(payload).expect("the token is genuine");
    let any_client = claims(r#"{"sub":"ada","channel":"news"}"#);
    assert!(any_client.is_for("ada", "news", "c1"));
    assert!(!any_client.is_for("eve", "news", "c1"));
    assert!(!any_client.is_for("", "news", "c1"));
    assert!(!any_client.is_for("ada", "new", "c1"));
    let one_client = claims(r#"{"sub":"ada","channel":"news","client":"c1"}"#);
    assert!(one_client.is_for("ada", "news", "c1"));
    assert!(!one_client.is_for("ada", "news", "c2"));
    let anonymous = claims(r#"{"channel":"news"}"#);
    assert!(anonymous.is_for("", "news", "c1"));
    assert!(!anonymous.is_for("ada", "news", "c1"));
}

#[test]
fn forms_that_the_reference_reads_are_read() {
    let payload = r#"{"exp": "4102444800", "subs": {"a": null, "b": {}}}"#;
    let claims = connection(payload).expect("claims");
    assert_eq!(claims.expire_at, Some(4_102_444_800));
    assert_eq!(claims.channels.keys().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(connection(r#"{"exp": "soon"}"#), Err(WRONG));
}
