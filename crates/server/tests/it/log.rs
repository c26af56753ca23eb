//! The log of all servers of this process, as far as it is about refused commands and ended connections.
//! In: lines that shards write on their own threads → out: the line about one channel.
//! Uses a subscriber of its own. Never: the output of the tests.
//! Changed here: which lines are kept.

use std::{
    fmt::{Debug, Write},
    sync::Once,
};

use parking_lot::Mutex;
use tracing::{Event, Metadata, Subscriber, field, span};

/// Keeps lines from now on. A process has one log, so lines of other tests are among them.
pub(crate) fn keep() {
    static KEPT: Once = Once::new();
    KEPT.call_once(|| tracing::subscriber::set_global_default(Log).expect("the only one"));
}

/// The only line about `channel`, which no other test has: each field with its name.
///
/// # Panics
/// If there is none or more than one.
pub(crate) fn line_about(channel: &str) -> String {
    let field = format!(" channel={channel:?}");
    let lines = LINES.lock();
    let lines: Vec<_> = lines.iter().filter(|line| line.contains(&field)).collect();
    let [line] = lines[..] else { panic!("{channel}: {lines:?}") };
    line.clone()
}

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Log;

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "fanwire_node::hub::refusals"
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut |field: &field::Field, value: &dyn Debug| {
            write!(line, " {field}={value:?}").expect("writing to a String does not fail");
        });
        LINES.lock().push(line);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
