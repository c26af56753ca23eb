//! A whole Fanwire cluster on one thread: nodes, their engine, clients and backends, with a time and a chance of its own.
//! In: a seed → out: a story of events, and the promises that were broken.
//! Uses the node and its ports as the server does. Never: sockets, threads, tokio, a real clock.
//! Changed here: the list of modules.
#![forbid(unsafe_code)]
