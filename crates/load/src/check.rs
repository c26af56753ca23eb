//! Messages that each subscriber has received, compared with the publications.
//! In: publications, subscriptions, every message of every subscriber → out: what was lost, doubled, reordered or broken.
//! Pure: time is a parameter, in nanoseconds since the start of the run.
//! Changed here: what counts as right; latencies are recorded in `record`.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use crate::generator::messages::Encoding;
use crate::payload::Payloads;
use crate::record::Recorder;
pub use counts::{Group, GroupCounts};

mod counts;

/// Checks all subscribers of a run.
#[derive(Debug)]
pub(crate) struct Checker {
    payloads: Payloads,
    channels: Vec<CheckedChannel>,
    by_name: HashMap<Box<[u8]>, u32>,
    subscribers: Vec<Subscriber>,
    /// Only the newest publication counts: gaps are not losses.
    is_latest: bool,
    /// Publications that a regular subscriber does not have yet.
    outstanding: usize,
    counts: [GroupCounts; Group::ALL.len()],
    pub recorder: Recorder,
}

#[derive(Debug)]
struct CheckedChannel {
    published: u64,
    /// The number of the first of `recent`.
    first: u64,
    recent: VecDeque<Recent>,
    /// Regular subscribers with an open connection.
    regular: u32,
}

/// A publication that subscribers may still receive.
#[derive(Debug)]
struct Recent {
    planned: u64,
    /// Regular subscribers that do not have it.
    missing: u32,
    /// The whole message in each encoding, from its first arrival that was read and found right. The messages of other
    /// subscribers are compared with it, which takes a tenth of the time.
    messages: [Option<Box<[u8]>>; 2],
}

#[derive(Debug)]
struct Subscriber {
    group: Group,
    encoding: Encoding,
    is_open: bool,
    /// Ascending by channel.
    subscriptions: Vec<SubscriberChannel>,
}

#[derive(Debug)]
struct SubscriberChannel {
    channel: u32,
    /// Publications before this number were published before the subscription.
    since: u64,
    /// The number that is due.
    next: u64,
    has_received: bool,
    /// Numbers that were left out, in ascending order.
    left_out: Vec<Range<u64>>,
}

impl Checker {
    /// Without subscribers. `is_latest`: the server may leave out publications that a newer one of the channel replaces.
    pub(crate) fn new(
        payloads: Payloads,
        channels: &[String],
        is_latest: bool,
        recorder: Recorder,
    ) -> Self {
        let numbered = channels.iter().zip(0..);
        let by_name = numbered.map(|(name, number)| (name.as_bytes().into(), number)).collect();
        let channel =
            |_| CheckedChannel { published: 0, first: 0, recent: VecDeque::new(), regular: 0 };
        Self {
            payloads,
            channels: channels.iter().map(channel).collect(),
            by_name,
            subscribers: Vec::new(),
            is_latest,
            outstanding: 0,
            counts: Default::default(),
            recorder,
        }
    }

    /// Adds a subscriber, not connected yet; the first has number 0. `channels` must ascend.
    pub(crate) fn add_subscriber(&mut self, group: Group, encoding: Encoding, channels: &[u32]) {
        let subscription = |channel: &u32| SubscriberChannel {
            channel: *channel,
            since: 0,
            next: 0,
            has_received: false,
            left_out: Vec::new(),
        };
        let subscriptions = channels.iter().map(subscription).collect();
        self.subscribers.push(Subscriber { group, encoding, is_open: false, subscriptions });
        self.counts[group as usize].subscribers += 1;
    }

    /// The subscriber has its replies: what is published from now on must arrive.
    pub(crate) fn subscribed(&mut self, number: usize) {
        let subscriber = &mut self.subscribers[number];
        subscriber.is_open = true;
        for subscription in &mut subscriber.subscriptions {
            let channel = &mut self.channels[subscription.channel as usize];
            channel.regular += u32::from(subscriber.group == Group::Regular);
            subscription.since = channel.published;
            subscription.next = channel.published;
            subscription.has_received = false;
            subscription.left_out.clear();
        }
    }

    /// The connection has ended. Where the generator did not end it, a regular subscriber has lost what was published
    /// before; others were too slow for it.
    pub(crate) fn closed(&mut self, number: usize, is_planned: bool) {
        let subscriber = &mut self.subscribers[number];
        if !std::mem::take(&mut subscriber.is_open) {
            return;
        }
        for subscription in &mut subscriber.subscriptions {
            let channel = &mut self.channels[subscription.channel as usize];
            let rest = subscription.next..channel.published;
            if subscriber.group == Group::Regular {
                if !is_planned && !self.is_latest {
                    self.counts[subscriber.group as usize].lost += rest.end - rest.start;
                }
                channel.regular -= 1;
                self.outstanding -= channel.give_up(rest);
            }
        }
    }

    /// Publishes: returns the data. `planned` is when it was due.
    pub(crate) fn publish(&mut self, channel: u32, planned: u64) -> Vec<u8> {
        let published = &mut self.channels[channel as usize];
        let number = published.published;
        published.published += 1;
        self.recorder.published(planned);
        let missing = published.regular;
        published.recent.push_back(Recent { planned, missing, messages: [None, None] });
        if missing > 0 {
            self.outstanding += 1;
        }
        if published.recent.len() > RECENT_MAX {
            let forgotten = published.recent.pop_front();
            self.outstanding -= usize::from(forgotten.is_some_and(|recent| recent.missing > 0));
            published.first += 1;
        }
        published.drop_complete();
        self.payloads.data(channel, number)
    }

    /// Publications that a regular subscriber does not have yet.
    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// A message that is neither a reply nor a ping.
    pub(crate) fn receive(&mut self, number: usize, message: &[u8], now: u64) {
        let subscriber = &mut self.subscribers[number];
        let encoding = subscriber.encoding;
        let counts = &mut self.counts[subscriber.group as usize];
        let Some(name) = encoding.channel(message) else {
            if encoding.reply_id(message).is_err() {
                counts.broken(|| format!("no message of the client protocol: {}", shown(message)));
            }
            return;
        };
        let index = self.by_name.get(name);
        let place = index.and_then(|index| {
            subscriber.subscriptions.binary_search_by_key(index, |one| one.channel).ok()
        });
        let Some(place) = place else {
            counts.broken(|| format!("a channel without subscription: {}", shown(message)));
            return;
        };
        let subscription = &mut subscriber.subscriptions[place];
        let channel = &mut self.channels[subscription.channel as usize];
        let number = match channel.number(subscription, &self.payloads, encoding, message) {
            Ok(Some(number)) => number,
            Ok(None) => return,
            Err(reason) => {
                counts.broken(|| format!("{reason}: {}", shown(message)));
                return;
            }
        };
        if number < subscription.next && (subscription.has_received || number >= subscription.since)
        {
            if subscription.fill(number) {
                counts.lost -= 1;
                counts.reordered += 1;
            } else {
                counts.duplicates += 1;
            }
            return;
        }
        let gap = subscription.next..number;
        if gap.start < gap.end {
            if self.is_latest {
                counts.conflated += gap.end - gap.start;
            } else {
                counts.lost += gap.end - gap.start;
                subscription.leave_out(gap.clone());
            }
        }
        let is_new = number >= subscription.since;
        subscription.next = number + 1;
        subscription.has_received = true;
        counts.received += 1;
        if subscriber.group != Group::Regular {
            return;
        }
        self.outstanding -= channel.give_up(gap);
        if is_new && let Some(recent) = channel.recent(number) {
            recent.missing -= 1;
            let is_last = recent.missing == 0;
            self.outstanding -= usize::from(is_last);
            self.recorder.delivered(recent.planned, now, is_last);
            channel.drop_complete();
        }
    }

    /// Whether every subscriber of the group with an open connection has the newest publication of each of its channels.
    pub(crate) fn has_newest(&self, group: Group) -> bool {
        let mut open = self.subscribers.iter().filter(|one| one.group == group && one.is_open);
        open.all(|subscriber| {
            let newest = |one: &SubscriberChannel| self.channels[one.channel as usize].published;
            subscriber.subscriptions.iter().all(|one| one.next == newest(one))
        })
    }

    /// The end: what has not arrived at open connections is lost. With `is_latest`, so is a newest publication only.
    pub(crate) fn finish(mut self) -> (Recorder, [GroupCounts; Group::ALL.len()]) {
        for subscriber in self.subscribers.iter().filter(|subscriber| subscriber.is_open) {
            let counts = &mut self.counts[subscriber.group as usize];
            for subscription in &subscriber.subscriptions {
                let rest =
                    self.channels[subscription.channel as usize].published - subscription.next;
                counts.lost += if self.is_latest { rest.min(1) } else { rest };
                counts.conflated += if self.is_latest { rest.saturating_sub(1) } else { 0 };
            }
        }
        (self.recorder, self.counts)
    }

    pub(crate) fn counts(&self, group: Group) -> &GroupCounts {
        &self.counts[group as usize]
    }

    pub(crate) fn counts_mut(&mut self, number: usize) -> &mut GroupCounts {
        &mut self.counts[self.subscribers[number].group as usize]
    }
}

impl CheckedChannel {
    /// The number of the publication in a message; `None` for another push. A message equal to one that was read before
    /// is not read again.
    fn number(
        &mut self,
        subscription: &SubscriberChannel,
        payloads: &Payloads,
        encoding: Encoding,
        message: &[u8],
    ) -> Result<Option<u64>, &'static str> {
        let due = self.recent(subscription.next);
        let known = due.and_then(|recent| recent.messages[encoding as usize].as_deref());
        if known == Some(message) {
            return Ok(Some(subscription.next));
        }
        let number = read(payloads, encoding, message, subscription.channel)?;
        if number.is_some_and(|number| number >= self.published) {
            return Err("a publication that was not published");
        }
        if let Some(recent) = number.and_then(|number| self.recent(number)) {
            recent.messages[encoding as usize].get_or_insert_with(|| message.into());
        }
        Ok(number)
    }

    fn recent(&mut self, number: u64) -> Option<&mut Recent> {
        let place = number.checked_sub(self.first)?;
        self.recent.get_mut(place as usize)
    }

    /// A regular subscriber does not get these: returns how many publications are complete without it.
    fn give_up(&mut self, numbers: Range<u64>) -> usize {
        let mut complete = 0;
        for number in numbers.start.max(self.first)..numbers.end {
            if let Some(recent) = self.recent(number) {
                recent.missing -= 1;
                complete += usize::from(recent.missing == 0);
            }
        }
        self.drop_complete();
        complete
    }

    fn drop_complete(&mut self) {
        while self.recent.len() > KEPT && self.recent.front().is_some_and(|one| one.missing == 0) {
            self.recent.pop_front();
            self.first += 1;
        }
    }
}

impl SubscriberChannel {
    fn leave_out(&mut self, numbers: Range<u64>) {
        if self.left_out.len() < RANGES_MAX {
            self.left_out.push(numbers);
        }
    }

    /// A publication arrives late: returns whether it was left out before.
    fn fill(&mut self, number: u64) -> bool {
        let Some(at) = self.left_out.iter().position(|range| range.contains(&number)) else {
            return false;
        };
        let range = self.left_out.remove(at);
        let halves = [range.start..number, number + 1..range.end];
        let parts = halves.into_iter().filter(|part| !part.is_empty());
        self.left_out.splice(at..at, parts);
        true
    }
}

/// Reads a message fully. Returns the number of its publication, `None` for another push.
fn read(
    payloads: &Payloads,
    encoding: Encoding,
    message: &[u8],
    channel: u32,
) -> Result<Option<u64>, &'static str> {
    let Ok(publication) = encoding.publication(message) else {
        let is_other = encoding.reply_id(message).is_ok();
        return if is_other { Ok(None) } else { Err("no message of the client protocol") };
    };
    match payloads.number(publication.data) {
        Some((found, number)) if found == channel => {
            let is_whole = publication.data == payloads.data(channel, number);
            if is_whole { Ok(Some(number)) } else { Err("damaged data") }
        }
        Some(_) => Err("the data of another channel"),
        None => Err("data that this run did not publish"),
    }
}

/// The beginning of a message, as text.
fn shown(message: &[u8]) -> String {
    message[..message.len().min(SHOWN_BYTES)].escape_ascii().to_string()
}

/// Publications of a channel that are compared as a whole; above it, a lost one is not waited for any more.
const RECENT_MAX: usize = 16_384;
/// Complete ones that are kept, for subscribers that were not counted as missing.
const KEPT: usize = 16;
/// Ranges that are kept for a subscription; a late arrival of others counts as a duplicate.
const RANGES_MAX: usize = 1_000;
const SHOWN_BYTES: usize = 200;

#[cfg(test)]
mod tests;
