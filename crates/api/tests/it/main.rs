//! Integration tests of the server API: HTTP requests into the router, publications out of a real node.
//! In: requests made by hand, without sockets. Out: asserted replies, and what a subscriber received.
//! Uses the public face of the crate and of the node; never its private parts.
//! The test bench is `room`; each other module is one chapter of the contract.
#![forbid(unsafe_code)]

mod any_bytes;
mod batch;
mod delivery;
mod door;
mod error_modes;
mod history;
mod legacy;
mod malformed;
mod openapi;
mod presence;
mod replies;
mod room;
mod slow;
mod steering;
