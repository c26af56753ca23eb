//! The findings as one HTML page that needs nothing else: plots, tables, lines to paste.
//! In: reports with their advice → out: HTML with inline styles and SVG, for light and dark screens.
//! Uses `plot`, and `text` and `figure` for what is said. Never: scripts, fonts or anything of a network.
//! Looks are in `page/style.css`; what a plot shows is in `plot`.

use std::fmt::Write as _;

use crate::figure;
use crate::measure::Measurement;
use crate::mode::{Group, Mode};
use crate::recommend::Advice;
use crate::text;

mod plot;

#[cfg(test)]
mod tests;

/// The whole page.
pub fn page(findings: &[(Measurement, Advice)]) -> String {
    let names: Vec<String> = findings.iter().map(|(report, _)| escaped(&report.file)).collect();
    let title = names.join(", ");
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>fanwire tune: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header><p class=\"brand\">fanwire tune</p><h1>How your messages compress</h1>\n"
    );
    if names.len() > 1 {
        out.push_str("<nav>");
        for (at, name) in names.iter().enumerate() {
            let _ = write!(out, "<a href=\"#file-{at}\">{name}</a>");
        }
        out.push_str("</nav>");
    }
    out.push_str("</header>\n");
    for (at, (report, advice)) in findings.iter().enumerate() {
        section(at, report, advice, &mut out);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn section(at: usize, report: &Measurement, advice: &Advice, out: &mut String) {
    let _ = write!(
        out,
        "<section id=\"file-{at}\">\n<h2>{}</h2>\n<p class=\"about\">{}</p>\n",
        escaped(&report.file),
        escaped(&text::about(report)),
    );
    tiles(advice, out);
    recommendation(advice, out);
    figure_of(
        "Bytes per message",
        "Envelope and frame header included; shorter is better.",
        &plot::bars(report, advice.mode),
        out,
    );
    if !report.curves.is_empty() {
        figure_of(
            "Bytes and depth",
            "K is how many earlier publications of its channel a frame may refer to; 0 stands alone.",
            &plot::depth(report),
            out,
        );
    }
    out.push_str("<div class=\"pair\">\n");
    figure_of(
        "Bytes and time",
        "Compressing one message, on logarithmic scales; best is bottom left.",
        &plot::time(report),
        out,
    );
    let receivers = figure::grouped(advice.scale.receivers as f64);
    figure_of(
        "Bytes and memory",
        &format!(
            "What a server holds for one channel with {receivers} receivers; best is bottom left."
        ),
        &plot::memory(report, advice.scale.receivers),
        out,
    );
    out.push_str("</div>\n");
    table(report, out);
    out.push_str("</section>\n");
}

/// The three figures that matter, the advice among them.
fn tiles(advice: &Advice, out: &mut String) {
    let saved = advice.month(advice.raw - advice.chosen);
    let name = advice.compression.name();
    let now = figure::bytes(advice.chosen);
    let ratio = figure::ratio(advice.raw / advice.chosen);
    let raw = figure::bytes(advice.raw);
    let standalone = figure::bytes(advice.standalone);
    let money = figure::dollars(saved.dollars);
    let volume = figure::volume(saved.bytes);
    let _ = write!(
        out,
        "<div class=\"tiles\">\n\
         <div class=\"tile key\"><span>Use</span><b>{name}</b><small>compression: {name}</small></div>\n\
         <div class=\"tile\"><span>Bytes per delivery</span><b>{now} B</b><small>{raw} B raw, {standalone} B standalone</small></div>\n\
         <div class=\"tile\"><span>Smaller by</span><b>{ratio}</b><small>than raw frames</small></div>\n\
         <div class=\"tile\"><span>Saves a month</span><b>{money}</b><small>{volume} of traffic</small></div>\n\
         </div>\n"
    );
}

fn recommendation(advice: &Advice, out: &mut String) {
    out.push_str("<div class=\"advice\">\n<div>\n");
    for reason in &advice.reasons {
        let _ = writeln!(out, "<p>{}</p>", escaped(reason));
    }
    let scale = advice.scale;
    let _ = write!(
        out,
        "<p>At {} publications a second to {} receivers, for 30 days at ${} a GB:</p>\n<table class=\"months\">\n",
        scale.publications_per_second,
        figure::grouped(scale.receivers as f64),
        scale.dollars_per_gb,
    );
    for (name, bytes) in text::months(advice) {
        let month = advice.month(bytes);
        let _ = writeln!(
            out,
            "<tr><th>{name}</th><td>{}</td><td>{}</td></tr>",
            figure::volume(month.bytes),
            figure::dollars(month.dollars),
        );
    }
    let _ = write!(
        out,
        "</table>\n</div>\n<div><h3>Lines to paste</h3>\n<pre>{}</pre></div>\n</div>\n",
        escaped(&advice.lines)
    );
}

fn figure_of(title: &str, caption: &str, svg: &str, out: &mut String) {
    let _ = write!(
        out,
        "<figure>\n<figcaption><h3>{title}</h3><p>{caption}</p></figcaption>\n{svg}</figure>\n"
    );
}

fn table(report: &Measurement, out: &mut String) {
    out.push_str(
        "<h3>All figures</h3>\n<div class=\"scroll\"><table class=\"all\">\n<thead><tr><th></th>",
    );
    for column in text::COLUMNS {
        let _ = write!(out, "<th>{column}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    let mut group = None;
    for row in &report.rows {
        let of = row.mode.group();
        if group != Some(of) && of != Group::Raw {
            let heading = escaped(&text::heading(of, report));
            let _ = writeln!(
                out,
                "<tr class=\"group\"><th colspan=\"7\"><i class=\"{}\"></i>{heading}</th></tr>",
                class(row.mode)
            );
        }
        group = Some(of);
        let _ = write!(out, "<tr><th>{}</th>", row.mode);
        for cell in text::cells(row, report) {
            let _ = write!(out, "<td>{cell}</td>");
        }
        out.push_str("</tr>\n");
    }
    let _ =
        write!(out, "</tbody></table></div>\n<p class=\"about\">{}</p>\n", text::footnote(report));
}

/// The colour of a mode's group.
fn class(mode: Mode) -> &'static str {
    match mode.group() {
        Group::Raw => "raw",
        Group::Standalone => "standalone",
        Group::Dedicated => "dedicated",
        Group::Delta => "delta",
        Group::OneChannel => "one",
        Group::Interleaved => "many",
    }
}

/// Text between tags and in attributes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(one),
        }
    }
    out
}

const STYLE: &str = include_str!("page/style.css");
