//! Tests of the list of modes.
//! In: numbers of channels → out: modes.
//! Uses the room's functions. Never: measures.
//! A new group is a test here.

use super::{Group, Mode, all};

fn of(group: Group, channels: usize) -> Vec<String> {
    let modes = all(channels).into_iter().filter(|mode| mode.group() == group);
    modes.map(|mode| mode.to_string()).collect()
}

#[test]
fn modes_of_a_group_stand_together_and_raw_is_the_first() {
    let modes = all(5);
    assert_eq!(modes[0], Mode::Raw);
    let mut groups: Vec<Group> = modes.iter().map(|mode| mode.group()).collect();
    groups.dedup();
    assert_eq!(groups.len(), 6);
}

#[test]
fn every_level_and_every_window_is_there() {
    assert_eq!(of(Group::Standalone, 5).len(), 9);
    assert_eq!(of(Group::Dedicated, 5).len(), 9);
    assert_eq!(of(Group::Delta, 5), ["alone", "and standalone"]);
    let depths = ["K = 0", "K = 1", "K = 2", "K = 4", "K = 8", "K = 16", "whole window"];
    assert_eq!(of(Group::OneChannel, 5), depths);
}

#[test]
fn interleaved_channels_have_the_depths_that_gaps_can_have() {
    let depths = of(Group::Interleaved, 5);
    assert!(depths.starts_with(&["K = 0", "K = 1", "K = 2", "K = 4"].map(String::from)));
    assert!(of(Group::Interleaved, 1).is_empty());
}
