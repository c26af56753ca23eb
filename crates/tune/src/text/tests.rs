//! Tests of the table and the advice on a terminal.
//! In: reports made by hand → out: text.
//! Uses the report of `recommend`'s tests. Never: measures.
//! What a terminal must show is a test here.

use super::{report as text_of, wrap};
use crate::recommend::tests::report;
use crate::recommend::{Advice, Scale};

fn text() -> String {
    let report = report(2_000, [800, 780], 60, 60, 90);
    let scale = Scale { dollars_per_gb: 0.1, publications_per_second: 10.0, receivers: 1_000 };
    text_of(&report, &Advice::new(&report, scale))
}

#[test]
fn columns_of_the_table_end_at_the_same_place() {
    let text = text();
    let rows = text.lines().filter(|line| line.ends_with("MiB") || line.ends_with("channel"));
    let ends: Vec<usize> = rows.map(|row| row.chars().count()).collect();
    assert!(ends.len() == 6 && ends.iter().all(|end| *end == ends[0]), "{text}");
}

#[test]
fn a_row_says_bytes_ratio_times_and_memory() {
    let text = text();
    let row = text.lines().find(|line| line.trim_start().starts_with("level 6")).expect("a row");
    let cells: Vec<&str> = row.split_whitespace().collect();
    let expect = ["level", "6", "780.0", "2.56×", "10.0", "1.00", "1.0", "KiB", "1.0", "MiB"];
    assert_eq!(cells, expect);
    let raw = text.lines().find(|line| line.starts_with("raw")).expect("a row");
    assert!(raw.contains("–"), "{raw}");
}

#[test]
fn the_advice_stands_below_with_what_it_saves_and_lines_to_paste() {
    let text = text();
    let (_, advice) = text.split_once("Recommendation: compression: context").expect("it is there");
    assert!(advice.contains("30 days, $0.1 a GB"), "{advice}");
    assert!(advice.contains("saves          49.5 TB      $4,951"), "{advice}");
    assert!(advice.contains("\n    websocket:\n      compression: true\n"), "{advice}");
}

#[test]
fn paragraphs_are_broken_between_words() {
    let mut out = String::new();
    wrap(&"seven77 ".repeat(40), &mut out);
    assert!(out.lines().all(|line| line.len() <= 96 && !line.ends_with(' ')), "{out}");
    assert_eq!(out.split_whitespace().count(), 40);
}
