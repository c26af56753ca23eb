//! Generates the messages of the client protocol from `proto/client.proto`.
//! In: the `.proto` file. Out: structs that prost reads and writes as Protobuf, and serde as JSON by the rules in `src/json.rs`.
//! Uses protox, so no `protoc` has to be installed; holds no logic.
//! A field that is not written in JSON by the rule of its type is a row of `ALWAYS_WRITTEN` or of the match in `serde_attribute`.

use std::error::Error;

use prost_types::{
    FieldDescriptorProto,
    field_descriptor_proto::{Label, Type},
};

const PROTO: &str = "proto/client.proto";

/// Fields that JSON replies contain even when they are empty: clients read them without a check.
const ALWAYS_WRITTEN: [&str; 8] = [
    "ClientInfo.user",
    "ClientInfo.client",
    "PresenceResult.presence",
    "PresenceStatsResult.num_clients",
    "PresenceStatsResult.num_users",
    "HistoryResult.publications",
    "HistoryResult.epoch",
    "HistoryResult.offset",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO}");
    let files = protox::compile([PROTO], ["proto"])?;
    let mut config = prost_build::Config::new();
    config.bytes(["."]).btree_map(["."]);
    config.message_attribute(
        ".",
        "#[derive(serde::Serialize, serde::Deserialize)] #[serde(default)]",
    );
    for file in &files.file {
        for message in &file.message_type {
            for field in &message.field {
                let path = format!("{}.{}", message.name(), field.name());
                config.field_attribute(&path, serde_attribute(&path, field));
            }
        }
    }
    Ok(config.compile_fds(files)?)
}

fn serde_attribute(path: &str, field: &FieldDescriptorProto) -> String {
    let rule = match (field.label(), field.r#type()) {
        _ if path == "EmulationRequest.data" => "with = \"crate::json::text_bytes\"",
        (Label::Repeated, Type::Message) if field.type_name().ends_with("Entry") => {
            "deserialize_with = \"crate::json::map\""
        }
        (Label::Repeated, _) => "deserialize_with = \"crate::json::list\"",
        (_, Type::Message) => "deserialize_with = \"crate::json::message\"",
        (_, Type::Bytes) => "with = \"crate::json::raw\"",
        _ => "deserialize_with = \"crate::json::scalar\"",
    };
    if ALWAYS_WRITTEN.contains(&path) {
        return format!("#[serde({rule})]");
    }
    format!("#[serde({rule}, skip_serializing_if = \"crate::json::is_default\")]")
}
