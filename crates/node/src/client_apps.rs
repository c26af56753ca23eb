//! Names and versions of SDKs with their transports and labels, shared by the connections of a shard that have the same.
//! In: what a client says of itself → out: one shared copy of it.
//! Uses: reference counts. Never: trusts the texts: each is cut, and a copy without a connection goes.
//! Changed here: what a connection keeps of its program.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::{Equivalent, HashSet};

/// The program of a client, as it says itself, its transport, and the labels of its credentials.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientApp {
    pub(crate) transport: &'static str,
    pub(crate) name: Box<str>,
    pub(crate) version: Box<str>,
    /// Labels from the credentials.
    pub(crate) labels: Arc<BTreeMap<String, String>>,
}

/// The programs of one shard.
#[derive(Debug, Default)]
pub(crate) struct ClientApps {
    known: HashSet<Arc<ClientApp>>,
    /// The number at which copies without a connection are removed.
    sweep_at: usize,
}

/// A [`ClientApp`] that is looked up; it has the same hash.
#[derive(Hash)]
struct Borrowed<'a> {
    transport: &'a str,
    name: &'a str,
    version: &'a str,
    labels: &'a BTreeMap<String, String>,
}

impl Equivalent<Arc<ClientApp>> for Borrowed<'_> {
    fn equivalent(&self, app: &Arc<ClientApp>) -> bool {
        self.transport == app.transport
            && self.name == &*app.name
            && self.version == &*app.version
            && self.labels == &*app.labels
    }
}

impl ClientApps {
    /// The shared copy.
    pub(crate) fn shared(
        &mut self,
        transport: &'static str,
        name: &str,
        version: &str,
        labels: BTreeMap<String, String>,
    ) -> Arc<ClientApp> {
        let name = cut(name);
        let version = cut(version);
        if let Some(app) = self.known.get(&Borrowed { transport, name, version, labels: &labels }) {
            return Arc::clone(app);
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|app| Arc::strong_count(app) > 1);
            self.sweep_at = (2 * self.known.len()).max(SWEEP_MIN);
        }
        let name = name.into();
        let version = version.into();
        let labels = Arc::new(labels);
        let app = Arc::new(ClientApp { transport, name, version, labels });
        self.known.insert(Arc::clone(&app));
        app
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

/// Bytes that are kept of a name or a version.
const TEXT_BYTES_MAX: usize = 64;
/// Fewer copies are not worth a sweep.
const SWEEP_MIN: usize = 64;

#[cfg(test)]
mod tests;
