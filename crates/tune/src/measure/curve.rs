//! Bytes at every depth, for a plot; the table has those that the server is given.
//! In: a sample and settings → out: a curve for clients of one channel, and one for those of several.
//! Uses the passes of the parent. Never: times, which a plot of bytes does not need.
//! Which depths a curve has is decided in `mode`.

use super::{Clock, MeasureError, Settings, Stream, pass, sizes};
use crate::input::Sample;
use crate::mode::{self, Mode};
use crate::stats::mean;
use crate::wire;

/// Frame sizes of one kind of client, by the number of earlier publications that a frame may refer to.
pub struct Curve {
    /// Channels of each client.
    pub channels: usize,
    /// Bytes of the average message, envelope and frame header included, at 0, 1, 2 … earlier publications.
    pub bytes: Vec<f64>,
}

/// Calls `begin` with each mode before it starts.
///
/// # Errors
/// As [`measure`](super::measure).
pub fn curves(
    sample: &Sample,
    settings: Settings,
    clock: Clock<'_>,
    begin: &mut dyn FnMut(Mode),
) -> Result<Vec<Curve>, MeasureError> {
    let stream = Stream::new(sample);
    let mut curves: Vec<Curve> = Vec::new();
    for (mode, channels) in mode::depths(settings.channels) {
        begin(mode);
        let (deliveries, _) = pass(mode, &stream, settings, clock)?;
        let frames = sizes(deliveries.iter().map(|delivery| wire::frame_bytes(delivery.bytes)));
        match curves.last_mut().filter(|curve| curve.channels == channels) {
            Some(curve) => curve.bytes.push(mean(&frames)),
            None => curves.push(Curve { channels, bytes: vec![mean(&frames)] }),
        }
    }
    Ok(curves)
}
