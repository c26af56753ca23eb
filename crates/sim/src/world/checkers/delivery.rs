//! Nothing is lost without being told, nothing comes twice, the order of a channel is kept, and `recovered: true` is true.
//! In: results of subscribes, publications, as clients saw them → out: a broken promise.
//! Uses the truth: which publication has which position, which epoch continues which. Never: rules of recovery of the product.
//! Changed here: what a subscriber is promised.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use fanwire_broker::Position;
use fanwire_broker::map::ChangesQuery;
use fanwire_node::Page;
use fanwire_protocol::{Publication, SubscribeResult};

use super::{Checkers, had_engine_faults, had_faults, was_feed_down};
use crate::backend::ORDERED;
use crate::client::{Claim, ClientState, MapCopy, Seen, SimulatedClient, SubscriptionState};
use crate::truth::{Truth, number_of};
use crate::world::World;

/// The subscriptions of all clients, by client and channel.
#[derive(Default)]
pub(super) struct DeliveryCheck {
    subscriptions: BTreeMap<usize, BTreeMap<String, Followed>>,
    /// What clients received in the channel to which backends subscribe them.
    ordered: BTreeSet<(usize, u64)>,
}

/// What a subscribe asked for.
struct Asked<'a> {
    claim: Option<&'a Claim>,
    filter: &'a str,
    at: Instant,
    history_size: usize,
    history_ttl: Duration,
    /// The memory engine was saved whenever its process ended.
    keeps_epochs: bool,
    /// The wall clock was set, so that a process cannot know how long a snapshot has waited.
    has_wrong_clock: bool,
}

/// Where a subscription is.
struct Followed {
    /// `None` for a subscription without position.
    position: Option<Claim>,
    /// The last place among publications without offsets.
    place: Option<usize>,
    /// The engine has forgotten results of publishes, so that backends may repeat them.
    may_repeat: bool,
    filter: String,
}

impl DeliveryCheck {
    /// Whether a client received a publication in the channel of orders.
    pub(super) fn has_ordered(&self, client: usize, number: u64) -> bool {
        self.ordered.contains(&(client, number))
    }
}

impl Checkers {
    pub(super) fn check_delivery(&mut self, world: &World, client: usize, seen: &Seen) {
        let truth = world.engine.truth.lock();
        let subscriptions = self.delivery.subscriptions.entry(client).or_default();
        match seen {
            Seen::Subscribed { channel, claim, filter, asked_at, result } => {
                let asked = Asked {
                    claim: claim.as_ref(),
                    filter,
                    at: world.instant_of(*asked_at),
                    history_size: world.plan.tuning.history_size,
                    history_ttl: world.plan.tuning.history_ttl,
                    keeps_epochs: !self.has_engine && !self.has_lost_data,
                    has_wrong_clock: !self.has_engine && !world.hosts[0].stepped_at.is_zero(),
                };
                let copy = world.clients[client].subscriptions.get(channel);
                let checked = match copy.and_then(|it| it.map.as_ref()) {
                    Some(copy) => check_copy(&truth, copy, result),
                    None => check_result(&truth, channel, &asked, result),
                };
                let newest = result.publications.last().map_or(result.offset, |it| it.offset);
                let epoch = result.epoch.clone();
                let is_positioned = result.positioned || channel.starts_with("map:");
                let position = is_positioned.then_some(Claim { offset: newest, epoch });
                let may_repeat = self.has_lost_data;
                let filter = (*filter).clone();
                let followed = Followed { position, place: None, may_repeat, filter };
                subscriptions.insert(channel.clone(), followed);
                if let Err(text) = checked {
                    self.broken_for(RECOVERED, client, channel, text);
                }
            }
            Seen::Received { channel, publication } => {
                if channel == ORDERED {
                    let number = number_of(publication);
                    self.delivery.ordered.extend(number.map(|number| (client, number)));
                }
                let Some(followed) = subscriptions.get_mut(channel) else {
                    let text = format!("{publication:?} outside of a subscription");
                    return self.broken_for(ONCE, client, channel, text);
                };
                if let Err(text) = followed.receive(&truth, channel, publication) {
                    self.broken_for(ONCE, client, channel, text);
                }
            }
            Seen::Unsubscribed { channel, .. } | Seen::Left(channel) => {
                subscriptions.remove(channel);
            }
            Seen::Disconnected { .. } => subscriptions.clear(),
            _ => {}
        }
    }

    /// Checks that no client lacks a publication for more than `TOLD_WITHIN`, unless its subscription ended.
    pub(super) fn look_at_delivery(&mut self, world: &World) {
        if !self.has_engine || had_engine_faults(world, world.now) {
            return;
        }
        let truth = world.engine.truth.lock();
        let is_good = |client: &&SimulatedClient| {
            !had_faults(world, client.number, world.now) && !was_feed_down(world, client.number)
        };
        let ends_told_at = world.ends_lost_at + world.plan.tuning.position_check_delay + AHEAD_MAX;
        let none_is_ahead = !world.ends_lost_at.is_zero() && ends_told_at < world.now;
        for client in connected(world).filter(is_good) {
            for (channel, at) in positions_of(client) {
                let is_ahead =
                    |top: Position| top.epoch.as_str() == at.epoch && top.offset < at.offset;
                if none_is_ahead && world.engine.top(channel).is_some_and(is_ahead) {
                    let text = format!("it is at {at:?}, ahead of the stream, and was not told");
                    self.broken_for(TOLD, client.number, channel, text);
                }
                let Some(next) = truth.at(&at.epoch, at.offset + 1) else { continue };
                let is_late = next.stored_at + TOLD_WITHIN < world.instant();
                // Looked up when it is late alone: this runs for each subscription in each second.
                let is_wanted =
                    || !is_filtered(&client.subscriptions[channel].filter, Some(&next.kind));
                if is_late && is_wanted() {
                    let text = format!("it is at {at:?} and lacks {next:?}, and it was not told");
                    self.broken_for(TOLD, client.number, channel, text);
                }
            }
        }
    }

    /// Who has a position is at the top of its stream.
    pub(super) fn finish_delivery(&mut self, world: &World, now: Instant) {
        for (client, channel, at) in positions(world) {
            let subscription = &client.subscriptions[channel];
            let top = self.top(world, channel, now);
            let truth = world.engine.truth.lock();
            let copy = subscription.map.as_ref();
            let is_whole =
                copy.is_none_or(|it| it.entries == truth.entries(&top.epoch, top.offset));
            let is_there = is_whole
                && at.epoch == top.epoch
                && (at.offset + 1..=top.offset).all(|offset| {
                    let entry = truth.at(&top.epoch, offset);
                    is_filtered(&subscription.filter, entry.map(|it| it.kind.as_str()))
                });
            // No node reads a stream that was not used since a failover, if checks are off for longer than the run.
            // A stream that has begun again without a publication has nothing that could be missed.
            let is_known = !top.epoch.is_empty() && top.offset > 0;
            if is_known && !is_there {
                let text =
                    format!("it is at {at:?} and the stream at {top:?}, and it was not told");
                self.broken_for(TOLD, client.number, channel, text);
            }
        }
    }

    /// The top of a stream in the engine.
    fn top(&self, world: &World, channel: &str, now: Instant) -> Claim {
        let top = if self.has_engine {
            world.engine.top(channel).unwrap_or_default()
        } else {
            let process = world.hosts[0].process.as_ref().expect("it runs again at the end");
            let page = Page { limit: Some(0), ..Page::default() };
            let node = &process.node;
            let read = if channel.starts_with("map:") {
                node.maps().read_stream(channel, ChangesQuery::TOP, now).ready()
            } else {
                node.channels().history(channel, &page, now).ready()
            };
            read.ok().and_then(Result::ok).unwrap_or_default().top
        };
        Claim { offset: top.offset, epoch: top.epoch.as_str().to_owned() }
    }
}

/// Connected clients with their channels and positions.
fn positions(world: &World) -> impl Iterator<Item = (&SimulatedClient, &String, &Claim)> {
    connected(world)
        .flat_map(|client| positions_of(client).map(move |(channel, at)| (client, channel, at)))
}

fn connected(world: &World) -> impl Iterator<Item = &SimulatedClient> {
    world.clients.iter().filter(|it| it.state == ClientState::Connected)
}

fn positions_of(client: &SimulatedClient) -> impl Iterator<Item = (&String, &Claim)> {
    let on = client.subscriptions.iter().filter(|(_, it)| it.state == SubscriptionState::On);
    on.filter_map(|(channel, it)| Some((channel, it.position.as_ref()?)))
}

impl Followed {
    fn receive(
        &mut self,
        truth: &Truth,
        channel: &str,
        publication: &Publication,
    ) -> Result<(), String> {
        let Some(number) = number_of(publication) else {
            return Err(format!("{publication:?} was never published"));
        };
        if publication.offset == 0 {
            let place = truth.place(channel, number);
            if place.is_none() || place <= self.place && !self.may_repeat {
                return Err(format!("{number} came again, too late, or was never published"));
            }
            self.place = place;
            return Ok(());
        }
        let Some(position) = &mut self.position else {
            return Ok(()); // a subscription that asked for no position
        };
        if position.epoch.is_empty() {
            position.epoch = publication.epoch.clone();
        }
        let offset = publication.offset;
        if offset <= position.offset {
            return Err(format!("offset {offset} came behind {position:?}"));
        }
        for missed in position.offset + 1..offset {
            let entry = truth.at(&position.epoch, missed);
            if !is_filtered(&self.filter, entry.map(|it| it.kind.as_str())) {
                return Err(format!("offset {offset} came behind {position:?}, without {missed}"));
            }
        }
        position.offset = offset;
        let entry = truth.at(&position.epoch, offset);
        if entry.is_none_or(|entry| entry.number != number) {
            return Err(format!("{number} came at {position:?}, where {entry:?} was published"));
        }
        Ok(())
    }
}

/// Whether a filter leaves a publication out. What is not known any more counts as left out only for filters.
fn is_filtered(filter: &str, kind: Option<&str>) -> bool {
    !filter.is_empty() && kind != Some(filter)
}

fn check_result(
    truth: &Truth,
    channel: &str,
    asked: &Asked<'_>,
    result: &SubscribeResult,
) -> Result<(), String> {
    if !result.recovered {
        return check_unrecovered(channel, asked, result);
    }
    let Some(claim) = asked.claim else { return Err("recovered without a position".to_owned()) };
    let names_epoch = !claim.epoch.is_empty();
    let continues = truth.continues(&result.epoch, &claim.epoch, claim.offset);
    if channel.starts_with("cache:") {
        return check_cache(truth, claim, asked, result);
    }
    if names_epoch && !continues {
        let epoch = &result.epoch;
        return Err(format!("recovered from {claim:?}, which {epoch} does not continue"));
    }
    if let Some(newest) = result.publications.last()
        && let Some(entry) = truth.at(&result.epoch, newest.offset)
        && entry.stored_at + asked.history_ttl < asked.at
        && !asked.has_wrong_clock
    {
        return Err(format!("recovered {newest:?}, which had expired"));
    }
    for (publication, expected) in result.publications.iter().zip(claim.offset + 1..) {
        let entry = truth.at(&result.epoch, expected);
        let is_right = publication.offset == expected
            && entry.is_some_and(|entry| Some(entry.number) == number_of(publication));
        if !is_right {
            return Err(format!("recovered {publication:?} where {entry:?} has {expected}"));
        }
    }
    Ok(())
}

/// Without recovery nothing comes, and the stream lacks something that the client asked for.
fn check_unrecovered(
    channel: &str,
    asked: &Asked<'_>,
    result: &SubscribeResult,
) -> Result<(), String> {
    if !result.publications.is_empty() {
        return Err("publications without recovery".to_owned());
    }
    let Some(claim) = asked.claim.filter(|_| !channel.starts_with("cache:")) else { return Ok(()) };
    let is_same = !claim.epoch.is_empty() && claim.epoch == result.epoch;
    let is_stored = claim.offset <= result.offset
        && result.offset - claim.offset <= asked.history_size as u64
        && asked.history_ttl > LONGEST_RUN;
    let never_ends = asked.keeps_epochs && asked.history_ttl > LONGEST_RUN;
    if !claim.epoch.is_empty() && !is_same && never_ends {
        let epoch = &result.epoch;
        return Err(format!("not recovered from {claim:?}, though no stream has ended: {epoch}"));
    }
    if is_same && is_stored {
        let top = result.offset;
        return Err(format!("not recovered from {claim:?}, though the stream at {top} has all"));
    }
    Ok(())
}

/// The copy of a map is that of the server at the position of the result.
fn check_copy(truth: &Truth, copy: &MapCopy, result: &SubscribeResult) -> Result<(), String> {
    let newest = result.publications.last().map_or(result.offset, |it| it.offset);
    let expected = truth.entries(&result.epoch, newest);
    let entries = &copy.entries;
    if *entries == expected {
        return Ok(());
    }
    Err(format!("it has {entries:?} at offset {newest}, where the map has {expected:?}"))
}

/// In cache mode the newest publication that the filter wants comes, unless the client has it.
fn check_cache(
    truth: &Truth,
    claim: &Claim,
    asked: &Asked<'_>,
    result: &SubscribeResult,
) -> Result<(), String> {
    if let Some(newest) = result.publications.first() {
        let entry = truth.at(&result.epoch, newest.offset);
        let is_right = entry.is_some_and(|entry| Some(entry.number) == number_of(newest));
        let is_wanted = !is_filtered(asked.filter, entry.map(|entry| entry.kind.as_str()));
        return if is_right && is_wanted {
            Ok(())
        } else {
            Err(format!("recovered {newest:?} where {entry:?} was published"))
        };
    }
    let newest = truth.newest_of_kind(&result.epoch, asked.filter, asked.at);
    let continues = truth.continues(&result.epoch, &claim.epoch, claim.offset);
    match newest {
        Some(offset) if !continues || offset > claim.offset => {
            Err(format!("recovered nothing from {claim:?}, and offset {offset} is newer"))
        }
        _ => Ok(()),
    }
}

const RECOVERED: &str = "recovered is true only if it is true";
const ONCE: &str = "each publication comes once, in order, without a gap";
const TOLD: &str = "nothing is lost without being told";
/// The longest time of a run: a history with a longer lifetime does not end in it.
pub(super) const LONGEST_RUN: Duration = Duration::from_secs(250);
/// A node that may have missed publications tells its clients within this time, where nothing else is broken.
const TOLD_WITHIN: Duration = Duration::from_secs(20);
/// After a stream lost its end, nodes end the subscriptions ahead of it within this time after a check.
const AHEAD_MAX: Duration = Duration::from_secs(3);
