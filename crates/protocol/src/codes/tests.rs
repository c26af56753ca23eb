//! Tests of `codes`: what must hold for every row, and the texts SDKs show to people.
//! In: the tables. Out: nothing.
//! Uses the tables only.
//! When a code is sent is tested where it is sent.

use super::*;

#[test]
fn codes_ascend_so_none_is_given_twice() {
    assert!(ErrorCode::ALL.is_sorted_by(|a, b| a.code < b.code));
    assert!(Disconnect::ALL.is_sorted_by(|a, b| a.code < b.code));
    assert!(UnsubscribeCode::ALL.is_sorted_by(|a, b| a.code < b.code));
}

#[test]
fn reasons_are_plain_and_fit_a_close_frame() {
    for disconnect in Disconnect::ALL {
        assert!((1..=123).contains(&disconnect.reason.len()), "{disconnect}");
    }
}

#[test]
fn only_three_errors_are_temporary() {
    let temporary = ErrorCode::ALL.iter().filter(|error| error.temporary).map(|error| error.code);
    assert_eq!(temporary.collect::<Vec<_>>(), [100, 111, 113]);
}

#[test]
fn clients_return_after_some_codes_and_not_after_others() {
    let reconnects = |code| Disconnect { code, reason: "".into() }.reconnects();
    assert!([0, 1000, 3000, 3499, 4000, 4499, 5000, u16::MAX].into_iter().all(reconnects));
    assert!(![3500, 3999, 4500, 4999].into_iter().any(reconnects));
    assert!(Disconnect::SHUTDOWN.reconnects() && !Disconnect::BAD_REQUEST.reconnects());
}

#[test]
fn codes_of_close_frames_are_those_of_rfc_6455() {
    let is_close_code = |code| Disconnect { code, reason: "".into() }.is_close_code();
    assert!([1000, 1003, 1007, 1014, 1016, 3000, 4999].into_iter().all(is_close_code));
    assert!(![0, 999, 1004, 1005, 1006, 1015, 5000, u16::MAX].into_iter().any(is_close_code));
}

#[test]
fn clients_subscribe_again_from_2500_on() {
    let codes = UnsubscribeCode::ALL.iter().map(|row| (row.code, row.resubscribes()));
    let expect = [(2000, false), (2500, true), (2501, true), (2502, true)];
    assert_eq!(codes.collect::<Vec<_>>(), expect);
}

#[test]
fn a_code_reads_as_its_text_and_number() {
    assert_eq!(ErrorCode::TOKEN_EXPIRED.to_string(), "token expired (109)");
    assert_eq!(Disconnect::NO_PONG.to_string(), "no pong (3012)");
    let error = message::Error { code: 108, message: "not available".into(), temporary: false };
    assert_eq!(message::Error::from(ErrorCode::NOT_AVAILABLE), error);
}

/// The page has each code with its text, a cause and a remedy.
#[test]
fn the_page_about_troubles_has_every_code() {
    const PAGE: &str = include_str!("../../../../docs/troubleshooting.md");
    let errors = ErrorCode::ALL.iter().map(|row| (row.code, row.message.to_owned()));
    let disconnects =
        Disconnect::ALL.iter().map(|row| (u32::from(row.code), row.reason.clone().into_owned()));
    let ends = UnsubscribeCode::ALL.iter().map(|row| (row.code, row.reason.to_owned()));
    for (code, text) in errors.chain(disconnects).chain(ends) {
        let start = format!("| {code} | {text} | ");
        let row = PAGE.lines().find(|line| line.starts_with(&start));
        let cells =
            row.map_or(0, |row| row.split('|').filter(|one| !one.trim().is_empty()).count());
        assert_eq!(cells, 4, "{start}");
    }
}
