//! Faults: what breaks, when, for how long. A new one is a variant of `FaultKind` and a line of `kind`.
//! In: chance, the size of a plan → out: faults.
//! Pure. Never: breaks anything; `world/faults.rs` begins and ends each kind.
//! Changed here: kinds of faults and how often they happen.

use std::time::Duration;

use crate::chance::SeededRandom;
use crate::engine::LAG_MAX;

/// A fault with its time.
#[derive(Clone, Debug)]
pub struct PlannedFault {
    pub at: Duration,
    pub lasts: Duration,
    pub kind: FaultKind,
}

#[derive(Clone, Debug)]
pub enum FaultKind {
    /// The process ends, and another one starts at the end of the fault. Clients notice at once, or by the missing ping.
    Kill { host: usize, is_silent: bool },
    /// The process stands still.
    Pause { host: usize },
    /// The wall clock of a host is set, and set again at the end of the fault.
    ClockJump { host: usize, seconds: i64 },
    /// Messages between a host and the engine wait: calls, answers, PUB/SUB, or several of them.
    CutFromEngine { host: usize, calls: bool, answers: bool, feed: bool },
    /// PUB/SUB connections end and cannot be made again until the end of the fault.
    FeedDown { hosts: Vec<usize> },
    /// PUB/SUB messages to a host come late.
    SlowFeed { host: usize, by: Duration },
    /// Answers of the engine to a host come late.
    SlowEngine { host: usize, by: Duration },
    /// A replica that lacks the last writes takes the place of the master.
    FailOver { lag: Duration },
    /// The engine restarts without data.
    LoseAll,
    /// Nothing gets from or to a client.
    CutClient { client: usize, to: bool, from: bool },
    /// The shards of a host take long for each turn.
    SlowShards { host: usize, by: Duration },
}

impl FaultKind {
    /// The host that it is about, if it is one.
    pub fn host_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::Kill { host, .. }
            | Self::Pause { host }
            | Self::ClockJump { host, .. }
            | Self::CutFromEngine { host, .. }
            | Self::SlowFeed { host, .. }
            | Self::SlowEngine { host, .. }
            | Self::SlowShards { host, .. } => Some(host),
            _ => None,
        }
    }
}

impl PlannedFault {
    /// The client that it is about.
    pub fn client(&self) -> Option<usize> {
        match self.kind {
            FaultKind::CutClient { client, .. } => Some(client),
            _ => None,
        }
    }

    /// Whether the engine forgets what it had acknowledged.
    pub fn loses_data(&self) -> bool {
        matches!(self.kind, FaultKind::FailOver { .. } | FaultKind::LoseAll)
    }
}

/// What faults can happen to.
#[derive(Clone, Copy, Debug)]
pub struct Targets {
    pub hosts: usize,
    pub clients: usize,
    pub has_engine: bool,
    /// Faults begin within this time.
    pub busy: Duration,
}

/// Draws the faults of a plan: most seeds have some kinds of them only.
pub fn draw(targets: Targets, random: &mut SeededRandom) -> Vec<PlannedFault> {
    let kinds = if targets.has_engine { 11 } else { 4 };
    let chosen: Vec<u64> = (0..1 + random.below(4)).map(|_| random.below(kinds)).collect();
    let count = random.below(9);
    let mut faults: Vec<PlannedFault> = (0..count)
        .map(|_| {
            let kind = kind(*random.pick(&chosen), targets, random);
            let at = random.between_ms(5000, targets.busy.as_millis() as u64);
            let longest = *random.pick(&[500, 4000, 16_000]);
            let lasts = random.between_ms(100, longest);
            PlannedFault { at, lasts, kind }
        })
        .collect();
    faults.sort_by_key(|fault| fault.at);
    faults
}

/// One host after the other is replaced.
pub fn deploy(
    hosts: usize,
    busy: Duration,
    random: &mut SeededRandom,
) -> impl Iterator<Item = PlannedFault> {
    let pause = random.between_ms(2000, 9000);
    (0..hosts).map(move |host| PlannedFault {
        at: busy.mul_f64(0.8) + pause * host as u32,
        lasts: Duration::from_secs(1),
        kind: FaultKind::Kill { host, is_silent: false },
    })
}

/// Draws faults of several kinds that overlap on one host, some times in a run.
pub fn draw_overlapping(targets: Targets, random: &mut SeededRandom) -> Vec<PlannedFault> {
    let kinds = if targets.has_engine { 11 } else { 4 };
    let mut faults = Vec::new();
    for _ in 0..2 + random.below(4) {
        let start = random.between_ms(5000, targets.busy.as_millis() as u64);
        let host = random.index(targets.hosts);
        for _ in 0..2 + random.below(2) {
            let mut kind = kind(random.below(kinds), targets, random);
            if let Some(of_kind) = kind.host_mut() {
                *of_kind = host;
            }
            let at = start + random.between_ms(0, 3000);
            faults.push(PlannedFault { at, lasts: random.between_ms(300, 9000), kind });
        }
    }
    faults.sort_by_key(|fault| fault.at);
    faults
}

fn kind(number: u64, targets: Targets, random: &mut SeededRandom) -> FaultKind {
    let host = random.index(targets.hosts);
    let client = random.index(targets.clients);
    match number {
        0 => FaultKind::CutClient { client, to: random.percent(70), from: random.percent(70) },
        1 => FaultKind::ClockJump { host, seconds: *random.pick(&[-90, -7, 7, 90]) },
        2 => FaultKind::Pause { host },
        3 => FaultKind::SlowShards { host, by: random.between_ms(50, 1500) },
        4 => FaultKind::Kill { host, is_silent: random.percent(30) },
        5 => {
            let calls = random.percent(60);
            let answers = random.percent(60);
            FaultKind::CutFromEngine { host, calls, answers, feed: random.percent(60) }
        }
        6 => {
            let hosts = (0..targets.hosts).filter(|_| random.percent(70)).collect();
            FaultKind::FeedDown { hosts }
        }
        7 => FaultKind::SlowFeed { host, by: random.between_ms(100, 4000) },
        8 => FaultKind::SlowEngine { host, by: random.between_ms(100, 3500) },
        9 => FaultKind::FailOver { lag: random.between_ms(0, LAG_MAX.as_millis() as u64) },
        _ => FaultKind::LoseAll,
    }
}
