//! Log lines as flat JSON objects: `time`, `level`, `message` and the fields of the event.
//! In: an event → out: one line.
//! Uses serde_json for values. Never: where lines are written.
//! Changed here: names and order of the fields.

use std::fmt::{self, Debug};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// One JSON object per event; levels in lower case, as Centrifugo writes them.
pub(super) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let level = event.metadata().level().as_str().to_ascii_lowercase();
        let mut collected = LineFields::default();
        event.record(&mut collected);
        let LineFields { message, fields } = collected;
        write!(out, "{{\"time\":{},\"level\":\"{level}\"", Value::from(time))?;
        write!(out, ",\"message\":{}", Value::from(message))?;
        for (name, value) in fields {
            write!(out, ",{}:{value}", Value::from(name))?;
        }
        out.write_str("}\n")
    }
}

/// The message and the other fields of one line.
#[derive(Default)]
struct LineFields {
    message: String,
    fields: Map<String, Value>,
}

impl LineFields {
    fn add(&mut self, field: &Field, value: Value) {
        self.fields.insert(field.name().to_owned(), value);
    }
}

impl Visit for LineFields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.add(field, format!("{value:?}").into());
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }
}

#[cfg(test)]
mod tests;
