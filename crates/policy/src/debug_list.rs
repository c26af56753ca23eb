//! Users, channels and addresses whose events are logged at level debug, whatever `log.level` says.
//! In: changes with their end, Unix time → out: whether a connection or a channel is listed.
//! Uses: one lock, and a switch that is read before it. Never: sessions, other nodes.
//! Changed here: limits of the list. `flight_log.rs` writes the lines, `node/diagnostics.rs` tells other nodes.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::options::{DebugForOptions, SUBJECTS_MAX};
use fanwire_broker::DebugForCommand;
use fanwire_telemetry::excerpt;
use parking_lot::RwLock;

/// The list of a node. While it is empty, a look costs one atomic load.
#[derive(Debug, Default)]
pub struct DebugList {
    is_used: AtomicBool,
    subjects: RwLock<Subjects>,
}

/// Subjects with the Unix second at which they end, or `NEVER` for those of the configuration.
#[derive(Debug, Default)]
struct Subjects {
    users: BTreeMap<String, u64>,
    channels: BTreeMap<String, u64>,
    addresses: BTreeMap<IpAddr, u64>,
}

/// A subject of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugSubject {
    /// `user`, `channel` or `address`.
    pub kind: &'static str,
    pub name: String,
    /// Unix second; `None` for one of the configuration.
    pub end: Option<u64>,
}

impl DebugList {
    /// A list with the subjects of the configuration.
    pub fn of(options: &DebugForOptions) -> Self {
        let list = Self::default();
        list.configure(options);
        list
    }

    /// Replaces the subjects of the configuration.
    pub fn configure(&self, options: &DebugForOptions) {
        let DebugForOptions { users, channels, addresses } = options.clone();
        self.change(|subjects| {
            subjects.retain(|end| end != NEVER);
            subjects.set(&DebugForCommand { users, channels, addresses, until: NEVER });
        });
    }

    /// Adds or removes subjects. Returns false if the list has no room for them; then nothing has changed.
    pub fn apply(&self, command: &DebugForCommand) -> bool {
        self.change(|subjects| {
            let new = if command.until == 0 { 0 } else { command.len() };
            let has_room = subjects.len() + new <= SUBJECTS_MAX;
            if has_room {
                subjects.set(command);
            }
            has_room
        })
    }

    /// Removes what has ended.
    pub fn tick(&self, unix: u64) {
        if self.is_used() {
            self.change(|subjects| subjects.retain(|end| end > unix));
        }
    }

    pub fn is_used(&self) -> bool {
        self.is_used.load(Relaxed)
    }

    /// Whether one of these is listed; "" and `None` are not.
    pub fn lists(&self, user: &str, channel: &str, address: Option<IpAddr>) -> bool {
        let subjects = self.subjects.read();
        subjects.users.contains_key(user)
            || subjects.channels.contains_key(channel)
            || address.is_some_and(|address| subjects.addresses.contains_key(&address))
    }

    /// Logs a publication into a listed channel.
    pub fn log_publication(&self, channel: &str, bytes: usize) {
        if self.is_used() && self.lists("", channel, None) {
            let channel = excerpt(channel);
            tracing::debug!(target: DEBUG_FOR_TARGET, channel, bytes, "publication");
        }
    }

    /// All subjects, by kind and name.
    pub fn subjects(&self) -> Vec<DebugSubject> {
        let subjects = self.subjects.read();
        let subject = |kind, name: String, end: &u64| {
            let end = Some(*end).filter(|end| *end != NEVER);
            DebugSubject { kind, name, end }
        };
        let users = subjects.users.iter().map(|(name, end)| subject("user", name.clone(), end));
        let channels =
            subjects.channels.iter().map(|(name, end)| subject("channel", name.clone(), end));
        let addresses =
            subjects.addresses.iter().map(|(name, end)| subject("address", name.to_string(), end));
        users.chain(channels).chain(addresses).collect()
    }

    /// Commands that give a new node the subjects of other nodes: one for each end.
    pub fn commands(&self) -> Vec<DebugForCommand> {
        let mut commands = BTreeMap::new();
        for DebugSubject { kind, name, end } in self.subjects() {
            let Some(until) = end else { continue };
            let empty = DebugForCommand { until, ..DebugForCommand::default() };
            let command: &mut DebugForCommand = commands.entry(until).or_insert(empty);
            match kind {
                "user" => command.users.push(name),
                "channel" => command.channels.push(name),
                _ => command.addresses.push(name),
            }
        }
        commands.into_values().collect()
    }

    fn change<T>(&self, change: impl FnOnce(&mut Subjects) -> T) -> T {
        let mut subjects = self.subjects.write();
        let changed = change(&mut subjects);
        self.is_used.store(subjects.len() > 0, Relaxed);
        changed
    }
}

impl Subjects {
    fn len(&self) -> usize {
        self.users.len() + self.channels.len() + self.addresses.len()
    }

    fn retain(&mut self, is_kept: impl Fn(u64) -> bool) {
        self.users.retain(|_, end| is_kept(*end));
        self.channels.retain(|_, end| is_kept(*end));
        self.addresses.retain(|_, end| is_kept(*end));
    }

    /// Sets the end of subjects, 0 to remove them; but not of those of the configuration.
    fn set(&mut self, command: &DebugForCommand) {
        fn set<K: Ord>(subjects: &mut BTreeMap<K, u64>, name: K, until: u64) {
            match subjects.get(&name) {
                Some(&NEVER) => {}
                _ if until == 0 => drop(subjects.remove(&name)),
                _ => drop(subjects.insert(name, until)),
            }
        }
        let names = |names: &[String]| -> Vec<String> {
            names.iter().filter(|name| !name.is_empty()).cloned().collect()
        };
        names(&command.users).into_iter().for_each(|it| set(&mut self.users, it, command.until));
        let channels = names(&command.channels).into_iter();
        channels.for_each(|it| set(&mut self.channels, it, command.until));
        let addresses = command.addresses.iter().filter_map(|text| text.parse::<IpAddr>().ok());
        addresses.for_each(|it| set(&mut self.addresses, it.to_canonical(), command.until));
    }
}

/// The target of the lines, for filters of the subscriber.
pub const DEBUG_FOR_TARGET: &str = "fanwire::debug_for";

const NEVER: u64 = u64::MAX;

#[cfg(test)]
mod tests;
