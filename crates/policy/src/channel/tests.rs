//! Tests of reading channel names: namespace, prefix, user list, pattern, length (Centrifugo v6 `channel.*`).
//! In: a name → out: the namespace that rules it, or the error code.
//! May use: the public face of `channel`.
//! Permissions are tested in `channel/permission/tests.rs`, mistakes in options in `channel/build/tests.rs`.

use fanwire_protocol::ErrorCode;
use proptest::prelude::*;

use super::*;
use crate::options::{ChannelOptions, DataFormat};

const BAD: Result<&str, ErrorCode> = Err(ErrorCode::BAD_REQUEST);
const UNKNOWN: Result<&str, ErrorCode> = Err(ErrorCode::UNKNOWN_CHANNEL);

fn namespace(name: &str, channel_regex: &str) -> Namespace {
    Namespace {
        name: name.to_owned(),
        channel_regex: channel_regex.to_owned(),
        allow_user_limited_channels: name != "open",
        ..Namespace::default()
    }
}

fn options() -> ChannelOptions {
    ChannelOptions {
        without_namespace: namespace("none", ""),
        namespaces: vec![
            namespace("chat", ""),
            namespace("open", ""),
            namespace("digits", "^[0-9]+$"),
            namespace("words", r"^\p{Letter}+$"),
        ],
        ..ChannelOptions::default()
    }
}

fn channels() -> ChannelRules {
    ChannelRules::new(&options()).expect("the options are valid")
}

fn check(channels: &ChannelRules, channel: &str, expect: Result<&str, ErrorCode>) {
    let resolved = channels.resolve(channel).map(|namespace| namespace.name.as_str());
    assert_eq!(resolved, expect, "{channel:?}");
}

#[test]
fn namespace_is_the_text_before_the_first_boundary() {
    let channels = channels();
    check(&channels, "chat:room", Ok("chat"));
    check(&channels, "chat:room:sub:open", Ok("chat"));
    check(&channels, "chat:", Ok("chat"));
    check(&channels, "news", Ok("none"));
    check(&channels, ":news", Ok("none"));
    check(&channels, "chat", Ok("none"));
    check(&channels, "news:today", UNKNOWN);
    check(&channels, "Chat:room", UNKNOWN);
    check(&channels, " chat:room", UNKNOWN);
}

#[test]
fn private_prefix_is_not_part_of_the_namespace() {
    let channels = channels();
    check(&channels, "$chat:room", Ok("chat"));
    check(&channels, "$secret", Ok("none"));
    check(&channels, "$$chat:room", UNKNOWN);
    assert!(channels.is_private("$chat:room"));
    assert!(channels.is_private("$secret"));
    assert!(!channels.is_private("chat:$room"));
}

#[test]
fn names_are_limited_in_bytes_before_anything_else_is_looked_at() {
    let channels = channels();
    check(&channels, "", BAD);
    check(&channels, &"a".repeat(255), Ok("none"));
    check(&channels, &"a".repeat(256), BAD);
    check(&channels, &format!("nowhere:{}", "a".repeat(255)), BAD);
    check(&channels, &format!("words:{}", "ä".repeat(124)), Ok("words"));
    check(&channels, &format!("words:{}", "ä".repeat(125)), BAD);
}

#[test]
fn names_are_ascii_unless_a_pattern_allows_more() {
    let channels = channels();
    check(&channels, "chat:größe", BAD);
    check(&channels, "größe", BAD);
    check(&channels, "words:größe", Ok("words"));
    check(&channels, "größe:x", UNKNOWN);
    check(&channels, "chat:\u{7f}\0", Ok("chat"));
}

#[test]
fn pattern_sees_the_part_after_the_namespace() {
    let channels = channels();
    check(&channels, "digits:42", Ok("digits"));
    check(&channels, "$digits:42", Ok("digits"));
    check(&channels, "digits:42a", BAD);
    check(&channels, "digits:", BAD);
    check(&channels, "digits:4:2", BAD);
}

#[test]
fn pattern_without_namespace_sees_the_whole_name() {
    let without_namespace = namespace("none", r"^\$?[a-z]+$");
    let options = ChannelOptions { without_namespace, ..options() };
    let channels = ChannelRules::new(&options).expect("the options are valid");
    check(&channels, "news", Ok("none"));
    check(&channels, "$news", Ok("none"));
    check(&channels, "News", BAD);
    check(&channels, "$$news", BAD);
}

#[test]
fn without_a_boundary_no_name_has_a_namespace() {
    let options = ChannelOptions {
        namespace_boundary: String::new(),
        private_prefix: String::new(),
        user_boundary: String::new(),
        ..options()
    };
    let channels = ChannelRules::new(&options).expect("the options are valid");
    check(&channels, "chat:room", Ok("none"));
    assert!(!channels.is_private("$chat"));
    assert_eq!(users(&channels, "dialog#42"), None);
}

fn users(channels: &ChannelRules, channel: &str) -> Option<Vec<String>> {
    let namespace = channels.resolve(channel).expect("the name is valid");
    let users = channels.allowed_users(channel, namespace)?;
    Some(users.map(str::to_owned).collect())
}

#[test]
fn user_list_stands_after_the_last_boundary() {
    let channels = channels();
    let list = |users: &[&str]| Some(users.iter().map(|&user| user.to_owned()).collect::<Vec<_>>());
    assert_eq!(users(&channels, "dialog#42,43"), list(&["42", "43"]));
    assert_eq!(users(&channels, "chat:dialog#42"), list(&["42"]));
    assert_eq!(users(&channels, "dialog#1#2,3"), list(&["2", "3"]));
    assert_eq!(users(&channels, "#42"), list(&["42"]));
    assert_eq!(users(&channels, "dialog#"), list(&[]));
    assert_eq!(users(&channels, "dialog#,42,"), list(&["42"]));
    assert_eq!(users(&channels, "dialog"), None);
    assert_eq!(users(&channels, "open:dialog#42"), None);
}

#[test]
fn without_a_separator_the_list_is_one_user() {
    let options = ChannelOptions { user_separator: String::new(), ..options() };
    let channels = ChannelRules::new(&options).expect("the options are valid");
    assert_eq!(users(&channels, "dialog#42,43"), Some(vec!["42,43".to_owned()]));
}

#[test]
fn global_data_format_holds_where_a_namespace_has_none() {
    let mut options =
        ChannelOptions { publication_data_format: DataFormat::JsonObject, ..options() };
    options.namespaces[0].publication_data_format = DataFormat::Binary;
    let channels = ChannelRules::new(&options).expect("the options are valid");
    let format = |channel| channels.resolve(channel).map(|found| found.publication_data_format);
    assert_eq!(format("chat:room"), Ok(DataFormat::Binary));
    assert_eq!(format("open:room"), Ok(DataFormat::JsonObject));
    assert_eq!(format("room"), Ok(DataFormat::JsonObject));
}

proptest! {
    #[test]
    fn any_name_gets_an_answer(channel in "\\PC{0,40}|[$:#,a-z]{0,20}") {
        let channels = channels();
        if let Ok(namespace) = channels.resolve(&channel) {
            prop_assert!(channels.fits(&channel));
            let users = channels.allowed_users(&channel, namespace);
            prop_assert!(users.into_iter().flatten().all(|user| channel.contains(user)));
        }
    }
}
