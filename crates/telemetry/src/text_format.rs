//! The two text formats of a scrape: Prometheus text 0.0.4 and OpenMetrics 1.0.
//! In: the `Accept` header of a scraper; OpenMetrics text → out: the format; the same metrics as Prometheus text.
//! Uses text alone. Never: metrics.
//! Changed here: which scraper gets which format.

use std::fmt::Write as _;

/// The format of a scrape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    Prometheus,
    OpenMetrics,
}

impl TextFormat {
    /// OpenMetrics for a scraper that names it, as Prometheus does; the older format for curl, `promtool` and others.
    pub fn accepted(accept: &str) -> Self {
        let ranges = accept.split(',').map(str::trim_start);
        let mut open_metrics = ranges.filter(|range| range.starts_with(OPEN_METRICS));
        let refuses = |range: &str| range.split(';').any(|part| part.trim() == "q=0");
        match open_metrics.any(|range| !refuses(range)) {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// OpenMetrics text as Prometheus text: comments name a counter as its samples do, with `_total`, and there is no end marker.
pub fn prometheus_text(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len() + 1024);
    let mut lines = open_metrics.lines().peekable();
    while let Some(line) = lines.next() {
        match (line.strip_prefix("# HELP "), lines.peek()) {
            (Some(help), Some(next)) if is_counter(next) => {
                let (name, help) = help.split_once(' ').unwrap_or((help, ""));
                writeln!(text, "# HELP {name}_total {help}")
            }
            _ if is_counter(line) => {
                let name = line.trim_start_matches("# TYPE ").trim_end_matches(" counter");
                writeln!(text, "# TYPE {name}_total counter")
            }
            _ if line == "# EOF" => Ok(()),
            _ => writeln!(text, "{line}"),
        }
        .expect("writing to a String does not fail");
    }
    text
}

fn is_counter(line: &str) -> bool {
    line.starts_with("# TYPE ") && line.ends_with(" counter")
}

const OPEN_METRICS: &str = "application/openmetrics-text";

#[cfg(test)]
mod tests {
    use super::TextFormat::{OpenMetrics, Prometheus};
    use super::*;

    #[test]
    fn a_scraper_gets_the_format_that_it_names() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        assert_eq!(TextFormat::accepted(prometheus), OpenMetrics);
        assert_eq!(TextFormat::accepted("text/plain, application/openmetrics-text"), OpenMetrics);
        for other in ["", "*/*", "text/html", "application/openmetrics-text; q=0, text/plain"] {
            assert_eq!(TextFormat::accepted(other), Prometheus, "{other}");
        }
    }

    #[test]
    fn comments_of_counters_have_the_names_of_their_samples() {
        let open_metrics = "# HELP a_b Text with counter\n# TYPE a_b counter\na_b_total{c=\"# EOF\"} 1\n\
                            # HELP d D\n# TYPE d gauge\nd 2\n# EOF\n";
        let expected = "# HELP a_b_total Text with counter\n# TYPE a_b_total counter\na_b_total{c=\"# EOF\"} 1\n\
                        # HELP d D\n# TYPE d gauge\nd 2\n";
        assert_eq!(prometheus_text(open_metrics), expected);
    }
}
