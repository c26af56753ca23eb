//! Tests of the schedule at virtual times.
//! In: uses of maps and results of looks at given seconds → out: the maps that are due.
//! Uses: no Redis. Never: a clock it does not set.
//! Changed here: tests of when a map is looked at.

use super::*;

struct Subject {
    schedule: SweepSchedule,
    start: Instant,
}

impl Subject {
    fn new() -> Self {
        Self { schedule: SweepSchedule::default(), start: Instant::now() }
    }

    fn at(&self, second: u64) -> Instant {
        self.start + Duration::from_secs(second)
    }

    fn publish(&mut self, name: &str, second: u64) {
        let now = self.at(second);
        self.schedule.add(map(name), KEY_TTL, now);
    }

    /// The names of the maps that are due at a second.
    fn due(&mut self, second: u64) -> Vec<String> {
        let now = self.at(second);
        let due = self.schedule.take_due(10, now);
        due.into_iter().map(|map| map.name.to_string()).collect()
    }

    fn swept(&mut self, name: &str, result: SweepResult, second: u64) {
        let now = self.at(second);
        self.schedule.swept(&name.into(), result, now);
    }
}

const KEY_TTL: Duration = Duration::from_secs(60);

fn map(name: &str) -> MapChannel<'_> {
    MapChannel { name, retention: MapRetention { key_ttl: KEY_TTL, ..MapRetention::default() } }
}

fn next(seconds: u64) -> SweepResult {
    SweepResult::Next(Duration::from_secs(seconds))
}

#[test]
fn a_map_that_was_changed_is_looked_at_when_its_first_entry_ends() {
    let mut subject = Subject::new();
    subject.publish("a", 0);
    subject.publish("a", 30);
    assert!(subject.due(59).is_empty());
    assert_eq!(subject.due(60), ["a"]);
    assert!(subject.due(60).is_empty(), "one look at a time");
    subject.swept("a", next(30), 60);
    assert!(subject.due(89).is_empty());
    assert_eq!(subject.due(90), ["a"]);
    subject.swept("a", SweepResult::Empty, 90);
    assert!(subject.due(1000).is_empty());
    assert!(subject.schedule.maps.is_empty(), "it is forgotten");
}

#[test]
fn a_map_that_is_followed_is_looked_at_for_entries_of_other_nodes() {
    let mut subject = Subject::new();
    let start = subject.start;
    subject.schedule.follow(map("a"), start);
    assert_eq!(subject.due(0), ["a"], "entries may be left");
    subject.swept("a", SweepResult::Empty, 0);
    assert!(subject.due(59).is_empty());
    assert_eq!(subject.due(60), ["a"]);
    subject.swept("a", next(1000), 60);
    assert_eq!(subject.due(120), ["a"], "another node may have a shorter lifetime");
    subject.schedule.unfollow("a");
    subject.schedule.unfollow("never used");
    subject.swept("a", SweepResult::Empty, 120);
    assert!(subject.due(1000).is_empty());
}

#[test]
fn a_change_during_a_look_keeps_its_map() {
    let mut subject = Subject::new();
    subject.publish("a", 0);
    assert_eq!(subject.due(60), ["a"]);
    subject.publish("a", 60);
    subject.swept("a", SweepResult::Empty, 60);
    assert_eq!(subject.due(120), ["a"], "the look may have come before the change");
}

#[test]
fn a_look_that_failed_is_repeated() {
    let mut subject = Subject::new();
    subject.publish("a", 0);
    assert_eq!(subject.due(60), ["a"]);
    subject.swept("a", SweepResult::Failed, 60);
    assert!(subject.due(60).is_empty());
    assert_eq!(subject.due(61), ["a"]);
}

#[test]
fn a_persistent_map_is_never_looked_at() {
    let mut subject = Subject::new();
    let channel = MapChannel { name: "a", retention: MapRetention::default() };
    let start = subject.start;
    subject.schedule.follow(channel, start);
    assert!(subject.due(1_000_000).is_empty());
}

#[test]
fn many_maps_are_taken_by_their_times_and_in_parts() {
    let mut subject = Subject::new();
    for second in 0..25 {
        subject.publish(&second.to_string(), second);
    }
    let expect = |numbers: std::ops::Range<u64>| numbers.map(|number| number.to_string());
    assert!(subject.due(84).into_iter().eq(expect(0..10)));
    assert!(subject.due(84).into_iter().eq(expect(10..20)));
    assert!(subject.due(84).into_iter().eq(expect(20..25)));
}
