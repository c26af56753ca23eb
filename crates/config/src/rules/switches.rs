//! Keys without an effect, because the feature that they belong to is off.
//! In: a filled `Config` → out: remarks.
//! Uses values only. Never: switches anything.
//! A key that needs another one is added here.

use super::{Config, Remark, Severity};

pub(super) fn are_on(config: &Config) -> Vec<Remark> {
    let traces = &config.opentelemetry;
    let consuming = traces.consuming && !traces.enabled;
    let requests = config.prometheus.instrument_http_handlers && !config.prometheus.enabled;
    let names = config.compatibility.centrifugo_metrics && !config.prometheus.enabled;
    let needs = [
        (traces.api && !traces.enabled, "opentelemetry.api", "opentelemetry.enabled"),
        (consuming, "opentelemetry.consuming", "opentelemetry.enabled"),
        (requests, "prometheus.instrument_http_handlers", "prometheus.enabled"),
        (names, "compatibility.centrifugo_metrics", "prometheus.enabled"),
    ]
    .into_iter()
    .filter(|(is_missing, ..)| *is_missing);
    let remark = |(_, key, other): (bool, &'static str, &str)| {
        let reason = format!("{key} is true and has no effect without {other}: set that to true");
        (Severity::Warning, key, reason)
    };
    needs.map(remark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_its_feature_is_named() {
        let mut config = Config::blank();
        assert!(are_on(&config).is_empty());
        config.opentelemetry.api = true;
        config.opentelemetry.consuming = true;
        config.prometheus.instrument_http_handlers = true;
        config.compatibility.centrifugo_metrics = true;
        assert_eq!(are_on(&config).len(), 4);
        config.opentelemetry.enabled = true;
        let named: Vec<_> = are_on(&config).iter().map(|remark| remark.1).collect();
        let metrics = "compatibility.centrifugo_metrics";
        assert_eq!(named, ["prometheus.instrument_http_handlers", metrics]);
    }
}
