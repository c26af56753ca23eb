//! Messages in Protobuf against the same values in JSON, and against another implementation, prost-reflect.
//! In: random requests, results of every kind, malformed bytes. Out: the same commands, the same fields, errors.
//! Uses the descriptors that gRPC reflection serves; no `Api` runs.
//! Changed here: tests of `decode.rs` and `encode.rs`. Calls over both forms are in `tests/it/grpc.rs`.

use std::sync::LazyLock;

use bytes::Bytes;
use fanwire_node::protocol::{ClientInfo, Publication};
use proptest::prelude::*;
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MapKey, MessageDescriptor, Value};
use schemars::{Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::*;
use crate::envelope::Envelope;
use crate::method::DESCRIPTIONS;
use crate::method::info::NodeMetrics;
use crate::*;

static POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(grpc::DESCRIPTORS).expect("descriptors"));

pub(crate) fn descriptor(name: &str) -> MessageDescriptor {
    let name = format!("centrifugal.centrifugo.api.{name}");
    POOL.get_message_by_name(&name).expect("a message")
}

/// The message with the fields of a JSON object; a field of bytes has the JSON text of its value.
pub(crate) fn dynamic(descriptor: &MessageDescriptor, json: &Json) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor.clone());
    for (name, json) in json.as_object().expect("an object") {
        let field = descriptor.get_field_by_name(name).expect("a field");
        let value = match json {
            Json::Object(entries) if field.is_map() => {
                let Kind::Message(entry) = field.kind() else { unreachable!() };
                let kind = entry.map_entry_value_field().kind();
                let entry = |(key, json): (&String, &Json)| {
                    (MapKey::String(key.clone()), value(&kind, json))
                };
                Value::Map(entries.iter().map(entry).collect())
            }
            Json::Array(items) if field.is_list() => {
                Value::List(items.iter().map(|item| value(&field.kind(), item)).collect())
            }
            json => value(&field.kind(), json),
        };
        message.set_field(&field, value);
    }
    message
}

fn value(kind: &Kind, json: &Json) -> Value {
    match kind {
        Kind::String => Value::String(json.as_str().expect("a text").to_owned()),
        Kind::Bytes => Value::Bytes(json.to_string().into()),
        Kind::Bool => Value::Bool(json.as_bool().expect("a bool")),
        Kind::Double => Value::F64(json.as_f64().expect("a number")),
        Kind::Int32 => Value::I32(json.as_i64().expect("a number") as i32),
        Kind::Int64 => Value::I64(json.as_i64().expect("a number")),
        Kind::Uint32 => Value::U32(json.as_u64().expect("a number") as u32),
        Kind::Uint64 => Value::U64(json.as_u64().expect("a number")),
        Kind::Message(message) => Value::Message(dynamic(message, json)),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn bytes(name: &str, json: &Json) -> Vec<u8> {
    prost::Message::encode_to_vec(&dynamic(&descriptor(name), json))
}

/// A random value of a message in JSON; a `Command` has one field or none.
fn random(message: &MessageDescriptor, seed: &mut u64) -> Json {
    let mut object = serde_json::Map::new();
    let fields: Vec<_> = message.fields().collect();
    let is_command = message.name() == "Command";
    for (index, field) in fields.iter().enumerate() {
        let is_chosen = match is_command {
            true => object.is_empty() && next(seed) % 20 < 1 || index == 0 && next(seed) % 3 < 1,
            false => next(seed) % 3 < 2,
        };
        // A message in itself: not at every level.
        let is_inner = matches!(field.kind(), Kind::Message(inner) if inner == *message);
        if !is_chosen || is_inner && !next(seed).is_multiple_of(4) {
            continue;
        }
        let count = next(seed) % 4;
        let json = if field.is_map() {
            let entries = (0..count).map(|_| (text(seed), Json::String(text(seed))));
            Json::Object(entries.collect())
        } else if field.is_list() {
            Json::Array((0..count).map(|_| random_value(&field.kind(), seed)).collect())
        } else {
            random_value(&field.kind(), seed)
        };
        object.insert(field.name().to_owned(), json);
    }
    Json::Object(object)
}

/// The same value with names of fields in random cases, and with keys of maps as they are.
fn spelled(message: &MessageDescriptor, json: &Json, seed: &mut u64) -> Json {
    let mut object = serde_json::Map::new();
    for (name, value) in json.as_object().expect("an object") {
        let field = message.get_field_by_name(name).expect("a field");
        let value = match (field.kind(), value) {
            (Kind::Message(inner), Json::Array(items)) => {
                items.iter().map(|item| spelled(&inner, item, seed)).collect()
            }
            (Kind::Message(inner), value) if !field.is_map() => spelled(&inner, value, seed),
            (_, value) => value.clone(),
        };
        let any_case = |letter: char| match next(seed) & 1 {
            0 => letter,
            _ => letter.to_ascii_uppercase(),
        };
        object.insert(name.chars().map(any_case).collect(), value);
    }
    Json::Object(object)
}

fn random_value(kind: &Kind, seed: &mut u64) -> Json {
    let number = next(seed) >> (next(seed) % 64);
    match kind {
        Kind::String => text(seed).into(),
        Kind::Bytes => [json!({"a":[1]}), json!("é\u{2028}"), json!(0), json!([])]
            [(next(seed) % 4) as usize]
            .clone(),
        Kind::Bool => (number & 1 == 1).into(),
        // Exact in JSON, whose parser may be off by the last bit.
        Kind::Double => ((number % 1000) as f64 / 4.0).into(),
        Kind::Int32 => (number as i32).into(),
        Kind::Int64 => (number as i64).into(),
        Kind::Uint32 => (number as u32).into(),
        Kind::Uint64 => number.into(),
        Kind::Message(message) => random(message, seed),
        other => panic!("{other:?}"),
    }
}

fn text(seed: &mut u64) -> String {
    ["", "a", "chat:é", "\u{1F600}", "00000000-0000-4000-8000-000000000000", "\0"]
        [(next(seed) % 6) as usize]
        .to_owned()
}

/// Xorshift.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

fn from_json(method: Method, json: &Json) -> Command {
    let command = method.deserialize(json.to_string().parse::<Json>().expect("JSON"));
    command.expect("the form of a request").expect("an object")
}

proptest! {
    #[test]
    fn a_request_decodes_to_the_command_of_its_json(seed in 1..u64::MAX) {
        let mut seed = seed;
        for rpc in &schema::RPCS {
            let name = if rpc.name == "RPC" { "RPCRequest".to_owned() } else { format!("{}Request", rpc.name) };
            let mut json = random(&descriptor(&name), &mut seed);
            if rpc.method == Method::Batch && json.get("commands").is_none() {
                json["commands"] = json!([]); // the bytes of no list are those of an empty one
            }
            let command = request(rpc, &bytes(&name, &json)).expect("a valid message");
            prop_assert_eq!(command, from_json(rpc.method, &json), "{}: {}", name, json);
        }
    }

    #[test]
    fn names_in_any_case_decode_to_the_same_command(seed in 1..u64::MAX) {
        let mut seed = seed;
        for rpc in &schema::RPCS {
            let name = if rpc.name == "RPC" { "RPCRequest".to_owned() } else { format!("{}Request", rpc.name) };
            let json = random(&descriptor(&name), &mut seed);
            let spelled = spelled(&descriptor(&name), &json, &mut seed).to_string();
            let in_any_case = rpc.method.decode(&spelled);
            let exact = rpc.method.decode(&json.to_string());
            prop_assert_eq!(in_any_case.map_err(drop), exact.map_err(drop), "{}: {}", name, json);
        }
    }

    #[test]
    fn any_bytes_are_a_request_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        fuzzing::message(&bytes);
    }

    #[test]
    fn a_message_that_is_cut_is_a_request_or_an_error(seed in 1..u64::MAX, cut in 0..400_usize) {
        let mut seed = seed;
        let json = random(&descriptor("BatchRequest"), &mut seed);
        let whole = bytes("BatchRequest", &json);
        fuzzing::message(&[&[0], &whole[..cut.min(whole.len())]].concat());
    }
}

fn rpc_of(name: &str) -> &'static Rpc {
    rpc(name).expect("a method")
}

fn publish(bytes: &[u8]) -> Result<PublishRequest, String> {
    match request(rpc_of("Publish"), bytes) {
        Ok(Command::Publish(request)) => Ok(request),
        other => Err(other.expect_err("a publish").to_string()),
    }
}

#[test]
fn the_rules_of_proto3_hold() {
    let ok = |bytes: &[u8]| publish(bytes).expect("a valid message");
    assert_eq!(ok(b""), PublishRequest::default());
    assert_eq!(ok(b"\x0a\x01a\x0a\x01b").channel, "b", "the last value counts");
    assert_eq!(ok(b"\x92\x03\x01x\x0a\x01a").channel, "a", "an unknown field is skipped");
    assert_eq!(ok(b"\x0b\x0a\x01x\x0c\x0a\x01a").channel, "a", "and a group");
    assert_eq!(ok(b"\x08\x01\x0a\x01a").channel, "a", "and a known number of another type");
    assert_eq!(ok(b"\x12\x02\xff\x00").data, b"\xff\x00"[..], "data may have any bytes");
    assert!(ok(b"\x38\x02").delta, "every number but 0 is true");
    assert_eq!(ok(b"\x40\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").version, u64::MAX);
    let tags = ok(b"\x2a\x02\x0a\x00\x2a\x06\x0a\x01k\x12\x01v\x2a\x06\x12\x01w\x0a\x01k").tags;
    assert_eq!(tags, [("", ""), ("k", "w")].map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    // place {x: 1} and place {y: 2} are one place.
    let place = ok(b"\xd2\x3e\x09\x09\0\0\0\0\0\0\xf0\x3f\xd2\x3e\x09\x11\0\0\0\0\0\0\0\x40").place;
    assert_eq!(place.map(|place| (place.x, place.y)), Some((1.0, 2.0)), "messages merge");
}

#[test]
fn malformed_messages_are_errors() {
    let check = |bytes: &[u8], text: &str| assert_eq!(publish(bytes), Err(text.to_owned()));
    check(b"\x0a\x02a", "the message is cut off");
    check(b"\x0a", "the message is cut off");
    check(b"\x40\x80", "the message is cut off");
    check(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "the message is cut off");
    check(b"\x0a\x01\xff", "a text is not UTF-8");
    check(b"\x2a\x03\x0a\x01\xff", "a text is not UTF-8");
    check(b"\x40\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "a number has more than 64 bits");
    check(b"\x00\x00", "a field has an invalid number");
    check(b"\x0c", "field 1 has an invalid wire type");
    check(b"\x0f", "field 1 has an invalid wire type");
    check(&[0x0b; 1000], "field 1 has an invalid wire type");
    check(b"\x0b\x14", "field 2 has an invalid wire type");
}

#[test]
fn nested_messages_have_a_limit() {
    // label_filter {nodes {nodes {…}}}
    let nested = |count: usize| {
        let mut filter = Vec::new();
        for _ in 0..count {
            let mut outer = vec![0x32];
            prost::encode_length_delimiter(filter.len(), &mut outer).expect("room");
            filter = [outer, filter].concat();
        }
        let mut whole = vec![0x2a];
        prost::encode_length_delimiter(filter.len(), &mut whole).expect("room");
        request(rpc_of("Unsubscribe"), &[whole, filter].concat())
            .map(drop)
            .map_err(|error| error.to_string())
    };
    assert_eq!(nested(60), Ok(()));
    for count in [70, 100_000] {
        assert_eq!(nested(count), Err("messages are nested too deeply".to_owned()));
    }
}

#[test]
fn a_list_is_stored_up_to_its_limit() {
    let commands = b"\x0a\x02\x6a\x00".repeat(2 * BATCH_COMMANDS_MAX);
    let Ok(Command::Batch(batch)) = request(rpc_of("Batch"), &commands) else { panic!("a batch") };
    assert_eq!(batch.commands.map(|commands| commands.len()), Some(BATCH_COMMANDS_MAX + 1));
}

#[test]
fn of_two_methods_in_a_command_the_first_one_counts() {
    let command = command(b"\x4a\x03\x0a\x01a\x22\x03\x0a\x01b").expect("a valid message");
    assert!(matches!(command, Ok(Command::Publish(_))), "{command:?}");
    assert_eq!(super::command(b"").expect("valid"), Err(ApiError::NOT_FOUND));
    // device_register, which does not exist here
    assert_eq!(super::command(b"\xca\x01\x00").expect("valid"), Err(ApiError::NOT_FOUND));
}

/// Compares the message of a value with its JSON.
fn check(name: &str, value: &impl Serialize, table: &'static schema::MessageTable) {
    let bytes = encode::message(value, table).expect("every field has a number");
    let descriptor = descriptor(name);
    let message = DynamicMessage::decode(descriptor.clone(), &bytes[..]).expect("a message");
    let expect = dynamic(&descriptor, &serde_json::to_value(value).expect("JSON"));
    let expect = prost::Message::encode_to_vec(&expect);
    let expect = DynamicMessage::decode(descriptor, &expect[..]).expect("a message");
    assert_eq!(message, expect, "{name}");
    assert_eq!(message.unknown_fields().count(), 0);
}

#[test]
fn results_have_the_fields_of_their_json() {
    let published = PublishResult { offset: 1 << 40, epoch: "e".into(), report: "f".into() };
    let history =
        HistoryResult { publications: vec![publication()], offset: 9, ..Default::default() };
    let info: ClientInfo = client();
    let presence =
        PresenceResult { presence: [("id".to_owned(), info.into())].into(), cursor: "5".into() };
    let metrics = Some(NodeMetrics {
        interval: 60.0,
        items: [("a".to_owned(), 0.5), ("b".to_owned(), 0.0)].into(),
    });
    let node = NodeInfo { name: "n".into(), num_clients: 7, metrics, ..Default::default() };
    let token = TokenSummary { uid: "7".into(), issued_at: 1 << 33 };
    let state = ConnectionState {
        connection_token: Some(token.clone()),
        subscription_tokens: [("news".into(), token)].into(),
        meta: r#"{"a":1}"#.into(),
        ..Default::default()
    };
    let connection = ConnectionSummary { ping_pong_latency_ms: -1, state, ..Default::default() };
    let outcomes = [
        Outcome::Publish(PublishResult::default()),
        Outcome::Publish(published.clone()),
        Outcome::Broadcast(BroadcastResult {
            responses: vec![
                PublishResponse::Result(published),
                PublishResponse::Result(PublishResult::default()),
                PublishResponse::Error(ApiError::UNKNOWN_CHANNEL),
            ],
            report: "0a".into(),
        }),
        Outcome::History(history),
        Outcome::HistoryRemove(Empty {}),
        Outcome::Presence(presence),
        Outcome::PresenceStats(PresenceStatsResult { num_clients: 3, num_users: 200 }),
        Outcome::Info(InfoResult { nodes: vec![node, NodeInfo::default()] }),
        Outcome::Channels(ChannelsResult {
            channels: [("é".repeat(200), ChannelSummary { num_clients: 0 })].into(),
            cursor: "é".into(),
            missing: vec!["fra-2".into(), "ä".into()],
        }),
        Outcome::Connections(ConnectionsResult {
            connections: [("c".into(), connection)].into(),
            cursor: "c".into(),
            missing: vec!["fra-2".into()],
        }),
        hot_lists(),
        cluster_clock(),
        publication_report(),
        Outcome::GetUserStatus(GetUserStatusResult {
            statuses: vec![
                UserStatusItem::default(),
                UserStatusItem { active: 5, ..Default::default() },
            ],
        }),
        Outcome::SetView(Empty {}),
    ];
    let replies: Vec<Reply> = outcomes.iter().cloned().map(Reply::Outcome).collect();
    for outcome in outcomes {
        let name = serde_json::to_value(&outcome).expect("JSON");
        let name =
            name.as_object().and_then(|object| object.keys().next()).expect("a method").clone();
        let rpc = schema::RPCS.iter().find(|rpc| rpc.method.name() == name).expect("a method");
        check(&format!("{}Response", rpc.name), &Envelope::of(&Ok(outcome)), rpc.response);
    }
    let error = Reply::Error { error: ApiError::BAD_REQUEST.because("a cause") };
    let batch = BatchReply { replies: [replies, vec![error]].concat() };
    check("BatchResponse", &batch, &schema::BatchResponse);
    let error = Envelope::of(&Err(ApiError::NOT_FOUND));
    check("PublishResponse", &error, &schema::PublishResponse);
}

fn hot_lists() -> Outcome {
    let mut lists = Outcome::HotLists(Default::default());
    if let Outcome::HotLists(lists) = &mut lists {
        lists.recent_seconds = 5.5;
        lists.missing = vec!["fra-2".into()];
        lists.publications = vec![Default::default()];
        lists.publications[0].recent = Some(60.0);
    }
    lists
}

fn cluster_clock() -> Outcome {
    let mut clock = Outcome::ClusterClock(Default::default());
    if let Outcome::ClusterClock(clock) = &mut clock {
        clock.missing = vec!["fra-2".into()];
        clock.clocks = vec![Default::default()];
        clock.clocks[0].offset_ms = -7;
    }
    clock
}

fn publication_report() -> Outcome {
    let mut report = Outcome::PublicationReport(Default::default());
    if let Outcome::PublicationReport(report) = &mut report {
        report.missing = vec!["fra-2".into()];
        report.nodes = vec![Default::default()];
        report.nodes[0].filtered = 3;
        report.nodes[0].old_versions = 1;
    }
    report
}

fn client() -> ClientInfo {
    let user = "u".to_owned();
    let client = "c".to_owned();
    ClientInfo { user, client, conn_info: "{\"a\":1}".into(), chan_info: Bytes::new() }
}

fn publication() -> Publication {
    Publication {
        data: "[1]".into(),
        info: Some(client()),
        offset: 300,
        tags: [("k".to_owned(), "v".to_owned())].into(),
        ..Default::default()
    }
}

#[test]
fn payloads_that_are_not_json_stay_bytes() {
    let binary = Bytes::from_static(b"\xff\n");
    let info = ClientInfo { conn_info: binary.clone(), ..client() };
    let publication = Publication { data: binary.clone(), info: Some(info), ..Default::default() };
    let result = HistoryResult { publications: vec![publication], ..Default::default() };
    let bytes = encode::message(&result, &schema::HistoryResult).expect("a message");
    let message = DynamicMessage::decode(descriptor("HistoryResult"), &bytes[..]).expect("valid");
    let publications = message.get_field_by_name("publications").expect("a field");
    let publication = publications.as_list().and_then(|list| list[0].as_message()).expect("one");
    let field = |message: &DynamicMessage, name| {
        message.get_field_by_name(name).expect("a field").into_owned()
    };
    assert_eq!(field(publication, "data"), Value::Bytes(binary.clone()));
    let info = field(publication, "info");
    assert_eq!(field(info.as_message().expect("a client"), "conn_info"), Value::Bytes(binary));
}

/// Compares the properties of a JSON Schema with the fields of a message.
fn compare(path: &str, schema: &Json, whole: &Json, message: &MessageDescriptor) {
    let parent = message;
    let schema = resolved(schema, whole);
    let properties = schema.get("properties").and_then(Json::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let path = format!("{path}.{name}");
        let Some(field) = message.get_field_by_name(name) else {
            assert_eq!(name, "b64data", "{path} has no number");
            continue;
        };
        let mut property = resolved(property, whole);
        if let Some(inner) = property.get("items").or(property.get("additionalProperties")) {
            property = resolved(inner, whole);
        }
        if let Kind::Message(message) = field.kind() {
            let message = match field.is_map() {
                true => match message.map_entry_value_field().kind() {
                    Kind::Message(message) => message,
                    _ => continue,
                },
                false => message,
            };
            if message != *parent {
                compare(&path, property, whole, &message);
            }
        }
    }
    let variants = schema.get("oneOf").or(schema.get("anyOf")).and_then(Json::as_array);
    for variant in variants.into_iter().flatten() {
        compare(path, variant, whole, message);
    }
}

fn resolved<'a>(schema: &'a Json, whole: &'a Json) -> &'a Json {
    match schema.get("$ref").and_then(Json::as_str) {
        Some(path) => whole.pointer(path.trim_start_matches('#')).expect("a definition"),
        None => schema,
    }
}

#[test]
fn every_field_of_json_has_a_number() {
    for row in DESCRIPTIONS {
        let rpc = schema::RPCS.iter().find(|rpc| rpc.method == row.method).expect("a method");
        let mut generator = SchemaGenerator::default();
        let roots: Vec<Schema> = vec![(row.request)(&mut generator), (row.result)(&mut generator)];
        let whole = json!({ "$defs": generator.definitions() });
        let result = if rpc.name == "Batch" {
            "BatchResponse".into()
        } else {
            format!("{}Result", rpc.name)
        };
        for (root, name) in roots.iter().zip([format!("{}Request", rpc.name), result]) {
            compare(&name, root.as_value(), &whole, &descriptor(&name));
        }
    }
    assert_eq!(schema::RPCS.len(), Method::ALL.len(), "every method is in the service");
}

#[test]
fn an_error_is_packed_into_the_details_of_a_status() {
    let error = ApiError::NOT_FOUND;
    let bytes = status(5, "not found", error);
    let expect = b"\x08\x05\x12\x09not found\x1a\x45\x0a\x34type.googleapis.com/centrifugal.centrifugo.api.Error";
    assert_eq!(&bytes[..expect.len()], expect);
    assert_eq!(&bytes[expect.len()..], b"\x12\x0d\x08\x68\x12\x09not found");
}
