//! A report as text for a terminal: the table, the advice, the lines to paste.
//! In: a report and its advice → out: text.
//! Uses `figure`. Never: prints; knows nothing of colours.
//! Changed here: what a terminal shows; the page shows the same in `page`.

use std::fmt::Write as _;

use fanwire_deflate::gap::DEPTH_MAX;
use fanwire_protocol::Encoding;

use crate::figure;
use crate::measure::{Measurement, Micros, Row};
use crate::mode::Group;
use crate::recommend::Advice;

#[cfg(test)]
mod tests;

/// Everything there is to say about one file.
pub fn report(report: &Measurement, advice: &Advice) -> String {
    let mut out = format!("{}: {}\n\n", report.file, about(report));
    table(report, &mut out);
    let _ = writeln!(out, "\nRecommendation: compression: {}\n", advice.compression.name());
    advice.reasons.iter().for_each(|reason| wrap(reason, &mut out));
    out.push('\n');
    savings(advice, &mut out);
    out.push('\n');
    advice.lines.lines().for_each(|line| {
        let _ = writeln!(out, "    {line}");
    });
    out.push('\n');
    out
}

/// Describes the measured messages, in a line.
pub(crate) fn about(report: &Measurement) -> String {
    let kind = match report.encoding {
        Encoding::Json => "JSON",
        Encoding::Protobuf => "binary",
    };
    let first = if report.has_more { "the first " } else { "" };
    let sizes = report.payloads;
    format!(
        "{first}{} {kind} messages of {} B on average ({} to {}; median {}, 95 % up to {}), on the wire \
         {} B with envelope and frame header",
        figure::grouped(report.rows[0].sizes.len() as f64),
        figure::bytes(sizes.mean),
        figure::grouped(sizes.least.into()),
        figure::grouped(sizes.most.into()),
        figure::grouped(sizes.median.into()),
        figure::grouped(sizes.p95.into()),
        figure::bytes(report.raw_bytes()),
    )
}

/// The heading of a group of rows.
pub(crate) fn heading(group: Group, report: &Measurement) -> String {
    let level = report.settings.level;
    match group {
        Group::Raw => "no compression".to_owned(),
        Group::Standalone => "standalone: one frame for all".to_owned(),
        Group::Dedicated => format!("a compressor per connection, level {level}"),
        Group::Delta => format!("Fossil delta (standalone: level {level})"),
        Group::OneChannel => format!("gap coding, one channel per client, level {level}"),
        Group::Interleaved => {
            format!("gap coding, {} channels per client, interleaved", report.settings.channels)
        }
    }
}

/// The cells of a row: bytes, ratio, two times, two memories.
pub(crate) fn cells(row: &Row, report: &Measurement) -> [String; 6] {
    let micros = |part: fn(Micros) -> f64| match row.micros {
        Some(micros) => figure::micros(part(micros)),
        None => "–".to_owned(),
    };
    [
        figure::bytes(row.bytes()),
        figure::ratio(report.raw_bytes() / row.bytes()),
        micros(|micros| micros.compress),
        micros(|micros| micros.decompress),
        figure::memory(row.memory.connection as f64),
        figure::memory(row.memory.channel as f64),
    ]
}

/// Headings of the columns of [`cells`].
pub(crate) const COLUMNS: [&str; 6] =
    ["B/message", "ratio", "µs comp.", "µs decomp.", "per connection", "per channel"];

/// Returns the notes below the table.
pub(crate) fn footnote(report: &Measurement) -> String {
    let measured = report.rows.iter().filter_map(|row| row.micros?.again);
    let again = measured.fold(0.0, f64::max);
    let mut note =
        "µs: time on one core of this machine; each message counts with the fastest of two or three passes. A message is \
         compressed once for all receivers, but with a compressor per connection once for each receiver."
            .to_owned();
    let _ = write!(
        note,
        " K is how many earlier publications of its channel a frame may refer to. The table has the values of K that the \
         server prefers, up to {DEPTH_MAX} where other channels lie in between. For a window that holds fewer publications \
         the server takes a K between two of them, whose cost is between their costs; the page (--html) has every K from 0 \
         to 16. This table has one memory level for each window of a compressor, and two for the smallest and for the \
         largest window; the configuration accepts every pair."
    );
    if again > 0.0 {
        let _ = write!(
            note,
            " Where channels alternate, clients at another position in the stream need a frame of their own, which \
             takes up to {} µs more.",
            figure::micros(again)
        );
    }
    note
}

fn table(report: &Measurement, out: &mut String) {
    let line = |name: &str, cells: &[String; 6], out: &mut String| {
        let _ = write!(out, "{name:<NAME$}");
        for (cell, width) in cells.iter().zip(WIDTHS) {
            let _ = write!(out, "{cell:>width$}");
        }
        out.push('\n');
    };
    line("", &COLUMNS.map(str::to_owned), out);
    let mut group = None;
    for row in &report.rows {
        if group != Some(row.mode.group()) && row.mode.group() != Group::Raw {
            let _ = writeln!(out, "{}", heading(row.mode.group(), report));
        }
        group = Some(row.mode.group());
        let indent = if group == Some(Group::Raw) { "" } else { "  " };
        line(&format!("{indent}{}", row.mode), &cells(row, report), out);
    }
    out.push('\n');
    wrap(&footnote(report), out);
}

fn savings(advice: &Advice, out: &mut String) {
    let scale = advice.scale;
    let _ = writeln!(
        out,
        "At {} publications a second to {} receivers, 30 days, ${} a GB:",
        scale.publications_per_second,
        figure::grouped(scale.receivers as f64),
        scale.dollars_per_gb,
    );
    for (name, bytes) in months(advice) {
        let month = advice.month(bytes);
        let _ = writeln!(
            out,
            "  {name:<12}{:>10}{:>12}",
            figure::volume(month.bytes),
            figure::dollars(month.dollars)
        );
    }
    let saved = advice.month(advice.raw - advice.chosen);
    let _ = writeln!(
        out,
        "  {:<12}{:>10}{:>12}",
        "saves",
        figure::volume(saved.bytes),
        figure::dollars(saved.dollars)
    );
}

/// Raw, standalone and, if it is neither, what is recommended, with bytes per delivery.
pub(crate) fn months(advice: &Advice) -> Vec<(&'static str, f64)> {
    use crate::recommend::Compression::Context;
    let mut months = vec![("raw", advice.raw), ("standalone", advice.standalone)];
    if advice.compression == Context {
        months.push(("context", advice.chosen));
    }
    months
}

/// Breaks a paragraph into lines.
fn wrap(paragraph: &str, out: &mut String) {
    let mut column = 0;
    for word in paragraph.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > LINE {
            out.push('\n');
            column = 0;
        }
        if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
}

const LINE: usize = 96;
const NAME: usize = 24;
const WIDTHS: [usize; 6] = [11, 9, 11, 12, 16, 13];
