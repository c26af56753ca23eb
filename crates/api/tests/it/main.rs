//! Integration tests of the server API: HTTP requests into the router, publications out of a real node.
//! In: requests made by hand, without sockets. Out: asserted replies, and the messages of subscribers.
//! Uses the public interface of the crate and of the node; never their private parts.
//! The test harness is `harness`; each other module tests one part of the API.
#![forbid(unsafe_code)]

mod any_bytes;
mod append;
mod authentication;
mod batch;
mod control;
mod delivery;
mod error_modes;
mod harness;
mod history;
mod legacy;
mod malformed;
mod maps;
mod openapi;
mod presence;
mod refusals;
mod replies;
mod slow;
