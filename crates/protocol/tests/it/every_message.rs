//! Every message with random fields, written by hand from the schema and compared with the crate's encodings.
//! In: seeds. Out: the same message as Protobuf bytes and as a JSON value, both made here from `proto/client.proto`.
//! Uses `schema`, prost's decoder and serde_json values; a failing seed is printed by proptest.
//! Rules of JSON fields are repeated here on purpose: this is the oracle of `src/json.rs` and `src/message.rs`.

use fanwire_protocol as protocol;
use fanwire_protocol::fuzzing::json_text;
use proptest::prelude::*;
use prost::Message;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::schema::{Field, Kind, Schema, schema};

macro_rules! every_message {
    ($($name:ident)+) => {
        /// Checks one random message of each kind.
        fn check_all(schema: &Schema, seed: u64) {
            $(check::<protocol::message::$name>(schema, stringify!($name), seed);)+
        }
        const NAMES: &[&str] = &[$(stringify!($name)),+];
    };
}

every_message! {
    ClientInfo Command Connect ConnectRequest ConnectResult Dictionary Disconnect EmulationRequest
    Error FilterNode HistoryRequest HistoryResult Join KeyedItem Leave Message PingRequest
    PingResult PresenceRequest PresenceResult PresenceStatsRequest PresenceStatsResult Publication
    PublishRequest PublishResult Push Refresh RefreshRequest RefreshResult Reply RpcRequest
    RpcResult SendRequest StreamPosition SubRefreshRequest SubRefreshResult Subscribe
    SubscribeRequest SubscribeResult TrackBatch Unsubscribe UnsubscribeRequest UnsubscribeResult
}

#[test]
fn no_message_of_the_proto_file_is_left_out() {
    let mut names: Vec<_> = schema().into_keys().map(|name| name.replace("RPC", "Rpc")).collect();
    names.sort();
    assert_eq!(NAMES, names);
}

proptest! {
    #[test]
    fn every_message_means_the_same_in_both_encodings(seed: u64) {
        check_all(&schema(), seed);
    }
}

fn check<M>(schema: &Schema, name: &str, seed: u64)
where
    M: Message + Default + PartialEq + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let mut random = Random(seed ^ 0x9e37_79b9_7f4a_7c15);
    let (bytes, expect) = random.message(schema, &name.replace("Rpc", "RPC"), 4);
    let message = M::decode(&*bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    let again = M::decode(&*message.encode_to_vec());
    assert_eq!(again.as_ref(), Ok(&message), "{name}: Protobuf does not come back");

    let text = json_text(&message).unwrap_or_else(|| panic!("{name}: no JSON"));
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value, expect, "{name}: other JSON than the schema says");
    assert!(!text.contains('\n'), "{name}: a raw newline");
    let indented = serde_json::to_string_pretty(&expect).expect("JSON");
    for text in [text, indented] {
        let again = json_text(&raw_read::<M>(name, &text)).expect("JSON");
        let again: Value = serde_json::from_str(&again).expect("JSON");
        assert_eq!(again, expect, "{name}: JSON does not come back");
    }
}

fn raw_read<M: DeserializeOwned>(name: &str, text: &str) -> M {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error} in {text}"))
}

/// SplitMix64: small, and the same on every machine.
struct Random(u64);

impl Random {
    fn message(&mut self, schema: &Schema, name: &str, depth: u32) -> (Vec<u8>, Value) {
        let (mut bytes, mut object) = (Vec::new(), Map::new());
        for field in &schema[name] {
            let is_message = matches!(field.kind, Kind::Message(_));
            if self.below(2) == 0 || (depth == 0 && is_message) {
                if field.is_always {
                    object.insert(field.name.clone(), default(&field.kind));
                }
                continue;
            }
            if let Some(value) = self.field(schema, field, depth, &mut bytes) {
                object.insert(field.name.clone(), value);
            }
        }
        (bytes, Value::Object(object))
    }

    /// Writes the field, and says what JSON has for it, if anything.
    fn field(
        &mut self,
        schema: &Schema,
        field: &Field,
        depth: u32,
        bytes: &mut Vec<u8>,
    ) -> Option<Value> {
        let count = if depth == 0 { 0 } else { self.below(3) };
        let value = match &field.kind {
            Kind::List(element) => {
                let mut put = || self.value(schema, element, field.number, depth - 1, bytes);
                Value::Array((0..count).map(|_| put()).collect())
            }
            Kind::Map(value) => {
                let mut map = Map::new();
                for index in 0..count {
                    let key = format!("{index}{}", self.text());
                    let mut entry = Vec::new();
                    put_bytes(&mut entry, 1, key.as_bytes());
                    map.insert(key, self.value(schema, value, 2, depth - 1, &mut entry));
                    put_bytes(bytes, field.number, &entry);
                }
                Value::Object(map)
            }
            kind => self.value(schema, kind, field.number, depth.saturating_sub(1), bytes),
        };
        let is_left_out = value == default(&field.kind) && !field.is_always;
        (!is_left_out || matches!(field.kind, Kind::Message(_))).then_some(value)
    }

    /// Writes one value with its key.
    fn value(
        &mut self,
        schema: &Schema,
        kind: &Kind,
        number: u32,
        depth: u32,
        bytes: &mut Vec<u8>,
    ) -> Value {
        let bits = self.next() >> self.below(64);
        match kind {
            Kind::Bool => put_number(bytes, number, bits & 1, json!(bits & 1 == 1)),
            Kind::Uint32 => put_number(bytes, number, bits as u32 as u64, json!(bits as u32)),
            Kind::Uint64 => put_number(bytes, number, bits, json!(bits)),
            Kind::Int32 => put_number(bytes, number, bits as i32 as i64 as u64, json!(bits as i32)),
            Kind::Int64 => put_number(bytes, number, bits, json!(bits as i64)),
            Kind::Sint64 => {
                let signed = (bits >> 1) as i64 ^ -((bits & 1) as i64);
                put_number(bytes, number, bits, json!(signed))
            }
            Kind::Text | Kind::TextBytes => {
                let text = self.text();
                put_bytes(bytes, number, text.as_bytes());
                json!(text)
            }
            Kind::Payload => {
                let value = self.json(2);
                let text = match self.below(2) {
                    0 => serde_json::to_string(&value).expect("JSON"),
                    _ => serde_json::to_string_pretty(&value).expect("JSON"),
                };
                put_bytes(bytes, number, text.as_bytes());
                value
            }
            Kind::Message(name) => {
                let (inner, value) = self.message(schema, name, depth);
                put_bytes(bytes, number, &inner);
                value
            }
            Kind::List(_) | Kind::Map(_) => panic!("not inside a list or a map"),
        }
    }

    fn json(&mut self, depth: u32) -> Value {
        match self.below(if depth == 0 { 4 } else { 6 }) {
            0 => json!(self.next()),
            1 => json!(self.text()),
            2 => json!(self.next() & 1 == 1),
            3 => json!(-(self.below(1000) as i64)),
            4 => (0..self.below(3)).map(|_| self.json(depth - 1)).collect(),
            _ => (0..self.below(3)).map(|_| (self.text(), self.json(depth - 1))).collect(),
        }
    }

    fn text(&mut self) -> String {
        const CHARACTERS: [char; 12] =
            ['a', 'b', 'Z', '0', ' ', '"', '\\', '\n', '<', 'é', '\u{2028}', '😀'];
        (0..self.below(6)).map(|_| CHARACTERS[self.below(12) as usize]).collect()
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn default(kind: &Kind) -> Value {
    match kind {
        Kind::Bool => json!(false),
        Kind::Uint32 | Kind::Uint64 | Kind::Int32 | Kind::Int64 | Kind::Sint64 => json!(0),
        Kind::Text | Kind::TextBytes => json!(""),
        Kind::Payload | Kind::Message(_) => Value::Null,
        Kind::List(_) => json!([]),
        Kind::Map(_) => json!({}),
    }
}

fn put_number(bytes: &mut Vec<u8>, number: u32, value: u64, json: Value) -> Value {
    put_varint(bytes, u64::from(number << 3));
    put_varint(bytes, value);
    json
}

fn put_bytes(bytes: &mut Vec<u8>, number: u32, value: &[u8]) {
    put_varint(bytes, u64::from(number << 3 | 2));
    put_varint(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}

fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
