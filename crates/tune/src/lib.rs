//! Measures how a sample of messages compresses in every mode that Fanwire has, and recommends settings.
//! In: the bytes of a file of messages, settings, a clock → out: a report, advice, both as text or as an HTML page.
//! Uses `deflate` and `protocol`. Never: files, a terminal, a clock of its own, the server.
//! Changed here: what the command `fanwire tune` can call. Modes are in `mode`, how each is measured in `codec`, advice in `recommend`.
#![forbid(unsafe_code)]

mod codec;
mod figure;
mod input;
mod measure;
mod mode;
mod page;
mod recommend;
mod stats;
mod stream;
mod text;
mod wire;

pub use input::{EXPECTED, InputError, Sample, read};
pub use measure::{Curve, MeasureError, Measurement, curves, measure};
pub use mode::{Mode, count, depths};
pub use page::page;
pub use recommend::{Advice, Scale};
pub use stream::{Clock, Settings};
pub use text::report;
