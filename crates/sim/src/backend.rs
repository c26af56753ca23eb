//! Backends: they publish with retries and idempotency keys, and command connections through the server API.
//! In: chance, results of calls → out: jobs with their times.
//! Pure. Never: calls a node; `world/commands.rs` does.
//! Changed here: what backends want. What has to follow from a command is said in `checkers/commands.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::chance::SeededRandom;
use crate::plan::SeedPlan;

/// Work of a backend.
#[derive(Clone, Debug)]
pub enum Job {
    /// It is time for another publication.
    NextPublication,
    Publish(Publishing),
    /// It is time for another command.
    NextCommand,
    Give(BackendCommand),
    /// A command has had the time to take effect.
    Verify(GivenCommand),
}

/// A publication on its way into a channel.
#[derive(Clone, Debug)]
pub struct Publishing {
    pub channel: String,
    pub number: u64,
    /// Value of its tag.
    pub kind: &'static str,
    /// With a key the backend tries again until it succeeds. Other channels have the same keys. "" = none.
    pub key: String,
    pub tries: u32,
    /// The host to call; `None` = any.
    pub host: Option<usize>,
}

/// A command for connections, as it was given.
#[derive(Clone, Debug)]
pub struct GivenCommand {
    pub kind: BackendCommand,
    pub host: usize,
    pub given_at: Duration,
    pub done_at: Duration,
    /// The publication that the backend sent when a subscribe was answered.
    pub marker: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendCommand {
    /// The connections of the user are to end.
    Disconnect(String),
    /// A subscription of the user is to end.
    Unsubscribe { user: String, channel: String },
    /// The connections of the user are to have one more subscription.
    Subscribe(String),
    /// The connections of the user are to end because their time is over.
    Expire(String),
    /// The user is not to connect any more.
    Block(String),
    /// The user may connect again.
    Unblock(String),
    /// Subscription tokens of the user for the channel are invalid if they are older than this Unix second.
    Invalidate { user: String, channel: String, issued_before: u64 },
    /// A host is to lose all of its clients; without one, all hosts are to have the average.
    SendAway(Option<usize>),
}

/// The result of a call.
pub enum CommandResult {
    Published { publishing: Publishing, is_done: bool },
    Commanded { command: GivenCommand, is_done: bool },
}

pub struct Backend {
    pub random: SeededRandom,
    channels: Vec<String>,
    every_ms: u64,
    commands: u64,
    blocks: u64,
    silences: u64,
    users: u64,
    /// Hosts that send clients away; 0 = none.
    rebalanced: usize,
    last_number: u64,
    /// Publications of each channel.
    counts: BTreeMap<String, u64>,
    /// A channel without publications until then.
    silent: (String, Duration),
    /// No channel has publications until then.
    pub quiet_until: Duration,
}

impl Backend {
    pub fn new(plan: &SeedPlan, random: SeededRandom) -> Self {
        Self {
            random,
            channels: plan.channel_names(),
            every_ms: plan.publish_every_ms,
            commands: plan.habits.commands,
            blocks: plan.habits.blocks,
            silences: plan.habits.silences,
            users: (plan.clients as u64).min(5),
            rebalanced: plan.tuning.rebalance.map_or(0, |_| plan.hosts),
            last_number: 0,
            counts: BTreeMap::new(),
            silent: (String::new(), Duration::ZERO),
            quiet_until: Duration::ZERO,
        }
    }

    pub fn first_jobs(&mut self) -> Vec<(Duration, Job)> {
        let mut jobs = vec![(Duration::from_millis(500), Job::NextPublication)];
        if self.commands + self.blocks > 0 || self.rebalanced > 0 {
            jobs.push((Duration::from_secs(6), Job::NextCommand));
        }
        jobs
    }

    /// The time until the next publication.
    pub fn pause(&mut self) -> Duration {
        self.random.between_ms(1, self.every_ms * 2)
    }

    /// Publications in one channel, much more often than else, until a time.
    pub fn burst(
        &mut self,
        channel: usize,
        now: Duration,
        until: Duration,
    ) -> Vec<(Duration, Job)> {
        let channel = self.channels[channel % self.channels.len()].clone();
        let mut jobs = Vec::new();
        let mut at = now;
        while at < until {
            jobs.push((at, Job::Publish(self.publication(channel.clone()))));
            at += self.random.between_ms(1, BURST_MS * 2);
        }
        jobs
    }

    /// The next publication, unless its channel has a silence.
    pub fn next_publication(&mut self, now: Duration) -> Option<Publishing> {
        if now < self.quiet_until {
            return None;
        }
        let channel = self.random.pick(&self.channels).clone();
        if self.random.percent(self.silences / 10) {
            self.silent = (channel.clone(), now + self.random.between_ms(3000, 25_000));
        }
        let (silent, until) = &self.silent;
        if *silent == channel && now < *until {
            return None;
        }
        Some(self.publication(channel))
    }

    pub fn publication(&mut self, channel: String) -> Publishing {
        self.last_number += 1;
        let number = self.last_number;
        let kind = self.random.pick(&["a", "b", "b", "b"]);
        let count = self.counts.entry(channel.clone()).or_default();
        *count += 1;
        let key = if self.random.percent(70) { format!("p{count}") } else { String::new() };
        Publishing { channel, number, kind, key, tries: 0, host: None }
    }

    /// The next command, and the time until the one after it.
    pub fn next_command(&mut self, unix: u64) -> (BackendCommand, Duration) {
        let user = format!("u{}", self.random.below(self.users));
        let of_kind = |kind: &str| {
            let channels = self.channels.iter().filter(|channel| channel.starts_with(kind));
            channels.cloned().collect::<Vec<_>>()
        };
        let streams = of_kind("stream:");
        let private = of_kind("$");
        let habits = (self.commands + self.blocks).max(1);
        let wants_block = self.random.below(habits) < self.blocks;
        let kind = match (wants_block, self.random.below(4)) {
            _ if self.rebalanced > 0 && self.random.percent(25) => {
                let is_one = self.random.percent(30);
                BackendCommand::SendAway(is_one.then(|| self.random.index(self.rebalanced)))
            }
            (true, 0 | 1) => BackendCommand::Block(user),
            (true, _) => {
                let channel = self.random.pick(&private).clone();
                BackendCommand::Invalidate { user, channel, issued_before: unix }
            }
            (false, 0) => BackendCommand::Disconnect(user),
            (false, 1) => {
                let channel = self.random.pick(&streams).clone();
                BackendCommand::Unsubscribe { user, channel }
            }
            (false, 2) => BackendCommand::Subscribe(user),
            (false, _) => BackendCommand::Expire(user),
        };
        let busy = self.commands.max(self.blocks).max(1);
        (kind, self.random.between_ms(500, 120_000 / busy))
    }
}

/// Milliseconds between two publications of a burst, on average.
const BURST_MS: u64 = 60;
/// The channel to which backends subscribe connections.
pub const ORDERED: &str = "stream:ordered";
/// The code with which backends disconnect.
pub const BACKEND_CODE: u16 = 4001;
