//! Tests of the progress bar.
//! In: steps → out: a line.
//! Uses private functions. Never: a terminal.
//! The form of a line is a test here.

use super::line;

#[test]
fn the_bar_fills_from_left_to_right() {
    assert_eq!(line(0, 8, "a: raw"), format!("{}   0 %  a: raw", "░".repeat(24)));
    assert_eq!(line(4, 8, "b"), format!("{}{}  50 %  b", "█".repeat(12), "░".repeat(12)));
    assert_eq!(line(8, 8, "c"), format!("{} 100 %  c", "█".repeat(24)));
}

#[test]
fn a_line_with_a_long_name_fits_on_a_terminal() {
    assert!(line(1, 3, &"x".repeat(500)).chars().count() < 80);
    assert!(!line(1, 3, "a\x1b[2Jb\n").contains(['\x1b', '\n']));
}
