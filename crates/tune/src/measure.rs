//! Every mode measured on one sample: bytes on the wire, times, memory.
//! In: a sample, settings and a clock → out: a `Report` with a row per mode; each frame was decoded again.
//! Uses `codec` for what a mode does. Never: reads a clock of its own, prints.
//! Changed here: how often and how long is measured.

use std::time::Duration;

use fanwire_protocol::Encoding;

use crate::codec::{self, Delivery, Memory};
use crate::input::Sample;
use crate::mode::{self, ContextDepth, Mode};
use crate::stats::{Sizes, mean};
use crate::stream::{Clock, Settings, Stream};
use crate::wire;

mod curve;

#[cfg(test)]
mod tests;

pub use curve::{Curve, curves};

/// Results for one file.
pub struct Measurement {
    pub(crate) file: String,
    pub(crate) channel: String,
    pub(crate) encoding: Encoding,
    pub(crate) has_more: bool,
    pub(crate) settings: Settings,
    pub(crate) payloads: Sizes,
    pub(crate) rows: Vec<Row>,
    /// Curves for the page; no page, no curves.
    pub curves: Vec<Curve>,
}

impl Measurement {
    /// Mean bytes of raw frames, which are the first row.
    pub(crate) fn raw_bytes(&self) -> f64 {
        self.rows[0].bytes()
    }
}

/// One mode.
pub(crate) struct Row {
    pub(crate) mode: Mode,
    /// Bytes of every frame, header included.
    pub(crate) sizes: Vec<u32>,
    /// Per message; none for raw ones.
    pub(crate) micros: Option<Micros>,
    pub(crate) memory: Memory,
    /// How many earlier publications a usual frame may refer to.
    pub(crate) depth: usize,
}

impl Row {
    pub(crate) fn bytes(&self) -> f64 {
        mean(&self.sizes)
    }
}

/// Microseconds per message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Micros {
    pub(crate) compress: f64,
    pub(crate) decompress: f64,
    /// Time to write the same publication for clients at another position, where that is possible.
    pub(crate) again: Option<f64>,
}

/// A frame did not decode to the message it was made of: a bug of the encoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: message {number} came back changed ({}): a bug of fanwire, please report it", .mode.title())]
pub struct MeasureError {
    pub file: String,
    /// Number of the message in its file, from 1.
    pub number: usize,
    pub mode: Mode,
}

/// Measures all modes; calls `begin` with each before it starts.
///
/// # Errors
/// A frame that does not come back as it was, which is a bug of the encoder.
pub fn measure(
    sample: &Sample,
    settings: Settings,
    clock: Clock<'_>,
    begin: &mut dyn FnMut(Mode),
) -> Result<Measurement, MeasureError> {
    let stream = Stream::new(sample);
    let mut rows: Vec<Row> = Vec::new();
    for mode in mode::all(settings.channels) {
        begin(mode);
        let row = row(mode, &stream, settings, clock)?;
        if rows.last().is_none_or(|last| adds(last, &row)) {
            rows.push(row);
        }
    }
    let payloads = sizes(sample.payloads.iter().map(Vec::len));
    Ok(Measurement {
        file: sample.file.clone(),
        channel: sample.channel.clone(),
        encoding: sample.encoding,
        has_more: sample.has_more,
        settings,
        payloads: Sizes::of(&payloads),
        rows,
        curves: Vec::new(),
    })
}

/// Whether a row says something that the one before it does not: a depth that reaches no further,
/// because the window is full or the engine offers no such depth, does not.
fn adds(last: &Row, row: &Row) -> bool {
    match (last.mode, row.mode) {
        (
            Mode::Context { channels: 1, .. },
            Mode::Context { depth: ContextDepth::Publications(_), channels: 1 },
        ) => row.depth > last.depth,
        _ => true,
    }
}

fn row(
    mode: Mode,
    stream: &Stream<'_>,
    settings: Settings,
    clock: Clock<'_>,
) -> Result<Row, MeasureError> {
    if mode == Mode::Raw {
        let sizes = sizes(stream.pushes.iter().map(|push| wire::frame_bytes(push.len())));
        return Ok(Row { mode, sizes, micros: None, memory: Memory::default(), depth: 0 });
    }
    let begun = clock.now();
    let (mut deliveries, memory) = pass(mode, stream, settings, clock)?;
    for number in 1..PASSES_MAX {
        if number >= PASSES_MIN && clock.now().saturating_sub(begun) > PASSES_TIME {
            break;
        }
        let (others, _) = pass(mode, stream, settings, clock)?;
        deliveries.iter_mut().zip(&others).for_each(|(best, other)| best.keep_faster(other));
    }
    let mean = |time: Duration| time.as_secs_f64() * 1e6 / deliveries.len() as f64;
    let sum = |part: fn(&Delivery) -> Duration| deliveries.iter().map(part).sum();
    let again = deliveries.iter().map(|delivery| delivery.again).sum::<Option<Duration>>();
    let micros = Micros {
        compress: mean(sum(|delivery| delivery.compress)),
        decompress: mean(sum(|delivery| delivery.decompress)),
        again: again.map(mean),
    };
    let sizes = sizes(deliveries.iter().map(|delivery| wire::frame_bytes(delivery.bytes)));
    let depth = median(deliveries.iter().map(|delivery| delivery.depth).collect());
    Ok(Row { mode, sizes, micros: Some(micros), memory, depth })
}

/// All messages once.
fn pass(
    mode: Mode,
    stream: &Stream<'_>,
    settings: Settings,
    clock: Clock<'_>,
) -> Result<(Vec<Delivery>, Memory), MeasureError> {
    let mut codec = codec::of(mode, stream, settings);
    let mut deliveries = Vec::with_capacity(stream.pushes.len());
    for at in 0..stream.pushes.len() {
        let Some(delivery) = codec.deliver(at, clock) else {
            return Err(MeasureError { file: stream.sample.file.clone(), number: at + 1, mode });
        };
        deliveries.push(delivery);
    }
    let memory = codec.memory();
    Ok((deliveries, memory))
}

fn median(mut depths: Vec<usize>) -> usize {
    depths.sort_unstable();
    depths.get(depths.len() / 2).copied().unwrap_or_default()
}

/// Messages are far below 4 GiB.
fn sizes(lengths: impl Iterator<Item = usize>) -> Vec<u32> {
    lengths.map(|length| u32::try_from(length).unwrap_or(u32::MAX)).collect()
}

/// Passes of which the fastest counts for each message, because other work on the machine only makes it slower. The
/// least number holds whatever time the passes take.
const PASSES_MAX: usize = 3;
const PASSES_MIN: usize = 2;
const PASSES_TIME: Duration = Duration::from_millis(300);
