//! Generates the messages of the client protocol and of event proxies from the files in `proto/`.
//! In: the `.proto` files. Out: structs that prost reads and writes as Protobuf, and serde as JSON by the rules in `src/json.rs`.
//! Uses protox, so no `protoc` has to be installed; holds no logic.
//! A field that is not written in JSON by the rule of its type is a row of `ALWAYS_WRITTEN` or of the match in `serde_attribute`.

use std::error::Error;

use prost_types::{
    FieldDescriptorProto,
    field_descriptor_proto::{Label, Type},
};

const PROTOS: [&str; 2] = ["proto/client.proto", "proto/proxy.proto"];

/// Fields that JSON contains even when they are empty: clients and backends read them without a check.
const ALWAYS_WRITTEN: [&str; 15] = [
    "ClientInfo.user",
    "ClientInfo.client",
    "PresenceResult.presence",
    "PresenceStatsResult.num_clients",
    "PresenceStatsResult.num_users",
    "HistoryResult.publications",
    "HistoryResult.epoch",
    "HistoryResult.offset",
    "proxy.RefreshRequest.user",
    "proxy.SubscribeRequest.user",
    "proxy.PublishRequest.user",
    "proxy.RPCRequest.user",
    "proxy.SubRefreshRequest.user",
    "proxy.MapPublishRequest.user",
    "proxy.MapRemoveRequest.user",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(PROTOS, ["proto"])?;
    let mut config = prost_build::Config::new();
    config.bytes(["."]).btree_map(["."]);
    config.message_attribute(
        ".",
        "#[derive(serde::Serialize, serde::Deserialize)] #[serde(default)]",
    );
    // The same tree in both packages.
    config.extern_path(".centrifugal.centrifugo.proxy.FilterNode", "crate::FilterNode");
    config.type_attribute("FilterNode", "#[derive(Eq)]"); // prost does not see it in a recursive type
    for file in &files.file {
        for message in &file.message_type {
            for field in &message.field {
                let name = format!("{}.{}", message.name(), field.name());
                let path = format!(".{}.{name}", file.package());
                let name =
                    if file.package().ends_with(".proxy") { format!("proxy.{name}") } else { name };
                config.field_attribute(&path, serde_attribute(&name, field));
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
