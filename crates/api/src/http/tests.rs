//! Tests of paths and of empty bodies.
//! In: configured text, methods. Out: asserted paths and answers.
//! Uses private parts of the module; never a request.
//! Whole requests are in `tests/it`.

use super::*;

fn http_api(prefix: &str) -> HttpApi {
    let node = fanwire_node::Node::new(fanwire_node::options::Options::default());
    let options = crate::ApiOptions { handler_prefix: prefix.to_owned(), ..Default::default() };
    HttpApi::new(Arc::new(Api::new(node.expect("the defaults are valid"), options)))
}

#[test]
fn prefixes_begin_with_a_slash_and_do_not_end_with_one() {
    let check = |configured, path| assert_eq!(bare_prefix(configured), path, "{configured:?}");
    check("/api", "/api");
    check("api", "/api");
    check("/api/", "/api");
    check("/v1/api", "/v1/api");
    check("/", "");
    check("", "");
    check("/{x}", "/{x}");
}

#[test]
fn every_path_of_the_api_has_a_route_and_no_other_path() {
    for prefix in ["/api", "api/", "/v1/api", "/", ""] {
        let http_api = http_api(prefix);
        let all = Method::ALL.into_iter().map(ApiRoute::Method).chain([ApiRoute::Legacy]);
        for (path, route) in http_api.paths().zip(all) {
            assert_eq!(http_api.route(&path), Some(route), "{prefix:?}");
            for other in ["x", "/", "/x"] {
                assert_eq!(http_api.route(&format!("{path}{other}")), None, "{prefix:?}");
                assert_eq!(http_api.route(&format!("{other}{path}")), None, "{prefix:?}");
            }
        }
        assert_eq!(http_api.route(&format!("{}/Publish", http_api.prefix)), None, "{prefix:?}");
        assert_eq!(http_api.route(&http_api.stream_path()), None, "{prefix:?}");
        assert!(http_api.paths().any(|path| path == http_api.stream_path()), "{prefix:?}");
        assert_eq!(http_api.route("/other"), None, "{prefix:?}");
    }
    assert_eq!(http_api("/api").route("/"), None);
    assert_eq!(http_api("/api").route("/publish"), None);
    assert_eq!(http_api("/api").route(""), None);
}

#[test]
fn only_methods_without_fields_take_an_empty_body() {
    for method in Method::ALL {
        let taken = method.decode("").is_ok();
        assert_eq!(taken, matches!(method, Method::Info | Method::Channels), "{method:?}");
    }
}

#[test]
fn half_a_surrogate_pair_is_a_replacement_character() {
    let body =
        r#"{"channel":"c","data":1,"tags":{"name":"Zo\ud83d","\ude80":"🚀"},"what":"\ud83d"}"#;
    let Ok(Command::Publish(request)) = Method::Publish.decode(body) else {
        panic!("a publish command");
    };
    let tags = [("name", "Zo\u{fffd}"), ("\u{fffd}", "🚀")];
    let found: Vec<_> =
        request.tags.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(found, tags);
    for broken in
        [r#"{"channel":"\ud83"}"#, r#"{"channel":"\ud83d"#, r#"{"channel":"\ud83d","data"}"#]
    {
        assert!(Method::Publish.decode(broken).is_err(), "{broken}");
    }
}
