//! The two text formats of a scrape: Prometheus text 0.0.4 and OpenMetrics 1.0.
//! In: the `Accept` header of a scraper → out: the format, its content type.
//! Uses text alone. Never: metrics.
//! Changed here: which scraper gets which format. `scrape_writer` writes both.

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
        if open_metrics.any(|range| !refuses(range)) { Self::OpenMetrics } else { Self::Prometheus }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
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
}
