//! Tests of `json_lines`: the form of a line, with hostile values.
//! In: events. Out: nothing.
//! Uses a subscriber of the test's own thread, and a buffer.
//! Which events are logged is tested where they occur.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::*;

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panics").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_line_is_one_flat_object_with_time_level_and_message_first() {
    let buffer = Buffer::default();
    let writer = buffer.clone();
    let logs = tracing_subscriber::fmt().event_format(JsonLines);
    let logs = logs.with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(logs, || {
        tracing::info!(code = 103, user = "\"\n\u{1b}", address = %"[::1]:1", rate = 0.5, on = true, "a \"message\"");
    });
    let line = String::from_utf8(buffer.0.lock().expect("no panics").clone()).expect("text");
    assert!(line.starts_with("{\"time\":\"20") && line.ends_with("}\n"), "{line}");
    assert!(!line.trim_end().contains(char::is_control), "{line}");
    let mut object: Value = serde_json::from_str(&line).expect("JSON");
    assert!(object["time"].take().as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
    let expect = json!({
        "time": null, "level": "info", "message": "a \"message\"", "code": 103, "user": "\"\n\u{1b}",
        "address": "[::1]:1", "rate": 0.5, "on": true,
    });
    assert_eq!(object, expect);
}
