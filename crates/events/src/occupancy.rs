//! Occupied channels of all nodes: each node reports its own to the oldest one, which tells the backend (docs/decisions/0023).
//! In: messages of nodes, the nodes that live, the time → out: events about channels, messages to nodes.
//! Uses values only. Never: the time other than that of its caller, the bus, the queue of events.
//! Changed here: which node tells, when it tells all channels again, the delay before a channel is vacated.

mod peer_channels;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_node::OccupancyReport;
use parking_lot::Mutex;

use crate::event::{EventType, OutgoingEvent};
use crate::own_channels::OwnChannels;
use peer_channels::PeerChannels;

#[derive(Debug)]
pub(crate) struct Occupancy {
    uid: String,
    started_ms: u64,
    vacated_delay: Duration,
    /// The nodes that announced themselves, this one included.
    peers: BTreeMap<String, PeerChannels>,
    /// Time at which this node first received its own announcement: from then on it hears older nodes.
    heard_itself_at: Option<Instant>,
    /// Time at which it last did. A node that does not is cut off: another one may tell the backend.
    connected_at: Option<Instant>,
    announced_at: Option<Instant>,
    reporting: Reporting,
    /// The channels that the backend knows; `None` while another node reports to it.
    told: Option<Told>,
    output: Output,
}

/// The state of the node around it.
pub(crate) struct Surroundings<'a> {
    pub(crate) now: Instant,
    /// Uids of the nodes that live.
    pub(crate) present: &'a BTreeSet<String>,
    pub(crate) is_in_cluster: bool,
    /// Events that fit into the queue.
    pub(crate) room: usize,
    /// See [`OccupancyReport::told`].
    pub(crate) told: u64,
    pub(crate) own: &'a Mutex<OwnChannels>,
}

/// Events for the backend, in their order, and messages to a node or to all.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) events: Vec<OutgoingEvent>,
    pub(crate) messages: Vec<(Option<String>, OccupancyReport)>,
}

/// Reports of this node.
#[derive(Debug, Default)]
struct Reporting {
    to: Option<String>,
    number: u64,
    sent_at: Option<Instant>,
    /// All channels are being sent; those up to this name are.
    all_after: Option<String>,
}

#[derive(Debug, Default)]
struct Told {
    occupied: BTreeSet<Arc<str>>,
    /// Those that have no subscriber any more, and since when.
    empty: HashMap<Arc<str>, Instant>,
    recount: Recount,
    /// Start of the last recount.
    recounted_at: Option<Instant>,
}

/// Tells all occupied channels again, because the backend may have missed events or got those of another node.
#[derive(Debug, Default)]
enum Recount {
    #[default]
    Due,
    After(Option<Arc<str>>),
    Done,
}

impl Occupancy {
    pub(crate) fn new(uid: String, started_ms: u64, vacated_delay: Duration) -> Self {
        let peers = BTreeMap::from([(uid.clone(), PeerChannels::new(started_ms))]);
        Self {
            uid,
            started_ms,
            vacated_delay,
            peers,
            heard_itself_at: None,
            connected_at: None,
            announced_at: None,
            reporting: Reporting::default(),
            told: None,
            output: Output::default(),
        }
    }

    /// Tells all channels again, because an event about a channel was lost, or a backend asks.
    pub(crate) fn recount(&mut self) {
        if let Some(told) = &mut self.told {
            told.recount = Recount::Due;
        }
    }

    /// Handles a message of a node.
    pub(crate) fn receive(&mut self, from: &str, report: OccupancyReport, now: Instant) {
        if report.wants_recount {
            self.recount();
        } else if report.wants_all {
            if self.reporting.to.as_deref() == Some(from) {
                self.reporting.to = None; // the next report has all channels
            }
        } else if report.number == 0 {
            if from == self.uid {
                self.heard_itself_at.get_or_insert(now);
                self.connected_at = Some(now);
                return;
            }
            let started_ms = report.started_ms;
            let peer =
                self.peers.entry(from.to_owned()).or_insert_with(|| PeerChannels::new(started_ms));
            if std::mem::replace(&mut peer.told, report.told) != report.told {
                self.recount();
            }
        } else if let Some(peer) = self.peers.get_mut(from) {
            let changed = peer.apply(report);
            changed.into_iter().for_each(|channel| self.update(channel, now));
        }
    }

    /// Does what is due: chooses the node that tells, reports to it, or tells the backend.
    pub(crate) fn tick(&mut self, around: &Surroundings<'_>) -> Output {
        let now = around.now;
        self.forget_absent(around);
        let leader = self.leader(around);
        let leads = leader.as_ref() == Some(&self.uid);
        if !leads && self.told.take().is_some() {
            self.peers.values_mut().for_each(PeerChannels::forget_channels);
            self.reporting.to = None;
        }
        self.report(leader, around);
        if around.is_in_cluster {
            self.announce(around);
        }
        if leads {
            self.lead(around);
        }
        if let Some(told) = &mut self.told {
            let delay = self.vacated_delay;
            for (channel, _) in told.empty.extract_if(|_, since| *since + delay <= now) {
                told.occupied.remove(&channel);
                self.output.events.push(OutgoingEvent::of_channel(EventType::Vacated, &channel));
            }
            told.tell_again(around, &mut self.output.events);
        }
        std::mem::take(&mut self.output)
    }

    /// Removes the nodes that are gone, with their channels.
    fn forget_absent(&mut self, around: &Surroundings<'_>) {
        let uid = &self.uid;
        let is_gone =
            |other: &String, _: &mut PeerChannels| other != uid && !around.present.contains(other);
        let gone: Vec<PeerChannels> =
            self.peers.extract_if(.., is_gone).map(|(_, peer)| peer).collect();
        for peer in gone {
            if peer.told > 0 {
                self.recount();
            }
            peer.into_channels().into_iter().for_each(|channel| self.update(channel, around.now));
        }
    }

    /// Whether another node may tell the backend by now.
    pub(crate) fn is_cut_off(&self, around: &Surroundings<'_>) -> bool {
        let is_old = |at: Instant| at + CUT_TIME < around.now;
        around.is_in_cluster && self.connected_at.is_none_or(is_old)
    }

    /// The oldest node. This one waits at its start until older ones must have announced themselves.
    fn leader(&self, around: &Surroundings<'_>) -> Option<String> {
        let has_listened = |since: Instant| since + LISTEN_TIME <= around.now;
        let may_lead = !self.is_cut_off(around) && self.heard_itself_at.is_none_or(has_listened);
        let others = self.peers.iter().filter(|(uid, _)| may_lead || **uid != self.uid);
        others.min_by_key(|(uid, peer)| (peer.started_ms, *uid)).map(|(uid, _)| uid.clone())
    }

    fn announce(&mut self, around: &Surroundings<'_>) {
        let is_recent = |at: Instant| around.now < at + ANNOUNCE_INTERVAL;
        if !self.announced_at.is_some_and(is_recent) {
            self.announced_at = Some(around.now);
            let started_ms = self.started_ms;
            let told = around.told;
            let report = OccupancyReport { started_ms, told, ..OccupancyReport::default() };
            self.output.messages.push((None, report));
        }
    }

    /// Sends changes of this node's channels to the leader: to a new one, and to one that asks, all of them.
    fn report(&mut self, leader: Option<String>, around: &Surroundings<'_>) {
        let Some(leader) = leader else { return };
        let is_first = self.reporting.to.as_ref() != Some(&leader);
        if is_first {
            around.own.lock().forget_changes();
            self.reporting.all_after = Some(String::new());
            self.reporting.to = Some(leader.clone());
        }
        for index in 0..PARTS_MAX {
            let (occupied, vacant) = around.own.lock().take_changes(PART_CHANNELS);
            let mut report = OccupancyReport { occupied, vacant, ..OccupancyReport::default() };
            report.is_first = is_first && index == 0;
            if let Some(after) = self.reporting.all_after.take() {
                let after = Some(&*after).filter(|_| !report.is_first);
                let page = around.own.lock().page(after, PART_CHANNELS);
                report.is_last = page.len() < PART_CHANNELS;
                self.reporting.all_after = page.last().filter(|_| !report.is_last).cloned();
                report.occupied.extend(page);
            }
            let is_recent = |at: Instant| around.now < at + ANNOUNCE_INTERVAL;
            let is_empty = report.occupied.is_empty() && report.vacant.is_empty();
            if is_empty && !report.is_last && self.reporting.sent_at.is_some_and(is_recent) {
                return;
            }
            self.reporting.number += 1;
            self.reporting.sent_at = Some(around.now);
            report.number = self.reporting.number;
            if leader == self.uid {
                self.receive(&leader, report, around.now)
            } else {
                self.output.messages.push((Some(leader.clone()), report))
            }
        }
    }

    /// Begins to tell when every node has reported its channels, and asks those that have not.
    fn lead(&mut self, around: &Surroundings<'_>) {
        for (uid, peer) in &mut self.peers {
            if *uid != self.uid && peer.should_ask(around.now, ANNOUNCE_INTERVAL) {
                let report = OccupancyReport { wants_all: true, ..OccupancyReport::default() };
                self.output.messages.push((Some(uid.clone()), report));
            }
        }
        if self.told.is_none() && self.peers.values().all(PeerChannels::is_complete) {
            let occupied = self.peers.values().flat_map(PeerChannels::channels).cloned().collect();
            self.told = Some(Told { occupied, ..Told::default() });
        }
    }

    /// The subscribers of a channel on some node have come or gone.
    fn update(&mut self, channel: Arc<str>, now: Instant) {
        let Some(told) = &mut self.told else { return };
        if !self.peers.values().any(|peer| peer.has(&channel)) {
            if told.occupied.contains(&channel) {
                told.empty.entry(channel).or_insert(now);
            }
            return;
        }
        told.empty.remove(&channel);
        if told.occupied.insert(Arc::clone(&channel)) {
            self.output.events.push(OutgoingEvent::of_channel(EventType::Occupied, &channel));
        }
    }
}

impl Told {
    /// Tells the next channels of a recount, as many as fit into the queue.
    fn tell_again(&mut self, around: &Surroundings<'_>, events: &mut Vec<OutgoingEvent>) {
        let mut room = around.room.saturating_sub(events.len()).min(RECOUNT_CHANNELS);
        let is_recent = |at: Instant| around.now < at + RECOUNT_INTERVAL;
        let may_start = room > 0 && !self.recounted_at.is_some_and(is_recent);
        if matches!(self.recount, Recount::Due) && may_start {
            self.recounted_at = Some(around.now);
            events.push(OutgoingEvent::new(EventType::RecountStarted));
            (self.recount, room) = (Recount::After(None), room - 1);
        }
        let Recount::After(after) = &self.recount else { return };
        let after = after.as_deref().map_or(Unbounded, Excluded);
        let page: Vec<_> =
            self.occupied.range::<str, _>((after, Unbounded)).take(room).cloned().collect();
        events.extend(page.iter().map(|it| OutgoingEvent::of_channel(EventType::Occupied, it)));
        if page.len() < room {
            events.push(OutgoingEvent::new(EventType::RecountEnded));
            self.recount = Recount::Done;
        } else if let Some(last) = page.into_iter().last() {
            self.recount = Recount::After(Some(last));
        }
    }
}

/// Interval of announcements, and of reports without changes, by which the loss of the last one is noticed.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(2);
/// How long a node that started listens for older ones: three announcements and a margin.
const LISTEN_TIME: Duration = Duration::from_secs(7);
/// A node that did not hear itself for so long is cut off. Others replace it later: after the time to listen, or 10 s of silence.
const CUT_TIME: Duration = Duration::from_secs(6);
/// Channels of one report, besides the changes; about 64 KiB.
const PART_CHANNELS: usize = 1000;
/// Reports in one tick: 50,000 channels a second.
const PARTS_MAX: usize = 10;
/// Time between the starts of two recounts.
const RECOUNT_INTERVAL: Duration = Duration::from_secs(5);
/// Channels of a recount in one tick.
const RECOUNT_CHANNELS: usize = 10_000;

#[cfg(test)]
mod tests;
