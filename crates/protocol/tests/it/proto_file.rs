//! `src/message.rs` says what `proto/client.proto` says: no field is missing, renamed or renumbered.
//! In: both files as text. Out: one list of lines each, compared.
//! Uses `schema` for the one and the attributes of prost for the other.
//! What the fields look like on the wire is tested in `every_message`.

use crate::schema::{Kind, schema};

#[test]
fn the_structs_have_the_fields_of_the_proto_file() {
    let mut expect = Vec::new();
    for (message, fields) in schema() {
        for field in fields {
            let attribute = format!("{}, tag = \"{}\"", prost_kind(&field.kind), field.number);
            expect.push(format!("{}.{} {attribute}", rust_name(&message), field.name));
        }
    }
    expect.sort();
    assert_eq!(struct_fields(), expect);
}

/// `RPCRequest` is `RpcRequest` in Rust.
fn rust_name(message: &str) -> String {
    message.replace("RPC", "Rpc")
}

fn struct_fields() -> Vec<String> {
    let mut fields = Vec::new();
    let (mut message, mut attribute) = ("", String::new());
    for line in include_str!("../../src/message.rs").lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("pub struct ") {
            message = rest.split(' ').next().expect("a name");
        } else if let Some(rest) = line.strip_prefix("#[prost(") {
            attribute = rest.trim_end_matches(")]").to_owned();
        } else if let Some((name, _)) = line.strip_prefix("pub ").and_then(|l| l.split_once(':')) {
            fields.push(format!("{message}.{} {attribute}", name.trim_start_matches("r#")));
        }
    }
    fields.sort();
    fields
}

fn prost_kind(kind: &Kind) -> String {
    let plain = |kind: &Kind| match kind {
        Kind::Bool => "bool",
        Kind::Uint32 => "uint32",
        Kind::Uint64 => "uint64",
        Kind::Int32 => "int32",
        Kind::Int64 => "int64",
        Kind::Sint64 => "sint64",
        Kind::Text => "string",
        Kind::Payload | Kind::TextBytes => "bytes = \"bytes\"",
        Kind::Message(_) => "message",
        Kind::List(_) | Kind::Map(_) => panic!("not inside a list or a map"),
    };
    match kind {
        Kind::Message(_) => "message, optional".to_owned(),
        Kind::List(element) => format!("{}, repeated", plain(element)),
        Kind::Map(value) => format!("btree_map = \"string, {}\"", plain(value)),
        other => plain(other).to_owned(),
    }
}
