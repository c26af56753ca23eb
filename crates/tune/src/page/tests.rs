//! Tests of the page.
//! In: reports made by hand → out: HTML.
//! Uses the report of `recommend`'s tests. Never: a browser.
//! What the page must hold is a test here.

use super::{escaped, page};
use crate::measure::Curve;
use crate::recommend::tests::report;
use crate::recommend::{Advice, Scale};

fn html(files: usize) -> String {
    let scale = Scale { dollars_per_gb: 0.1, publications_per_second: 10.0, receivers: 1_000 };
    let finding = |_| {
        let mut report = report(2_000, [800, 780], 60, 60, 90);
        let curve = |channels| Curve { channels, bytes: vec![780.0, 90.0, 60.0] };
        report.curves = vec![curve(1), curve(5)];
        let advice = Advice::new(&report, scale);
        (report, advice)
    };
    page(&(0..files).map(finding).collect::<Vec<_>>())
}

#[test]
fn the_page_needs_nothing_else() {
    let html = html(1);
    for foreign in ["http://", "https://", "src=", "@import", "url(", "<script", "<link"] {
        assert!(!html.contains(foreign), "{foreign}");
    }
    assert!(html.contains("prefers-color-scheme: dark"));
}

#[test]
fn names_of_files_are_text_and_no_tags() {
    let html = html(1);
    assert!(html.contains("score &lt;live&gt;.jsonl") && !html.contains("<live>"));
    assert_eq!(escaped(r#"a<b>&"c""#), "a&lt;b&gt;&amp;&quot;c&quot;");
}

#[test]
fn every_tag_that_is_opened_is_closed() {
    let html = html(2);
    for tag in
        ["section", "div", "figure", "svg", "g", "text", "table", "tr", "td", "th", "p", "title"]
    {
        let opened =
            html.matches(&format!("<{tag} ")).count() + html.matches(&format!("<{tag}>")).count();
        assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn each_file_has_its_four_plots_and_several_have_links() {
    assert_eq!(html(2).matches("<svg ").count(), 8);
    assert!(html(2).contains("<a href=\"#file-1\">"));
    assert!(!html(1).contains("<nav>"));
}

#[test]
fn no_coordinate_is_broken() {
    let html = html(1);
    assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
}

#[test]
fn the_recommended_mode_is_pointed_out_once() {
    assert_eq!(html(1).matches("◂ recommended").count(), 1);
}

#[test]
fn every_depth_has_a_mark_that_says_its_bytes() {
    let html = html(1);
    for depth in
        ["K = 0, one channel per client: 780.0 B", "K = 2, 5 channels, interleaved: 60.0 B"]
    {
        assert_eq!(html.matches(depth).count(), 1, "{depth}");
    }
}
