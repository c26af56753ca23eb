//! Malformed bodies: broken JSON, wrong types, wrong text encodings.
//! In: bytes. Out: 400 with the reason in plain text, and no effect.
//! Uses the test harness only.
//! Well-formed requests with invalid values are in `replies`.

use crate::harness::Harness;

#[tokio::test]
async fn broken_json_gets_400_in_plain_text() {
    let deep = format!(r#"{{"channel":{}"#, "[".repeat(100_000));
    let bodies: [&[u8]; 16] = [
        b"",
        b" ",
        b"{",
        b"}",
        b"null",
        b"[]",
        b"\"publish\"",
        b"1",
        b"{\"channel\"}",
        b"{\"channel\":\"a\",}",
        b"{\"channel\":\"a\",\"data\":{}} x",
        b"{\"channel\":\"a\",\"data\":{}}{}",
        b"{\"channel\":\"a\",\"data\":{\"x\":}}",
        b"{\"channel\":\"a\xff\",\"data\":{}}",
        b"{\"channel\":\"a\",\"data\":\"\xc3\x28\"}",
        deep.as_bytes(),
    ];
    let harness = Harness::new();
    for body in bodies {
        for path in ["/api/publish", "/api/broadcast"] {
            let answer = harness.post(path, body.to_vec()).await;
            let is_text = str::from_utf8(body).is_ok();
            assert_eq!(answer.malformed().contains("not UTF-8"), !is_text, "{path}: {answer:?}");
        }
    }
    assert_eq!(harness.api.counters().refusals().malformed, 32);
    assert_eq!(harness.api.counters().of(fanwire_api::Method::Publish).calls, 0);
}

#[tokio::test]
async fn wrong_types_get_400() {
    let rows = [
        ("publish", r#"{"channel":1,"data":{}}"#),
        ("publish", r#"{"channel":["a"],"data":{}}"#),
        ("publish", r#"{"channel":"a","data":{},"tags":{"k":1}}"#),
        ("publish", r#"{"channel":"a","data":{},"tags":[]}"#),
        ("publish", r#"{"channel":"a","data":{},"skip_history":1}"#),
        ("publish", r#"{"channel":"a","data":{},"version":-1}"#),
        ("publish", r#"{"channel":"a","data":{},"version":1.5}"#),
        ("publish", r#"{"channel":"a","data":{},"version":18446744073709551616}"#),
        ("publish", r#"{"channel":"a","b64data":7}"#),
        ("publish", r#"{"channel":"a","channel":"b","data":{}}"#),
        ("publish", r#"["a",{}]"#),
        ("broadcast", r#"{"channels":"a","data":{}}"#),
        ("broadcast", r#"{"channels":[1],"data":{}}"#),
        ("broadcast", r#"{"channels":[null],"data":{}}"#),
        ("disconnect", r#"{"user":1}"#),
        ("disconnect", r#"{"disconnect":{"code":"3000"}}"#),
        ("disconnect", r#"{"disconnect":[3000,"x"]}"#),
        ("disconnect", r#"{"disconnect":{"code":-1}}"#),
        ("disconnect", r#"{"whitelist":"c"}"#),
        ("unsubscribe", r#"{"channel":{}}"#),
        ("unsubscribe", ""),
        ("disconnect", ""),
        ("subscribe", ""),
        ("subscribe", r#"{"channel":"a","expire_at":"soon"}"#),
        ("subscribe", r#"{"channel":"a","recover_since":[1,"e"]}"#),
        ("subscribe", r#"{"channel":"a","override":[]}"#),
        ("subscribe", r#"{"channel":"a","override":{"presence":true}}"#),
        ("refresh", ""),
        ("refresh", r#"{"expired":"yes"}"#),
        ("refresh", r#"{"expire_at":1.5}"#),
        ("channels", r#"{"pattern":1}"#),
        ("channels", "[]"),
        ("info", "[]"),
        ("info", "{"),
        ("presence", "{"),
        ("presence", r#"{"channel":1}"#),
        ("presence_stats", r#"{"channel":{}}"#),
        ("batch", r#"{"commands":{}}"#),
        ("batch", r#"{"commands":[1]}"#),
        ("batch", r#"{"commands":[[]]}"#),
        ("batch", r#"{"commands":[{"publish":[]}]}"#),
        ("batch", r#"{"commands":[{"publish":{"channel":1}}]}"#),
        ("batch", r#"{"commands":[],"parallel":"yes"}"#),
    ];
    let harness = Harness::new();
    for (method, body) in rows {
        let answer = harness.post(&format!("/api/{method}"), body).await;
        assert!(answer.malformed().contains(" at line 1 column "), "{method} {body}: {answer:?}");
    }
}
