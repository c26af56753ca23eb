//! Tests of the options: the defaults of Centrifugo v6, and what each mistake is called.
//! In: options with one value changed → out: fine, or an error with key, value and expectation.
//! May use: the public face of `options`.
//! Mistakes in names and patterns are in `channel/build/tests.rs`, in keys in `fanwire_auth`.

use std::time::Duration;

use super::*;

fn error(change: impl FnOnce(&mut Options)) -> String {
    let mut options = Options::default();
    change(&mut options);
    options.validate().expect_err("the change is a mistake").to_string()
}

#[test]
fn defaults_are_valid_and_those_of_centrifugo() {
    let options = Options::default();
    assert_eq!(options.validate(), Ok(()));
    let ClientOptions { ping_interval, pong_timeout, stale_close_delay, .. } = options.client;
    assert_eq!(
        [ping_interval, pong_timeout, stale_close_delay],
        [25, 8, 10].map(Duration::from_secs)
    );
    assert_eq!(options.client.expired_close_delay, Duration::from_secs(25));
    assert_eq!(options.client.expired_sub_close_delay, Duration::from_secs(25));
    assert_eq!((options.client.channel_limit, options.client.queue_max_size), (128, 1_048_576));
    let ChannelOptions {
        private_prefix, namespace_boundary, user_boundary, user_separator, ..
    } = options.channel;
    assert_eq!(
        [private_prefix, namespace_boundary, user_boundary, user_separator],
        ["$", ":", "#", ","]
    );
    assert_eq!(options.channel.max_length, 255);
    assert_eq!(options.rpc, RpcOptions::default());
}

#[test]
fn pong_timeout_must_be_shorter_than_ping_interval() {
    assert_eq!(
        error(|options| options.client.pong_timeout = Duration::from_secs(25)),
        "client.pong_timeout is \"25s\", expected less than client.ping_interval (25s)"
    );
}

#[test]
fn limits_of_zero_are_refused_by_name() {
    let expected = |key| format!("{key} is \"0\", expected at least 1");
    assert_eq!(error(|options| options.client.channel_limit = 0), expected("client.channel_limit"));
    assert_eq!(
        error(|options| options.client.queue_max_size = 0),
        expected("client.queue_max_size")
    );
}

#[test]
fn codes_of_disconnects_for_errors_of_connect_are_checked() {
    const KEY: &str = "client.connect_code_to_unidirectional_disconnect.transforms";
    let transformed = |code, to: u16, reason: &'static str| {
        let to = Disconnect { code: to, reason: reason.into() };
        move |options: &mut Options| {
            let transform = ConnectCodeTransform { code, to };
            options.client.connect_code_to_unidirectional_disconnect = vec![transform];
        }
    };
    let expected = format!("{KEY} is \"code: 0\", expected codes of errors, which are above 0");
    assert_eq!(error(transformed(0, 4000, "")), expected);
    for code in [0, 1000, 2999, 5000] {
        let expected = "expected codes of disconnects, 3000 to 4999";
        let expected = format!("{KEY} is \"to.code: {code}\", {expected}");
        assert_eq!(error(transformed(400, code, "")), expected);
    }
    let long = error(transformed(400, 4000, LONG));
    assert!(long.ends_with("\", expected reasons of at most 123 bytes"), "{long}");
    let mut options = Options::default();
    transformed(400, 4000, &LONG[1..])(&mut options);
    assert_eq!(options.validate(), Ok(()));
}

const LONG: &str = match std::str::from_utf8(&[b'a'; 124]) {
    Ok(text) => text,
    Err(_) => unreachable!(),
};

#[test]
fn enabled_rpc_ping_needs_a_method() {
    assert_eq!(
        error(|options| options.rpc =
            RpcOptions { ping: true, ping_method: String::new(), ..RpcOptions::default() }),
        "rpc.ping.method is \"\", expected the name of a method"
    );
}

#[test]
fn claim_of_subscription_tokens_is_checked_under_its_own_key() {
    let token = TokenOptions { user_id_claim: "user-id".to_owned(), ..TokenOptions::default() };
    assert_eq!(
        error(|options| options.client.subscription_token = Some(token)),
        "client.subscription_token.user_id_claim is \"user-id\", expected letters a-z A-Z and _ only"
    );
}

#[test]
fn pattern_that_does_not_compile_is_shown_with_its_cause() {
    assert_eq!(
        error(|options| options.client.token.issuer_regex = "(a".to_owned()),
        "client.token.issuer_regex is \"(a\", expected a regular expression: unclosed group"
    );
}

#[test]
fn data_formats_are_read_by_their_configuration_names() {
    let parsed = DataFormat::NAMES.map(DataFormat::parse);
    let expected =
        [DataFormat::Unset, DataFormat::Json, DataFormat::JsonObject, DataFormat::Binary];
    assert_eq!(parsed, expected.map(Some));
    assert_eq!(DataFormat::parse("JSON"), None);
}

#[test]
fn compression_policies_are_read_by_their_configuration_names() {
    use CompressionPolicy::{Context, Off, Standalone, Unset};
    let parsed = CompressionPolicy::NAMES.map(CompressionPolicy::parse);
    assert_eq!(parsed, [Unset, Context, Standalone, Off].map(Some));
    assert_eq!(CompressionPolicy::parse("on"), None);
}

#[test]
fn context_is_the_default_where_every_publisher_may_read() {
    let policy = |is_private, change: fn(&mut Namespace)| {
        let mut namespace = Namespace::default();
        change(&mut namespace);
        namespace.compression_policy(is_private)
    };
    let may_do_both: fn(&mut Namespace) = |namespace| {
        namespace.allow_subscribe_for_client = true;
        namespace.allow_publish_for_client = true;
    };
    assert_eq!(policy(false, |_| ()), CompressionPolicy::Context, "only backends publish");
    assert_eq!(policy(true, |_| ()), CompressionPolicy::Context);
    assert_eq!(policy(false, may_do_both), CompressionPolicy::Context);
    assert_eq!(
        policy(true, may_do_both),
        CompressionPolicy::Standalone,
        "a token is needed to read"
    );
    let subscribers = |namespace: &mut Namespace| namespace.allow_publish_for_subscriber = true;
    assert_eq!(policy(false, subscribers), CompressionPolicy::Context, "who publishes has read");
    let blind: [fn(&mut Namespace); 3] = [
        |namespace| namespace.allow_publish_for_client = true,
        |namespace| {
            namespace.allow_subscribe_for_client = true;
            namespace.allow_publish_for_client = true;
            namespace.allow_publish_for_anonymous = true;
        },
        |namespace| {
            namespace.allow_subscribe_for_client = true;
            namespace.allow_publish_for_client = true;
            namespace.allow_user_limited_channels = true;
        },
    ];
    for change in blind {
        assert_eq!(policy(false, change), CompressionPolicy::Standalone);
    }
    let set = |namespace: &mut Namespace| {
        namespace.allow_publish_for_client = true;
        namespace.compression = CompressionPolicy::Context;
    };
    assert_eq!(policy(false, set), CompressionPolicy::Context, "said is said");
}

#[test]
fn presence_must_be_renewed_before_it_ends() {
    let times = |interval: u64, ttl: u64| {
        error(|options| {
            options.client.presence_update_interval = Duration::from_millis(interval);
            options.client.presence_ttl = Duration::from_millis(ttl);
        })
    };
    assert!(times(60_000, 60_000).starts_with("client.presence_ttl"), "{}", times(60_000, 60_000));
    assert!(times(999, 60_000).starts_with("client.presence_update_interval"), "{}", times(999, 1));
}

#[test]
fn a_status_must_be_renewed_before_it_ends() {
    let found = error(|options| {
        options.user_status.enabled = true;
        options.user_status.expire_interval = options.client.presence_update_interval;
    });
    let expect = "user_status.expire_interval is \"27s\", expected more than client.presence_update_interval (27s)";
    assert_eq!(found, expect);
}

#[test]
fn debug_output_hides_secrets() {
    let token = TokenOptions {
        hmac_secret_key: "first secret".into(),
        hmac_previous_secret_key: "second secret".into(),
        ..TokenOptions::default()
    };
    let shown = format!("{token:?}");
    assert!(!shown.contains("first") && !shown.contains("second"), "{shown}");
}

#[test]
fn rates_that_cannot_be_kept_are_refused_by_name() {
    let rate = |limit, ms| Rate { limit, interval: Duration::from_millis(ms) };
    assert_eq!(
        error(|options| options.client.command_rate = rate(1_000_001, 1000)),
        "client.rate_limit.client_command.limit is \"1000001\", expected at most 1000000"
    );
    assert_eq!(
        error(|options| options.client.refusal_rate = rate(1, 999)),
        "client.rate_limit.refusal.interval is \"999ms\", expected at least 1s"
    );
    assert_eq!(
        error(|options| options.channel.without_namespace.publish_rate = rate(1, 0)),
        "channel.without_namespace.publish_rate_interval is \"0ns\", expected at least 1s"
    );
    assert_eq!(
        error(|options| options.channel.without_namespace.subscribe_rate = rate(1, 0)),
        "channel.without_namespace.subscribe_rate_interval is \"0ns\", expected at least 1s"
    );
    let of_users = |options: &mut Options| {
        options.channel.without_namespace.limits.user_publish.interval = Duration::ZERO;
    };
    assert_eq!(
        error(of_users),
        "channel.without_namespace.limits.user_publish.interval is \"0ns\", expected at least 1s"
    );
    let rings = |options: &mut Options| {
        options.channel.without_namespace.areas.rings = vec!["20/5".into(), "10/9".into()];
    };
    assert!(error(rings).starts_with("channel.without_namespace.area_rings is \"20/5, 10/9\", "));
}

#[test]
fn every_mistake_is_found_and_the_first_one_is_the_error() {
    let mut options = Options::default();
    options.client.pong_timeout = options.client.ping_interval;
    options.client.channel_limit = 0;
    options.client.token.rsa_public_key = "none".to_owned();
    options.client.token.audience_regex = "(".to_owned();
    options.channel.max_length = 0;
    options.channel.without_namespace.force_recovery = true;
    options.channel.namespaces = vec![Namespace::default(), Namespace::default()];
    options.rpc = RpcOptions { ping: true, ping_method: String::new(), ..RpcOptions::default() };
    let found = options.mistakes();
    // Names that are empty are wrong by themselves, and not because there are two.
    assert_eq!(found.len(), 9, "{found:#?}");
    assert_eq!(options.validate().as_ref(), Err(&found[0]));
}
