//! Tests of the tables and the page.
//! In: small tables and pages → out: their text.
//! Pure.
//! Changed here: what must not happen to a page.

use super::{LINE_CHARS_MAX, Table, figure, with_part, wrapped};

#[test]
fn a_table_is_markdown_with_its_note_below() {
    let mut table = Table::new(&["size", "ns"], "Of one core.");
    table.row(vec!["1 KB".to_owned(), "20".to_owned()]);
    assert_eq!(table.to_string(), "| size | ns |\n|---|---|\n| 1 KB | 20 |\n\nOf one core.\n");
}

#[test]
fn only_the_part_between_the_markers_changes() {
    let page = "# A\n<!-- proof: one -->\nold\n<!-- end: one -->\nB\n<!-- proof: two -->\n<!-- end: two -->\n";
    let first = with_part(page, "one", "new\n\n").expect("it has the markers");
    assert_eq!(
        first,
        "# A\n<!-- proof: one -->\nnew\n<!-- end: one -->\nB\n<!-- proof: two -->\n<!-- end: two -->\n"
    );
    assert_eq!(with_part(&first, "one", "new").expect("it has the markers"), first);
    assert!(with_part(page, "three", "new").is_err());
    assert!(with_part("<!-- proof: one -->\n", "one", "new").is_err());
}

#[test]
fn figures_have_three_digits_or_all_in_front_of_the_point() {
    let texts = [0.123, 9.876, 12.34, 1234.5, f64::NAN].map(figure);
    assert_eq!(texts, ["0.12", "9.88", "12.3", "1,234", "–"]);
}

#[test]
fn a_paragraph_is_broken_between_words_and_no_line_is_too_long() {
    let text = "sixteen letters. ".repeat(20);
    let lines = wrapped(&text);
    assert!(lines.lines().count() == 3 && lines.lines().all(|line| line.len() <= LINE_CHARS_MAX));
    assert_eq!(lines.replace('\n', " "), text.trim_end());
}
