//! Tests of limits on new connections.
//! In: limits, headers, numbers of connections → out: a permit, or a status.
//! Uses moments made by hand and a permit that counts. Never: sockets.
//! The responses over sockets are tested in `fanwire/tests/it/handshake.rs`.

use std::time::Duration;

use axum::http::HeaderValue;

use super::*;
use crate::descriptors::StreamDescriptors;

fn admit(admission: &Admission, origin: Option<&str>, connections: usize) -> Result<(), u16> {
    let mut headers = HeaderMap::new();
    if let Some(origin) = origin {
        headers.insert(header::ORIGIN, origin.parse().expect("a header"));
    }
    let permit = |max| (max == 0 || connections < max).then_some(());
    let admitted = admission.admit(&headers, None, Instant::now(), permit);
    admitted.map(|admitted| admitted.permit).map_err(|(status, _)| status.as_u16())
}

fn limits(
    allowed_origins: Option<Vec<String>>,
    connection_limit: usize,
    rate: ConnectionRate,
) -> SharedLimits {
    let allowed_origins = allowed_origins.map(|patterns| AllowedOrigins::new(&patterns));
    AdmissionLimits {
        allowed_origins,
        connection_limit,
        rate: Arc::new(rate),
        addresses: Arc::default(),
        overload: Arc::default(),
    }
    .shared()
}

#[test]
fn without_limits_every_handshake_is_accepted() {
    let open = Admission::open(Instant::now());
    assert_eq!(admit(&open, Some("https://a.example"), usize::MAX), Ok(()));
}

#[test]
fn the_smaller_of_both_limits_applies_and_is_the_cause() {
    let check = |connection_limit, descriptor_limit, max, why| {
        let now = Instant::now();
        let limits = limits(None, connection_limit, ConnectionRate::new(0, now));
        let admission = Admission { limits, descriptor_limit, ..Admission::open(now) };
        assert_eq!(admission.limit(connection_limit), (max, why));
        assert_eq!(admit(&admission, None, max - 1), Ok(()));
        assert_eq!(admit(&admission, None, max), Err(503));
    };
    check(10, 0, 10, Cause::Limit);
    check(10, 20, 10, Cause::Limit);
    check(20, 20, 20, Cause::Limit);
    check(20, 10, 10, Cause::Descriptors);
    check(0, 10, 10, Cause::Descriptors);
    let stream = StreamDescriptors::take();
    check(0, 10, 8, Cause::Descriptors);
    check(8, 10, 8, Cause::Limit);
    check(0, 1, 1, Cause::Descriptors);
    drop(stream);
    check(0, 10, 10, Cause::Descriptors);
}

#[test]
fn an_overloaded_node_refuses_clients_until_its_load_falls() {
    let now = Instant::now();
    let limits = limits(None, 0, ConnectionRate::new(0, now));
    let overload = Arc::clone(&limits.read().overload);
    let admission = Admission { limits, ..Admission::open(now) };
    overload.set_memory(true);
    assert_eq!(admit(&admission, None, 0), Err(503));
    overload.set_memory(false);
    overload.set_turns(true);
    assert_eq!(admit(&admission, None, 0), Err(503));
    overload.set_turns(false);
    assert_eq!(admit(&admission, None, 0), Ok(()));
    let counts: Vec<_> = admission.refusals.counts().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counts, [(Cause::Memory, 1), (Cause::Turns, 1)]);
}

#[test]
fn an_origin_that_is_not_listed_is_refused_first() {
    let now = Instant::now();
    let allowed_origins = Some(vec!["https://a.example".to_owned()]);
    let limits = limits(allowed_origins, 0, ConnectionRate::new(1, now));
    let admission = Admission { limits, ..Admission::open(now) };
    assert_eq!(admit(&admission, Some("https://b.example"), 0), Err(403));
    assert_eq!(admit(&admission, Some("https://a.example"), 0), Ok(()));
    assert_eq!(admit(&admission, None, 0), Err(503), "the second one in a second");
    let counts: Vec<_> = admission.refusals.counts().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counts, [(Cause::Origin, 1), (Cause::Rate, 1)]);
}

#[test]
fn a_page_of_the_server_itself_is_let_in_where_the_demo_is_on() {
    let now = Instant::now();
    let check = |allows_own_origin, origin: &'static str, host: &'static str, expect| {
        let limits = limits(Some(Vec::new()), 0, ConnectionRate::new(0, now));
        let admission = Admission { limits, allows_own_origin, ..Admission::open(now) };
        let mut headers = HeaderMap::new();
        headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
        headers.insert(header::HOST, HeaderValue::from_static(host));
        let admitted = admission.admit(&headers, None, now, |_| Some(()));
        assert_eq!(admitted.is_ok(), expect, "{origin} at {host}");
    };
    check(true, "http://localhost:8000", "localhost:8000", true);
    check(true, "https://LIVE.example", "live.example", true);
    check(false, "http://localhost:8000", "localhost:8000", false);
    check(true, "http://localhost:8001", "localhost:8000", false);
    check(true, "http://evil.example", "localhost:8000", false);
    check(true, "ftp://localhost:8000", "localhost:8000", false);
    check(true, "null", "localhost:8000", false);
    check(true, "http://", "localhost:8000", false);
}

#[test]
fn the_end_of_a_burst_has_its_count_and_addresses() {
    let now = Instant::now();
    let limits = limits(None, 1, ConnectionRate::new(0, now));
    let admission = Admission { limits, ..Admission::open(now) };
    for host in [7, 8, 8, 8] {
        let peer = Some(SocketAddr::from(([10, 0, 0, host], 1000)));
        let admitted = admission.admit(&HeaderMap::new(), peer, now, |_| None::<()>);
        assert!(admitted.is_err());
    }
    assert!(admission.refusals.ended(now).is_empty());
    let ended = admission.refusals.ended(now + Duration::from_secs(60));
    assert_eq!(ended.len(), 1);
    assert_eq!((ended[0].kind.as_str(), ended[0].count), ("limit", 3)); // the first one was logged
    assert_eq!(ended[0].addresses, "10.0.0.8 (3), 10.0.0.7 (1)");
}
