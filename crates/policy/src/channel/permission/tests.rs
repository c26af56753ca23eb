//! Tests of permissions: the whole matrix of options, users and roles (the rules of Centrifugo v6).
//! In: a row of the matrix → out: the decision.
//! May use: the public face of `channel`.
//! How names are read is tested in `channel/tests.rs`.

use super::*;
use crate::options::ChannelOptions;

const DENIED: SubscribeDecision = SubscribeDecision::Denied(ErrorCode::PERMISSION_DENIED);

const ANONYMOUS: Who<'static> = Who { user: "", insecure: false };
const ADA: Who<'static> = Who { user: "42", insecure: false };
const INSECURE: Who<'static> = Who { user: "", insecure: true };

fn check(namespace: &Namespace, channel: &str, expect: [SubscribeDecision; 3]) {
    let options = ChannelOptions { without_namespace: namespace.clone(), ..Default::default() };
    let channels = ChannelRules::new(&options).expect("the options are valid");
    let decided = [ANONYMOUS, ADA, INSECURE]
        .map(|who| channels.may_subscribe(who, channel, namespace, Decider::Rules));
    assert_eq!(decided, expect, "{channel} with {namespace:?}");
    for who in [ANONYMOUS, ADA, INSECURE] {
        let decided = channels.may_subscribe(who, channel, namespace, Decider::Token);
        assert_eq!(decided, SubscribeDecision::VerifyToken, "{channel}");
    }
}

#[test]
fn subscribe_follows_the_matrix() {
    use SubscribeDecision::Allowed;
    let namespace = |client, anonymous, user_limited| Namespace {
        allow_subscribe_for_client: client,
        allow_subscribe_for_anonymous: anonymous,
        allow_user_limited_channels: user_limited,
        ..Namespace::default()
    };
    for user_limited in [false, true] {
        // columns: anonymous, user 42, anonymous in insecure mode
        check(&namespace(false, false, user_limited), "news", [DENIED, DENIED, Allowed]);
        check(&namespace(false, true, user_limited), "news", [DENIED, DENIED, Allowed]);
        check(&namespace(true, false, user_limited), "news", [DENIED, Allowed, Allowed]);
        check(&namespace(true, true, user_limited), "news", [Allowed, Allowed, Allowed]);
        check(&namespace(true, true, user_limited), "$news", [DENIED, DENIED, DENIED]);
        check(&namespace(true, true, user_limited), "$news#42", [DENIED, DENIED, DENIED]);
    }
    for anonymous in [false, true] {
        for client in [false, true] {
            let limited = namespace(client, anonymous, true);
            check(&limited, "talk#42,43", [DENIED, Allowed, Allowed]);
            check(&limited, "talk#43", [DENIED, DENIED, Allowed]);
            check(&limited, "talk#42#43", [DENIED, DENIED, Allowed]);
            check(&limited, "talk#", [DENIED, DENIED, Allowed]);
        }
        check(&namespace(false, anonymous, false), "talk#42", [DENIED, DENIED, Allowed]);
    }
}

#[test]
fn publish_follows_the_matrix() {
    let flags = [false, true];
    for client in flags {
        for subscriber in flags {
            for anonymous in flags {
                for subscribed in flags {
                    let namespace = Namespace {
                        allow_publish_for_client: client,
                        allow_publish_for_subscriber: subscriber,
                        allow_publish_for_anonymous: anonymous,
                        ..Namespace::default()
                    };
                    let role = client || (subscriber && subscribed);
                    let expect = [role && anonymous, role, true];
                    let decided = [ANONYMOUS, ADA, INSECURE]
                        .map(|who| may_publish(who, &namespace, subscribed).is_ok());
                    assert_eq!(decided, expect, "subscribed {subscribed}, {namespace:?}");
                }
            }
        }
    }
}

#[test]
fn presence_follows_the_same_matrix_where_there_is_any() {
    let flags = [false, true];
    for bits in 0..16 {
        let flag = |bit: u32| flags[bits >> bit & 1];
        let (client, subscriber, anonymous, subscribed) = (flag(0), flag(1), flag(2), flag(3));
        let mut namespace = Namespace {
            presence: true,
            allow_presence_for_client: client,
            allow_presence_for_subscriber: subscriber,
            allow_presence_for_anonymous: anonymous,
            ..Namespace::default()
        };
        let role = client || (subscriber && subscribed);
        let decide = |namespace: &Namespace| {
            [ANONYMOUS, ADA, INSECURE].map(|who| may_see_presence(who, namespace, subscribed))
        };
        let expect = [role && anonymous, role, true]
            .map(|may| if may { Ok(()) } else { Err(ErrorCode::PERMISSION_DENIED) });
        assert_eq!(decide(&namespace), expect, "subscribed {subscribed}, {namespace:?}");
        namespace.presence = false;
        assert_eq!(decide(&namespace), [Err(ErrorCode::NOT_AVAILABLE); 3]);
    }
}

#[test]
fn refused_publish_gets_103() {
    let refused = may_publish(ADA, &Namespace::default(), true);
    assert_eq!(refused, Err(ErrorCode::PERMISSION_DENIED));
}

#[test]
fn a_hook_is_asked_where_neither_the_name_nor_a_token_decides() {
    let options = ChannelOptions {
        without_namespace: Namespace { allow_user_limited_channels: true, ..Namespace::default() },
        ..ChannelOptions::default()
    };
    let channels = ChannelRules::new(&options).expect("the options are valid");
    let decide = |channel: &str| {
        channels.may_subscribe(ADA, channel, &options.without_namespace, Decider::Hook)
    };
    assert_eq!(decide("news"), SubscribeDecision::AskHook);
    assert_eq!(decide("$news"), DENIED);
    assert_eq!(decide("talk#42"), SubscribeDecision::Allowed);
    assert_eq!(decide("talk#43"), DENIED);
}

#[test]
fn json_that_ends_readers_is_refused_unless_any_bytes_are_wanted() {
    let deep = "[".repeat(513) + &"]".repeat(513);
    for (format, expect) in
        [(DataFormat::Unset, false), (DataFormat::Json, false), (DataFormat::Binary, true)]
    {
        assert_eq!(check_data(format, deep.as_bytes()).is_ok(), expect, "{format:?}");
        assert_eq!(
            check_data(format, &deep.as_bytes()[1..]).is_ok(),
            format != DataFormat::Json,
            "no JSON"
        );
    }
    let object = format!("{{\"a\":{deep}}}");
    assert!(check_data(DataFormat::JsonObject, object.as_bytes()).is_err());
}

#[test]
fn data_must_have_the_format_of_the_namespace() {
    use DataFormat::{Binary, Json, JsonObject, Unset};
    let rows: [(&[u8], &[DataFormat]); 8] = [
        (b"", &[Binary]),
        (b"\xff\x00", &[Unset, Binary]),
        (b"{", &[Unset, Binary]),
        (b"{} {}", &[Unset, Binary]),
        (b"42", &[Unset, Json, Binary]),
        (b"[{}]", &[Unset, Json, Binary]),
        (b"\"\xff\"", &[Unset, Binary]),
        (b" {\"a\":[1,2]} ", &[Unset, Json, JsonObject, Binary]),
    ];
    for (data, formats) in rows {
        for format in [Unset, Json, JsonObject, Binary] {
            let expect =
                if formats.contains(&format) { Ok(()) } else { Err(ErrorCode::BAD_REQUEST) };
            assert_eq!(check_data(format, data), expect, "{format:?} {data:?}");
        }
    }
}

/// Setting and removing keys have permissions of their own, with the rules of publishing.
#[test]
fn keys_of_maps_are_set_and_removed_by_those_who_may() {
    let ada = Who { user: "ada", insecure: false };
    let anonymous = Who { user: "", insecure: false };
    let denied = Err(ErrorCode::PERMISSION_DENIED);
    let none = MapOptions::default();
    for check in [may_set_keys, may_remove_keys] {
        assert_eq!(check(ada, &none, true), denied);
        assert_eq!(check(Who { insecure: true, ..anonymous }, &none, false), Ok(()));
    }
    let for_subscribers = MapOptions {
        allow_publish_for_subscriber: true,
        allow_remove_for_subscriber: true,
        ..MapOptions::default()
    };
    let for_clients = MapOptions {
        allow_publish_for_client: true,
        allow_publish_for_anonymous: true,
        ..MapOptions::default()
    };
    for check in [may_set_keys, may_remove_keys] {
        assert_eq!(check(ada, &for_subscribers, true), Ok(()));
        assert_eq!(check(ada, &for_subscribers, false), denied);
        assert_eq!(check(anonymous, &for_subscribers, true), denied);
    }
    assert_eq!(may_set_keys(anonymous, &for_clients, false), Ok(()));
    assert_eq!(may_remove_keys(ada, &for_clients, true), denied);
}
