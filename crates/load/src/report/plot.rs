//! Plots of a report, as SVG.
//! In: series of numbers → out: SVG text whose colours are classes of the page's style.
//! Pure.
//! Changed here: how a series is drawn; which series there are is in `page`.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

use crate::record::milliseconds;

/// A line of a plot: one value for each x; `class` gives its colour.
pub(super) struct Series<'a> {
    pub(super) name: &'a str,
    pub(super) class: &'a str,
    pub(super) values: Vec<f64>,
}

/// Lines over seconds, from zero.
pub(super) fn over_time(unit: &str, series: &[Series<'_>]) -> String {
    let count = series.iter().map(|one| one.values.len()).max().unwrap_or(0);
    let labels: Vec<(f64, String)> = (0..=4)
        .map(|step| {
            let at = f64::from(step) / 4.0;
            (at, format!("{:.0} s", at * count.max(1) as f64))
        })
        .collect();
    let lines = series.iter().map(|one| {
        let last = (count.max(2) - 1) as f64;
        let points = one.values.iter().enumerate().map(|(place, y)| (place as f64 / last, *y));
        (one.name, one.class, points.collect())
    });
    draw(unit, &labels, &lines.collect::<Vec<_>>())
}

/// Latencies at percentiles: the x axis gives each further nine the same room.
pub(super) fn by_percentile(runs: &[(&str, &str, &Histogram<u64>)]) -> String {
    let names = ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"];
    let labels: Vec<(f64, String)> = names
        .iter()
        .zip(0..)
        .map(|(text, nines)| (f64::from(nines) / 4.0, (*text).to_owned()))
        .collect();
    let place = |quantile: f64| (-(1.0 - quantile).max(1e-4).log10() / 4.0).clamp(0.0, 1.0);
    let quantiles = || (0..=400).map(|step| 1.0 - 10f64.powf(-f64::from(step) / 100.0));
    let line = |histogram: &Histogram<u64>| {
        let at = |quantile| milliseconds(histogram.value_at_quantile(quantile));
        quantiles().map(|quantile| (place(quantile), at(quantile))).collect()
    };
    let lines = runs.iter().map(|(name, class, histogram)| (*name, *class, line(histogram)));
    draw("ms", &labels, &lines.collect::<Vec<_>>())
}

type PlotLine<'a> = (&'a str, &'a str, Vec<(f64, f64)>);

/// Points have x from 0 to 1.
fn draw(unit: &str, labels: &[(f64, String)], lines: &[PlotLine<'_>]) -> String {
    let values = lines.iter().flat_map(|(.., points)| points.iter().map(|(_, y)| *y));
    let top = round_up(values.filter(|value| value.is_finite()).fold(0.0, f64::max));
    let x = |at: f64| LEFT + at * (RIGHT - LEFT);
    let y = |value: f64| BOTTOM - value / top * (BOTTOM - TOP);
    let mut body = String::new();
    for step in 0..=4 {
        let value = top * f64::from(step) / 4.0;
        let _ = writeln!(
            body,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{0:.1}\" y2=\"{0:.1}\"/>\
             <text x=\"{1}\" y=\"{2:.1}\" text-anchor=\"end\">{3}</text>",
            y(value),
            LEFT - 6.0,
            y(value) + 4.0,
            number(value),
        );
    }
    for (at, text) in labels {
        let _ = writeln!(
            body,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>",
            x(*at),
            BOTTOM + 18.0
        );
    }
    for (place, (name, class, points)) in lines.iter().enumerate() {
        let points: Vec<String> =
            points.iter().map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value))).collect();
        let left = LEFT + 10.0 + place as f64 * 130.0;
        let _ = writeln!(
            body,
            "<polyline class=\"{class}\" points=\"{}\"/>\
             <rect class=\"{class}\" x=\"{left}\" y=\"6\" width=\"12\" height=\"4\"/>\
             <text x=\"{}\" y=\"12\">{name}</text>",
            points.join(" "),
            left + 18.0,
        );
    }
    format!(
        "<svg viewBox=\"0 0 760 240\" role=\"img\"><text x=\"{0}\" y=\"12\" text-anchor=\"end\">{unit}</text>\n{body}</svg>",
        LEFT - 6.0
    )
}

/// The next round number; 1 for nothing.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|top| *top >= value).unwrap_or(10.0 * power)
}

fn number(value: f64) -> String {
    match value {
        _ if value >= 1e6 => format!("{}M", value / 1e6),
        _ if value >= 1e4 => format!("{}k", value / 1e3),
        _ => format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

const LEFT: f64 = 70.0;
const RIGHT: f64 = 720.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 210.0;
