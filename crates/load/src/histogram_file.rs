//! Files of latencies in the log format of HdrHistogram, and sums of several.
//! In: histograms ↔ out: text with a base64 line for each, which the tools of HdrHistogram read.
//! Uses hdrhistogram. Never: opens files.
//! Changed here: what such a file has.

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogHistogram, IntervalLogIterator, IntervalLogWriterBuilder, LogEntry,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};
use std::time::{Duration, SystemTime};

use crate::record::histogram;

/// Writes a log with one interval; values are nanoseconds, maxima are shown in milliseconds.
///
/// # Errors
/// None that a histogram in memory has.
pub fn write(values: &Histogram<u64>, duration: Duration) -> Result<Vec<u8>> {
    let mut log = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut writer = IntervalLogWriterBuilder::new()
        .add_comment("fanwire bench: latency of deliveries in nanoseconds")
        .with_start_time(SystemTime::now())
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut log, &mut serializer)?;
    let written = writer.write_histogram(values, Duration::ZERO, duration, None);
    written.map_err(|error| anyhow::anyhow!("writing a histogram: {error:?}"))?;
    Ok(log)
}

/// The sum of all intervals of a log.
///
/// # Errors
/// No such log, or no interval in it.
pub fn read(log: &[u8]) -> Result<Histogram<u64>> {
    let mut sum = histogram();
    let mut intervals = 0;
    for entry in IntervalLogIterator::new(log) {
        let Ok(entry) = entry else { bail!("no log of HdrHistogram") };
        if let LogEntry::Interval(interval) = entry {
            sum.add(decode(&interval)?).context("values beyond a minute")?;
            intervals += 1;
        }
    }
    ensure!(intervals > 0, "no histogram in the log");
    Ok(sum)
}

fn decode(interval: &IntervalLogHistogram<'_>) -> Result<Histogram<u64>> {
    let bytes = STANDARD.decode(interval.encoded_histogram())?;
    let decoded = Deserializer::new().deserialize(&mut &bytes[..]);
    decoded.map_err(|error| anyhow::anyhow!("a histogram that cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_merge_to_the_sum_of_their_values() {
        let mut one = histogram();
        let mut two = histogram();
        (1..=1_000u64).for_each(|value| one.record(value * 1_000).expect("within the bounds"));
        (1..=1_000u64).for_each(|value| two.record(value * 9_000).expect("within the bounds"));
        let second = Duration::from_secs(1);
        let logs = [&one, &two].map(|one| write(one, second).expect("a log")).concat();
        let sum = read(&logs).expect("both");
        one.add(&two).expect("the same bounds");
        assert_eq!(sum, one);
    }

    #[test]
    fn an_empty_histogram_is_a_log_and_garbage_is_none() {
        let log = write(&histogram(), Duration::ZERO).expect("a log");
        assert!(read(&log).expect("the same").is_empty());
        for garbage in [&b""[..], b"hello\n", b"1,2,3,4\n", &log[..log.len() - 9]] {
            assert!(read(garbage).is_err(), "{}", garbage.escape_ascii());
        }
    }
}
