//! Tests of the port of chance: parts of a time stay between its ends, ids have their form.
//! In: fixed bits, or those of the system → out: durations and ids.
//! Uses nothing else. Never: a distribution.
//! A new rule is a test here.

use std::time::Duration;

use super::{Chance, SystemChance};

struct Fixed(u64);

impl Chance for Fixed {
    fn bits(&self) -> u64 {
        self.0
    }
}

#[test]
fn parts_of_a_time_are_between_its_ends() {
    let second = Duration::from_secs(1);
    for bits in [0, 1, u64::MAX / 2, u64::MAX] {
        let chance: &dyn Chance = &Fixed(bits);
        assert!(chance.part_of(second) <= second);
        assert!(chance.second_half_of(second) >= second / 2);
        assert!(chance.second_half_of(second) <= second);
    }
}

#[test]
fn ids_have_their_version_and_differ() {
    let chance: &dyn Chance = &SystemChance;
    let first = chance.id();
    let second = chance.id();
    assert_eq!(first.get_version_num(), 4);
    assert_ne!(first, second);
}
