//! Tests of presence in memory: the promises of every store, sharing, and memory that is freed.
//! In: members that are added and removed at virtual times → out: the members, the memory in use.
//! Uses: the conformance suite; never a clock it does not set.
//! Promises that all stores share live in `presence/conformance.rs`.

use super::*;
use crate::presence::conformance;

const TTL: Duration = Duration::from_secs(60);

fn info(client: usize) -> ClientInfo {
    ClientInfo {
        user: format!("user {}", client / 2),
        client: format!("client {client}"),
        ..ClientInfo::default()
    }
}

/// Number of channels that use memory.
fn channels(presence: &MemoryPresence) -> usize {
    presence.stripes.iter().map(|stripe| stripe.lock().len()).sum()
}

#[test]
fn presence_in_memory_keeps_the_promises_of_presence() {
    conformance::check(&|| Arc::new(MemoryPresence::new()));
}

#[test]
fn ten_thousand_members_are_shared_and_not_copied() {
    let (presence, now) = (MemoryPresence::new(), Instant::now());
    for client in 0..10_000 {
        presence.add("a", info(client), TTL, now).wait().expect("never fails");
    }
    let first = presence.members("a", now).wait().expect("never fails");
    let second = presence.members("a", now).wait().expect("never fails");
    assert_eq!(first.len(), 10_000);
    assert!(first.iter().zip(&second).all(|(one, other)| Arc::ptr_eq(one, other)));
    let stats = presence.stats("a", now).wait().expect("never fails");
    assert_eq!(stats, PresenceStats { clients: 10_000, users: 5_000 });
}

#[test]
fn a_renewal_that_changes_nothing_keeps_the_member_as_it_is() {
    let (presence, now) = (MemoryPresence::new(), Instant::now());
    presence.add("a", info(1), TTL, now).wait().expect("never fails");
    let before = presence.members("a", now).wait().expect("never fails");
    presence.add("a", info(1), TTL, now + TTL / 2).wait().expect("never fails");
    let after = presence.members("a", now + TTL).wait().expect("never fails");
    assert!(Arc::ptr_eq(&before[0], &after[0]));
}

#[test]
fn a_channel_without_members_takes_no_memory() {
    let (presence, now) = (MemoryPresence::new(), Instant::now());
    for channel in ["a", "b"] {
        presence.add(channel, info(1), TTL, now).wait().expect("never fails");
    }
    presence.remove("a", "client 1").wait().expect("never fails");
    assert_eq!(channels(&presence), 1);
    for _ in 0..STRIPES {
        presence.sweep(now + TTL - Duration::from_nanos(1));
    }
    assert_eq!(channels(&presence), 1, "it has not expired");
    for _ in 0..STRIPES {
        presence.sweep(now + TTL);
    }
    assert_eq!(channels(&presence), 0);
}

#[test]
fn removing_many_members_shrinks_the_table() {
    let (mut channel_members, now) = (ChannelMembers::default(), Instant::now());
    for client in 0..1000 {
        channel_members.add(info(client), now);
    }
    for client in 1..1000 {
        channel_members.remove(&format!("client {client}"));
    }
    assert_eq!(channel_members.stats(), PresenceStats { clients: 1, users: 1 });
    let small = channel_members.members().map(|info| info.client.as_str()).collect::<Vec<_>>();
    assert_eq!(small, ["client 0"]);
}
