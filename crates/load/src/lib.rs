//! Loads a server that speaks the Centrifugo client protocol, and checks what arrives.
//! In: a plan → out: a report with rates, latencies from the planned times, and every publication that was lost or wrong.
//! Uses none of Fanwire's other crates: a checker must not share the code that it checks.
//! Changed here: what is public; the plan is in `plan`, one run of it in `run`.
#![forbid(unsafe_code)]

mod address;
mod check;
mod choice;
pub mod generator;
pub mod histogram_file;
pub mod machine;
mod payload;
mod plan;
mod publish;
pub mod random;
mod record;
mod report;
mod run;
mod usage;

pub use address::ServerAddress;
pub use check::{Group, GroupCounts};
pub use choice::Popularity;
pub use payload::Payloads;
pub use plan::{ApiAddress, Pace, Plan, PublishMethod};
pub use record::{Second, milliseconds};
pub use report::{Ending, Percentiles, Report, grouped, time_plot};
pub use run::{RunStatus, run};
