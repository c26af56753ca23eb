//! Cross-origin requests of real-time endpoints that scripts call with `fetch` or `EventSource` (WHATWG Fetch §3.2).
//! In: the headers of a request whose origin was accepted → out: headers of the response; answers to preflights.
//! Uses nothing; never checks an origin, which `admission` does.
//! Changed here: what a page of another origin may do.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

/// The headers with which a browser lets a page of another origin read the response; none without an origin.
pub(crate) fn headers(request: &HeaderMap) -> Vec<(HeaderName, &str)> {
    let text = |name| request.get(name).and_then(|value| value.to_str().ok());
    let Some(origin) = text(header::ORIGIN) else { return Vec::new() };
    let mut headers = vec![
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, origin),
        (header::ACCESS_CONTROL_ALLOW_CREDENTIALS, "true"),
    ];
    let asked = text(header::ACCESS_CONTROL_REQUEST_HEADERS)
        .filter(|asked| !asked.is_empty() && *asked != "null");
    headers.extend(asked.map(|asked| (header::ACCESS_CONTROL_ALLOW_HEADERS, asked)));
    headers
}

/// These headers as lines of a head.
pub(crate) fn lines(request: &HeaderMap) -> String {
    headers(request).into_iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
}

/// Adds these headers, unless the response is the refusal of the origin.
pub(crate) fn allow<T>(mut response: Response<T>, request: &HeaderMap) -> Response<T> {
    if response.status() != StatusCode::FORBIDDEN {
        for (name, value) in headers(request) {
            let value = HeaderValue::from_str(value).expect("the value of a header");
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// The answer to a preflight of an endpoint for POST.
pub(crate) fn preflight() -> Response<String> {
    let headers = [
        (header::ACCESS_CONTROL_MAX_AGE, "300"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "POST, OPTIONS"),
    ];
    empty(StatusCode::NO_CONTENT, headers)
}

pub(crate) fn refuse_method(allowed: &'static str) -> Response<String> {
    empty(StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, allowed)])
}

fn empty<const N: usize>(
    status: StatusCode,
    headers: [(HeaderName, &'static str); N],
) -> Response<String> {
    let mut response = Response::new(String::new());
    *response.status_mut() = status;
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
