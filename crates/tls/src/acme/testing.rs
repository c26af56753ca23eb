//! What tests of this module share: certificates made on the spot, a log that stores its lines.
//! In: names → out: PEM, lines.
//! Uses rcgen. Never: sockets, files.
//! Changed here: what the tests of several files need.

use std::{
    fmt::{Debug, Write},
    sync::Arc,
};

use parking_lot::Mutex;
use rcgen::{CertificateParams, KeyPair};
use tracing::{Event, Level, Metadata, Subscriber, field, span};

/// PEM of a key and of a certificate for a name.
pub(super) fn self_signed(name: &str) -> (String, String) {
    let pair = KeyPair::generate().expect("a key");
    let params = CertificateParams::new([name.to_owned()]).expect("a name");
    (pair.serialize_pem(), params.self_signed(&pair).expect("signed").pem())
}

/// The warnings and errors that `work` logs on this thread: level, then each field with its name.
pub(super) fn logged<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    let lines = Arc::default();
    let result = tracing::subscriber::with_default(Log(Arc::clone(&lines)), work);
    let lines = lines.lock().clone();
    (result, lines)
}

struct Log(Arc<Mutex<Vec<String>>>);

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut |field: &field::Field, value: &dyn Debug| {
            write!(line, " {field}={value:?}").expect("writing to a String does not fail");
        });
        self.0.lock().push(line);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
