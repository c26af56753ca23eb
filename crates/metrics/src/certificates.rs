//! The metrics of certificates that an authority issues: when each ends, how its orders went.
//! In: the certificates of `host_whitelist` → out: rows for the writer, a series for each name.
//! Uses the writer alone; other names never become a series.
//! Changed here: names and help. The counts are kept in `acme::certificates`.

use fanwire_telemetry::MetricsWriter;
use fanwire_tls::{Certificates, NameStats};

pub(super) fn write(certificates: &Certificates, writer: &mut impl MetricsWriter) {
    let rows = |read: fn(NameStats) -> u64| {
        certificates.stats().map(move |(name, stats)| ([("name", name.to_owned())], read(stats)))
    };
    writer.gauges(
        "acme_certificate_end_seconds",
        "When the certificate of a name ends, in seconds since 1970; 0 without a certificate",
        rows(|stats| stats.not_after),
    );
    writer.counters(
        "acme_orders_issued",
        "Orders that ended with a certificate",
        rows(|stats| stats.issued),
    );
    writer.counters("acme_orders_failed", "Orders that failed", rows(|stats| stats.failed));
}
