//! Loads a server that speaks the Centrifugo client protocol, and checks what arrives.
//! In: a plan → out: a report with rates, latencies from the planned times, and every publication that was lost or wrong.
//! Uses none of Fanwire's other crates: a checker must not share the code that it checks.
//! Change here what is public; the plan is in `plan`, one run of it in `run`.
#![forbid(unsafe_code)]

pub mod generator;
pub mod machine;
pub mod random;
