//! Everything the node does, seen from outside: dialogues with peers, the route of a message, properties, memory.
//! In: scripts and random operations on a simulated node with virtual time → out: what each peer heard, compared.
//! Uses: the public face of `fanwire-node` only. Never: sockets, clocks, sleeps.
//! Changed here: the list of rooms. The simulated node lives in `world.rs`, the language of the scripts in `script.rs`.
#![forbid(unsafe_code)]

mod any_bytes;
mod api;
mod areas;
mod batches;
mod begun_again;
mod churn;
mod cluster;
mod connect;
mod debug_for;
mod deltas;
mod departures;
mod encode_jobs;
mod exclusion;
mod expiry;
mod filters;
mod flight_log;
mod growing;
mod history;
mod hooks;
mod hostile;
mod join_leave;
mod labels;
mod life;
mod maps;
mod memory;
mod model;
mod orders;
mod personal;
mod presence;
mod proxy_hooks;
mod publish;
mod published_keys;
mod rates;
mod recovery;
mod refusals;
mod reload;
mod revocations;
mod route;
mod script;
mod server_filters;
mod server_side;
mod shared_poll;
mod shared_revocations;
mod slow;
mod statuses;
mod streams;
mod subscribe;
mod takeover;
mod threads;
mod tokens;
mod turns;
mod unidirectional;
mod world;
