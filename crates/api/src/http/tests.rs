//! Tests of path prefixes and of empty bodies.
//! In: configured text, methods. Out: asserted paths and answers.
//! Uses the room's private parts; never a request.
//! Whole requests are in `tests/it`.

use super::*;

#[test]
fn prefixes_become_paths_that_axum_takes() {
    let check = |configured, path| assert_eq!(path_prefix(configured), path, "{configured:?}");
    check("/api", "/api");
    check("api", "/api");
    check("/api/", "/api");
    check("/v1/api", "/v1/api");
    check("/", "");
    check("", "");
    check("/{x}", "/{{x}}");
}

#[test]
fn only_methods_without_fields_take_an_empty_body() {
    for method in Method::ALL {
        let taken = decode(method, "").is_ok();
        assert_eq!(taken, matches!(method, Method::Info | Method::Channels), "{method:?}");
    }
}
