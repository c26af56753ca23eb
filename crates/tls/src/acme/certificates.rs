//! The certificate of each name, with the counts of its orders.
//! In: certificates from the cache and from orders → out: the certificate of a name; numbers for the metrics.
//! Uses one lock for each name, for one look. Never: files, sockets.
//! Changed here: what is known of a name. When it is ordered is decided in `schedule`.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use fanwire_telemetry::Counter;
use parking_lot::RwLock;
use rustls::sign::CertifiedKey;

use super::certificate::Certificate;

/// The names of `host_whitelist`; the set does not change while the server runs.
#[derive(Debug, Default)]
pub struct Certificates(BTreeMap<Arc<str>, Slot>);

/// A name's certificate and counts.
#[derive(Debug, Default)]
struct Slot {
    certificate: RwLock<Option<Certificate>>,
    issued: Counter,
    failed: Counter,
}

/// The metrics of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameStats {
    /// Seconds since 1970; 0 without a certificate.
    pub not_after: u64,
    pub issued: u64,
    pub failed: u64,
}

impl Certificates {
    pub(super) fn new(names: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self(names.into_iter().map(|name| (name, Slot::default())).collect())
    }

    /// Returns the key for a name in lower case.
    pub(super) fn key(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let certificate = self.0.get(name)?.certificate.read();
        certificate.as_ref().map(|certificate| certificate.key.clone())
    }

    /// The end of a name's certificate.
    pub(super) fn not_after(&self, name: &str) -> Option<SystemTime> {
        self.0
            .get(name)?
            .certificate
            .read()
            .as_ref()
            .map(|certificate| certificate.validity.not_after)
    }

    /// Handshakes from now on get this certificate.
    pub(super) fn set(&self, name: &str, certificate: Certificate) {
        if let Some(slot) = self.0.get(name) {
            *slot.certificate.write() = Some(certificate);
        }
    }

    /// Counts an order; the worker alone does.
    pub(super) fn count_order(&self, name: &str, is_issued: bool) {
        if let Some(slot) = self.0.get(name) {
            if is_issued { &slot.issued } else { &slot.failed }.add(1);
        }
    }

    /// The state of each name.
    pub fn stats(&self) -> impl Iterator<Item = (&str, NameStats)> {
        self.0.iter().map(|(name, slot)| {
            let not_after = self
                .not_after(name)
                .and_then(|end| end.duration_since(UNIX_EPOCH).ok())
                .map_or(0, |end| end.as_secs());
            let issued = slot.issued.value();
            let failed = slot.failed.value();
            (&**name, NameStats { not_after, issued, failed })
        })
    }
}
