//! The OpenAPI document: the golden file, and that it is complete and correct.
//! In: the generated document. Out: the file `docs/openapi.json`, and the behaviour of the router.
//! Uses the document and the test harness.
//! When a method or field changes: `cargo run -- api-doc > docs/openapi.json`.

use fanwire_api::{ApiError, ApiOptions, Method, openapi};
use serde_json::Value;

use crate::harness::{Harness, ok};

fn document() -> Value {
    serde_json::from_str(&ApiOptions::default().openapi()).expect("JSON")
}

/// Calls `visit` with every object inside `value`.
fn each_object(value: &Value, visit: &mut impl FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            visit(object);
            object.values().for_each(|inner| each_object(inner, visit));
        }
        Value::Array(items) => items.iter().for_each(|inner| each_object(inner, visit)),
        _ => {}
    }
}

#[test]
fn the_document_in_the_repository_is_the_generated_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let golden = std::fs::read_to_string(path).expect("the repository has docs/openapi.json");
    // Compared as values: the order of keys depends on features of other crates.
    let golden: Value = serde_json::from_str(&golden).expect("JSON");
    assert!(golden == document(), "run: cargo run -- api-doc > docs/openapi.json");
}

#[test]
fn every_reference_exists() {
    let document = document();
    let mut references = 0;
    each_object(&document, &mut |object| {
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').expect("references stay inside");
            assert!(document.pointer(pointer).is_some(), "{reference}");
            references += 1;
        }
    });
    assert!(references > 50, "{references}");
}

#[test]
fn every_field_is_described_without_terms_of_the_code() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    for (name, schema) in schemas {
        let fields = schema.get("properties").and_then(Value::as_object);
        for (field, schema) in fields.into_iter().flatten() {
            assert!(schema.get("description").is_some(), "{name}.{field}");
        }
    }
    each_object(&document, &mut |object| {
        let text = object.get("description").and_then(Value::as_str).unwrap_or_default();
        assert!(!text.contains("[`") && !text.contains("crate::"), "{text}");
    });
}

#[tokio::test]
async fn every_path_is_served_and_accepts_its_required_fields() {
    let document = document();
    let paths = document["paths"].as_object().expect("paths");
    let harness = Harness::new();
    // The body of a stream has no fields; the tests of the server send it.
    for (path, item) in paths.iter().filter(|(path, _)| *path != "/api/stream") {
        let schema = &item["post"]["requestBody"]["content"]["application/json"]["schema"];
        let schema = schema["$ref"].as_str().expect("requests are components");
        let schema = document.pointer(&schema[1..]).expect("checked above");
        let mut body = serde_json::Map::new();
        for field in schema["required"].as_array().into_iter().flatten() {
            let field = field.as_str().expect("names");
            let is_list = schema["properties"][field]["type"] == "array";
            let value = match field {
                "client" => serde_json::from_str(CLIENT).expect("a text"),
                "view" => serde_json::json!({"x": 1, "y": 2, "radius": 3}),
                "channel" if path == "/api/set_view" => "world:a".into(),
                "channel" if path.starts_with("/api/map_") => "board:a".into(),
                "channel" if path == "/api/shared_poll_publish" => "polled:a".into(),
                "version" => 1.into(),
                "report" => "00000000000000ff".into(),
                "commands" => serde_json::json!([]),
                _ if is_list => serde_json::json!(["kept:a"]),
                _ => "kept:a".into(),
            };
            body.insert(field.to_owned(), value);
        }
        if path == "/api/connections" || path == "/api/connection_log" {
            body.insert("user".to_owned(), "42".into()); // or another field, which a schema does not say
        }
        let answer = harness.post(path, Value::Object(body).to_string()).await;
        let is_accepted = answer.status == 200 && !answer.body.contains(r#""code":107"#);
        assert!(is_accepted, "{path} {answer:?}");
    }
    let described =
        Method::ALL.iter().filter(|method| paths.contains_key(&format!("/api/{}", method.name())));
    assert_eq!(described.count(), paths.len() - 1, "and the stream");
}

/// All fields of requests with a limit in the document, each with its method.
fn limited_fields(document: &Value) -> Vec<(&str, &str, &Value)> {
    let mut limited = Vec::new();
    for method in Method::ALL.into_iter().map(Method::name).filter(|name| *name != "batch") {
        let Some(item) = document["paths"].get(format!("/api/{method}")) else { continue };
        let schema = &item["post"]["requestBody"]["content"]["application/json"]["schema"];
        let schema = document.pointer(&schema["$ref"].as_str().expect("a component")[1..]);
        let fields = schema.expect("checked above").get("properties").and_then(Value::as_object);
        let fields = fields.into_iter().flatten();
        limited.extend(fields.map(|(field, schema)| (method, field.as_str(), schema)));
    }
    limited
}

/// Whether the server accepts a field: 200 without error 107, with valid required fields.
async fn accepts(harness: &Harness, method: &str, field: &str, value: &str) -> bool {
    let mut fields = vec![format!(r#""{field}":{value}"#)];
    let is_polled = method == "shared_poll_publish";
    let channel = match method {
        _ if is_polled => r#""polled:a""#,
        _ if method.starts_with("map_") => r#""board:a""#,
        _ => r#""kept:a""#,
    };
    let required = [
        ("channel", channel),
        ("channels", r#"["kept:a"]"#),
        ("data", "1"),
        ("key", "\"k\""),
        ("uid", "\"7\""),
        ("user", "\"42\""),
        ("users", r#"["42"]"#),
    ];
    let epoch = (field == "expected_offset").then_some(("expected_epoch", "\"ABCDEFGH\""));
    let version = is_polled.then_some(("version", "1"));
    let node = (method == "evacuate").then_some(("node", "\"n\""));
    let sometimes = epoch.into_iter().chain(version).chain(node);
    let required = required.into_iter().chain(sometimes).filter(|(name, _)| *name != field);
    fields.extend(required.map(|(name, value)| format!(r#""{name}":{value}"#)));
    let body = format!("{{{}}}", fields.join(","));
    let answer = harness.post(&format!("/api/{method}"), body).await;
    answer.status == 200 && !answer.body.contains(r#""code":107"#)
}

#[tokio::test]
async fn the_limits_of_integers_are_those_of_the_server() {
    let document = document();
    let harness = Harness::new();
    let mut checked = 0;
    for (method, field, schema) in limited_fields(&document) {
        if schema["type"] != "integer" {
            continue;
        }
        let least = &schema["minimum"];
        let most = &schema["maximum"];
        let least = least.as_i64().expect("every whole number has a least value");
        let most = most.as_u64().expect("and a greatest");
        for beyond in [i128::from(least) - 1, i128::from(most) + 1] {
            assert!(
                !accepts(&harness, method, field, &beyond.to_string()).await,
                "{method}.{field}"
            );
        }
        for end in [least.to_string(), most.to_string()] {
            assert!(accepts(&harness, method, field, &end).await, "{method}.{field} {end}");
            checked += 1;
        }
    }
    assert!(checked >= 10, "{checked}");
}

#[tokio::test]
async fn the_codes_of_a_disconnect_are_those_that_the_server_accepts() {
    let document = document();
    let harness = Harness::new();
    let code = &document["components"]["schemas"]["DisconnectReason"]["properties"]["code"];
    let ranges = code["anyOf"].as_array().expect("several ranges");
    let is_in = |range: &Value, code: u64| match range["const"].as_u64() {
        Some(only) => code == only,
        None => (range["minimum"].as_u64()..=range["maximum"].as_u64()).contains(&Some(code)),
    };
    for code in 0..=5000 {
        let reason = format!(r#"{{"code":{code}}}"#);
        let is_taken = accepts(&harness, "disconnect", "disconnect", &reason);
        let is_described = ranges.iter().any(|range| is_in(range, code));
        assert_eq!(is_taken.await, is_described, "{code}");
    }
}

#[tokio::test]
async fn texts_that_the_document_refuses_are_refused() {
    let document = document();
    let harness = Harness::new();
    let mut checked = 0;
    for (method, field, schema) in limited_fields(&document) {
        let refused: &[&str] = match (schema.get("minLength"), schema.get("pattern")) {
            (Some(_), _) => &[r#""""#],
            (_, Some(_)) => &[r#""AA""#, r#""AB==""#, r#""AAB=""#, r#"" AA==""#, r#""_-==""#],
            _ if schema.get("minItems").is_some() => &["[]"],
            _ => continue,
        };
        for value in refused {
            assert!(!accepts(&harness, method, field, value).await, "{method}.{field} {value}");
            checked += 1;
        }
        if schema.get("pattern").is_some() {
            assert!(accepts(&harness, method, field, r#""""#).await, "{method}.{field}");
            let right = match field {
                "exclude_client" => CLIENT,
                "delivery" => r#""reliable""#,
                "key_mode" => r#""if_new""#,
                _ => r#""AAA=""#,
            };
            assert!(accepts(&harness, method, field, right).await, "{method}.{field}");
        }
    }
    assert!(checked > 20, "{checked}");
}

const CLIENT: &str = r#""4f1d3a52-0b7e-4c57-9d63-0a3f6c1f2b7e""#;

#[tokio::test]
async fn answers_have_only_described_fields() {
    let document = document();
    let mut harness = Harness::new();
    harness.subscriber(0, "42", &["here:a", "kept:a"]);
    let publish = r#"{"channel":"kept:a","b64data":"AA==","tags":{"k":"v"}}"#;
    harness.post("/api/publish", publish).await;
    let calls = [
        ("publish", publish),
        ("history", r#"{"channel":"kept:a","limit":-1}"#),
        ("map_publish", r#"{"channel":"board:a","key":"k","b64data":"AA==","tags":{"k":"v"}}"#),
        ("map_publish", r#"{"channel":"board:a","key":"k","key_mode":"if_new"}"#),
        ("map_read_state", r#"{"channel":"board:a","limit":1}"#),
        ("map_remove", r#"{"channel":"board:a","key":"k"}"#),
        ("map_read_stream", r#"{"channel":"board:a","limit":-1}"#),
        ("map_stats", r#"{"channel":"board:a"}"#),
        ("map_clear", r#"{"channel":"board:a"}"#),
        ("presence", r#"{"channel":"here:a"}"#),
        ("presence_stats", r#"{"channel":"here:a"}"#),
        ("channels", "{}"),
        ("info", "{}"),
        ("broadcast", r#"{"channels":["kept:a","nowhere:a"],"data":1}"#),
        ("disconnect", r#"{"user":"x"}"#),
        ("connections", r#"{"user":"42"}"#),
        ("update_user_status", r#"{"users":["42"],"state":"busy"}"#),
        ("get_user_status", r#"{"users":["42","43"]}"#),
    ];
    for (method, body) in calls {
        let answer = harness.post(&format!("/api/{method}"), body).await;
        let reply: Value = serde_json::from_str(&answer.body).expect("JSON");
        let operation = &document["paths"][format!("/api/{method}")]["post"];
        let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        let result = &schema["oneOf"][0]["properties"]["result"];
        fits(&document, result, &reply["result"], method);
    }
}

/// Whether `value` has the fields of `schema`: the required ones, and no others.
fn fits(document: &Value, schema: &Value, value: &Value, place: &str) {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).expect("checked above"),
        None => schema,
    };
    if let Some(variants) = schema["oneOf"].as_array() {
        let has_key = |variant: &&Value| {
            let key = variant["required"][0].as_str().expect("tagged by one key");
            value.get(key).is_some()
        };
        let variant = variants.iter().find(has_key).expect(place);
        return fits(document, variant, value, place);
    }
    match value {
        Value::Object(fields) => {
            for required in schema["required"].as_array().into_iter().flatten() {
                assert!(
                    fields.contains_key(required.as_str().expect("names")),
                    "{place}: {required}"
                );
            }
            for (name, inner) in fields {
                let properties = schema["properties"].get(name);
                let of = properties.or(schema.get("additionalProperties"));
                let of = of.unwrap_or_else(|| panic!("{place}.{name} is not described"));
                fits(document, of, inner, &format!("{place}.{name}"));
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| fits(document, &schema["items"], item, place));
        }
        _ => {}
    }
}

#[test]
fn every_row_of_errors_is_an_answer() {
    let document = document();
    for row in ApiError::TABLE {
        let status = row.http_status.to_string();
        let text = &document["components"]["responses"][&status]["description"];
        assert!(text.as_str().expect("a text").contains(row.message), "{row}");
    }
}

#[tokio::test]
async fn paths_follow_the_prefix() {
    let options =
        ApiOptions { insecure: true, handler_prefix: "v1/".into(), ..ApiOptions::default() };
    let document: Value = serde_json::from_str(&options.openapi()).expect("JSON");
    assert!(document["paths"]["/v1/publish"].is_object());
    let answer = Harness::with(options).post("/v1/channels", "{}").await;
    assert_eq!(answer, ok(r#"{"result":{"channels":{}}}"#));
    let bare: Value = serde_json::from_str(&openapi("/")).expect("JSON");
    assert!(bare["paths"]["/publish"].is_object());
}
