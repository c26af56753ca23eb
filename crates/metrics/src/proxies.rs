//! The metrics of event proxies: durations, failures by cause, calls in flight and waiting, circuits.
//! In: the numbers of each proxy → out: rows for the writer; none for a server without proxies.
//! Uses the writer. Never: a call.
//! Changed here: names, labels and help. Names without `fanwire_` of the first three are those of Centrifugo.

use fanwire_proxy::{CallStats, CircuitState, DURATION_BOUNDS_US, EventProxies, ProxyStats};
use fanwire_telemetry::{Labels, MetricsWriter};

pub(super) fn write(proxies: &EventProxies, writer: &mut impl MetricsWriter) {
    let stats = proxies.stats();
    let calls = || stats.iter().flat_map(|proxy| proxy.calls.iter().map(move |one| (proxy, one)));
    let durations: Vec<_> = calls()
        .map(|(proxy, calls)| (labels(proxy, calls), &calls.durations[..], calls.seconds))
        .collect();
    let help = "Calls of event proxies to backends, by their duration";
    writer.histogram("proxy_duration_seconds_histogram", help, &DURATION_BOUNDS_US, &durations);
    let failed = |calls: &CallStats| calls.failures.iter().map(|(_, count)| count).sum::<u64>();
    let errors = calls().map(|(proxy, calls)| (labels(proxy, calls), failed(calls)));
    writer.counters("proxy_errors", "Events for which a backend made no decision", errors);
    let in_flight = calls().map(|(proxy, calls)| (labels(proxy, calls), calls.in_flight));
    writer.gauges("proxy_inflight_requests", "Calls that backends have not answered", in_flight);
    let failures = calls().flat_map(|(proxy, calls)| {
        let row = |(cause, count): &(&str, u64)| {
            let [_, kind, name] = labels(proxy, calls);
            ([kind, name, ("cause", (*cause).to_owned())], *count)
        };
        calls.failures.iter().map(row).collect::<Vec<_>>()
    });
    writer.counters("proxy_failures", "The same by cause", failures);
    let key = |proxy: &ProxyStats| [("section", proxy.key.to_string())];
    let waiting = stats.iter().map(|proxy| (key(proxy), proxy.waiting as u64));
    writer.gauges("proxy_waiting_requests", "Calls that wait for in_flight_max", waiting);
    let open =
        stats.iter().map(|proxy| (key(proxy), u64::from(proxy.circuit != CircuitState::Closed)));
    writer.gauges("proxy_circuit_open", "1 while the backend is taken to be down", open);
}

fn labels(proxy: &ProxyStats, calls: &CallStats) -> Labels<3> {
    [
        ("protocol", proxy.protocol.to_owned()),
        ("type", calls.kind.name().to_owned()),
        ("name", proxy.name.to_string()),
    ]
}
