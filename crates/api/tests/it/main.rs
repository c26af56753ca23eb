//! Integration tests of the server API: HTTP requests into the router, publications out of a real node.
//! In: requests made by hand, without sockets. Out: asserted replies, and what a subscriber received.
//! Uses the public http_api of the crate and of the node; never its private parts.
//! The test bench is `harness`; each other module is one chapter of the contract.
#![forbid(unsafe_code)]

mod any_bytes;
mod authentication;
mod batch;
mod control;
mod delivery;
mod error_modes;
mod harness;
mod history;
mod legacy;
mod malformed;
mod openapi;
mod presence;
mod replies;
mod slow;
