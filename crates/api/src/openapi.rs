//! The OpenAPI 3.1 document of the HTTP API, generated from the table of methods and the types of requests and results.
//! In: the path prefix. Out: the document as JSON.
//! Uses schemars for types; their doc comments become descriptions, so they are written for users of the API.
//! A method's summary is changed in its row, a field in `method/NAME.rs`; then `cargo run -- api-doc > docs/openapi.json`.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::method::{DESCRIPTIONS, Description};
use crate::{ApiError, ApiOptions, Method, http};

/// The document for paths below `prefix` ([`ApiOptions::handler_prefix`]), indented, with a line feed at its end.
pub fn openapi(prefix: &str) -> String {
    let prefix = http::bare_prefix(prefix);
    let mut requests = generator(false);
    let mut results = generator(true);
    let mut paths = Map::new();
    for description in DESCRIPTIONS {
        let path = format!("{prefix}/{}", description.method.name());
        paths.insert(path, json!({ "post": operation(description, &mut requests, &mut results) }));
    }
    paths.insert(format!("{prefix}/stream"), json!({ "post": stream_operation() }));
    let error = results.subschema_for::<ApiError>();
    let mut schemas = requests.take_definitions(true);
    schemas.append(&mut results.take_definitions(true));
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Fanwire server API",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
            "description": ABOUT,
        },
        "servers": [{ "url": "/" }],
        "security": [{ "header": [] }, { "authorization": [] }, { "query": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "parameters": { "error_mode": error_mode() },
            "responses": refusals(&error),
            "securitySchemes": {
                "header": { "type": "apiKey", "in": "header", "name": "X-API-Key" },
                "authorization": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "`apikey KEY`",
                },
                "query": { "type": "apiKey", "in": "query", "name": "api_key" },
            },
        },
    });
    format!("{document:#}\n")
}

impl ApiOptions {
    /// [`openapi`] for these options.
    pub fn openapi(&self) -> String {
        openapi(&self.handler_prefix)
    }
}

/// A generator of schemas for requests, or (`is_written`) for results.
fn generator(is_written: bool) -> SchemaGenerator {
    let mut settings = SchemaSettings::draft2020_12();
    if is_written {
        settings = settings.for_serialize();
    }
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    // Removed, because which defaults schemars lists depends on features of other crates.
    let without_defaults = RecursiveTransform(|schema: &mut Schema| drop(schema.remove("default")));
    settings.transforms.push(Box::new(without_defaults));
    if !is_written {
        settings.transforms.push(Box::new(RecursiveTransform(bound)));
    }
    settings.into_generator()
}

/// Adds the range of an integer format where a field has no narrower one, because not every reader of the document knows the format, and the server refuses
/// numbers outside.
fn bound(schema: &mut Schema) {
    let (minimum, maximum) = match schema.get("format").and_then(Value::as_str) {
        Some("uint32") => (json!(0), json!(u32::MAX)),
        Some("uint64") => (json!(0), json!(u64::MAX)),
        Some("int32") => (json!(i32::MIN), json!(i32::MAX)),
        Some("int64") => (json!(i64::MIN), json!(i64::MAX)),
        _ => return,
    };
    for (name, limit) in [("minimum", minimum), ("maximum", maximum)] {
        if schema.get(name).is_none() {
            schema.insert(name.to_owned(), limit);
        }
    }
}

fn operation(
    row: &Description,
    requests: &mut SchemaGenerator,
    results: &mut SchemaGenerator,
) -> Value {
    let result = (row.result)(results).to_value();
    let error = results.subschema_for::<ApiError>().to_value();
    let failed = wrapped("error", &error);
    let answer = match row.method {
        Method::Batch => json!({ "oneOf": [result, failed] }),
        _ => json!({ "oneOf": [wrapped("result", &result), failed] }),
    };
    let mut responses = Map::new();
    let done = json!({ "description": DONE, "content": json_content(&answer) });
    responses.insert("200".to_owned(), done);
    for status in statuses() {
        let reference = json!({ "$ref": format!("#/components/responses/{status}") });
        responses.insert(status.to_string(), reference);
    }
    json!({
        "operationId": row.method.name(),
        "summary": row.summary,
        "parameters": [{ "$ref": "#/components/parameters/error_mode" }],
        "requestBody": {
            "required": !row.method.takes_empty_body(),
            "content": json_content(&(row.request)(requests).to_value()),
        },
        "responses": responses,
    })
}

/// The operation of the long request, whose body and response are lines of JSON.
fn stream_operation() -> Value {
    let lines = |text: &str| json!({ "application/x-ndjson": { "schema": { "type": "string", "description": text } } });
    let reference = |status: u16| json!({ "$ref": format!("#/components/responses/{status}") });
    json!({
        "operationId": "stream",
        "summary": "Fanwire only: runs commands line by line, in a request of any length.",
        "requestBody": { "required": true, "content": lines(STREAM_LINE) },
        "responses": {
            "200": { "description": STREAM_ANSWERS, "content": lines(STREAM_ANSWER) },
            "401": reference(401),
            "503": reference(503),
        },
    })
}

/// Responses without a result: plain text errors of HTTP, and in transport mode the rows of `ApiError`.
fn refusals(error: &Schema) -> Map<String, Value> {
    let mut responses = Map::new();
    for status in statuses() {
        let mut texts: Vec<String> = Vec::new();
        let mut content = Map::new();
        if let Some((_, text)) = PLAIN_TEXT.iter().find(|(plain, _)| *plain == status) {
            texts.push((*text).to_owned());
            content.insert("text/plain".to_owned(), json!({ "schema": { "type": "string" } }));
        }
        let rows: Vec<String> = (ApiError::TABLE.iter())
            .filter(|row| row.http_status == status)
            .map(|row| format!("{} {}", row.code, row.message))
            .collect();
        if !rows.is_empty() {
            texts.push(format!("In transport mode: error {}.", rows.join(", or ")));
            content.insert("application/json".to_owned(), json!({ "schema": error }));
        }
        let response = json!({ "description": texts.join(" "), "content": content });
        responses.insert(status.to_string(), response);
    }
    responses
}

/// Every status but 200, in order.
fn statuses() -> impl Iterator<Item = u16> {
    let plain = PLAIN_TEXT.iter().map(|(status, _)| *status);
    let of_errors = ApiError::TABLE.iter().map(|row| row.http_status);
    let all: BTreeMap<u16, ()> = plain.chain(of_errors).map(|status| (status, ())).collect();
    all.into_keys()
}

fn wrapped(name: &str, schema: &Value) -> Value {
    json!({ "type": "object", "properties": { name: schema }, "required": [name] })
}

fn json_content(schema: &Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

/// Plain text errors of `http::request`; 408 and one case of 503 come from `server`.
const PLAIN_TEXT: [(u16, &str); 5] = [
    (
        400,
        "The body is not JSON or incomplete, or a field has a wrong type; the text names the field and the position.",
    ),
    (401, "The key is missing or wrong."),
    (408, "The body did not arrive in time; the request was not executed."),
    (413, "The body is longer than http_api.max_request_body_size."),
    (503, "The server is shutting down, or overloaded for 30 s; the request was not executed."),
];

const STREAM_LINE: &str = "A JSON object with one method, as in batch, and an optional `id`, which is a number or a \
text: {\"id\":7,\"publish\":{\"channel\":\"a\",\"data\":1}}";

const STREAM_ANSWERS: &str =
    "One line for each line of the request, in the same order, as commands are done.";

const STREAM_ANSWER: &str =
    "{\"id\":7,\"publish\":{}} or {\"id\":7,\"error\":{\"code\":107,\"message\":\"bad request\"}}";

const DONE: &str = "The result, or the error if transport mode is off.";

const ABOUT: &str = "Backends call this API to publish and to control connections. Every call is a POST with a JSON object; \
unknown fields are ignored, null means absent, integers have neither fraction nor exponent. An application error has status 200 and `error` in its body, unless \
transport mode is on (http_api.error_mode, or the header X-Centrifugo-Error-Mode): then it has a status of its own and \
the error is the body. Errors of single items of batch and broadcast are part of the result in both modes.";

fn error_mode() -> Value {
    json!({
        "name": "X-Centrifugo-Error-Mode",
        "in": "header",
        "description": "`transport` selects transport mode for this request; any other value has no effect.",
        "schema": { "type": "string" },
        "example": "transport",
    })
}
