//! Tests of the responses at port 80. Documents of a challenge are tested with an authority, in `acme::tests`.
//! In: requests → out: status and location.
//! Uses the answer alone. Never: sockets.
//! What a request gets is a test here.

use super::*;

fn plain_http() -> PlainHttp {
    PlainHttp { challenge: Arc::default(), names: vec!["a.example".into(), "[::1]".into()] }
}

fn check(method: &str, host: &str, path: &str, expect: (u16, &str)) {
    let request = Request::builder().method(method).uri(path).header(header::HOST, host).body(());
    let response = answer(&request.expect("a request"), &plain_http());
    let location = response.headers().get(header::LOCATION);
    let location = location.map_or("", |location| location.to_str().expect("ASCII"));
    assert_eq!((response.status().as_u16(), location), expect, "{method} {host} {path}");
}

#[test]
fn everything_but_challenges_is_redirected_to_https() {
    check("GET", "a.example", "/", (302, "https://a.example/"));
    check("HEAD", "a.example:80", "/chat?x=1&y=%20", (302, "https://a.example/chat?x=1&y=%20"));
    check("GET", "[::1]:80", "/", (302, "https://[::1]/"));
    check("GET", "user@a.example", "/", (302, "https://a.example/"));
}

#[test]
fn what_cannot_be_redirected_is_refused() {
    check("POST", "a.example", "/api/publish", (400, ""));
    for host in
        ["", "a.example/path", "a b", "a.example, b.example", "b.example", "a.example.b.example"]
    {
        check("GET", host, "/", (400, ""));
    }
    let response = answer(&Request::new(()), &plain_http());
    assert_eq!(response.status(), StatusCode::BAD_REQUEST, "no Host");
}

#[test]
fn an_unknown_token_is_not_found() {
    for path in ["", "token", "../../etc/passwd", "a/b"] {
        check("GET", "a.example", &format!("{PATH}{path}"), (404, ""));
    }
    check("POST", "a.example", &format!("{PATH}token"), (404, ""));
}
