//! Tests of the roll: what is asked for when, who waits how long, and random lives against a naive model of a Redis.
//! In: wants, confirmations, losses → out: turns and waiters.
//! Uses proptest and instants it counts itself. Never: sockets.
//! A new event is a test here, and an arm of `live`.

use proptest::prelude::*;

use super::*;

fn names(turn: &[Arc<str>]) -> Vec<&str> {
    turn.iter().map(|name| &**name).collect()
}

fn heard(heard: Heard<u32>) -> Option<bool> {
    match heard {
        Heard::Yes(_) => Some(true),
        Heard::NotYet => None,
        Heard::Never(_) => Some(false),
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_waiter_is_called_when_the_subscription_is_confirmed() {
    let (mut roll, now) = (Roll::default(), Instant::now());
    assert!(roll.want("a"));
    assert!(!roll.want("a"), "asked for once");
    assert_eq!(heard(roll.wait("a", now + SECOND, 1)), None);
    assert_eq!(names(&roll.turn(now, 9).subscribe), ["a"]);
    assert_eq!(heard(roll.wait("a", now + SECOND, 2)), None);
    let waiters: Vec<u32> = roll
        .confirmed("a", Done::Subscribed)
        .waiters
        .into_iter()
        .map(|(_, waiter)| waiter)
        .collect();
    assert_eq!(waiters, [1, 2]);
    assert_eq!(heard(roll.wait("a", now + SECOND, 3)), Some(true));
    assert_eq!(heard(roll.wait("b", now + SECOND, 4)), Some(false), "nobody wants it");
    assert!(roll.impatient(now + SECOND).is_empty(), "all were called");
}

#[test]
fn a_channel_is_left_a_while_after_its_last_subscriber() {
    let (mut roll, now) = (Roll::<u32>::default(), Instant::now());
    roll.want("a");
    roll.turn(now, 9);
    roll.confirmed("a", Done::Subscribed);
    roll.leave("a", now);
    assert_eq!(roll.due(now), Some(now + DELAY));
    assert_eq!(roll.turn(now + DELAY - Duration::from_nanos(1), 9), Turn::default());
    assert_eq!(names(&roll.turn(now + DELAY, 9).unsubscribe), ["a"]);
    assert_eq!(roll.len(), 1, "until the Redis confirms");
    roll.confirmed("a", Done::Unsubscribed);
    assert_eq!((roll.len(), roll.due(now)), (0, None));
}

#[test]
fn who_comes_back_in_time_is_not_noticed() {
    let (mut roll, now) = (Roll::<u32>::default(), Instant::now());
    roll.want("a");
    roll.turn(now, 9);
    roll.confirmed("a", Done::Subscribed);
    roll.leave("a", now);
    assert!(!roll.want("a"));
    assert_eq!(heard(roll.wait("a", now, 1)), Some(true));
    assert_eq!(roll.turn(now + DELAY, 9), Turn::default());
}

#[test]
fn only_the_last_confirmation_counts() {
    let (mut roll, now) = (Roll::default(), Instant::now());
    roll.want("a");
    roll.turn(now, 9);
    roll.leave("a", now);
    roll.turn(now + DELAY, 9);
    roll.want("a");
    assert_eq!(heard(roll.wait("a", now + 9 * SECOND, 1)), None);
    assert_eq!(names(&roll.turn(now + DELAY, 9).subscribe), ["a"]);
    assert!(roll.confirmed("a", Done::Subscribed).waiters.is_empty(), "the first subscription");
    assert!(roll.confirmed("a", Done::Unsubscribed).waiters.is_empty(), "that it ended");
    assert_eq!(roll.confirmed("a", Done::Subscribed).waiters.len(), 1, "the second subscription");
}

#[test]
fn a_lost_connection_is_asked_for_everything_again() {
    let (mut roll, now) = (Roll::default(), Instant::now());
    for channel in ["a", "b", "c"] {
        roll.want(channel);
    }
    roll.turn(now, 2);
    assert!(!roll.confirmed("a", Done::Subscribed).is_again, "for the first time");
    assert_eq!(heard(roll.wait("b", now + 9 * SECOND, 1)), None);
    roll.leave("c", now);
    roll.lost();
    let turn = roll.turn(now, 9);
    let mut subscribed = names(&turn.subscribe);
    subscribed.sort_unstable();
    assert_eq!(subscribed, ["a", "b"]);
    assert!(roll.confirmed("a", Done::Subscribed).is_again, "something may be missing");
    assert_eq!(roll.confirmed("b", Done::Subscribed).waiters.len(), 1, "who waited still does");
    assert_eq!(roll.turn(now + DELAY, 9), Turn::default(), "c was not subscribed any more");
    assert_eq!(roll.len(), 2);
}

#[test]
fn patience_ends() {
    let (mut roll, now) = (Roll::default(), Instant::now());
    roll.want("a");
    assert_eq!(heard(roll.wait("a", now + SECOND, 1)), None);
    assert_eq!(heard(roll.wait("a", now + 2 * SECOND, 2)), None);
    assert_eq!(roll.impatient(now + SECOND), [1]);
    roll.turn(now, 9);
    assert_eq!(roll.confirmed("a", Done::Subscribed).waiters.len(), 1);
    assert_eq!(roll.impatient(now + 2 * SECOND), [0; 0]);
}

#[test]
fn what_a_redis_takes_away_is_asked_for_again_when_told_so() {
    let (mut roll, now) = (Roll::default(), Instant::now());
    roll.want("a");
    roll.turn(now, 9);
    roll.confirmed("a", Done::Subscribed);
    assert!(roll.is_asked("a"));
    assert!(roll.confirmed("a", Done::Unsubscribed).is_displaced);
    assert!(!roll.is_asked("a"), "what is still sent does not count");
    assert_eq!(heard(roll.wait("a", now + SECOND, 1)), None);
    assert!(!roll.want("a"), "asking now would be of no use");
    assert_eq!(roll.turn(now, 9), Turn::default());
    assert!(roll.ask_displaced());
    assert_eq!(names(&roll.turn(now, 9).subscribe), ["a"]);
    let confirmed = roll.confirmed("a", Done::Subscribed);
    assert!(confirmed.is_again, "something may be missing");
    assert_eq!(confirmed.waiters.len(), 1);
    assert!(!roll.ask_displaced());
}

#[test]
fn a_refused_question_is_answered() {
    let (mut roll, now) = (Roll::<u32>::default(), Instant::now());
    for channel in ["a", "b", "c"] {
        roll.want(channel);
    }
    roll.turn(now, 2);
    assert!(roll.displace("a"));
    assert!(!roll.displace("nobody"));
    assert!(roll.displace_unconfirmed(), "b is not confirmed either");
    assert!(!roll.displace_unconfirmed());
    assert!(roll.ask_displaced());
    let turn = roll.turn(now, 9);
    assert_eq!(turn.subscribe.len(), 3);
    roll.leave("a", now);
    roll.turn(now + DELAY, 9);
    assert!(!roll.displace("a"), "nobody wants it any more");
    assert_eq!(roll.len(), 2);
}

#[test]
fn channels_move_with_who_waits_for_them() {
    let (mut one, mut other, now) = (Roll::default(), Roll::default(), Instant::now());
    for channel in ["heard", "asked", "new", "left", "stays"] {
        one.want(channel);
    }
    one.turn(now, 2);
    one.confirmed("heard", Done::Subscribed);
    one.leave("left", now);
    assert_eq!(heard(one.wait("asked", now + SECOND, 1)), None);
    assert_eq!(heard(other.wait("new", now + SECOND, 2)), Some(false));
    other.want("new");
    assert_eq!(heard(other.wait("new", now + 2 * SECOND, 2)), None);
    let moved = one.take(|name| name != "stays");
    assert_eq!(one.len(), 1);
    assert_eq!(names(&one.turn(now, 9).subscribe), ["stays"]);
    assert_eq!(one.turn(now + DELAY, 9), Turn::default());
    other.put(moved);
    let turn = other.turn(now, 9);
    let mut subscribed = names(&turn.subscribe);
    subscribed.sort_unstable();
    assert_eq!(subscribed, ["asked", "heard", "new"]);
    assert!(other.confirmed("heard", Done::Subscribed).is_again);
    assert!(!other.confirmed("new", Done::Subscribed).is_again, "it was never asked for");
    assert_eq!(other.impatient(now + SECOND), [1], "whose patience began before");
}

#[test]
fn turns_are_as_long_as_they_may_be() {
    let (mut roll, now) = (Roll::<u32>::default(), Instant::now());
    assert!((0..5).all(|number| roll.want(&number.to_string())));
    let lengths: Vec<_> = (0..4).map(|_| roll.turn(now, 2).subscribe.len()).collect();
    assert_eq!(lengths, [2, 2, 1, 0]);
}

proptest! {
    /// After all questions are answered, the Redis sends exactly what is wanted, and nothing is left behind.
    #[test]
    fn random_lives_end_with_what_is_wanted(steps in prop::collection::vec((0..8_u8, 0..4_u8), 0..80)) {
        let (mut roll, mut now) = (Roll::<u32>::default(), Instant::now());
        let mut wanted = std::collections::BTreeSet::new();
        let mut sent: VecDeque<(bool, Arc<str>)> = VecDeque::new();
        let mut subscribed = std::collections::BTreeSet::new();
        for (step, channel) in steps.into_iter().chain([(7, 0)]).chain([(3, 0); 20]).chain([(4, 0); 100]) {
            let channel = channel.to_string();
            match step {
                0 | 1 => {
                    roll.want(&channel);
                    wanted.insert(channel);
                }
                2 => {
                    roll.leave(&channel, now);
                    wanted.remove(&channel);
                }
                3 => {
                    now += DELAY / 2;
                    let turn = roll.turn(now, 3);
                    sent.extend(turn.subscribe.into_iter().map(|name| (true, name)));
                    sent.extend(turn.unsubscribe.into_iter().map(|name| (false, name)));
                }
                4 => {
                    if let Some((is_subscribe, name)) = sent.pop_front() {
                        if is_subscribe {
                            subscribed.insert(name.to_string());
                        } else {
                            subscribed.remove(&*name);
                        }
                        let done = if is_subscribe { Done::Subscribed } else { Done::Unsubscribed };
                        roll.confirmed(&name, done);
                    }
                }
                // The Redis takes a channel away by itself.
                6 if sent.is_empty() && subscribed.remove(&channel) => {
                    let confirmed = roll.confirmed(&channel, Done::Unsubscribed);
                    prop_assert_eq!(confirmed.is_displaced, wanted.contains(&channel));
                }
                6 | 7 => {
                    roll.ask_displaced();
                }
                _ => {
                    roll.lost();
                    sent.clear();
                    subscribed.clear();
                }
            }
        }
        prop_assert!(sent.is_empty());
        prop_assert_eq!(&subscribed, &wanted);
        prop_assert_eq!(roll.len(), wanted.len());
        for channel in wanted {
            prop_assert_eq!(heard(roll.wait(&channel, now, 0)), Some(true));
        }
    }
}
