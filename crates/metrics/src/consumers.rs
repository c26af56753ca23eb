//! The metrics of consumers: messages done, errors, skipped messages by cause, lag.
//! In: the numbers of each consumer → out: rows for the writer; none for a server without consumers.
//! Uses the writer. Never: a queue.
//! Changed here: names, labels and help. The first two names without `fanwire_` are those of Centrifugo.

use fanwire_consumers::{ConsumerMonitor, ConsumerStats};
use fanwire_telemetry::MetricsWriter;

pub(super) fn write(consumers: &ConsumerMonitor, writer: &mut impl MetricsWriter) {
    let stats = consumers.stats();
    let name = |consumer: &ConsumerStats| ("consumer_name", consumer.name.to_string());
    let rows = |read: fn(&ConsumerStats) -> u64| {
        stats.iter().map(move |consumer| ([name(consumer)], read(consumer)))
    };
    let help = "Messages of consumers that were acknowledged, the skipped ones included";
    writer.counters("consumers_messages_processed", help, rows(|one| one.processed));
    let help = "Commands of consumers that are tried again, and failures of queues";
    writer.counters("consumers_errors", help, rows(|one| one.errors));
    let skipped = stats.iter().flat_map(|consumer| {
        let row = |(cause, count): (_, u64)| {
            (
                [name(consumer), ("cause", fanwire_consumers::SkipCause::name(cause).to_owned())],
                count,
            )
        };
        consumer.skipped.map(row)
    });
    let help = "Messages of consumers that were acknowledged without an effect, by cause";
    writer.counters("consumers_messages_skipped", help, skipped);
    let help =
        "Age of the oldest message that was read last, in milliseconds; 0 when the queue was empty";
    let lag = rows(|one| u64::try_from(one.lag.as_millis()).unwrap_or(u64::MAX));
    writer.gauges("consumers_lag_milliseconds", help, lag);
    let help = "Messages that wait in the queue, where it says";
    writer.gauges("consumers_waiting_messages", help, rows(|one| one.waiting));
    let lost = rows(|one| u64::from(one.failure.is_some()));
    writer.gauges("consumers_queue_lost", "1 while the queue cannot be used", lost);
}
