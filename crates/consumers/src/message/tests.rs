//! Tests of the forms of messages.
//! In: methods, payloads and headers → out: commands, or causes.
//! Uses values only, and proptest for any bytes. Never: sockets.
//! A form is a test here.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn message(method: &str, payload: &str) -> QueueMessage {
    let payload = Some(Bytes::copy_from_slice(payload.as_bytes()));
    QueueMessage { method: method.to_owned(), payload, ..QueueMessage::default() }
}

/// The channel and the data of a publish command, or the cause.
fn check(method: &str, payload: &str, expected: Result<(&str, &str), SkipCause>) {
    let command = message(method, payload).command(None);
    let published = command.map(|command| match command {
        Command::Publish(PublishRequest { channel, data, .. }) => {
            (channel, String::from_utf8(data.to_vec()).expect("data is JSON"))
        }
        other => panic!("{payload}: {other:?}"),
    });
    let expected = expected.map(|(channel, data)| (channel.to_owned(), data.to_owned()));
    assert_eq!(published, expected, "{method:?} {payload}");
}

#[test]
fn an_envelope_names_its_method() {
    let envelope = r#" {"payload":{"channel":"a","data":{"ü":1e400}},"method":"publish","id":7}"#;
    check("", envelope, Ok(("a", r#"{"ü":1e400}"#)));
}

#[test]
fn names_are_read_in_any_case_and_payloads_keep_theirs() {
    let request = r#"{"Channel":"A","DATA":{"Data":1,"data":2}}"#;
    let expected = Ok(("A", r#"{"Data":1,"data":2}"#));
    check("publish", request, expected);
    check("", &format!(r#"{{"Method":"publish","PAYLOAD":{request}}}"#), expected);
    for twice in [r#"{"channel":"a","Channel":"b"}"#, r#"{"CHANNEL":"a","Channel":"a"}"#] {
        check("publish", twice, Err(SkipCause::Malformed));
    }
    let twice = format!(r#"{{"method":"publish","Method":"publish","payload":{request}}}"#);
    check("", &twice, Err(SkipCause::Malformed));
}

#[test]
fn the_payload_of_an_envelope_may_be_a_text_with_json() {
    let envelope =
        r#"{"method":"publish","payload":"{\"channel\":\"ä\",\"data\":\"\\u00fc\\n\"}"}"#;
    check("", envelope, Ok(("ä", r#""\u00fc\n""#)));
    check("", r#"{"method":"publish","payload":"publish"}"#, Err(SkipCause::Malformed));
    check("", r#"{"method":"publish","payload":"\"{}\""}"#, Err(SkipCause::Malformed));
}

#[test]
fn a_method_outside_makes_the_payload_the_request() {
    check("publish", r#"{"channel":"a","data":5}"#, Ok(("a", "5")));
    check("publish", r#"{"channel":"a","data":null,"unknown":1}"#, Ok(("a", "null")));
    // What is missing is for the API to judge: it answers 107.
    check("publish", "{}", Ok(("", "")));
}

#[test]
fn what_is_no_command_has_a_cause() {
    for wrong in
        ["", "null", "5", "[]", "{", "{}", r#"["publish",{}]"#, r#"{"method":5,"payload":{}}"#]
    {
        check("", wrong, Err(SkipCause::Malformed));
    }
    for wrong in ["", "null", "5", "{} x", r#"{"channel":5}"#, "\u{feff}{}"] {
        check("publish", wrong, Err(SkipCause::Malformed));
    }
    check("", "\u{feff}{\"method\":\"publish\",\"payload\":{}}", Err(SkipCause::Malformed));
}

#[test]
fn methods_that_read_and_batches_are_not_executed() {
    let executed = Method::ALL.into_iter().filter(|method| {
        let command = message(method.name(), "{}").command(None);
        command != Err(SkipCause::Method)
    });
    let names: BTreeSet<&str> = executed.map(Method::name).collect();
    let all = [
        "publish",
        "broadcast",
        "append",
        "subscribe",
        "unsubscribe",
        "disconnect",
        "refresh",
        "history_remove",
    ];
    assert_eq!(names, BTreeSet::from(all));
    for wrong in ["Publish", "publish ", "batch", "history", "rpc", "nothing"] {
        check(wrong, "{}", Err(SkipCause::Method));
    }
    check("", r#"{"method":"","payload":{}}"#, Err(SkipCause::Method));
}

#[test]
fn a_payload_that_is_missing_or_too_long_is_skipped() {
    let long = |bytes: usize| {
        let head = r#"{"channel":"a","data":""#;
        format!("{head}{}\"}}", "x".repeat(bytes - head.len() - 2))
    };
    let command = |bytes| message("publish", &long(bytes)).command(None);
    assert!(command(MESSAGE_BYTES_MAX).is_ok());
    assert_eq!(command(MESSAGE_BYTES_MAX + 1), Err(SkipCause::Payload));
    assert_eq!(command(20_000_000), Err(SkipCause::Payload));
    assert_eq!(QueueMessage::default().command(None), Err(SkipCause::Payload));
}

/// The names that a consumer has without settings.
fn mode() -> PublicationDataMode {
    PublicationDataMode {
        enabled: true,
        channels: "centrifugo-channels".to_owned(),
        idempotency_key: "centrifugo-idempotency-key".to_owned(),
        delta: "centrifugo-delta".to_owned(),
        version: "centrifugo-version".to_owned(),
        version_epoch: "centrifugo-version-epoch".to_owned(),
        tags_prefix: "centrifugo-tag-".to_owned(),
    }
}

fn publication(data: &[u8], headers: &[(&str, &str)]) -> Result<Command, SkipCause> {
    let pair = |(name, value): &(&str, &str)| (format!("centrifugo-{name}"), (*value).to_owned());
    let headers = headers.iter().map(pair).collect();
    let payload = Some(Bytes::copy_from_slice(data));
    QueueMessage { method: "ignored".to_owned(), payload, headers, ..QueueMessage::default() }
        .command(Some(&mode()))
}

#[test]
fn headers_are_the_options_of_a_publication() {
    let headers = [
        ("channels", "a"),
        ("idempotency-key", "k"),
        ("delta", "t"),
        ("version", "18446744073709551615"),
        ("version-epoch", "e"),
        ("tag-kind", "x"),
        ("tag-", "y"),
        ("Tag-other", "z"),
    ];
    let expected = PublishRequest {
        channel: "a".to_owned(),
        data: Bytes::from_static(b"{}"),
        idempotency_key: "k".to_owned(),
        delta: true,
        version: u64::MAX,
        version_epoch: "e".to_owned(),
        tags: [("kind", "x"), ("", "y")].map(|(a, b)| (a.to_owned(), b.to_owned())).into(),
        ..PublishRequest::default()
    };
    assert_eq!(publication(b"{}", &headers), Ok(Command::Publish(expected)));
}

#[test]
fn several_channels_are_a_broadcast_and_none_is_a_cause() {
    let Ok(Command::Broadcast(request)) = publication(b"1", &[("channels", "a, b,")]) else {
        panic!("a broadcast");
    };
    assert_eq!(request.channels, ["a", " b", ""]);
    assert_eq!(publication(b"1", &[("channels", "")]), Err(SkipCause::Channels));
    assert_eq!(publication(b"1", &[("Channels", "a")]), Err(SkipCause::Channels));
}

#[test]
fn data_that_is_not_json_is_binary() {
    let Ok(Command::Publish(request)) = publication(b"\xff\0", &[("channels", "a")]) else {
        panic!("a publish");
    };
    assert_eq!((&*request.data, &*request.b64data), (&b""[..], "/wA="));
}

#[test]
fn options_of_a_wrong_form_are_a_cause_and_empty_ones_are_none() {
    for (name, value) in [
        ("delta", "yes"),
        ("version", "-1"),
        ("version", "1.0"),
        ("version", "18446744073709551616"),
    ] {
        let found = publication(b"1", &[("channels", "a"), (name, value)]);
        assert_eq!(found, Err(SkipCause::Header), "{name} {value}");
    }
    for value in ["0", "f", "F", "FALSE", "false", "False", ""] {
        let found = publication(b"1", &[("channels", "a"), ("delta", value), ("version", "")]);
        assert!(
            matches!(found, Ok(Command::Publish(PublishRequest { delta: false, version: 0, .. }))),
            "{value}"
        );
    }
}

#[test]
fn an_empty_name_switches_an_option_off() {
    let headers = vec![(String::new(), "a".to_owned()), ("x".to_owned(), "b".to_owned())];
    let message = QueueMessage {
        headers,
        payload: Some(Bytes::from_static(b"1")),
        ..QueueMessage::default()
    };
    let off = PublicationDataMode { channels: "x".to_owned(), ..PublicationDataMode::default() };
    let Ok(Command::Publish(request)) = message.command(Some(&off)) else { panic!("a publish") };
    assert_eq!((&*request.channel, request.tags.len(), &*request.idempotency_key), ("b", 0, ""));
}

proptest! {
    #[test]
    fn any_bytes_are_a_command_or_a_cause(method in "|publish|refresh|x", payload: Vec<u8>) {
        let payload = Some(Bytes::from(payload));
        let _ = QueueMessage { method, payload, ..QueueMessage::default() }.command(None);
    }

    #[test]
    fn any_request_in_an_envelope_is_the_one_outside(channel: String, data: String) {
        let request = serde_json::json!({"channel": channel, "data": data});
        let outside = message("publish", &request.to_string()).command(None);
        let inside = serde_json::json!({"method": "publish", "payload": request});
        let as_text = serde_json::json!({"method": "publish", "payload": request.to_string()});
        prop_assert_eq!(&message("", &inside.to_string()).command(None), &outside);
        prop_assert_eq!(&message("", &as_text.to_string()).command(None), &outside);
        prop_assert!(outside.is_ok());
    }
}
