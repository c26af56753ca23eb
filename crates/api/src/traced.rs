//! Spans of API calls.
//! In: a command with the headers of its request → out: its outcome; spans, if the trace is sampled.
//! Uses the tracer of the process and the clock. Never: what a command does.
//! Change here: names and attributes of these spans. What a call waits for is in `call_span`.

use std::time::SystemTime;

use fanwire_telemetry::{Span, SpanKind, SpanValue, TraceContext};
use http::HeaderMap;

use crate::keys::KeyHolder;
use crate::{Api, ApiError, Command, Outcome, call_span};

/// Runs a command as [`Api::run_for`] does, in a span that continues the trace of the request.
///
/// # Errors
/// The same.
pub(crate) async fn run(
    api: &Api,
    holder: &KeyHolder,
    command: Command,
    headers: &HeaderMap,
    name: impl FnOnce(&str) -> String,
) -> Result<Outcome, ApiError> {
    match begin(api, &command, Some(headers), name) {
        Some(span) => record(span, api.run_for(holder, command)).await,
        None => api.run_for(holder, command).await,
    }
}

/// Begins the span of a command, if it is sampled. Commands of a stream have no headers of their own: each is a new trace.
pub(crate) fn begin(
    api: &Api,
    command: &Command,
    headers: Option<&HeaderMap>,
    name: impl FnOnce(&str) -> String,
) -> Option<Span> {
    if !api.options.is_traced {
        return None;
    }
    let header = headers.and_then(|headers| headers.get("traceparent")?.to_str().ok());
    let parent = header.and_then(TraceContext::parse);
    let name = || name(command.method().name());
    let mut span = Span::begin(name, SpanKind::Server, parent, SystemTime::now())?;
    if let [channel] = command.channels() {
        span.set(CHANNEL, SpanValue::Text(channel.clone()));
    }
    Some(span)
}

/// Runs a command in its span.
///
/// # Errors
/// The errors of the command.
pub(crate) async fn record(
    mut span: Span,
    work: impl Future<Output = Result<Outcome, ApiError>>,
) -> Result<Outcome, ApiError> {
    let outcome = call_span::within(span.context, work).await;
    if let Err(error) = &outcome {
        span.set("code", SpanValue::Number(error.code.into()));
        span.error = Some(error.text().into_owned());
    }
    span.finish(SystemTime::now());
    outcome
}

/// The attribute with a channel, as Centrifugo calls it.
const CHANNEL: &str = "centrifugo.channel";
