//! Generates the tables of the server API's messages and methods from the files in `proto/`.
//! In: the `.proto` files. Out: `schema.rs`, which `src/protobuf/schema.rs` includes, and the descriptors for reflection.
//! Uses protox, so no `protoc` has to be installed; fails on what `src/protobuf/` cannot read.
//! A kind of field that the messages did not have before is a row of `kind`.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;
use std::{env, fs};

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto};

const PROTOS: [&str; 2] = ["api.proto", "fanwire.proto"];
const PACKAGE: &str = ".centrifugal.centrifugo.api.";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let set = protox::compile(PROTOS, ["proto"])?;
    let mut messages = HashMap::new();
    let mut code = String::new();
    let file = set.file.iter().find(|file| file.name() == PROTOS[0]).ok_or("no API")?;
    for message in &file.message_type {
        collect(message.name(), message, &mut messages);
    }
    let mut names: Vec<&String> = messages.keys().collect();
    names.sort();
    for name in names {
        write_message(name, &messages, &mut code)?;
    }
    let service = file.service.first().ok_or("no service")?;
    write!(code, "pub(crate) static RPCS: [Rpc; {}] = [", service.method.len())?;
    for method in &service.method {
        let name = method.name();
        let request = local(method.input_type());
        let variant = if name == "RPC" { "Rpc" } else { name };
        let response = local(method.output_type());
        writeln!(
            code,
            "Rpc {{ name: {name:?}, method: Method::{variant}, request: &{request}, response: &{response} }},"
        )?;
    }
    code.push_str("];\n");
    let folder = env::var("OUT_DIR")?;
    fs::write(format!("{folder}/schema.rs"), code)?;
    fs::write(format!("{folder}/api.bin"), set.encode_to_vec())?;
    Ok(())
}

fn collect(name: &str, message: &DescriptorProto, into: &mut HashMap<String, DescriptorProto>) {
    for nested in &message.nested_type {
        collect(&format!("{name}_{}", nested.name()), nested, into);
    }
    into.insert(name.to_owned(), message.clone());
}

fn write_message(
    name: &str,
    messages: &HashMap<String, DescriptorProto>,
    code: &mut String,
) -> Result<(), Box<dyn Error>> {
    let message = &messages[name];
    let is_choice = name == "Command";
    write!(
        code,
        "pub(crate) static {name}: MessageTable = MessageTable {{ is_choice: {is_choice}, fields: &["
    )?;
    for field in &message.field {
        let target = messages.get(&local(field.type_name()));
        let is_map =
            target.is_some_and(|target| target.options.as_ref().is_some_and(|o| o.map_entry()));
        let rule = match (is_map, field.label()) {
            (true, _) => "Rule::Map",
            (false, Label::Repeated) => "Rule::List",
            _ => "Rule::One",
        };
        let kind = kind(field, rule)?;
        writeln!(
            code,
            "Field {{ name: {:?}, number: {}, rule: {rule}, kind: {kind} }},",
            field.name(),
            field.number()
        )?;
    }
    code.push_str("] };\n");
    Ok(())
}

fn kind(field: &FieldDescriptorProto, rule: &str) -> Result<String, String> {
    let kind = match field.r#type() {
        Type::Message => return Ok(format!("Kind::Message(&{})", local(field.type_name()))),
        Type::String => "Kind::Text",
        Type::Bytes => "Kind::Bytes",
        // Numbers in a list would be packed.
        _ if rule != "Rule::One" => return Err(format!("{} is a list of numbers", field.name())),
        Type::Bool => "Kind::Bool",
        Type::Int32 => "Kind::Int32",
        Type::Int64 => "Kind::Int64",
        Type::Uint32 => "Kind::Uint32",
        Type::Uint64 => "Kind::Uint64",
        Type::Double => "Kind::Double",
        other => return Err(format!("{}: {other:?}", field.name())),
    };
    Ok(kind.to_owned())
}

/// The name of a message's table.
fn local(type_name: &str) -> String {
    type_name.trim_start_matches(PACKAGE).replace('.', "_")
}
