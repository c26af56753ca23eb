//! Tests of the subscription table: when channels are sent, how long waiters wait, and random events against a simple model of a Redis.
//! In: desired channels, confirmations, losses → out: changes and waiters.
//! Uses proptest and computed instants. Never: sockets.
//! A new event is a test here, and an arm of the random test.

use proptest::prelude::*;

use super::*;

fn names(next_changes: &[Arc<str>]) -> Vec<&str> {
    next_changes.iter().map(|name| &**name).collect()
}

fn is_subscribed(is_subscribed: WaitOutcome<u32>) -> Option<bool> {
    match is_subscribed {
        WaitOutcome::Subscribed(_) => Some(true),
        WaitOutcome::Pending => None,
        WaitOutcome::NotDesired(_) => Some(false),
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_waiter_is_called_when_the_subscription_is_confirmed() {
    let mut table = SubscriptionTable::default();
    let now = Instant::now();
    assert!(table.set_desired("a"));
    assert!(!table.set_desired("a"), "asked for once");
    assert_eq!(is_subscribed(table.wait_until_subscribed("a", now + SECOND, 1)), None);
    assert_eq!(names(&table.next_changes(now, 9).subscribe), ["a"]);
    assert_eq!(is_subscribed(table.wait_until_subscribed("a", now + SECOND, 2)), None);
    let waiters: Vec<u32> = table
        .confirmed("a", Done::Subscribed)
        .waiters
        .into_iter()
        .map(|(_, waiter)| waiter)
        .collect();
    assert_eq!(waiters, [1, 2]);
    assert_eq!(is_subscribed(table.wait_until_subscribed("a", now + SECOND, 3)), Some(true));
    assert_eq!(
        is_subscribed(table.wait_until_subscribed("b", now + SECOND, 4)),
        Some(false),
        "it is not desired"
    );
    assert!(table.expired_waiters(now + SECOND).is_empty(), "all were called");
}

#[test]
fn a_channel_is_unsubscribed_a_while_after_its_last_subscriber() {
    let mut table = SubscriptionTable::<u32>::default();
    let now = Instant::now();
    table.set_desired("a");
    table.next_changes(now, 9);
    table.confirmed("a", Done::Subscribed);
    table.clear_desired("a", now);
    assert_eq!(table.due(now), Some(now + UNSUBSCRIBE_DELAY));
    assert_eq!(
        table.next_changes(now + UNSUBSCRIBE_DELAY - Duration::from_nanos(1), 9),
        SubscriptionChanges::default()
    );
    assert_eq!(names(&table.next_changes(now + UNSUBSCRIBE_DELAY, 9).unsubscribe), ["a"]);
    assert_eq!(table.len(), 1, "until the Redis confirms");
    table.confirmed("a", Done::Unsubscribed);
    assert_eq!((table.len(), table.due(now)), (0, None));
}

#[test]
fn a_quick_return_sends_nothing() {
    let mut table = SubscriptionTable::<u32>::default();
    let now = Instant::now();
    table.set_desired("a");
    table.next_changes(now, 9);
    table.confirmed("a", Done::Subscribed);
    table.clear_desired("a", now);
    assert!(!table.set_desired("a"));
    assert_eq!(is_subscribed(table.wait_until_subscribed("a", now, 1)), Some(true));
    assert_eq!(table.next_changes(now + UNSUBSCRIBE_DELAY, 9), SubscriptionChanges::default());
}

#[test]
fn only_the_last_confirmation_counts() {
    let mut table = SubscriptionTable::default();
    let now = Instant::now();
    table.set_desired("a");
    table.next_changes(now, 9);
    table.clear_desired("a", now);
    table.next_changes(now + UNSUBSCRIBE_DELAY, 9);
    table.set_desired("a");
    assert_eq!(is_subscribed(table.wait_until_subscribed("a", now + 9 * SECOND, 1)), None);
    assert_eq!(names(&table.next_changes(now + UNSUBSCRIBE_DELAY, 9).subscribe), ["a"]);
    assert!(table.confirmed("a", Done::Subscribed).waiters.is_empty(), "the first subscription");
    assert!(table.confirmed("a", Done::Unsubscribed).waiters.is_empty(), "that it ended");
    assert_eq!(table.confirmed("a", Done::Subscribed).waiters.len(), 1, "the second subscription");
}

#[test]
fn a_lost_connection_requests_everything_again() {
    let mut table = SubscriptionTable::default();
    let now = Instant::now();
    for channel in ["a", "b", "c"] {
        table.set_desired(channel);
    }
    table.next_changes(now, 2);
    assert!(!table.confirmed("a", Done::Subscribed).is_resubscribed, "for the first time");
    assert_eq!(is_subscribed(table.wait_until_subscribed("b", now + 9 * SECOND, 1)), None);
    table.clear_desired("c", now);
    table.connection_lost();
    let next_changes = table.next_changes(now, 9);
    let mut subscribed = names(&next_changes.subscribe);
    subscribed.sort_unstable();
    assert_eq!(subscribed, ["a", "b"]);
    assert!(table.confirmed("a", Done::Subscribed).is_resubscribed, "something may be missing");
    assert_eq!(table.confirmed("b", Done::Subscribed).waiters.len(), 1, "who waited still does");
    assert_eq!(
        table.next_changes(now + UNSUBSCRIBE_DELAY, 9),
        SubscriptionChanges::default(),
        "c was not subscribed any more"
    );
    assert_eq!(table.len(), 2);
}

#[test]
fn waiters_expire() {
    let mut table = SubscriptionTable::default();
    let now = Instant::now();
    table.set_desired("a");
    assert_eq!(is_subscribed(table.wait_until_subscribed("a", now + SECOND, 1)), None);
    assert_eq!(is_subscribed(table.wait_until_subscribed("a", now + 2 * SECOND, 2)), None);
    assert_eq!(table.expired_waiters(now + SECOND), [1]);
    table.next_changes(now, 9);
    assert_eq!(table.confirmed("a", Done::Subscribed).waiters.len(), 1);
    assert_eq!(table.expired_waiters(now + 2 * SECOND), [0; 0]);
}

#[test]
fn a_subscription_that_redis_ended_is_retried() {
    let mut table = SubscriptionTable::default();
    let now = Instant::now();
    table.set_desired("a");
    table.next_changes(now, 9);
    table.confirmed("a", Done::Subscribed);
    assert!(table.is_requested("a"));
    assert!(table.confirmed("a", Done::Unsubscribed).is_misrouted);
    assert!(!table.is_requested("a"), "what is still sent does not count");
    assert_eq!(is_subscribed(table.wait_until_subscribed("a", now + SECOND, 1)), None);
    assert!(!table.set_desired("a"), "asking now would be of no use");
    assert_eq!(table.next_changes(now, 9), SubscriptionChanges::default());
    assert!(table.retry_misrouted());
    assert_eq!(names(&table.next_changes(now, 9).subscribe), ["a"]);
    let confirmed = table.confirmed("a", Done::Subscribed);
    assert!(confirmed.is_resubscribed, "something may be missing");
    assert_eq!(confirmed.waiters.len(), 1);
    assert!(!table.retry_misrouted());
}

#[test]
fn a_refused_channel_is_retried() {
    let mut table = SubscriptionTable::<u32>::default();
    let now = Instant::now();
    for channel in ["a", "b", "c"] {
        table.set_desired(channel);
    }
    table.next_changes(now, 2);
    assert!(table.mark_misrouted("a"));
    assert!(!table.mark_misrouted("unknown"));
    assert!(table.mark_unconfirmed_misrouted(), "b is not confirmed either");
    assert!(!table.mark_unconfirmed_misrouted());
    assert!(table.retry_misrouted());
    let next_changes = table.next_changes(now, 9);
    assert_eq!(next_changes.subscribe.len(), 3);
    table.clear_desired("a", now);
    table.next_changes(now + UNSUBSCRIBE_DELAY, 9);
    assert!(!table.mark_misrouted("a"), "it is not desired any more");
    assert_eq!(table.len(), 2);
}

#[test]
fn channels_move_with_their_waiters() {
    let mut one = SubscriptionTable::default();
    let mut other = SubscriptionTable::default();
    let now = Instant::now();
    for channel in ["confirmed", "requested", "new", "left", "stays"] {
        one.set_desired(channel);
    }
    one.next_changes(now, 2);
    one.confirmed("confirmed", Done::Subscribed);
    one.clear_desired("left", now);
    assert_eq!(is_subscribed(one.wait_until_subscribed("requested", now + SECOND, 1)), None);
    assert_eq!(is_subscribed(other.wait_until_subscribed("new", now + SECOND, 2)), Some(false));
    other.set_desired("new");
    assert_eq!(is_subscribed(other.wait_until_subscribed("new", now + 2 * SECOND, 2)), None);
    let moved = one.take_matching(|name| name != "stays");
    assert_eq!(one.len(), 1);
    assert_eq!(names(&one.next_changes(now, 9).subscribe), ["stays"]);
    assert_eq!(one.next_changes(now + UNSUBSCRIBE_DELAY, 9), SubscriptionChanges::default());
    other.insert_moved(moved);
    let next_changes = other.next_changes(now, 9);
    let mut subscribed = names(&next_changes.subscribe);
    subscribed.sort_unstable();
    assert_eq!(subscribed, ["confirmed", "new", "requested"]);
    assert!(other.confirmed("confirmed", Done::Subscribed).is_resubscribed);
    assert!(!other.confirmed("new", Done::Subscribed).is_resubscribed, "it was never requested");
    assert_eq!(other.expired_waiters(now + SECOND), [1], "its wait began before the move");
}

#[test]
fn changes_are_limited() {
    let mut table = SubscriptionTable::<u32>::default();
    let now = Instant::now();
    assert!((0..5).all(|number| table.set_desired(&number.to_string())));
    let lengths: Vec<_> = (0..4).map(|_| table.next_changes(now, 2).subscribe.len()).collect();
    assert_eq!(lengths, [2, 2, 1, 0]);
}

proptest! {
    /// After all confirmations the Redis sends exactly the desired channels, and the table holds no others.
    #[test]
    fn random_events_end_with_the_desired_channels(steps in prop::collection::vec((0..8_u8, 0..4_u8), 0..80)) {
        let mut table = SubscriptionTable::<u32>::default();
        let mut now = Instant::now();
        let mut wanted = std::collections::BTreeSet::new();
        let mut sent: VecDeque<(bool, Arc<str>)> = VecDeque::new();
        let mut subscribed = std::collections::BTreeSet::new();
        for (step, channel) in steps.into_iter().chain([(7, 0)]).chain([(3, 0); 20]).chain([(4, 0); 100]) {
            let channel = channel.to_string();
            match step {
                0 | 1 => {
                    table.set_desired(&channel);
                    wanted.insert(channel);
                }
                2 => {
                    table.clear_desired(&channel, now);
                    wanted.remove(&channel);
                }
                3 => {
                    now += UNSUBSCRIBE_DELAY / 2;
                    let next_changes = table.next_changes(now, 3);
                    sent.extend(next_changes.subscribe.into_iter().map(|name| (true, name)));
                    sent.extend(next_changes.unsubscribe.into_iter().map(|name| (false, name)));
                }
                4 => {
                    if let Some((is_subscribe, name)) = sent.pop_front() {
                        if is_subscribe {
                            subscribed.insert(name.to_string());
                        } else {
                            subscribed.remove(&*name);
                        }
                        let done = if is_subscribe { Done::Subscribed } else { Done::Unsubscribed };
                        table.confirmed(&name, done);
                    }
                }
                // The Redis ends a subscription by itself.
                6 if sent.is_empty() && subscribed.remove(&channel) => {
                    let confirmed = table.confirmed(&channel, Done::Unsubscribed);
                    prop_assert_eq!(confirmed.is_misrouted, wanted.contains(&channel));
                }
                6 | 7 => {
                    table.retry_misrouted();
                }
                _ => {
                    table.connection_lost();
                    sent.clear();
                    subscribed.clear();
                }
            }
        }
        prop_assert!(sent.is_empty());
        prop_assert_eq!(&subscribed, &wanted);
        prop_assert_eq!(table.len(), wanted.len());
        for channel in wanted {
            prop_assert_eq!(is_subscribed(table.wait_until_subscribed(&channel, now, 0)), Some(true));
        }
    }
}
