//! Latencies and rates of a run.
//! In: planned times, arrivals → out: histograms for each measured part, and a row for each second.
//! Pure: time is a parameter, in nanoseconds since the start of the run.
//! Changed here: what is recorded; the report is made in `report`.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Records what was planned within the measured time, which is divided into parts.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// Nanoseconds since the start.
    begin: u64,
    part: u64,
    parts: Vec<RunPart>,
    /// Delay from the planned time of a publication until the generator noticed that it was due, in nanoseconds.
    pub lag: Histogram<u64>,
    second: Histogram<u64>,
    current: Second,
    seconds: Vec<Second>,
}

/// A part of the measured time.
#[derive(Clone, Debug)]
pub struct RunPart {
    pub published: u64,
    /// Delay from the planned time of a publication to each arrival, in nanoseconds.
    pub latency: Histogram<u64>,
    /// Delay from the planned time of a publication to its last arrival, in nanoseconds.
    pub last: Histogram<u64>,
}

/// Figures of one second; latencies are of publications that arrived in it.
#[derive(Clone, Default, PartialEq, Debug, Serialize)]
pub struct Second {
    pub published: u64,
    pub deliveries: u64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// CPU seconds of the server.
    pub server_cpu: Option<f64>,
    pub server_resident_bytes: Option<u64>,
}

impl Recorder {
    /// The measured time begins at `begin` and has `parts` parts of the length `part`.
    pub(crate) fn new(begin: u64, part: u64, parts: usize) -> Self {
        let one = || RunPart { published: 0, latency: histogram(), last: histogram() };
        Self {
            begin,
            part: part.max(1),
            parts: (0..parts).map(|_| one()).collect(),
            lag: histogram(),
            second: histogram(),
            current: Second::default(),
            seconds: Vec::new(),
        }
    }

    /// Sets when the measured time begins.
    pub(crate) fn begin_at(&mut self, begin: u64) {
        self.begin = begin;
    }

    pub(crate) fn is_warm_up(&self, now: u64) -> bool {
        now < self.begin
    }

    /// A publication that was due then.
    pub(crate) fn published(&mut self, planned: u64) {
        self.current.published += 1;
        if let Some(part) = self.part(planned) {
            part.published += 1;
        }
    }

    /// The generator noticed at `now` that a publication was due.
    pub(crate) fn due(&mut self, planned: u64, now: u64) {
        if self.part(planned).is_some() {
            self.lag.saturating_record(now.saturating_sub(planned));
        }
    }

    /// An arrival; `is_last` when all others have it.
    pub(crate) fn delivered(&mut self, planned: u64, now: u64, is_last: bool) {
        let latency = now.saturating_sub(planned);
        self.current.deliveries += 1;
        self.second.saturating_record(latency);
        if let Some(part) = self.part(planned) {
            part.latency.saturating_record(latency);
            if is_last {
                part.last.saturating_record(latency);
            }
        }
    }

    /// Ends a second: returns its row.
    pub(crate) fn end_second(&mut self, server_cpu: Option<f64>, resident: Option<u64>) -> &Second {
        let mut second = std::mem::take(&mut self.current);
        second.p50_ms = milliseconds(self.second.value_at_quantile(0.5));
        second.p99_ms = milliseconds(self.second.value_at_quantile(0.99));
        second.server_cpu = server_cpu;
        second.server_resident_bytes = resident;
        self.second.reset();
        self.seconds.push(second);
        &self.seconds[self.seconds.len() - 1]
    }

    pub(crate) fn parts(&self) -> &[RunPart] {
        &self.parts
    }

    pub(crate) fn seconds(&self) -> &[Second] {
        &self.seconds
    }

    fn part(&mut self, planned: u64) -> Option<&mut RunPart> {
        let since = planned.checked_sub(self.begin)?;
        self.parts.get_mut((since / self.part) as usize)
    }
}

/// Nanoseconds from 1 to a minute, with three significant digits.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MAX_NANOSECONDS, 3).expect("bounds that the library takes")
}

pub fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

const MAX_NANOSECONDS: u64 = 60_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_belongs_to_the_part_in_which_the_publication_was_planned() {
        let mut recorder = Recorder::new(100, 50, 2);
        for planned in [99, 100, 149, 150, 199, 200] {
            recorder.published(planned);
            recorder.due(planned, planned + 1);
            recorder.delivered(planned, planned + 1_000, planned % 2 == 0);
        }
        let counts: Vec<_> = recorder.parts().iter().map(|part| part.published).collect();
        assert_eq!(counts, [2, 2]);
        assert_eq!(recorder.parts()[0].latency.len(), 2);
        assert_eq!(recorder.parts()[0].last.len(), 1);
        assert_eq!(recorder.lag.len(), 4);
        let second = recorder.end_second(None, None);
        assert_eq!((second.published, second.deliveries, second.p99_ms), (6, 6, 0.001));
        assert_eq!(recorder.end_second(Some(0.5), None).published, 0);
    }

    #[test]
    fn an_arrival_before_its_planned_time_or_beyond_a_minute_is_recorded_at_the_limit() {
        let mut recorder = Recorder::new(0, 50, 1);
        recorder.delivered(40, 30, true);
        recorder.delivered(40, u64::MAX, true);
        let latency = &recorder.parts()[0].latency;
        assert_eq!(latency.min(), 0);
        assert!(latency.max() >= MAX_NANOSECONDS);
    }
}
