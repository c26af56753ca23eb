//! What tests of this module share: folders, certificates made on the spot, a log that stores its lines.
//! In: names → out: a folder that goes with its value, PEM, lines.
//! Uses rcgen and std's files. Never: sockets.
//! Changed here: where tests write.

use std::{
    fmt::{Debug, Write},
    path::PathBuf,
    sync::Arc,
};

use parking_lot::Mutex;
use rcgen::{CertificateParams, KeyPair};
use tracing::{Event, Level, Metadata, Subscriber, field, span};

/// A new folder, which goes with its value.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("fanwire-acme-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the folder for tests is writable");
        Self(path)
    }

    pub(super) fn path(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

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
