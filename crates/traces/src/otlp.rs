//! Messages of OTLP for traces (opentelemetry-proto 1.x, `trace.proto`), as far as they are sent.
//! In: spans, attributes of the resource → out: the bytes of an export request.
//! Uses prost. Never: sends.
//! Changed here: fields of the protocol. Field numbers are those of the specification.

use std::time::{SystemTime, UNIX_EPOCH};

use fanwire_telemetry::{Span, SpanValue};
use prost::Message;

#[derive(Clone, PartialEq, Message)]
struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<SpanMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct SpanMessage {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "OneValue", tags = "1, 3")]
    value: Option<OneValue>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum OneValue {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
}

/// The body of a request with these spans.
pub(crate) fn export_request(resource: &[(String, String)], spans: Vec<Span>) -> Vec<u8> {
    let attributes = resource.iter().map(|(key, value)| pair(key, SpanValue::Text(value.clone())));
    let name = "fanwire".to_owned();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let scope_spans = ScopeSpans {
        scope: Some(Scope { name, version }),
        spans: spans.into_iter().map(message).collect(),
    };
    let resource = Some(Resource { attributes: attributes.collect() });
    let resource_spans = ResourceSpans { resource, scope_spans: vec![scope_spans] };
    ExportRequest { resource_spans: vec![resource_spans] }.encode_to_vec()
}

fn message(span: Span) -> SpanMessage {
    let Span { name, kind, context, parent, start, end, attributes, error } = span;
    let parent_span_id = if parent == 0 { Vec::new() } else { parent.to_be_bytes().to_vec() };
    SpanMessage {
        trace_id: context.trace.to_be_bytes().to_vec(),
        span_id: context.span.to_be_bytes().to_vec(),
        parent_span_id,
        name,
        kind: kind as i32,
        start_time_unix_nano: nanos(start),
        end_time_unix_nano: nanos(end),
        attributes: attributes.into_iter().map(|(key, value)| pair(key, value)).collect(),
        status: error.map(|message| Status { message, code: STATUS_ERROR }),
    }
}

fn pair(key: &str, value: SpanValue) -> KeyValue {
    let value = match value {
        SpanValue::Text(text) => OneValue::Text(text),
        SpanValue::Number(number) => OneValue::Number(number),
    };
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().try_into().unwrap_or(u64::MAX)
}

const STATUS_ERROR: i32 = 2;
