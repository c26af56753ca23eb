//! Advice on the configuration of a channel, with reasons and savings.
//! In: a report and the scale of the channel → out: an `Advice` with reasons in words and lines to paste.
//! Pure. Never: measures, prints.
//! Changed here: when a mode is worth it; the keys' meaning lives in `fanwire_config`.

use std::fmt::Write as _;

use fanwire_deflate::gap::History;

use crate::figure;
use crate::measure::{Measurement, Row};
use crate::mode::{Group, Mode};

#[cfg(test)]
pub(crate) mod tests;

/// How much traffic there is, and what it costs.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    pub dollars_per_gb: f64,
    pub publications_per_second: f64,
    pub receivers: u64,
}

impl Scale {
    /// Returns the deliveries in 30 days.
    pub(crate) fn deliveries(self) -> f64 {
        self.publications_per_second * self.receivers as f64 * 30.0 * 86_400.0
    }

    pub(crate) fn dollars(self, bytes: f64) -> f64 {
        bytes / 1e9 * self.dollars_per_gb
    }
}

/// A value of the namespace option `compression`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Context,
    Standalone,
    Off,
}

impl Compression {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Standalone => "standalone",
            Self::Off => "off",
        }
    }
}

/// Recommended configuration, in words and in lines.
pub struct Advice {
    pub(crate) compression: Compression,
    /// The row of the report that `chosen` is from.
    pub(crate) mode: Mode,
    pub(crate) scale: Scale,
    /// Bytes per delivery.
    pub(crate) raw: f64,
    /// Bytes per delivery of the best level that is not slower without a gain.
    pub(crate) standalone: f64,
    pub(crate) chosen: f64,
    pub(crate) reasons: Vec<String>,
    /// YAML.
    pub(crate) lines: String,
}

impl Advice {
    pub fn new(report: &Measurement, scale: Scale) -> Self {
        let figures = Figures::of(report);
        let compression = figures.compression();
        let (mode, chosen) = match compression {
            Compression::Context => (figures.many_mode, figures.many),
            Compression::Standalone => {
                (Mode::Standalone { level: figures.standalone_level }, figures.standalone)
            }
            Compression::Off => (Mode::Raw, figures.raw),
        };
        let mut reasons = figures.reasons(compression, report);
        reasons.extend(own_contexts(report, &figures, compression, scale));
        reasons.extend(caveats(report, compression));
        Self {
            compression,
            mode,
            scale,
            raw: figures.raw,
            standalone: figures.standalone,
            chosen,
            reasons,
            lines: lines(report, compression, &figures),
        }
    }

    /// Returns the traffic of a month and its price, at `bytes` per delivery.
    pub(crate) fn month(&self, bytes: f64) -> Month {
        let bytes = bytes * self.scale.deliveries();
        Month { bytes, dollars: self.scale.dollars(bytes) }
    }
}

/// Traffic of 30 days.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Month {
    pub(crate) bytes: f64,
    pub(crate) dollars: f64,
}

/// Bytes per delivery of the modes that can be configured.
#[derive(Clone, Copy, Debug)]
struct Figures {
    raw: f64,
    standalone: f64,
    standalone_level: u8,
    /// Clients in context with this channel alone.
    one: f64,
    /// Clients in context with several channels.
    many: f64,
    many_mode: Mode,
}

impl Figures {
    fn of(report: &Measurement) -> Self {
        let (standalone_level, standalone) = standalone(report);
        let last = |group| report.rows.iter().rev().find(|row| row.mode.group() == group);
        let one = last(Group::OneChannel).map_or(standalone, Row::bytes);
        let row = interleaved(report).or_else(|| last(Group::OneChannel));
        let (many, many_mode) = row.map_or((one, Mode::Raw), |row| (row.bytes(), row.mode));
        Self { raw: report.raw_bytes(), standalone, standalone_level, one, many, many_mode }
    }

    /// Mean of clients in context, half of them with this channel alone.
    fn context(&self) -> f64 {
        f64::midpoint(self.one, self.many)
    }

    fn compression(&self) -> Compression {
        let context = self.context();
        if self.standalone.min(context) > self.raw * (1.0 - SAVING_MIN) {
            Compression::Off
        } else if context > self.standalone * (1.0 - CONTEXT_SAVING_MIN) {
            Compression::Standalone
        } else {
            Compression::Context
        }
    }

    fn reasons(&self, compression: Compression, report: &Measurement) -> Vec<String> {
        let [raw, standalone, one, many] =
            [self.raw, self.standalone, self.one, self.many].map(figure::bytes);
        let channels = report.settings.channels;
        let context = self.context();
        match compression {
            Compression::Context => {
                let mut reasons = vec![format!(
                    "Messages resemble the ones before them: a delivery in context has {one} B, a standalone \
                     frame {standalone} B, and a raw one {raw} B."
                )];
                if channels > 1 {
                    reasons.push(format!(
                        "These figures are for clients with this channel alone. Where messages of {channels} channels \
                         alternate, a delivery has {many} B; the savings below are calculated with that."
                    ));
                }
                reasons
            }
            Compression::Standalone => vec![
                format!(
                    "A standalone frame has {standalone} B, a raw one {raw} B. It is compressed once for all receivers."
                ),
                format!(
                    "Context would save {} of that ({} B), which is not worth the memory of a history.",
                    figure::percent((1.0 - context / self.standalone).max(0.0)),
                    figure::bytes(context),
                ),
            ],
            Compression::Off => vec![format!(
                "Compressing saves {} at best ({} B instead of {raw} B): the messages are incompressible, \
                 perhaps compressed or encrypted already, or very short.",
                figure::percent((1.0 - self.standalone.min(context) / self.raw).max(0.0)),
                figure::bytes(self.standalone.min(context)),
            )],
        }
    }
}

/// The lowest level whose frames are within a hundredth of the smallest, and their bytes.
fn standalone(report: &Measurement) -> (u8, f64) {
    let levels = report.rows.iter().filter_map(|row| match row.mode {
        Mode::Standalone { level } => Some((level, row.bytes())),
        _ => None,
    });
    let least = levels.clone().map(|(_, bytes)| bytes).fold(f64::INFINITY, f64::min);
    let good = levels.clone().find(|(_, bytes)| *bytes <= least * (1.0 + LEVEL_LOSS_MAX));
    good.unwrap_or((report.settings.level, report.raw_bytes()))
}

/// The smallest depth whose frames are within a hundredth of the smallest.
fn interleaved(report: &Measurement) -> Option<&Row> {
    let mut rows = report.rows.iter().filter(|row| row.mode.group() == Group::Interleaved);
    let least = rows.clone().map(Row::bytes).fold(f64::INFINITY, f64::min);
    rows.find(|row| row.bytes() <= least * (1.0 + LEVEL_LOSS_MAX))
}

/// Returns the price of the alternative, a compressor for each connection.
fn own_contexts(
    report: &Measurement,
    figures: &Figures,
    compression: Compression,
    scale: Scale,
) -> Option<String> {
    if compression != Compression::Context {
        return None;
    }
    let full = Mode::Dedicated { window_bits: 15, memory_level: 8 };
    let own = report.rows.iter().find(|row| row.mode == full)?;
    let shared = report.rows.iter().find(|row| row.mode == figures.many_mode)?;
    let receivers = scale.receivers as f64;
    let cores = |micros: f64| micros * scale.publications_per_second / 1e6;
    let own_micros = own.micros?;
    let shared_micros = shared.micros?;
    // At worst every receiver is at a position of its own, and no frame is shared.
    let worst = shared_micros.compress + shared_micros.again.unwrap_or_default() * receivers;
    Some(format!(
        "A compressor for each connection would send {} B to clients with this channel alone, and take {} and {} \
         for {} receivers. Context takes {}, and {} even if no two of them are at the same position.",
        figure::bytes(own.bytes()),
        figure::memory(own.memory.connection as f64 * receivers),
        figure::cores(cores(own_micros.compress * receivers)),
        figure::grouped(receivers),
        figure::memory(shared.memory.connection as f64 * receivers + shared.memory.channel as f64),
        figure::cores(cores(worst)),
    ))
}

fn caveats(report: &Measurement, compression: Compression) -> Vec<String> {
    let mut caveats = Vec::new();
    if compression == Compression::Context {
        caveats.push(
            "A publisher who sees the lengths of frames can test guesses at other messages of the channel. Where \
             publishers may not read the channel, choose standalone; where the option is absent the server \
             chooses it."
                .to_owned(),
        );
    }
    let lengths = &report.rows[0].sizes;
    let long = lengths.iter().filter(|size| **size as usize > History::MESSAGE_BYTES_MAX).count();
    if long > 0 {
        caveats.push(format!(
            "{} of {} messages are longer than {} B and always go out standalone.",
            figure::grouped(long as f64),
            figure::grouped(lengths.len() as f64),
            figure::grouped(History::MESSAGE_BYTES_MAX as f64),
        ));
    }
    if lengths.len() < MESSAGES_GOOD {
        caveats.push(format!(
            "{} messages are few: the result is more reliable with {} or more.",
            lengths.len(),
            MESSAGES_GOOD,
        ));
    }
    caveats
}

fn lines(report: &Measurement, compression: Compression, figures: &Figures) -> String {
    let level = match compression {
        Compression::Context => report.settings.level,
        Compression::Standalone | Compression::Off => figures.standalone_level,
    };
    let mut lines = String::from("websocket:\n  compression: true\n");
    if compression != Compression::Off {
        let min_size = min_size(report, compression, figures);
        let _ = write!(lines, "  compression_level: {level}\n  compression_min_size: {min_size}\n");
    }
    if compression == Compression::Context {
        let _ = writeln!(lines, "  compression_memory_max: {MEMORY_MAX}");
    }
    let name = if is_namespace(&report.channel) { &report.channel } else { "messages" };
    let _ = write!(
        lines,
        "channel:\n  namespaces:\n    - name: {name}\n      compression: {}\n",
        compression.name()
    );
    lines
}

/// The largest limit below which hardly anything is saved, so that short messages cost no time.
fn min_size(report: &Measurement, compression: Compression, figures: &Figures) -> u32 {
    let mode = match compression {
        Compression::Context => figures.many_mode,
        _ => Mode::Standalone { level: figures.standalone_level },
    };
    let Some(row) = report.rows.iter().find(|row| row.mode == mode) else { return MIN_SIZES[0] };
    let saved = |min_size: u32| -> f64 {
        let pairs = report.rows[0].sizes.iter().zip(&row.sizes);
        let longer = pairs.filter(|(raw, _)| **raw >= min_size + HEADER_BYTES);
        longer.map(|(raw, size)| f64::from(*raw) - f64::from(*size)).sum()
    };
    let all = saved(0);
    let good =
        MIN_SIZES.into_iter().find(|min_size| saved(*min_size) >= all * (1.0 - LEVEL_LOSS_MAX));
    good.unwrap_or(MIN_SIZES[MIN_SIZES.len() - 1])
}

/// Letters, digits, `-`, `_` and `.`, at least two of them.
fn is_namespace(name: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    name.len() >= 2 && name.bytes().all(is_fine)
}

/// Saving less than this share of raw frames is not worth the time of both ends.
const SAVING_MIN: f64 = 0.05;

/// Saving less than this share of standalone frames is not worth the memory of a history.
const CONTEXT_SAVING_MIN: f64 = 0.1;

/// A level, a depth or a limit that loses less than this share is as good.
const LEVEL_LOSS_MAX: f64 = 0.01;

/// The server's default first; below the last one no message gets shorter.
const MIN_SIZES: [u32; 4] = [128, 64, 32, 24];

/// Bytes of the shortest frame header.
const HEADER_BYTES: u32 = 2;

/// The default of `websocket.compression_memory_max`, 256 MiB.
const MEMORY_MAX: u32 = 256 << 20;

/// Enough for the window to be full most of the time.
const MESSAGES_GOOD: usize = 200;
