//! The plots of the page, as SVG.
//! In: a report → out: SVG text whose colours are classes of the page's style.
//! Uses `scale` for axes. Never: styles, pixels of text (labels are placed by rule, not measured).
//! Changed here: what is drawn; what it says around it is in `page`.

use std::fmt::Write as _;

use super::{class, escaped};
use crate::figure;
use crate::measure::{Measurement, Row};
use crate::mode::{ContextDepth, Group, Mode};
use crate::text;
use axis::Axis;

mod axis;
mod depth;

pub(super) use depth::depth;

/// A bar for each mode, as long as its average message; the recommended one is named.
pub(super) fn bars(report: &Measurement, recommended: Mode) -> String {
    let longest = report.rows.iter().map(Row::bytes).fold(0.0, f64::max);
    let mut body = String::new();
    let mut y = 0.0;
    let mut group = None;
    for row in &report.rows {
        let of = row.mode.group();
        if group != Some(of) && of != Group::Raw {
            let heading = escaped(&text::heading(of, report));
            let _ = writeln!(
                body,
                "<text class=\"head\" x=\"0\" y=\"{:.0}\">{heading}</text>",
                y + 25.0
            );
            y += 34.0;
        }
        group = Some(of);
        let width = (row.bytes() / longest * BAR_MAX).max(1.0);
        let remark = if row.mode == recommended { REMARK } else { "" };
        let left = BAR_LEFT - 10.0;
        let middle = y + 13.0;
        let _ = writeln!(
            body,
            "<g><title>{}</title>\
             <text class=\"name\" x=\"{left}\" y=\"{middle}\" text-anchor=\"end\">{}</text>\
             <rect class=\"{}\" x=\"{BAR_LEFT}\" y=\"{:.0}\" width=\"{width:.1}\" height=\"12\" rx=\"3\"/>\
             <text x=\"{:.1}\" y=\"{middle}\">{}{remark}</text></g>",
            tip(row),
            row.mode,
            class(row.mode),
            y + 3.0,
            BAR_LEFT + width + 8.0,
            figure::bytes(row.bytes()),
        );
        y += 18.0;
    }
    svg(960.0, y + 4.0, "Bytes per message by mode", &body)
}

/// Bytes against the time to compress.
pub(super) fn time(report: &Measurement) -> String {
    let rows = rows(report, &|row| row.micros.map(|micros| micros.compress));
    let across = Axis::new(rows.iter().map(|(_, micros)| *micros), LEFT, RIGHT);
    let ticks = across.ticks().into_iter().map(|(value, x)| (tick(value), x)).collect();
    scatter("µs to compress a message", report, &rows, across, ticks)
}

/// Bytes against what a server holds for a channel and its receivers.
pub(super) fn memory(report: &Measurement, receivers: u64) -> String {
    // Nothing has no place on a logarithmic axis; it stands at its left end.
    let rows = rows(report, &|row| {
        let bytes = row.memory.connection as f64 * receivers as f64 + row.memory.channel as f64;
        Some(bytes.max(MEMORY_NONE))
    });
    let across = Axis::new(rows.iter().map(|(_, bytes)| *bytes), LEFT, RIGHT);
    let steps = (10..=60).step_by(5).map(|bits| (1u64 << bits) as f64);
    let mut ticks = vec![("none".to_owned(), across.place(MEMORY_NONE))];
    let inside = steps.filter(|bytes| across.holds(*bytes));
    ticks
        .extend(inside.map(|bytes| (figure::memory(bytes).replace(".0", ""), across.place(bytes))));
    scatter("memory of the server", report, &rows, across, ticks)
}

/// The rows that have a place across. K = 0 is standalone, and would only lengthen the lines.
fn rows<'a>(report: &'a Measurement, place: &dyn Fn(&Row) -> Option<f64>) -> Vec<(&'a Row, f64)> {
    let is_plotted = |row: &&Row| {
        !matches!(row.mode, Mode::Context { depth: ContextDepth::Publications(0), .. })
    };
    report.rows.iter().filter(is_plotted).filter_map(|row| Some((row, place(row)?))).collect()
}

fn scatter(
    name: &str,
    report: &Measurement,
    rows: &[(&Row, f64)],
    across: Axis,
    ticks: Vec<(String, f64)>,
) -> String {
    let up = Axis::new(rows.iter().map(|(row, _)| row.bytes()), BOTTOM, TOP);
    let mut body = String::new();
    for (label, x) in ticks {
        let _ = writeln!(
            body,
            "<path class=\"grid\" d=\"M{x:.1} {TOP}V{BOTTOM}\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            BOTTOM + 18.0
        );
    }
    for (value, y) in up.ticks() {
        let _ = writeln!(
            body,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            y + 4.0,
            tick(value)
        );
    }
    let _ = writeln!(
        body,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{name}</text>",
        (LEFT + RIGHT) / 2.0,
        BOTTOM + 38.0,
    );
    let places: Vec<(&Row, f64, f64)> =
        rows.iter().map(|(row, at)| (*row, across.place(*at), up.place(row.bytes()))).collect();
    series(&places, &mut body);
    legend(report, BOTTOM + 60.0, &mut body);
    svg(480.0, BOTTOM + 112.0, name, &body)
}

/// Marks of one group, joined in the order of the table.
fn series(places: &[(&Row, f64, f64)], body: &mut String) {
    for group in places.chunk_by(|one, other| one.0.mode.group() == other.0.mode.group()) {
        let line: Vec<String> = group.iter().map(|(_, x, y)| format!("{x:.1} {y:.1}")).collect();
        let kind = class(group[0].0.mode);
        let _ = writeln!(body, "<path class=\"path {kind}\" d=\"M{}\"/>", line.join("L"));
    }
    for (row, x, y) in places {
        let _ = writeln!(body, "<g><title>{}</title>{}</g>", tip(row), mark(row.mode, *x, *y));
        if let Some((name, anchor, right, down)) = label(row.mode) {
            let x = x + right;
            let y = y + down;
            let _ = writeln!(
                body,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{name}</text>"
            );
        }
    }
}

/// The name of a mark that begins or ends a series, and its position relative to the mark.
fn label(mode: Mode) -> Option<(&'static str, &'static str, f64, f64)> {
    Some(match mode {
        Mode::Raw => ("raw", "start", 9.0, 4.0),
        Mode::Standalone { level: 1 } => ("level 1", "middle", 0.0, -10.0),
        Mode::Dedicated { window_bits: 9, memory_level: 1 } => ("9/1", "middle", 0.0, -10.0),
        Mode::Dedicated { window_bits: 15, memory_level: 9 } => ("15/9", "start", 9.0, 4.0),
        Mode::Delta { is_compressed: false } => ("delta", "middle", 0.0, -10.0),
        Mode::Context { depth: ContextDepth::Publications(1), channels: 1 } => {
            ("K = 1", "middle", 0.0, 19.0)
        }
        Mode::Context { depth: ContextDepth::Publications(1), .. } => {
            ("K = 1", "middle", 0.0, -10.0)
        }
        _ => return None,
    })
}

/// A shape for each group, so that colour is not all there is.
fn mark(mode: Mode, x: f64, y: f64) -> String {
    let kind = class(mode);
    let path = match mode.group() {
        Group::Raw | Group::Standalone => {
            return format!("<circle class=\"mark {kind}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"/>");
        }
        Group::Dedicated => "m-4.5 -4.5h9v9h-9z",
        Group::Delta => "m0 -6.5l6.5 6.5l-6.5 6.5l-6.5 -6.5z",
        Group::OneChannel => "m0 -6.5l6.5 11.5h-13z",
        Group::Interleaved => "m0 6.5l6.5 -11.5h-13z",
    };
    // The outline is the style's; a path of a group's class would be stroked in its colour.
    format!(
        "<path class=\"{kind}\" style=\"stroke:var(--card);stroke-width:1.5\" d=\"M{x:.1} {y:.1}{path}\"/>"
    )
}

fn legend(report: &Measurement, y: f64, body: &mut String) {
    let mut groups = Vec::new();
    for row in &report.rows {
        if row.mode != Mode::Raw
            && !groups.iter().any(|mode: &Mode| mode.group() == row.mode.group())
        {
            groups.push(row.mode);
        }
    }
    for (at, mode) in groups.into_iter().enumerate() {
        let x = 66.0 + 206.0 * (at % 2) as f64;
        let y = y + 21.0 * (at / 2) as f64;
        let name = match mode.group() {
            Group::Raw => "raw",
            Group::Standalone => "standalone",
            Group::Dedicated => "compressor per connection",
            Group::Delta => "Fossil delta",
            Group::OneChannel => "gap coding, one channel",
            Group::Interleaved => "gap coding, interleaved",
        };
        let _ = writeln!(
            body,
            "{}<text class=\"name\" x=\"{:.0}\" y=\"{:.0}\">{name}</text>",
            mark(mode, x, y),
            x + 14.0,
            y + 4.0
        );
    }
}

/// Returns the text for a pointer over a mark.
fn tip(row: &Row) -> String {
    let times = row.micros.map_or(String::new(), |micros| {
        let [compress, decompress] = [micros.compress, micros.decompress].map(figure::micros);
        format!(", {compress} µs to compress, {decompress} µs to decompress")
    });
    let [connection, channel] =
        [row.memory.connection, row.memory.channel].map(|bytes| figure::memory(bytes as f64));
    format!(
        "{}: {} B{times}, {connection} per connection, {channel} per channel",
        row.mode.title(),
        figure::bytes(row.bytes()),
    )
}

fn tick(value: f64) -> String {
    if value >= 1.0 { figure::grouped(value) } else { format!("{value}") }
}

fn svg(width: f64, height: f64, label: &str, body: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{label}\">\n{body}</svg>\n"
    )
}

const BAR_LEFT: f64 = 150.0;
const BAR_MAX: f64 = 730.0;

const REMARK: &str = "<tspan class=\"head\" dx=\"8\">◂ recommended</tspan>";

/// The edges of a scatter plot.
const LEFT: f64 = 58.0;
const RIGHT: f64 = 462.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 290.0;

/// Position of "none" on the axis of memory.
const MEMORY_NONE: f64 = 64.0;
