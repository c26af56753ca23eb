//! `fanwire log`: what happened to the connections of a user, from the files of `recorder.path`.
//! In: the files of a folder, a user or client, a time → out: logs with the names of `connection_log`, the newest first.
//! Uses `fanwire_node` for the files and `fanwire_api` for the names. Never: a running server.
//! Changed here: which logs are printed, and the form of a line.

use std::cmp::Reverse;
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use fanwire_api::ConnectionLog;
use fanwire_config::load;
use fanwire_node::{log_file, read_closed_logs};
use fanwire_telemetry::time::parse_rfc3339;
use serde_json::{Value, json};

use crate::arguments::LogSearch;
use crate::top::printable;
use crate::{document, environment};

pub(crate) fn run(arguments: &LogSearch) -> Result<()> {
    let LogSearch { user, client, at, path, config } = arguments;
    let times = match at {
        Some(at) => around(at, SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64)?,
        None => 0..=u64::MAX,
    };
    let folder = match path {
        Some(path) => path.clone(),
        None => load(config.as_deref(), environment::variables()?, &[])?.0.recorder.path.into(),
    };
    let mut logs = Vec::new();
    for name in (0..log_file::FILES_MAX).map(log_file::name) {
        let file = match std::fs::read(folder.join(&name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            file => file.with_context(|| format!("{name} of {folder:?} cannot be read"))?,
        };
        let damaged = read_closed_logs(&file, |node, log| {
            if user.as_ref().is_none_or(|user| *user == log.user)
                && client.as_ref().is_none_or(|client| *client == log.client)
                && log.opened_ms <= *times.end()
                && log.ended_ms >= *times.start()
            {
                logs.push(ConnectionLog::new(node, log));
            }
        });
        if damaged > 0 {
            eprintln!("fanwire: {damaged} damaged bytes of {name} were left out");
        }
    }
    if logs.is_empty() {
        bail!("the folder {folder:?} (recorder.path, or --path) has no log of such a connection");
    }
    logs.sort_by_key(|log| Reverse(log.opened_ms));
    document::print(&logs.iter().map(text).collect::<String>())
}

/// The Unix milliseconds around a time. Without a date it is the last such time before now, and without a zone UTC.
fn around(text: &str, now_ms: u64) -> Result<RangeInclusive<u64>> {
    let (date, time) = text.split_once(['T', 't', ' ']).unwrap_or(("", text));
    let (clock, zone) = time.split_at(time.find(['Z', 'z', '+', '-']).unwrap_or(time.len()));
    let seconds = if clock.matches(':').count() == 1 { ":00" } else { "" };
    let zone = if zone.is_empty() { "Z" } else { zone };
    let day = if date.is_empty() { "1970-01-02" } else { date };
    let parsed = parse_rfc3339(&format!("{day}T{clock}{seconds}{zone}"));
    let mut at = parsed.with_context(|| {
        format!("--at is {text:?}, expected 03:12, 2030-01-31T03:12 or a time of RFC 3339")
    })?;
    if date.is_empty() {
        at = now_ms - (now_ms % DAY_MS + DAY_MS - at % DAY_MS) % DAY_MS;
    }
    Ok(at.saturating_sub(AROUND_MS)..=at.saturating_add(AROUND_MS))
}

/// A line for the connection, then one for each event.
fn text(log: &ConnectionLog) -> String {
    let date = |ms| httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(ms));
    let [opened, ended] = [log.opened_ms, log.ended_ms].map(date);
    let mut text = format!("{opened} to {ended}{}\n", fields(&json!(log)));
    for event in &log.events {
        let ms = event.at_ms % DAY_MS;
        let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
        text += &format!("  {hour:02}:{minute:02}:{second:02}.{:03}", ms % 1000);
        text += &format!(" {}{}\n", printable(&event.event, usize::MAX), fields(&json!(event)));
    }
    text
}

/// Names and values of an object, without those that its line begins with.
fn fields(object: &Value) -> String {
    let fields = object.as_object().into_iter().flatten();
    let shown = fields.filter(|(name, _)| !BEGINS.contains(&name.as_str()));
    shown.map(|(name, value)| printable(&format!(" {name}={value}"), usize::MAX)).collect()
}

/// How far from `--at` a connection may have ended or begun.
const AROUND_MS: u64 = 5 * 60 * 1000;
const DAY_MS: u64 = 24 * 3600 * 1000;
const BEGINS: [&str; 5] = ["opened_ms", "ended_ms", "at_ms", "event", "events"];

#[cfg(test)]
mod tests;
