//! The messages of the client protocol, generated from `proto/client.proto` by `build.rs`.
//! In: nothing. Out: plain structs which prost reads and writes as Protobuf, serde_json reads and `json` writes as JSON.
//! Uses prost, serde and the rules in `json`; holds no logic.
//! A field is added in the `.proto` file alone.

include!(concat!(env!("OUT_DIR"), "/centrifugal.centrifuge.protocol.rs"));
