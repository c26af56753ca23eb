//! Tests of `host`: the number and the form of the header.
//! In: a version and values of the header → out: nothing or the error.
//! Uses header maps; responses over sockets are tested in `fanwire/tests/it/endpoints.rs`.
//! Changed here: expectations of `host`.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(version: Version, hosts: &[&str], expect: Result<(), HostError>) {
    let mut headers = HeaderMap::new();
    for host in hosts {
        headers.append(HOST, HeaderValue::from_str(host).expect("a header value"));
    }
    assert_eq!(super::check(version, &headers, false), expect, "{version:?} {hosts:?}");
}

#[test]
fn http_1_1_needs_one_host_and_http_1_0_at_most_one() {
    for (version, without) in
        [(Version::HTTP_10, Ok(())), (Version::HTTP_11, Err(HostError::Missing))]
    {
        check(version, &[], without);
        check(version, &["a"], Ok(()));
        check(version, &["a", "a"], Err(HostError::Several));
        check(version, &["", ""], Err(HostError::Several));
    }
}

#[test]
fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
    for host in ["", "a", "fan_wire.example:8000", "127.0.0.1:80", "[::1]:8000"] {
        check(Version::HTTP_11, &[host], Ok(()));
    }
    for host in ["a b", "a, b", "user@a", "a/b", "[::1", "a:1:2", "http://a"] {
        check(Version::HTTP_11, &[host], Err(HostError::Malformed));
    }
}

#[test]
fn only_addresses_and_localhost_are_local() {
    let check = |host: &'static str| {
        let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
        super::check(Version::HTTP_11, &headers, true)
    };
    for host in
        ["", "127.0.0.1:8000", "[::1]", "10.0.0.7", "localhost:80", "LOCALHOST", "app.localhost"]
    {
        assert_eq!(check(host), Ok(()), "{host}");
    }
    for host in ["evil.example", "localhost.evil.example", "notlocalhost", "127.0.0.1.evil.example"]
    {
        assert_eq!(check(host), Err(HostError::NotLocal), "{host}");
    }
}

proptest! {
    #[test]
    fn a_plain_host_is_always_a_valid_authority(
        host in "[A-Za-z0-9.:-]{0,12}|[ -~]{0,8}"
    ) {
        let bytes = host.as_bytes();
        prop_assert!(!is_plain(bytes) || bytes.is_empty() || Authority::try_from(bytes).is_ok());
    }
}
