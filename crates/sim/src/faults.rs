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
    /// The process tells the others that it leaves, and is replaced at the end of the fault.
    Replace { host: usize },
    /// The only process ends, and another one starts at the end of the fault, with what the memory engine has saved.
    Restart { host: usize, end: ProcessEnd },
    /// A new program goes on with the connections of a host, at the end of the fault; or it ends before it serves, and the old one goes on.
    TakeOver { host: usize, fails: bool },
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
    /// The newest publications of all streams are lost, and neither connections nor epochs tell: a store behind a proxy, without ids of its
    /// replication.
    LoseEnds,
    /// Nothing gets from or to a client.
    CutClient { client: usize, to: bool, from: bool },
    /// The shards of a host take long for each turn.
    SlowShards { host: usize, by: Duration },
    /// The subscriptions of a host move to another place of the engine: it reports gaps where nothing was lost.
    MovedNames { host: usize },
    /// The same, and what is published before its end is lost. Where the other place has a connection of its own, it confirms them before
    /// slow messages of the first place have arrived.
    LostNames { host: usize, own_connection: bool },
    /// Some clients do something at the same moment: they connect again, or end and begin subscriptions.
    Rush { percent: u64, leaves: bool },
    /// Backends publish to one channel much more often than else.
    Burst { channel: usize },
    /// Backends publish nothing, so that no later publication shows what was lost.
    Quiet,
    /// Backends command so many things at the same moment.
    Commands { count: usize },
}

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    /// It closes its connections and saves its engine.
    Planned,
    /// The process is killed; the files that it wrote stay.
    Crash,
    /// The machine stops: bytes that were not synced are lost, and clients miss their pings.
    MachineCrash,
}

impl FaultKind {
    /// The host that it is about, if it is one.
    pub fn host_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::Kill { host, .. }
            | Self::Replace { host }
            | Self::Restart { host, .. }
            | Self::TakeOver { host, .. }
            | Self::Pause { host }
            | Self::ClockJump { host, .. }
            | Self::CutFromEngine { host, .. }
            | Self::SlowFeed { host, .. }
            | Self::SlowEngine { host, .. }
            | Self::MovedNames { host }
            | Self::LostNames { host, .. }
            | Self::SlowShards { host, .. } => Some(host),
            _ => None,
        }
    }
}

impl PlannedFault {
    /// Whether a host cannot do all its work at some time between two times.
    pub fn disturbs(&self, host: usize, from: Duration, until: Duration) -> bool {
        let is_of_host = match &self.kind {
            FaultKind::FeedDown { hosts } => hosts.contains(&host),
            FaultKind::ClockJump { .. }
            | FaultKind::MovedNames { .. }
            | FaultKind::TakeOver { .. } => false,
            kind => kind.clone().host_mut().is_some_and(|it| *it == host),
        };
        is_of_host && self.at <= until && self.at + self.lasts >= from
    }

    /// The client that it is about.
    pub fn client(&self) -> Option<usize> {
        match self.kind {
            FaultKind::CutClient { client, .. } => Some(client),
            _ => None,
        }
    }

    /// Whether messages between hosts and the engine may be lost.
    pub fn loses_messages(&self) -> bool {
        use FaultKind::{CutFromEngine, FailOver, FeedDown, Kill, LoseAll, LostNames};
        use FaultKind::{Replace, Restart, SlowEngine};
        matches!(
            self.kind,
            Kill { .. }
                | Replace { .. }
                | Restart { .. }
                | CutFromEngine { .. }
                | FeedDown { .. }
                | LostNames { .. }
                | SlowEngine { .. }
                | FailOver { .. }
                | LoseAll
        )
    }

    /// Whether the engine forgets what it had acknowledged.
    pub fn loses_data(&self) -> bool {
        use FaultKind::{FailOver, LoseAll, Restart};
        match self.kind {
            Restart { end, .. } => end != ProcessEnd::Planned,
            _ => matches!(self.kind, FailOver { .. } | LoseAll),
        }
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
    (0..hosts).map(move |host| {
        let at = busy.mul_f64(0.8) + pause * host as u32;
        let kind = FaultKind::Replace { host };
        PlannedFault { at, lasts: Duration::from_secs(1), kind }
    })
}

/// A host ends and starts again and again.
pub fn flap(targets: Targets, random: &mut SeededRandom) -> impl Iterator<Item = PlannedFault> {
    let host = random.index(targets.hosts);
    let pause = random.between_ms(14_000, 25_000);
    let count = (targets.busy.as_secs() / pause.as_secs()) as u32;
    (1..=count).map(move |number| {
        let kind = FaultKind::Kill { host, is_silent: false };
        PlannedFault { at: pause * number, lasts: Duration::from_secs(2), kind }
    })
}

/// The only host stops or crashes, and starts again.
pub fn restarts(targets: Targets, random: &mut SeededRandom) -> Vec<PlannedFault> {
    let count = 1 + random.below(4);
    let longest = *random.pick(&[500, 4000, 16_000]);
    let restart = |_| {
        let at = random.between_ms(5000, targets.busy.as_millis() as u64);
        let ends = [ProcessEnd::Planned, ProcessEnd::Crash, ProcessEnd::MachineCrash];
        let kind = FaultKind::Restart { host: 0, end: *random.pick(&ends) };
        PlannedFault { at, lasts: random.between_ms(50, longest), kind }
    };
    (0..count).map(restart).collect()
}

/// New programs go on with some hosts, within the second that commands have to finish.
pub fn takeovers(targets: Targets, random: &mut SeededRandom) -> Vec<PlannedFault> {
    let takeover = |_| {
        let at = random.between_ms(5000, targets.busy.as_millis() as u64);
        let host = random.index(targets.hosts);
        let kind = FaultKind::TakeOver { host, fails: random.percent(20) };
        PlannedFault { at, lasts: random.between_ms(1, 1000), kind }
    };
    (0..4).map(takeover).collect()
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

/// Draws moments at which things of one sort break, perhaps all on one host, while clients and backends are busy or silent.
pub fn draw_moments(targets: Targets, random: &mut SeededRandom) -> Vec<PlannedFault> {
    let themes: &[&[u64]] = if targets.has_engine { &THEMES } else { &THEMES[..MEMORY_THEMES] };
    let busy = targets.busy.as_millis() as u64;
    let mut faults = Vec::new();
    for _ in 0..1 + random.below(3) {
        let start = random.between_ms(6000, (busy * 3 / 4).max(7000));
        let theme = *random.pick(themes);
        let longest = *random.pick(&[500, 4000, 12_000, 25_000]);
        let only_host = random.percent(50).then(|| random.index(targets.hosts));
        for _ in 0..1 + random.below(4) {
            let mut kind = kind(*random.pick(theme), targets, random);
            if let Some(host) = kind.host_mut() {
                *host = only_host.unwrap_or(*host);
            }
            let at = start + random.between_ms(0, 5000);
            faults.push(PlannedFault { at, lasts: random.between_ms(50, longest), kind });
        }
        faults.extend(company(start, targets, random));
        let has_loss = faults.iter().any(PlannedFault::loses_data);
        if has_loss && random.percent(60) {
            // What was stored before the engine lost it is asked for by processes that start later.
            let at = start.saturating_sub(random.between_ms(11_000, 15_000));
            let kind = FaultKind::Commands { count: 6 };
            faults.push(PlannedFault { at, lasts: Duration::ZERO, kind });
            let at = start + random.between_ms(25_000, 45_000);
            let host = random.index(targets.hosts);
            let kind = FaultKind::Replace { host };
            faults.push(PlannedFault { at, lasts: Duration::from_secs(1), kind });
        }
    }
    faults.sort_by_key(|fault| fault.at);
    faults
}

/// Draws a moment in which a host loses some messages several times within seconds, while clients subscribe again and wait for slow answers,
/// and after which nothing is published.
pub fn draw_short_losses(targets: Targets, random: &mut SeededRandom) -> Vec<PlannedFault> {
    let host = random.index(targets.hosts);
    let busy = targets.busy.as_millis() as u64;
    let start = random.between_ms(8000, busy * 3 / 4);
    let mut faults = Vec::new();
    let mut add = |after: Duration, lasts: Duration, kind| {
        faults.push(PlannedFault { at: start + after, lasts, kind });
    };
    if random.percent(70) {
        let by = random.between_ms(300, 3500);
        add(Duration::ZERO, Duration::from_secs(8), FaultKind::SlowEngine { host, by });
    }
    for _ in 0..2 + random.below(4) {
        let lasts = random.between_ms(30, 900);
        let kind = FaultKind::LostNames { host, own_connection: false };
        add(random.between_ms(0, 6000), lasts, kind);
    }
    for _ in 0..2 + random.below(4) {
        let percent = *random.pick(&[30, 60]);
        let leaves = random.percent(40);
        let kind = FaultKind::Rush { percent, leaves };
        add(random.between_ms(0, 6000), Duration::ZERO, kind);
    }
    for channel in 0..3 {
        let lasts = random.between_ms(1000, 7000);
        add(Duration::ZERO, lasts, FaultKind::Burst { channel });
    }
    let quiet_after = random.between_ms(1000, 7000);
    add(quiet_after, Duration::from_secs(60), FaultKind::Quiet);
    faults.sort_by_key(|fault| fault.at);
    faults
}

/// Draws a moment in which the names of a host move while its messages are slow, and perhaps once more, which loses the last publications
/// of a channel: the second gap is reported before what was published ahead of the first one has arrived.
pub fn draw_moved_names(targets: Targets, random: &mut SeededRandom) -> Vec<PlannedFault> {
    let host = random.index(targets.hosts);
    let start = random.between_ms(8000, targets.busy.as_millis() as u64 * 3 / 4);
    let end = start + random.between_ms(2500, 5000);
    let fault = |at, lasts, kind| PlannedFault { at, lasts, kind };
    let by = random.between_ms(2500, 4000);
    let mut faults = vec![
        fault(start, Duration::from_secs(8), FaultKind::SlowFeed { host, by }),
        fault(start, end - start, FaultKind::Burst { channel: 0 }),
        fault(end, Duration::from_secs(60), FaultKind::Quiet),
    ];
    let at = end - random.between_ms(300, 2500);
    faults.push(fault(at, Duration::ZERO, FaultKind::MovedNames { host }));
    faults.push(if random.percent(60) {
        let at = end - random.between_ms(20, 180);
        let kind = FaultKind::LostNames { host, own_connection: true };
        fault(at, random.between_ms(200, 500), kind)
    } else {
        let at = end + random.between_ms(0, 3000);
        fault(at, Duration::ZERO, FaultKind::MovedNames { host })
    });
    faults
}

/// Draws moments in which the streams lose what was published just before. Messages have arrived by then, and those that come later are too
/// few to fill the place of the lost ones before a node reads the top.
pub fn draw_lost_ends(targets: Targets, random: &mut SeededRandom) -> Vec<PlannedFault> {
    let busy = targets.busy.as_millis() as u64;
    let at = random.between_ms(12_000, busy / 2);
    let fault = |after: u64, lasts: u64, kind| {
        let [after, lasts] = [after, lasts].map(Duration::from_millis);
        PlannedFault { at: at + after, lasts, kind }
    };
    let bursts = (0..3).map(|channel| fault(0, 2800, FaultKind::Burst { channel }));
    let quiet = fault(2800, 3200, FaultKind::Quiet);
    bursts.chain([quiet, fault(4800, 1000, FaultKind::LoseEnds)]).collect()
}

/// What clients and backends do while something breaks.
fn company(start: Duration, targets: Targets, random: &mut SeededRandom) -> Vec<PlannedFault> {
    let mut faults = Vec::new();
    let mut add = |at: Duration, lasts: Duration, kind| {
        faults.push(PlannedFault { at, lasts, kind });
    };
    let soon = |random: &mut SeededRandom| start + random.between_ms(0, 7000);
    for _ in 0..random.below(4) {
        let percent = *random.pick(&[30, 100]);
        let leaves = random.percent(60);
        add(soon(random), Duration::ZERO, FaultKind::Rush { percent, leaves });
    }
    for _ in 0..random.below(6) {
        let count = 1 + random.index(4);
        let latest = *random.pick(&[7000, 25_000]);
        let at = start + random.between_ms(0, latest);
        add(at, Duration::ZERO, FaultKind::Commands { count });
    }
    if random.percent(60) {
        let channel = random.index(targets.clients);
        let lasts = random.between_ms(300, 4000);
        add(start, lasts, FaultKind::Burst { channel });
    }
    if random.percent(50) {
        let at = start + random.between_ms(500, 7000);
        add(at, random.between_ms(10_000, 60_000), FaultKind::Quiet);
    }
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
        10 => FaultKind::LoseAll,
        11 => FaultKind::MovedNames { host },
        _ => FaultKind::LostNames { host, own_connection: false },
    }
}

/// Numbers of kinds that happen together. The first ones are possible without a model engine.
const THEMES: [&[u64]; 13] = [
    &[0, 2, 3],
    &[1],
    &[0, 1, 2, 3],
    &[6],
    &[6, 12],
    &[7, 11],
    &[8, 12],
    &[12],
    &[5, 8],
    &[4, 5, 6, 7, 8, 11, 12],
    &[9, 10],
    &[4, 9, 10],
    &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
];
const MEMORY_THEMES: usize = 3;
