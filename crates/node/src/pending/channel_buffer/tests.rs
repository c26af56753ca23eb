//! Publications that a `ChannelBuffer` keeps for waiting sessions, and its limits.
//! In: waiters, broadcasts → out: what each is owed.
//! Uses: the channel_buffer alone. Never: hubs.
//! Changed here: tests of `pending/channel_buffer.rs`.

use std::time::Instant;

use fanwire_broker::Epoch;
use fanwire_policy::channel::NamespaceId;
use fanwire_protocol::Publication;

use super::*;

fn hold(channel_buffer: &mut ChannelBuffer, bytes: usize, count: usize) {
    for _ in 0..count {
        let publication = Publication { data: vec![b'1'; bytes].into(), ..Default::default() };
        let namespace = NamespaceId::default();
        let now = Instant::now();
        let made = Broadcast::new("news".into(), namespace, publication, Epoch::NONE, now);
        channel_buffer.hold(&Arc::new(made));
    }
}

#[test]
fn each_is_owed_what_was_held_since_it_came() {
    let mut channel_buffer = ChannelBuffer::default();
    let ada = channel_buffer.enter();
    hold(&mut channel_buffer, 1, 2);
    let bob = channel_buffer.enter();
    hold(&mut channel_buffer, 1, 3);
    assert_eq!(channel_buffer.leave(ada).map(|buffered| buffered.broadcasts.len()), Ok(5));
    assert!(!channel_buffer.is_empty());
    assert_eq!(channel_buffer.leave(bob).map(|buffered| buffered.broadcasts.len()), Ok(3));
    assert!(channel_buffer.is_empty());
}

#[test]
fn who_is_owed_too_many_is_refused_and_those_who_came_later_are_not() {
    let mut channel_buffer = ChannelBuffer::default();
    let ada = channel_buffer.enter();
    hold(&mut channel_buffer, 1, 1);
    let bob = channel_buffer.enter();
    hold(&mut channel_buffer, 1, HELD_MAX);
    assert_eq!(channel_buffer.leave(ada).err(), Some(ErrorCode::INTERNAL));
    assert_eq!(channel_buffer.leave(bob).map(|buffered| buffered.broadcasts.len()), Ok(HELD_MAX));
    let eve = channel_buffer.enter();
    assert_eq!(
        channel_buffer.leave(eve).map(|buffered| buffered.broadcasts.len()),
        Ok(0),
        "and no memory of what was too much"
    );
}

#[test]
fn who_is_owed_too_many_bytes_is_refused_and_they_are_given_back() {
    let mut channel_buffer = ChannelBuffer::default();
    let ada = channel_buffer.enter();
    hold(&mut channel_buffer, HELD_BYTES_MAX / 2, 2);
    let bob = channel_buffer.enter();
    hold(&mut channel_buffer, HELD_BYTES_MAX / 2, 1);
    assert_eq!(channel_buffer.leave(ada).err(), Some(ErrorCode::INTERNAL));
    assert_eq!(channel_buffer.buffered.len(), 2);
    assert_eq!(channel_buffer.leave(bob).map(|buffered| buffered.broadcasts.len()), Ok(1));
    let eve = channel_buffer.enter();
    hold(&mut channel_buffer, HELD_BYTES_MAX + 1, 1);
    assert_eq!((channel_buffer.buffered.len(), channel_buffer.bytes), (0, 0));
    assert_eq!(channel_buffer.leave(eve).err(), Some(ErrorCode::INTERNAL));
}

#[test]
fn a_doubt_is_for_those_who_are_on_the_way_in_when_it_comes() {
    let mut channel_buffer = ChannelBuffer::default();
    let ada = channel_buffer.enter();
    hold(&mut channel_buffer, 1, 1);
    let bob = channel_buffer.enter();
    channel_buffer.report_possible_gap();
    let eve = channel_buffer.enter();
    hold(&mut channel_buffer, 1, 1);
    for (from, expect) in [(ada, (2, true)), (bob, (1, true)), (eve, (1, false))] {
        let buffered = channel_buffer.leave(from).expect("it is not too much");
        assert_eq!((buffered.broadcasts.len(), buffered.may_have_gap), expect);
    }
}
