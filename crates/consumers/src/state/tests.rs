//! Tests of the log lines of skipped messages.
//! In: times → out: whether a message has a line.
//! Uses values only. Never: a clock, the log.
//! A limit of lines is a test here.

use super::*;

#[test]
fn each_skipped_message_has_a_line_up_to_a_limit() {
    let mut lines = SkipLines::default();
    let begin = Instant::now();
    assert!((0..SKIP_LINES_MAX).all(|_| lines.admit(begin)));
    assert!(!lines.admit(begin + SKIP_WINDOW / 2));
    assert!(lines.admit(begin + SKIP_WINDOW));
}
