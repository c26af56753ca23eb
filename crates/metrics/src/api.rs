//! The metrics of the server API: calls by method, refusals, callers by the name of their key.
//! In: the counters of each protocol → out: rows for the writer.
//! Uses the writer alone; only methods and keys that were used have a series.
//! Changed here: names, labels and help. The counters live in `fanwire_api`.

use std::sync::Arc;

use fanwire_api::{Api, KeyHolder, LATENCY_BOUNDS_US, Method, MethodCounts};
use fanwire_telemetry::MetricsWriter;

pub(super) fn write(apis: &[(&'static str, Arc<Api>)], writer: &mut impl MetricsWriter) {
    let methods = |(protocol, api): &(&'static str, Arc<Api>)| {
        let labels = |method: Method| {
            [("protocol", (*protocol).to_owned()), ("method", method.name().to_owned())]
        };
        let all = Method::ALL.map(|method| (labels(method), api.counters().of(method)));
        all.into_iter().filter(|(_, counts)| counts.calls > 0)
    };
    let methods: Vec<_> = apis.iter().flat_map(methods).collect();
    let rows = |read: fn(&MethodCounts) -> u64| {
        methods.iter().map(move |(labels, counts)| (labels.clone(), read(counts)))
    };
    writer.counters("api_commands", "Calls of the server API", rows(|counts| counts.calls));
    writer.counters(
        "api_command_errors",
        "Calls that ended in an error",
        rows(|counts| counts.errors),
    );
    let refused = apis.iter().flat_map(|(protocol, api)| {
        let refusals = api.counters().refusals();
        let refused = [
            ("unauthorized", refusals.unauthorized),
            ("malformed", refusals.malformed),
            ("too_large", refusals.too_large),
        ];
        refused.map(|(reason, count)| {
            ([("protocol", (*protocol).to_owned()), ("reason", reason.to_owned())], count)
        })
    });
    writer.counters("api_refusals", "Requests refused before a method was called", refused);
    let callers: Vec<_> = apis
        .iter()
        .flat_map(|(protocol, api)| {
            let row = |caller: Arc<KeyHolder>| {
                let labels = [("protocol", (*protocol).to_owned()), ("key", caller.name.clone())];
                (labels, caller.counts())
            };
            api.callers().into_iter().map(row).collect::<Vec<_>>()
        })
        .filter(|(_, [calls, ..])| *calls > 0)
        .collect();
    let rows =
        |index: usize| callers.iter().map(move |(labels, counts)| (labels.clone(), counts[index]));
    let help = "Commands by the name of the key of their sender";
    writer.counters("api_key_commands", help, rows(0));
    let help = "Commands that the key does not permit: error 103";
    writer.counters("api_key_refusals", help, rows(1));
    let help = "Commands above the rate of the key: error 111";
    writer.counters("api_key_limited", help, rows(2));
    let latencies: Vec<_> = methods
        .iter()
        .map(|(labels, counts)| (labels.clone(), &counts.buckets[..], counts.time.as_secs_f64()))
        .collect();
    writer.histogram(
        "api_command_duration_seconds",
        "Time inside a method",
        &LATENCY_BOUNDS_US,
        &latencies,
    );
}
