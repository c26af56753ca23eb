//! Tests of all channels of a node: turns, the limit of calls, beginning and end of a channel.
//! In: keys and answers of several channels at virtual times → out: requests.
//! Uses nothing else. Never: a clock it does not set.
//! Changed here: tests of what channels share.

use std::time::Duration;

use super::*;
use crate::shared_poll::{DirectPublish, KeyUpdate, PollItem, PollMode};

struct Subject {
    table: PollTable,
    start: Instant,
    options: PollOptions,
}

impl Subject {
    fn new(calls_max: usize) -> Self {
        let refresh_interval = Duration::from_secs(1);
        let options = PollOptions { refresh_interval, ..PollOptions::default() };
        Self { table: PollTable::new(calls_max, 10), start: Instant::now(), options }
    }

    fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    fn track(&mut self, name: &str, key: &str, ms: u64) -> Option<KeyUpdate> {
        let now = self.at(ms);
        self.table.begin(name, self.options, "epoch");
        self.table.with(name, now, |channel| channel.track(key, 0, now))?
    }

    fn untrack(&mut self, name: &str, key: &str, ms: u64) {
        let now = self.at(ms);
        self.table.with(name, now, |channel| channel.untrack(key)).expect("it is there");
    }

    fn requests(&mut self, ms: u64) -> Vec<(Arc<str>, PollRequest)> {
        let now = self.at(ms);
        std::iter::from_fn(|| self.table.poll(now)).collect()
    }

    /// The channels of the requests at a time.
    fn polled(&mut self, ms: u64) -> Vec<String> {
        self.requests(ms).iter().map(|(name, _)| name.to_string()).collect()
    }

    fn answer(&mut self, asked: &(Arc<str>, PollRequest), ms: u64) -> usize {
        let now = self.at(ms);
        let (name, request) = asked;
        let item = |(key, _): &(Arc<str>, u64)| PollItem {
            key: key.to_string(),
            data: "value".into(),
            ..PollItem::default()
        };
        let items = request.keys.iter().map(item).collect();
        let answer = PollAnswer { items, ..PollAnswer::default() };
        self.table.answer(name, request.id, Some(answer), now).len()
    }
}

#[test]
fn calls_are_limited_and_channels_get_their_turns() {
    let mut subject = Subject::new(2);
    for name in ["a", "b", "c", "d"] {
        subject.track(name, "k", 0);
    }
    let running = subject.requests(0);
    assert_eq!(running.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["a", "b"]);
    assert!(subject.polled(1).is_empty());
    subject.answer(&running[1], 2);
    let next = subject.requests(2);
    assert_eq!(next.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["c"]);
    subject.track("b", "other", 3);
    subject.answer(&running[0], 3);
    assert_eq!(subject.polled(3), ["d"], "which waits for longer than b");
    subject.answer(&next[0], 4);
    assert_eq!(subject.polled(4), ["b"]);
}

#[test]
fn every_channel_is_polled_in_each_interval_of_its_own() {
    let mut subject = Subject::new(64);
    subject.track("a", "k", 0);
    subject.track("b", "k", 300);
    for asked in subject.requests(300) {
        assert_eq!(subject.answer(&asked, 300), 1);
    }
    assert!(subject.polled(301).is_empty());
    assert_eq!(subject.table.deadline(), Some(subject.at(1000)));
    assert!(subject.polled(1300).is_empty(), "both were polled in the interval before");
    let mut times = Vec::new();
    for ms in 1301..4000 {
        for asked in subject.requests(ms) {
            times.push((ms, asked.0.to_string()));
            assert_eq!(subject.answer(&asked, ms), 0, "it is unchanged");
        }
    }
    let expect = [(2000, "a"), (2300, "b"), (3000, "a"), (3300, "b")];
    assert!(times.iter().map(|(ms, name)| (*ms, &**name)).eq(expect));
}

#[test]
fn a_channel_ends_some_time_after_its_last_key() {
    let mut subject = Subject::new(64);
    subject.track("a", "k", 0);
    let asked = subject.requests(0).remove(0);
    subject.untrack("a", "k", 100);
    subject.polled(1099);
    assert_eq!(subject.table.epoch("a").map(str::to_owned), Some("epoch".into()));
    subject.track("a", "k", 1099);
    subject.untrack("a", "k", 1099);
    subject.polled(2098);
    assert!(subject.table.epoch("a").is_some());
    subject.polled(2099);
    assert!(subject.table.epoch("a").is_none());
    assert_eq!(subject.table.deadline(), None);
    assert_eq!(subject.answer(&asked, 2100), 0, "an answer that comes later");
    subject.track("a", "k", 2200);
    let again = subject.requests(2200).remove(0);
    assert_ne!(again.1.id, asked.1.id);
    assert_eq!(subject.answer(&asked, 2300), 0, "nor is it one of the new channel");
    assert_eq!(subject.answer(&again, 2300), 1);
    assert_eq!(subject.table.counts().late, 1);
}

#[test]
fn a_direct_publish_reaches_a_channel_that_exists() {
    let mut subject = Subject::new(64);
    subject.options.mode = PollMode::Versioned;
    assert!(subject.table.epoch("a").is_none());
    subject.track("a", "k", 0);
    let publish =
        DirectPublish { key: "k".into(), data: "value".into(), version: 1, epoch: "epoch".into() };
    let now = subject.at(1);
    let effects = subject.table.with("a", now, |channel| channel.publish(publish, now));
    assert_eq!(effects.expect("it is there").len(), 1);
    assert!(subject.track("a", "k", 2).is_some());
    assert!(subject.polled(3).is_empty(), "the value is known");
}

/// A value has 5 bytes, and there is room for two of them.
#[test]
fn all_channels_share_the_memory_for_values() {
    let mut subject = Subject::new(64);
    for name in ["a", "b", "c"] {
        subject.track(name, "k", 0);
    }
    for asked in subject.requests(0) {
        assert_eq!(subject.answer(&asked, 0), 1, "those who track the key get the value");
    }
    let kept = |subject: &mut Subject, ms| {
        let names = ["a", "b", "c"].into_iter();
        let has_value = |name: &&str| subject.track(name, "k", ms).is_some();
        names.filter(has_value).collect::<Vec<_>>()
    };
    assert_eq!(kept(&mut subject, 1), ["a", "b"]);
    let asked = subject.requests(2);
    assert_eq!(asked.len(), 1, "c is polled again");
    (0..2).for_each(|_| subject.untrack("a", "k", 3));
    subject.polled(1003);
    assert!(subject.table.epoch("a").is_none(), "its memory is free");
    assert_eq!(subject.answer(&asked[0], 1004), 1);
    subject.track("a", "k", 1005);
    assert_eq!(kept(&mut subject, 1006), ["b", "c"]);
}
