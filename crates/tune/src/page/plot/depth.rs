//! The value of a deeper history: bytes against K.
//! In: the curves of a report → out: SVG text.
//! Uses the marks, ticks and axis of the other plots. Never: measures.
//! Changed here: how a curve looks; which depths it has is decided in `mode`.

use std::fmt::Write as _;

use super::{Axis, class, mark, svg, tick};
use crate::figure;
use crate::measure::{Curve, Measurement};
use crate::mode::{ContextDepth, Mode};

/// A line for each kind of client, from a frame that stands alone to the deepest.
pub(in crate::page) fn depth(report: &Measurement) -> String {
    let bytes = report.curves.iter().flat_map(|curve| curve.bytes.iter().copied());
    let up = Axis::new(bytes, BOTTOM, TOP);
    let deepest = report.curves.iter().map(|curve| curve.bytes.len()).max().unwrap_or(1).max(2) - 1;
    let across = |k: usize| FIRST + (RIGHT - FIRST) * k as f64 / deepest as f64;
    let mut body = String::new();
    for (value, y) in up.ticks() {
        let _ = writeln!(
            body,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 12.0,
            y + 4.0,
            tick(value)
        );
    }
    for k in 0..=deepest {
        let _ = writeln!(
            body,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{k}</text>",
            across(k),
            BOTTOM + 20.0
        );
    }
    for curve in &report.curves {
        line(curve, &across, up, &mut body);
    }
    legend(&report.curves, &mut body);
    svg(960.0, BOTTOM + 62.0, "Bytes per message by depth", &body)
}

fn line(curve: &Curve, across: &dyn Fn(usize) -> f64, up: Axis, body: &mut String) {
    let places: Vec<(f64, f64)> =
        (0..).zip(&curve.bytes).map(|(k, bytes)| (across(k), up.place(*bytes))).collect();
    let points: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    let kind = class(mode(curve));
    let _ = writeln!(body, "<path class=\"path {kind}\" d=\"M{}\"/>", points.join("L"));
    for (k, ((x, y), bytes)) in places.iter().zip(&curve.bytes).enumerate() {
        let bytes = figure::bytes(*bytes);
        let who = who(curve);
        let _ = writeln!(
            body,
            "<g><title>K = {k}, {who}: {bytes} B</title>{}</g>",
            mark(mode(curve), *x, *y)
        );
        // The other curve is close, and its figures would stand in these.
        if curve.channels == 1 {
            let _ = writeln!(
                body,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{bytes}</text>",
                y + 22.0
            );
        }
    }
}

fn legend(curves: &[Curve], body: &mut String) {
    for (at, curve) in curves.iter().enumerate() {
        let x = LEFT + 206.0 * at as f64;
        let y = BOTTOM + 48.0;
        let _ = writeln!(
            body,
            "{}<text class=\"name\" x=\"{:.0}\" y=\"{:.0}\">{}</text>",
            mark(mode(curve), x, y),
            x + 14.0,
            y + 4.0,
            who(curve)
        );
    }
}

fn who(curve: &Curve) -> String {
    match curve.channels {
        1 => "one channel per client".to_owned(),
        several => format!("{several} channels, interleaved"),
    }
}

/// Returns the mode that gives the colour and the shape of its marks.
fn mode(curve: &Curve) -> Mode {
    Mode::Context { depth: ContextDepth::Window, channels: curve.channels }
}

const LEFT: f64 = 58.0;
const RIGHT: f64 = 930.0;
/// Position of K = 0: its figure needs space next to those of the axis.
const FIRST: f64 = 90.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 230.0;
