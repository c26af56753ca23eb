//! Tests of compiling channel options: every mistake is refused with key, value and expectation.
//! In: options with one value changed → out: fine, or the text of the error.
//! May use: the public face of `options` and `channel`.
//! How names are read is tested in `channel/tests.rs`.

use std::time::Duration;

use fanwire_broker::DeliveryClass;

use crate::channel::ChannelRules;
use crate::options::{
    BatchOptions, ChannelOptions, DataFormat, DeliveryOptions, Namespace, RecoveryMode,
    SubscriptionType,
};

fn error(change: impl FnOnce(&mut ChannelOptions)) -> String {
    let mut options = ChannelOptions::default();
    change(&mut options);
    ChannelRules::new(&options).expect_err("the change is a mistake").to_string()
}

fn named(name: &str) -> Namespace {
    Namespace { name: name.to_owned(), ..Namespace::default() }
}

#[test]
fn namespace_names_have_two_or_more_known_characters() {
    for name in ["", "a", "a b", "a:b", "größe", "a/b", "ab\n"] {
        assert_eq!(
            error(|options| options.namespaces = vec![named("good"), named(name)]),
            format!(
                "channel.namespaces[1].name is {name:?}, expected two or more of the characters a-z A-Z 0-9 - _ ."
            )
        );
    }
    for name in ["ab", "A-z_0.9", "--", "very-long-name.of_some.namespace"] {
        let namespaces = vec![named(name)];
        let options = ChannelOptions { namespaces, ..ChannelOptions::default() };
        assert!(ChannelRules::new(&options).is_ok(), "{name}");
    }
}

#[test]
fn namespace_names_are_unique() {
    assert_eq!(
        error(|options| options.namespaces = vec![named("chat"), named("news"), named("chat")]),
        "channel.namespaces[2].name is \"chat\" a second time, expected a name of its own"
    );
}

#[test]
fn namespace_name_with_the_boundary_could_never_be_reached() {
    assert_eq!(
        error(|options| {
            options.namespace_boundary = ".".to_owned();
            options.namespaces = vec![named("a.b")];
        }),
        "channel.namespaces[0].name is \"a.b\", expected a name without channel.namespace_boundary (\".\")"
    );
}

#[test]
fn patterns_are_named_by_their_namespace() {
    let broken = |name: &str| Namespace { channel_regex: "a{2".to_owned(), ..named(name) };
    let fault = "expected a regular expression: unclosed counted repetition";
    assert_eq!(
        error(|options| options.namespaces = vec![broken("chat")]),
        format!("channel.namespaces[chat].channel_regex is \"a{{2\", {fault}")
    );
    assert_eq!(
        error(|options| options.without_namespace = broken("")),
        format!("channel.without_namespace.channel_regex is \"a{{2\", {fault}")
    );
}

#[test]
fn boundaries_are_one_character_or_none() {
    let expected =
        |key| format!("channel.{key} is \"::\", expected one character, or \"\" to do without");
    let two = || "::".to_owned();
    assert_eq!(error(|options| options.private_prefix = two()), expected("private_prefix"));
    assert_eq!(error(|options| options.namespace_boundary = two()), expected("namespace_boundary"));
    assert_eq!(error(|options| options.user_boundary = two()), expected("user_boundary"));
    assert_eq!(error(|options| options.user_separator = two()), expected("user_separator"));
    let empty = ChannelOptions {
        private_prefix: String::new(),
        namespace_boundary: String::new(),
        user_boundary: String::new(),
        user_separator: String::new(),
        ..ChannelOptions::default()
    };
    assert!(ChannelRules::new(&empty).is_ok());
}

#[test]
fn one_character_cannot_have_two_purposes() {
    assert_eq!(
        error(|options| options.user_boundary = ":".to_owned()),
        "channel.user_boundary is \":\", expected not the same as channel.namespace_boundary"
    );
}

#[test]
fn names_need_at_least_one_byte() {
    assert_eq!(
        error(|options| options.max_length = 0),
        "channel.max_length is \"0\", expected at least 1 byte"
    );
}

#[test]
fn fossil_is_the_only_kind_of_deltas() {
    let kinds = |kinds: &[&str]| kinds.iter().map(|kind| (*kind).to_owned()).collect();
    assert_eq!(
        error(|options| {
            options.without_namespace.allowed_delta_types = kinds(&["fossil", "xdelta"]);
        }),
        "channel.without_namespace.allowed_delta_types is \"xdelta\", expected fossil only"
    );
    let mut options = ChannelOptions::default();
    options.without_namespace.allowed_delta_types = kinds(&["fossil"]);
    assert!(ChannelRules::new(&options).is_ok());
}

#[test]
fn latest_delivery_does_not_go_with_a_promise_of_every_publication() {
    let latest = || {
        let delivery = DeliveryOptions { class: DeliveryClass::Latest, ..Default::default() };
        Namespace { delivery, ..named("game") }
    };
    let history = |namespace: Namespace| Namespace {
        history_size: 1,
        history_ttl: Duration::from_secs(60),
        ..namespace
    };
    for promised in [
        Namespace { allow_positioning: true, ..latest() },
        Namespace { force_positioning: true, ..latest() },
        Namespace { allow_recovery: true, ..latest() },
        Namespace { force_recovery: true, ..history(latest()) },
        Namespace {
            force_recovery_mode: RecoveryMode::Cache,
            allow_positioning: true,
            ..history(latest())
        },
    ] {
        let text = error(|options| options.namespaces = vec![promised.clone()]);
        let expected = "channel.namespaces[game].delivery is \"latest\", expected reliable where subscribers may recover a stream or have a position";
        assert!(text.starts_with(expected), "{text}");
    }
    let cache = Namespace {
        force_recovery: true,
        force_recovery_mode: RecoveryMode::Cache,
        ..history(latest())
    };
    for fits in [latest(), history(latest()), cache] {
        let options = ChannelOptions { namespaces: vec![fits], ..ChannelOptions::default() };
        assert!(ChannelRules::new(&options).is_ok());
    }
}

#[test]
fn at_least_one_key_may_wait() {
    let text = error(|options| options.without_namespace.delivery.keys_max = 0);
    assert_eq!(text, "channel.without_namespace.delivery_keys_max is \"0\", expected at least 1");
}

#[test]
fn a_batch_has_an_end_and_promises_no_every_publication_when_it_leaves_some_out() {
    let wrong = |change: fn(&mut BatchOptions), is_positioned: bool| {
        error(|options| {
            change(&mut options.without_namespace.delivery.batch);
            options.without_namespace.allow_positioning = is_positioned;
        })
    };
    let text = wrong(|batch| batch.max_size = 9, false);
    let expected = "channel.without_namespace.batch_max_delay is \"0s\", expected above 0s with batch_max_size";
    assert!(text.starts_with(expected), "{text}");
    assert!(wrong(|batch| batch.flush_latest = true, false).contains("batch_max_delay"));
    let latest = |batch: &mut BatchOptions| {
        batch.flush_latest = true;
        batch.max_delay = Duration::from_millis(1);
    };
    let text = wrong(latest, true);
    let expected = "channel.without_namespace.batch_flush_latest is \"true\", expected false where subscribers may recover";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn a_field_with_idempotency_keys_is_of_json_in_streams() {
    let with_field = |change: fn(&mut Namespace)| {
        move |options: &mut ChannelOptions| {
            options.without_namespace.client_idempotency.field = "id".to_owned();
            change(&mut options.without_namespace);
        }
    };
    let mut options = ChannelOptions::default();
    with_field(|_| {})(&mut options);
    assert!(ChannelRules::new(&options).is_ok());
    let binary = with_field(|namespace| namespace.publication_data_format = DataFormat::Binary);
    let of_polls =
        with_field(|namespace| namespace.subscription_type = SubscriptionType::SharedPoll);
    for text in [error(binary), error(of_polls)] {
        assert!(
            text.starts_with("channel.without_namespace.client_idempotency_field is"),
            "{text}"
        );
    }
}
