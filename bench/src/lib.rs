//! The scenarios of `fanwire-bench` and what they are made of (see README.md).
//! In: a scenario with its flags → out: a table, and whether its bars and checks were met.
//! Uses `fanwire_load`, so that no server is measured or checked by itself; `proof` times single steps of `deflate` and `protocol`.
//! Changed here: which scenarios exist; each lives in the module of its name.
#![forbid(unsafe_code)]

pub mod areas;
pub mod awake;
pub mod bare;
pub mod bare_http;
pub mod broadcast;
pub mod caller;
pub mod certificate;
pub mod churn;
pub mod connects;
pub mod corpus;
pub mod distance;
pub mod fanout;
pub mod handshakes;
pub mod idle;
pub mod metrics;
pub mod plots;
pub mod polls;
pub mod proof;
pub mod proxy;
pub mod publish;
pub mod redis;
pub mod restart;
pub mod room;
pub mod setup;
pub mod shed;
pub mod stats;
pub mod target;
mod witness;
