//! The metrics of TLS on the listeners.
//! In: counts of handshakes, certificates → out: rows for the writer; none for a server without TLS.
//! Uses `tls`; never a socket.
//! Changed here: names, labels and help of these metrics.

use fanwire_telemetry::MetricsWriter;
use fanwire_tls::{HandshakeCounts, ListenersTls};

pub(super) fn write(
    listeners: &ListenersTls,
    handshakes: &HandshakeCounts,
    writer: &mut impl MetricsWriter,
) {
    if listeners.sections().next().is_none() {
        return;
    }
    let ends = listeners
        .sections()
        .filter_map(|tls| Some((tls.key(), tls.end()?)))
        .map(|(key, end)| ([("section", key.to_owned())], end.seconds));
    let help = "End of the certificate, in seconds since 1970";
    writer.gauges("tls_certificate_end_seconds", help, ends);
    let results =
        handshakes.counts().map(|(result, n)| ([("result", result.name().to_owned())], n));
    writer.counters("tls_handshakes", "TLS handshakes, by result", results);
}
