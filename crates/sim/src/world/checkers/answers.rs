//! Answers to questions of clients: a page of a history is what was published, and not older than its question; who asks is present.
//! In: answers as clients see them → out: a broken promise.
//! Uses the truth. Never: reads of the product.
//! Changed here: what an answer promises.

use fanwire_protocol::{HistoryResult, Publication};

use super::delivery::LONGEST_RUN;
use super::{Checkers, had_faults};
use crate::client::{HistoryPage, Seen, SubscriptionState};
use crate::truth::{Truth, number_of};
use crate::world::World;

impl Checkers {
    pub(super) fn check_answers(&mut self, world: &World, client: usize, seen: &Seen) {
        match seen {
            Seen::Read { channel, asked_at, page, result } => {
                let truth = world.engine.truth.lock();
                let asked = world.instant_of(*asked_at);
                let newest = truth.newest_of_kind(&result.epoch, "", asked).unwrap_or(0);
                if result.offset < newest {
                    let text = format!("its top is {}, and {newest} was there", result.offset);
                    return self.broken_for(FRESH, client, channel, text);
                }
                let tuning = &world.plan.tuning;
                if tuning.history_ttl > LONGEST_RUN
                    && let Err(text) = check_page(&truth, page, result, tuning.history_size)
                {
                    self.broken_for("a history is what was published", client, channel, text);
                }
            }
            Seen::Members { channel, asked_at, ids } => {
                let known = &world.clients[client];
                let is_on = known.subscriptions[channel].state == SubscriptionState::On;
                let since = self.commands.subscribed_at(client, channel);
                let is_good = world.losses.is_empty() && !had_faults(world, client, *asked_at);
                let must_be_in = is_on && since.is_some_and(|since| since < *asked_at) && is_good;
                if must_be_in && !ids.contains(&known.id) {
                    let text = format!("it is not in {ids:?}");
                    self.broken_for("who asks is present", client, channel, text);
                }
            }
            _ => {}
        }
    }
}

/// The page has the publications that the stream kept then, whose top the result has.
fn check_page(
    truth: &Truth,
    page: &HistoryPage,
    result: &HistoryResult,
    size: usize,
) -> Result<(), String> {
    let top = result.offset;
    let first = top.saturating_sub(size as u64) + 1;
    let expected: Vec<u64> = if page.reverse {
        let end = page.since.unwrap_or(top + 1).min(top + 1);
        (first..end).rev().take(page.limit).collect()
    } else {
        let begin = page.since.map_or(first, |since| first.max(since + 1));
        (begin..=top).take(page.limit).collect()
    };
    let offsets: Vec<u64> = result.publications.iter().map(|it| it.offset).collect();
    if offsets != expected {
        return Err(format!("{page:?} below {top} has {offsets:?} instead of {expected:?}"));
    }
    let is_wrong = |it: &&Publication| {
        let entry = truth.at(&result.epoch, it.offset);
        entry.is_none_or(|entry| Some(entry.number) != number_of(it))
    };
    match result.publications.iter().find(is_wrong) {
        Some(wrong) => Err(format!("{wrong:?} was never published there")),
        None => Ok(()),
    }
}

const FRESH: &str = "no answer is older than its question";
