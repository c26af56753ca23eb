//! The report as one HTML file that needs nothing else, and two reports as plots.
//! In: a report, or two → out: HTML with SVG plots, or SVG files.
//! Pure. Never: scripts, fonts or images from elsewhere.
//! Changed here: what the page shows; plots are drawn in `plot`.

use std::fmt::Write as _;

use super::plot::{Series, by_percentile, over_time};
use super::{Ending, Report, grouped};
use crate::record::Second;

impl Report {
    /// The page.
    pub fn html(&self) -> String {
        let mut body = String::new();
        let _ = writeln!(
            body,
            "<h1>fanwire bench</h1>\n<p class=\"verdict {}\">{}</p>",
            self.verdict().0,
            self.verdict().1
        );
        for (class, list) in [("bad", &self.faults), ("warn", &self.invalid)] {
            list.iter().for_each(|text| {
                let _ = writeln!(body, "<p class=\"{class}\">{}</p>", escaped(text));
            });
        }
        body += &self.cards();
        if self.deliveries > 0 {
            body += &self.plots();
        }
        let _ = writeln!(body, "<h2>All figures</h2>\n<pre>{}</pre>", escaped(&self.to_string()));
        let json = self.json().unwrap_or_default().replace('<', "\\u003c");
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>fanwire bench: {}</title>\
             <style>{STYLE}</style></head><body>\n{body}\
             <script type=\"application/json\" id=\"report\">{json}</script>\n</body></html>\n",
            escaped(&self.server.url)
        )
    }

    /// Class and text.
    fn verdict(&self) -> (&'static str, &'static str) {
        match () {
            () if self.has_failed() => ("bad", "The server did not deliver everything right."),
            () if self.deliveries == 0 => {
                ("warn", "Nothing was delivered: there is nothing to conclude.")
            }
            () if self.ending == Ending::Interrupted => {
                ("warn", "Interrupted: figures until then.")
            }
            () if !self.invalid.is_empty() => {
                ("warn", "Invalid: the generator was the bottleneck.")
            }
            () => ("good", "Every publication arrived once, in order, intact."),
        }
    }

    fn cards(&self) -> String {
        let bytes =
            self.bytes_per_delivery.map(|bytes| ("bytes per delivery", format!("{bytes:.1}")));
        let cpu =
            self.server.cpu_share.map(|share| ("% of a core", format!("{:.1}", share * 100.0)));
        let cards = [
            Some(("publications/s", grouped(self.achieved_rate))),
            Some(("deliveries/s", grouped(self.deliveries_per_second))),
            Some(("p50 ms", format!("{:.2}", self.latency.p50_ms))),
            Some(("p99 ms", format!("{:.2}", self.latency.p99_ms))),
            bytes,
            cpu,
        ];
        let card =
            |(name, value): (&str, String)| format!("<div><b>{value}</b><span>{name}</span></div>");
        let cards: String = cards.into_iter().flatten().map(card).collect();
        format!("<section class=\"cards\">{cards}</section>\n")
    }

    /// Latency and CPU of two servers under the same plan, each as an SVG file: its name and its text.
    pub fn compared(runs: [(&str, &Self); 2]) -> [(&'static str, String); 2] {
        let [(one, first), (two, second)] = runs;
        let latency =
            by_percentile(&[(one, "one", first.histogram()), (two, "two", second.histogram())]);
        let cpu_of = |name, class, report: &Self| {
            let of = |second: &Second| second.server_cpu.unwrap_or(0.0) * 100.0;
            Series { name, class, values: report.seconds.iter().map(of).collect() }
        };
        let cpu = over_time("%", &[cpu_of(one, "one", first), cpu_of(two, "two", second)]);
        [("latency", latency), ("cpu", cpu)].map(|(name, svg)| (name, alone(&svg)))
    }

    fn plots(&self) -> String {
        let of = |value: fn(&Second) -> f64| self.seconds.iter().map(value).collect();
        let one = |name, class, values| Series { name, class, values };
        let latency = over_time(
            "ms",
            &[
                one("p50", "one", of(|second| second.p50_ms)),
                one("p99", "two", of(|second| second.p99_ms)),
            ],
        );
        let rates =
            over_time("1/s", &[one("deliveries", "one", of(|second| second.deliveries as f64))]);
        let published =
            over_time("1/s", &[one("publications", "two", of(|second| second.published as f64))]);
        let mut plots = vec![
            (
                "Latency by percentile, from the planned time",
                by_percentile(&[("arrival", "one", self.histogram())]),
            ),
            ("Latency by second", latency),
            ("Deliveries", rates),
            ("Publications", published),
        ];
        if self.server.cpu_seconds.is_some() {
            let cpu = of(|second| second.server_cpu.unwrap_or(0.0) * 100.0);
            let resident =
                of(|second| second.server_resident_bytes.unwrap_or(0) as f64 / f64::from(1 << 20));
            plots.push(("CPU of the server", over_time("%", &[one("of a core", "one", cpu)])));
            plots.push((
                "Memory of the server",
                over_time("MiB", &[one("resident", "two", resident)]),
            ));
        }
        let plot = |(title, svg): (&str, String)| {
            format!("<figure><figcaption>{title}</figcaption>{svg}</figure>\n")
        };
        plots.into_iter().map(plot).collect()
    }
}

/// Lines over seconds as an SVG file, at most five; each has a name and a value for each second.
pub fn time_plot(unit: &str, lines: &[(&str, Vec<f64>)]) -> String {
    let mut series = Vec::new();
    for ((name, values), class) in lines.iter().zip(LINE_CLASSES) {
        series.push(Series { name, class, values: values.clone() });
    }
    alone(&over_time(unit, &series))
}

/// A plot as a file of its own, with the styles of the page.
fn alone(svg: &str) -> String {
    let svg = svg.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1);
    svg.replacen('>', &format!("><style>{STYLE}</style>"), 1)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Colours of lines, in their order.
const LINE_CLASSES: [&str; 5] = ["one", "two", "three", "four", "five"];
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#667;--page:#fff;--card:#f3f5f8;--line:#d8dde4;--one:#0b6bcb;--two:#c2410c;--good:#15803d;--bad:#b91c1c}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--soft:#9aa4b2;--page:#14171b;--card:#1e232a;--line:#333b45;--one:#5aa9f2;--two:#f2955a;--good:#4ade80;--bad:#f87171}}\
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:60rem;margin:2rem auto;padding:0 1rem}\
.verdict{font-weight:600}.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--two)}\
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(8rem,1fr));gap:.75rem;margin:1rem 0}\
.cards div{background:var(--card);border-radius:8px;padding:.75rem}.cards b{display:block;font-size:1.4rem}.cards span{color:var(--soft)}\
figure{margin:1.5rem 0}figcaption{font-weight:600}svg{width:100%;height:auto}svg text{font:11px system-ui,sans-serif;fill:var(--soft)}\
.grid{stroke:var(--line)}polyline{fill:none;stroke-width:1.5}polyline.one{stroke:var(--one)}polyline.two{stroke:var(--two)}rect.one{fill:var(--one)}rect.two{fill:var(--two)}\
polyline.three{stroke:#2f9e5b}polyline.four{stroke:#8b6fe0}polyline.five{stroke:#d1457b}rect.three{fill:#2f9e5b}rect.four{fill:#8b6fe0}rect.five{fill:#d1457b}\
pre{background:var(--card);border-radius:8px;padding:1rem;overflow-x:auto;font-size:13px}";
