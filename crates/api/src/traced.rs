//! Spans of API calls.
//! In: a command with the trace of its request or message → out: its outcome; spans, if the trace is sampled.
//! Uses the tracer of the process and the clock. Never: what a command does.
//! Changed here: names and attributes of these spans. What a call waits for is in `call_span`.

use std::time::SystemTime;

use fanwire_telemetry::{Span, SpanKind, SpanValue, TraceContext};
use http::HeaderMap;

use crate::keys::KeyHolder;
use crate::{Api, ApiError, Command, Outcome, call_span};

/// Runs the command of a message of a queue, in a span that continues the trace of the message.
///
/// # Errors
/// The errors of the command.
pub async fn consume(
    api: &Api,
    command: Command,
    traceparent: Option<&str>,
) -> Result<Outcome, ApiError> {
    let name = |method: &str| format!("consume {method}");
    let span = || begin_span(&command, SpanKind::Consumer, traceparent, name);
    match api.options.is_consuming_traced.then(span).flatten() {
        Some(span) => record(span, api.run(command)).await,
        None => api.run(command).await,
    }
}

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
    begin_span(command, SpanKind::Server, header, name)
}

fn begin_span(
    command: &Command,
    kind: SpanKind,
    traceparent: Option<&str>,
    name: impl FnOnce(&str) -> String,
) -> Option<Span> {
    let parent = traceparent.and_then(TraceContext::parse);
    let name = || name(command.method().name());
    let mut span = Span::begin(name, kind, parent, SystemTime::now())?;
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
        span.error = Some(format!("{}: {}", error.message, error.cause_text()));
    }
    span.finish(SystemTime::now());
    outcome
}

/// The attribute with a channel, as Centrifugo calls it.
const CHANNEL: &str = "centrifugo.channel";
