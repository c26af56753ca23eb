//! Tests of `apple` on user agents as browsers send them.
//! A user agent → Apple's network stack or not.
//! Uses only `apple`.
//! Changed here: user agents.

use super::*;

#[test]
fn safari_on_a_mac_is_apple() {
    check(
        true,
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15",
    );
    check(
        true,
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)",
    ); // WKWebView
}

#[test]
fn every_browser_on_ios_is_apple() {
    let ios = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)";
    check(true, &format!("{ios} Version/18.5 Mobile/15E148 Safari/604.1"));
    check(true, &format!("{ios} CriOS/138.0.7204.53 Mobile/15E148 Safari/604.1"));
    check(true, &format!("{ios} FxiOS/140.0 Mobile/15E148 Safari/605.1.15"));
    check(true, &format!("{ios} Version/18.0 EdgiOS/138.0.3351.55 Mobile/15E148 Safari/605.1.15"));
    check(
        true,
        "Mozilla/5.0 (iPad; CPU OS 17_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.7 Mobile/15E148 Safari/604.1",
    );
    check(
        true,
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/138 Version/11.1.1 Safari/605.1.15",
    );
}

#[test]
fn apps_on_nsurlsession_are_apple() {
    check(true, "Scores/41 CFNetwork/1568.300.101 Darwin/24.2.0");
}

#[test]
fn other_browsers_on_a_mac_are_not() {
    let mac =
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko)";
    check(false, &format!("{mac} Chrome/138.0.0.0 Safari/537.36"));
    check(false, &format!("{mac} Chrome/138.0.0.0 Safari/537.36 Edg/138.0.0.0"));
    check(false, &format!("{mac} HeadlessChrome/138.0.0.0 Safari/537.36"));
    check(
        false,
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:140.0) Gecko/20100101 Firefox/140.0",
    );
}

#[test]
fn nothing_outside_apple_is_apple() {
    check(
        false,
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36 Edg/138.0.0.0",
    );
    check(
        false,
        "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Mobile Safari/537.36",
    );
    check(
        false,
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.4 Safari/605.1.15",
    ); // libsoup
    check(false, "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0");
    check(false, "Python/3.12 websockets/15.0.1");
    check(false, "okhttp/4.12.0");
    check(false, "");
}

fn check(expect: bool, user_agent: &str) {
    assert_eq!(is_apple_nsurlsession(user_agent), expect, "{user_agent}");
}
