//! One run against a server: connects, publishes at the planned times, reads, checks.
//! In: a plan → out: a report, also of a run that was interrupted.
//! Uses one thread and, for each group of subscribers, one generator; `check` and `record` are pure.
//! Changed here: the order of events; what counts as right is in `check`, what is shown in `report`.

use anyhow::{Result, ensure};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::check::{Checker, Group};
use crate::choice::Choice;
use crate::generator::{Closed, ConnectTarget, Generator, Profile, PublicationHandler, StallTimer};
use crate::machine;
use crate::plan::{Pace, Plan};
use crate::publish::Publishing;
use crate::record::{Recorder, Second};
use crate::report::{Ending, Report};
use crate::usage::{Usage, UsageMeter};

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub enum RunStatus<'a> {
    Connecting {
        open: usize,
        of: usize,
    },
    /// A second has passed; `is_warm_up` before the measured time.
    Second {
        second: &'a Second,
        is_warm_up: bool,
        lost: u64,
    },
    /// Slow and stopped subscribers read what is left.
    CatchingUp,
}

/// Carries the plan out. Stops early, with a report of what there is, when `stop` becomes true.
///
/// # Errors
/// A plan that does not fit together, or a server that cannot be used: nothing was measured then.
pub fn run(
    plan: &Plan,
    stop: &AtomicBool,
    mut progress: impl FnMut(RunStatus<'_>),
) -> Result<Report> {
    plan.check()?;
    let limit = machine::raise_descriptor_limit();
    let needed = plan.subscribers() as u64 + DESCRIPTORS_OWN;
    ensure!(
        needed <= limit,
        "{} connections need {needed} descriptors of {limit} (ulimit -n)",
        plan.subscribers()
    );
    let mut load = Load::open(plan, stop, &mut progress)?;
    let outcome = load.publish(stop, &mut progress);
    let mut ending = match outcome {
        Ok(()) if stop.load(Ordering::Relaxed) => Ending::Interrupted,
        Ok(()) => Ending::Complete,
        // A run that cannot publish once has measured nothing.
        Err(error) if load.received() == 0 => return Err(error),
        Err(error) => Ending::Failed { reason: format!("{error:#}") },
    };
    progress(RunStatus::CatchingUp);
    if let Err(error) = load.catch_up() {
        ending = Ending::Failed { reason: format!("{error:#}") };
    }
    Ok(load.report(ending))
}

/// A run that is under way.
struct Load<'a> {
    plan: &'a Plan,
    started: Instant,
    checker: Checker,
    /// Generators in the order of `Group::ALL`.
    generators: [Generator; Group::ALL.len()],
    /// The channels of each subscriber.
    subscriptions: Vec<Vec<u32>>,
    names: Vec<String>,
    publishing: Publishing,
    choice: Choice,
    /// Usage of the measured time.
    usage: Usage,
    /// CPU seconds of the server a second ago.
    cpu_before: Option<f64>,
    unsent: u64,
    /// The regular subscriber that is closed next.
    churned: usize,
}

impl<'a> Load<'a> {
    fn open(
        plan: &'a Plan,
        stop: &AtomicBool,
        progress: &mut impl FnMut(RunStatus<'_>),
    ) -> Result<Self> {
        let endpoint = ConnectTarget {
            host: plan.server.host.clone(),
            path: Some(plan.server.path.clone()),
            token: plan.token.clone(),
            tls: plan.server.tls.clone(),
            ..ConnectTarget::default()
        };
        let generator = |group| -> Result<Generator> {
            let mut generator = match group {
                Group::Regular => Generator::new(true)?,
                _ => Generator::with_receive_buffer(BEHIND_BUFFER_BYTES)?,
            };
            generator.set_endpoint(endpoint.clone());
            Ok(generator)
        };
        let generators =
            [generator(Group::Regular)?, generator(Group::Slow)?, generator(Group::Stopped)?];
        let names = plan.channel_names();
        let part = plan.duration.as_nanos() as u64 / plan.parts as u64;
        let recorder = Recorder::new(u64::MAX, part, plan.parts);
        let checker = Checker::new(plan.payloads.clone(), &names, plan.is_latest, recorder);
        let publishing = Publishing::open(plan, &endpoint, &generators[0])?;
        let mut load = Self {
            plan,
            started: Instant::now(),
            checker,
            generators,
            subscriptions: Vec::new(),
            names,
            publishing,
            choice: Choice::new(plan.popularity, plan.channels, SEED),
            usage: Usage::default(),
            cpu_before: plan.pid.and_then(|pid| machine::cpu_seconds(pid).ok()),
            unsent: 0,
            churned: 0,
        };
        for (group, count) in Group::ALL.into_iter().zip(load.counts()) {
            for _ in 0..count {
                let subscriber = load.subscriptions.len();
                let channels = load.choice.subscriptions(subscriber, plan.subscriptions);
                load.checker.add_subscriber(group, plan.encoding, &channels);
                load.subscriptions.push(channels);
            }
        }
        for group in Group::ALL {
            load.connect(group, stop, progress)?;
        }
        Ok(load)
    }

    fn counts(&self) -> [usize; 3] {
        [self.plan.connections, self.plan.slow, self.plan.stopped]
    }

    /// The number of the group's first subscriber among all.
    fn first(&self, group: Group) -> usize {
        self.counts()[..group as usize].iter().sum()
    }

    fn connect(
        &mut self,
        group: Group,
        stop: &AtomicBool,
        progress: &mut impl FnMut(RunStatus<'_>),
    ) -> Result<()> {
        let first = self.first(group);
        let goal = self.counts()[group as usize];
        let mut stall = StallTimer::default();
        while self.generators[group as usize].subscribed() < goal {
            ensure!(!stop.load(Ordering::Relaxed), "interrupted while connecting");
            let plan = self.plan;
            let names = &self.names;
            let subscriptions = &self.subscriptions;
            let generator = &mut self.generators[group as usize];
            generator.open_some(plan.server.socket, goal, |number| {
                profile(plan, names, &subscriptions[first + number])
            })?;
            self.read(group, Some(CONNECT_TURN), true)?;
            let open = self.generators[group as usize].subscribed();
            progress(RunStatus::Connecting { open: first + open, of: plan.subscribers() });
            stall.check(open as u64, || format!("{open} of {goal} connections are subscribed"))?;
        }
        Ok(())
    }

    /// Handles what has arrived at a group; waits at most `timeout` for it.
    fn read(&mut self, group: Group, timeout: Option<Duration>, is_connecting: bool) -> Result<()> {
        let first = self.first(group);
        let started = self.started;
        let mut handler = Handler { checker: &mut self.checker, first, started, is_connecting };
        self.generators[group as usize].turn(timeout, &mut handler)?;
        Ok(())
    }

    /// Reads at most this number of bytes of each connection of a group. Returns the sum.
    fn read_each(&mut self, group: Group, bytes: usize) -> Result<u64> {
        let first = self.first(group);
        let started = self.started;
        let mut handler =
            Handler { checker: &mut self.checker, first, started, is_connecting: false };
        self.generators[group as usize].read_each(bytes, &mut handler)
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn received(&self) -> u64 {
        self.checker.counts(Group::Regular).received
    }

    /// Publishes during the warm-up and the measured time, then waits for what is on its way.
    fn publish(
        &mut self,
        stop: &AtomicBool,
        progress: &mut impl FnMut(RunStatus<'_>),
    ) -> Result<()> {
        let begin = self.now();
        let measured = begin + self.plan.warm_up.as_nanos() as u64;
        self.checker.recorder.begin_at(measured);
        let mut schedule = Schedule::new(begin, self.plan);
        let mut meter = None;
        let mut outcome = self.publish_until(measured, &mut schedule, stop, progress);
        if outcome.is_ok() && !stop.load(Ordering::Relaxed) {
            meter = Some(self.meter()?);
            let end = measured + self.plan.duration.as_nanos() as u64;
            outcome = self.publish_until(end, &mut schedule, stop, progress);
        }
        if let Some(meter) = meter {
            self.usage = meter.stop(self.received(), self.bytes(), self.idle());
        }
        let drained = self.drain(outcome.is_ok());
        outcome.and(drained)
    }

    fn publish_until(
        &mut self,
        end: u64,
        schedule: &mut Schedule,
        stop: &AtomicBool,
        progress: &mut impl FnMut(RunStatus<'_>),
    ) -> Result<()> {
        while !stop.load(Ordering::Relaxed) {
            let now = self.now();
            if now >= end {
                break;
            }
            self.make_due(schedule, now);
            let sent = self.publishing.turn(&mut self.checker)?;
            if schedule.slow.is_due(now) {
                self.read_each(Group::Slow, self.plan.slow_bytes / SLOW_READS as usize)?;
            }
            if schedule.churn.is_due(now) {
                self.churn()?;
            }
            if schedule.second.is_due(now) {
                self.end_second(progress);
            }
            let wait = self.wait(schedule, sent);
            self.read(Group::Regular, Some(wait), false)?;
        }
        Ok(())
    }

    fn end_second(&mut self, progress: &mut impl FnMut(RunStatus<'_>)) {
        let cpu = self.server_cpu();
        let used = cpu.zip(self.cpu_before).map(|(now, before)| now - before);
        self.cpu_before = cpu;
        let resident = self.plan.pid.and_then(|pid| machine::resident_bytes(pid).ok());
        let lost = self.checker.counts(Group::Regular).lost;
        let is_warm_up = self.checker.recorder.is_warm_up(self.now());
        let second = self.checker.recorder.end_second(used, resident);
        progress(RunStatus::Second { second, is_warm_up, lost });
    }

    /// Moves what is due into the publisher's queues.
    fn make_due(&mut self, schedule: &mut Schedule, now: u64) {
        match self.plan.pace {
            Pace::Open { .. } => {
                while let Some(planned) = schedule.publication(now) {
                    self.checker.recorder.due(planned, now);
                    self.publishing.push(self.choice.channel(), planned);
                }
            }
            Pace::Closed { outstanding } => {
                let waiting = self.checker.outstanding() + self.publishing.queued();
                for _ in waiting..outstanding {
                    self.publishing.push(self.choice.channel(), now);
                }
            }
        }
    }

    /// How long the generator may sleep. While publications are on their way it does not: a server on the same machine
    /// would pay for waking it up, some 10 % of a delivery. The poller wakes up to a millisecond late, so it does not
    /// sleep just before a planned time either.
    fn wait(&self, schedule: &Schedule, sent: usize) -> Duration {
        if sent > 0 || self.checker.outstanding() > 0 || !self.publishing.is_idle() {
            Duration::ZERO
        } else {
            schedule.wait(self.now())
        }
    }

    /// Waits for what is on its way, for a bounded time. `can_publish`: publications that wait may still be sent.
    fn drain(&mut self, can_publish: bool) -> Result<()> {
        let mut last = self.received();
        let mut since = Instant::now();
        while self.checker.outstanding() > 0 || can_publish && !self.publishing.is_idle() {
            if can_publish {
                self.publishing.turn(&mut self.checker)?;
            }
            self.read(Group::Regular, Some(ANSWER_WAIT), false)?;
            if self.received() != last {
                last = self.received();
                since = Instant::now();
            }
            // What an overloaded server has not accepted by now was not published.
            if since.elapsed() > QUIET {
                break;
            }
        }
        self.unsent = self.publishing.queued() as u64;
        // What comes now was not expected, or tells why the server is gone.
        loop {
            let bytes = self.bytes();
            self.read(Group::Regular, Some(AFTERWARDS), false)?;
            if self.bytes() == bytes {
                return Ok(());
            }
        }
    }

    /// Slow and stopped subscribers read what is left.
    fn catch_up(&mut self) -> Result<()> {
        for group in [Group::Slow, Group::Stopped] {
            let mut since = Instant::now();
            while !self.checker.has_newest(group) && since.elapsed() < QUIET {
                let bytes = self.read_each(group, CATCH_UP_BYTES)?;
                if bytes > 0 {
                    since = Instant::now();
                } else {
                    self.read(group, Some(ANSWER_WAIT), false)?;
                }
            }
        }
        Ok(())
    }

    /// Closes a connection and opens it again.
    fn churn(&mut self) -> Result<()> {
        let number = self.churned % self.plan.connections.max(1);
        self.churned += 1;
        if self.plan.connections == 0 {
            return Ok(());
        }
        self.checker.closed(number, true);
        let profile = profile(self.plan, &self.names, &self.subscriptions[number]);
        let generator = &mut self.generators[Group::Regular as usize];
        generator.reopen(number, self.plan.server.socket, &profile)
    }

    fn meter(&self) -> Result<UsageMeter> {
        UsageMeter::start(self.plan.pid, self.received(), self.bytes(), self.idle())
    }

    /// Bytes that regular subscribers received.
    fn bytes(&self) -> u64 {
        self.generators[Group::Regular as usize].bytes_received()
    }

    fn idle(&self) -> Duration {
        self.generators[Group::Regular as usize].idle()
    }

    fn server_cpu(&self) -> Option<f64> {
        self.plan.pid.and_then(|pid| machine::cpu_seconds(pid).ok())
    }

    fn report(self, ending: Ending) -> Report {
        let version = self.generators.iter().find_map(Generator::server_version).map(str::to_owned);
        let (recorder, counts) = self.checker.finish();
        Report::new(self.plan, ending, version, &recorder, counts, self.usage, self.unsent)
    }
}

/// Times at which something is due, in nanoseconds since the start.
struct Schedule {
    begin: u64,
    /// Publications per nanosecond; 0 in a closed loop.
    rate: f64,
    published: u64,
    slow: Timer,
    churn: Timer,
    second: Timer,
}

impl Schedule {
    fn new(begin: u64, plan: &Plan) -> Self {
        let rate = match plan.pace {
            Pace::Open { rate } => rate / 1e9,
            Pace::Closed { .. } => 0.0,
        };
        let slow = if plan.slow > 0 { SLOW_READS } else { 0.0 };
        let churn = if plan.connections > 0 { plan.churn } else { 0.0 };
        Self {
            begin,
            rate,
            published: 0,
            slow: Timer::new(begin, slow),
            churn: Timer::new(begin, churn),
            second: Timer::new(begin, 1.0),
        }
    }

    fn planned(&self) -> u64 {
        if self.rate > 0.0 {
            self.begin + (self.published as f64 / self.rate) as u64
        } else {
            u64::MAX
        }
    }

    /// The planned time of the next publication, if it is due.
    fn publication(&mut self, now: u64) -> Option<u64> {
        let planned = self.planned();
        (planned <= now).then(|| {
            self.published += 1;
            planned
        })
    }

    fn wait(&self, now: u64) -> Duration {
        let next = self.planned().min(self.slow.next).min(self.churn.next).min(self.second.next);
        let wait = Duration::from_nanos(next.saturating_sub(now)).min(WAIT_MAX);
        Duration::from_millis(wait.as_millis().saturating_sub(1) as u64)
    }
}

/// Is due again and again.
struct Timer {
    next: u64,
    period: u64,
}

impl Timer {
    /// Creates a timer for `rate` times per second; 0 is never.
    fn new(begin: u64, rate: f64) -> Self {
        if rate > 0.0 {
            let period = (1e9 / rate) as u64;
            Self { next: begin + period, period }
        } else {
            Self { next: u64::MAX, period: 0 }
        }
    }

    fn is_due(&mut self, now: u64) -> bool {
        let is_due = self.next <= now;
        self.next += if is_due { self.period } else { 0 };
        is_due
    }
}

/// Passes what a group receives on to the checker.
struct Handler<'a> {
    checker: &'a mut Checker,
    first: usize,
    started: Instant,
    is_connecting: bool,
}

impl PublicationHandler for Handler<'_> {
    fn publication(&mut self, subscriber: usize, message: &[u8]) -> Result<()> {
        let now = self.started.elapsed().as_nanos() as u64;
        self.checker.receive(self.first + subscriber, message, now);
        Ok(())
    }

    fn subscribed(&mut self, subscriber: usize) {
        self.checker.subscribed(self.first + subscriber);
    }

    fn failed(&mut self, subscriber: usize, error: anyhow::Error) -> Result<()> {
        if self.is_connecting {
            return Err(error);
        }
        let number = self.first + subscriber;
        self.checker.closed(number, false);
        let counts = self.checker.counts_mut(number);
        let is_end = error.downcast_ref::<io::Error>().is_some();
        match error.downcast_ref::<Closed>() {
            Some(closed) => *counts.disconnects.entry(closed.code.unwrap_or(0)).or_default() += 1,
            None if is_end => *counts.disconnects.entry(0).or_default() += 1,
            None => counts.broken(|| format!("{error:#}")),
        }
        Ok(())
    }
}

fn profile(plan: &Plan, names: &[String], channels: &[u32]) -> Profile {
    Profile {
        plain: false,
        encoding: plan.encoding,
        compression: plan.compression,
        channels: channels.iter().map(|channel| names[*channel as usize].clone()).collect(),
    }
}

/// Choices are the same in every run.
const SEED: u64 = 1;
/// Descriptors besides subscribers.
const DESCRIPTORS_OWN: u64 = 100;
const CONNECT_TURN: Duration = Duration::from_millis(100);
/// How often in a second a slow subscriber reads.
const SLOW_READS: f64 = 20.0;
const WAIT_MAX: Duration = Duration::from_millis(100);
const ANSWER_WAIT: Duration = Duration::from_millis(1);
/// Time without an arrival after which nothing more is expected.
const QUIET: Duration = Duration::from_secs(3);
const AFTERWARDS: Duration = Duration::from_millis(200);
const CATCH_UP_BYTES: usize = 64 << 10;
/// The kernel's buffer of a subscriber that falls behind; without a limit a loopback holds megabytes.
const BEHIND_BUFFER_BYTES: usize = 128 << 10;
