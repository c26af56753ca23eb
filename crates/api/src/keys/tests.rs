//! Tests of named keys: who a key belongs to, and how it is compared.
//! In: options → out: holders of keys, counts.
//! Uses private parts of the module. Never: HTTP, gRPC, commands.
//! Rights of a key are tested in `rights`.

use std::time::Duration;

use fanwire_node::options::Rate;

use super::*;

#[test]
fn a_key_finds_its_caller_and_goes_on_counting_after_a_reload() {
    let named = |key: &str| ApiKeyOptions { key: key.into(), ..ApiKeyOptions::default() };
    let mut options = ApiOptions {
        key: "new".into(),
        previous_key: "old".into(),
        previous_key_valid_until: 100,
        keys: [("shop".to_owned(), named("shop's")), ("none".to_owned(), named(""))].into(),
        ..ApiOptions::default()
    };
    let keys = ApiKeys::of(&options, None);
    let name = |key: &str, now| keys.find(key.as_bytes(), now).map(|one| one.name.as_str());
    assert_eq!(name("new", 200), Some(DEFAULT_KEY));
    assert_eq!((name("old", 100), name("old", 101)), (Some(DEFAULT_KEY), None));
    assert_eq!((name("shop's", 200), name("shop", 200), name("", 0)), (Some("shop"), None, None));
    assert!(keys.anonymous().is_none());
    let names: Vec<&str> = keys.callers().map(|one| one.name.as_str()).collect();
    assert_eq!(names, [DEFAULT_KEY, "none", "shop"]);

    let shop = keys.find(b"shop's", 0).expect("known");
    assert!(shop.check(Method::Info, std::iter::empty(), Instant::now()).is_ok());
    let again = ApiKeys::of(&options, Some(&keys));
    assert_eq!(again.find(b"shop's", 0).expect("known").counts(), [1, 0, 0]);
    options.keys.insert("shop".to_owned(), named("another"));
    let after = ApiKeys::of(&options, Some(&again));
    assert!(after.find(b"shop's", 0).is_none());
    assert_eq!(after.find(b"another", 0).expect("known").counts(), [1, 0, 0]);
}

#[test]
fn a_key_has_its_rate_and_a_burst_after_a_quiet_time() {
    let rate = Rate { limit: 10, interval: Duration::from_secs(1) };
    let one = KeyHolder::new("shop", ApiKeyOptions { rate, ..ApiKeyOptions::default() });
    let other = KeyHolder::new("free", ApiKeyOptions::default());
    let start = Instant::now();
    let calls = |holder: &KeyHolder, count: usize, at_ms: u64| {
        let now = start + Duration::from_millis(at_ms);
        let calls = (0..count).map(|_| holder.check(Method::Publish, std::iter::empty(), now));
        calls.filter(|call| *call != Err(ApiError::TOO_MANY_REQUESTS)).count()
    };
    assert_eq!(calls(&one, 30, 0), 10, "the burst");
    assert_eq!(calls(&one, 30, 300), 3);
    assert_eq!(calls(&one, 30, 9_000), 10);
    assert_eq!(one.counts(), [90, 0, 67]);
    assert_eq!(calls(&other, 30, 9_000), 30, "others are not affected");
}

#[test]
fn keys_are_equal_only_byte_for_byte() {
    let check = |key: &str, given: &str, expect| {
        assert_eq!(is_equal(key.as_bytes(), given.as_bytes()), expect, "{key:?} {given:?}");
    };
    check("secret", "secret", true);
    check("secret", "Secret", false);
    check("secret", "secretsecret", false);
    check("secret", "secre", false);
    check("secret", "", false);
    check("aa", "a", false);
    check("a", "aa", false);
    check("ключ", "ключ", true);
}
