//! The metrics of events out.
//! In: the numbers of the queue → out: rows for the writer; none for a server without events.
//! Uses the writer. Never: sends.
//! Changed here: names and help.

use fanwire_events::{EventStats, Events};
use fanwire_telemetry::MetricsWriter;

pub(super) fn write(events: &Events, writer: &mut impl MetricsWriter) {
    let EventStats { sent, lost, waiting, failed_requests } = events.stats();
    writer.gauge("events_waiting", "Events that wait for the backend", waiting as u64);
    let counts = [
        ("events_sent", "Events that the backend has accepted", sent),
        ("events_lost", "Events that did not fit into the queue", lost),
        ("events_failed_requests", "Requests with events that are sent again", failed_requests),
    ];
    for (name, help, count) in counts {
        writer.counter(name, help, count);
    }
}
