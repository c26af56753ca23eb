//! Tests of subscriber lists: found, moved, dropped, shrunk.
//! In: joins and leaves → out: lists, indices, memory.
//! Uses: nothing but the lists.
//! That sessions agree with the lists is tested in `session_table/tests.rs`.

use super::*;

fn subscriber(connection: u32) -> Subscriber {
    Subscriber::new(connection, SubscriptionIndex(connection + 100))
}

#[test]
fn a_channel_is_found_as_long_as_it_has_subscribers() {
    let mut subscribers = Subscribers::default();
    let (a, own) = subscribers.add("a".into(), subscriber(1), Encoding::Json);
    assert_eq!(
        (subscribers.find("a"), subscribers.find("b"), own),
        (Some(a), None, SubscriberIndex(0))
    );
    assert_eq!(
        subscribers.add("a".into(), subscriber(2), Encoding::Protobuf),
        (a, SubscriberIndex(1))
    );
    assert_eq!(subscribers.channel_subscribers(a).json, 1);
    assert_eq!(
        subscribers.remove(a, SubscriberIndex(0), Encoding::Json),
        Some(subscriber(2)),
        "moved to 0"
    );
    assert_eq!(subscribers.channel_subscribers(a).json, 0);
    assert_eq!(subscribers.remove(a, SubscriberIndex(0), Encoding::Protobuf), None);
    assert_eq!(subscribers.find("a"), None);
    assert!(subscribers.channels.is_empty() && subscribers.names.is_empty());
}

#[test]
fn removing_the_last_of_a_list_moves_nobody() {
    let mut subscribers = Subscribers::default();
    for connection in 0..3 {
        subscribers.add("a".into(), subscriber(connection), Encoding::Json);
    }
    assert_eq!(subscribers.remove(0, SubscriberIndex(2), Encoding::Json), None);
    assert_eq!(subscribers.channel_subscribers(0).list.as_slice(), [subscriber(0), subscriber(1)]);
}

#[test]
fn many_channels_are_told_apart() {
    let mut subscribers = Subscribers::default();
    let indices: Vec<_> = (0..2_000)
        .map(|n| subscribers.add(n.to_string().into(), subscriber(n), Encoding::Json).0)
        .collect();
    for index in indices.iter().step_by(2) {
        subscribers.remove(*index, SubscriberIndex(0), Encoding::Json);
    }
    for (n, index) in indices.iter().enumerate() {
        let expected = (n % 2 == 1).then_some(*index);
        assert_eq!(subscribers.find(&n.to_string()), expected);
    }
}

#[test]
fn a_list_gives_memory_back_after_a_crowd_has_left() {
    let mut subscribers = Subscribers::default();
    for connection in 0..10_000 {
        subscribers.add("a".into(), subscriber(connection), Encoding::Json);
    }
    for own in (1..10_000).rev() {
        subscribers.remove(0, SubscriberIndex(own), Encoding::Json);
    }
    assert!(subscribers.channel_subscribers(0).list.capacity() <= SHRINK_FROM);
}

#[test]
fn a_subscriber_takes_eight_bytes() {
    assert_eq!(size_of::<Subscriber>(), 8);
}

#[test]
fn marks_stay_with_a_subscriber_wherever_it_moves() {
    let mut subscribers = Subscribers::default();
    subscribers.add("a".into(), subscriber(0), Encoding::Json);
    subscribers.add("a".into(), subscriber(1), Encoding::Json);
    subscribers.channel_subscribers_mut(0).mark_filter(SubscriberIndex(1), true);
    subscribers.channel_subscribers_mut(0).want_join_leave(SubscriberIndex(1));
    subscribers.moved(0, SubscriberIndex(1), SubscriptionIndex(5));
    let moved =
        subscribers.remove(0, SubscriberIndex(0), Encoding::Json).expect("the last one moves");
    assert_eq!((moved.connection, moved.subscription()), (1, SubscriptionIndex(5)));
    assert!(moved.has_filter() && moved.wants_join_leave());
    assert!(!subscriber(1).has_filter() && !subscriber(1).wants_join_leave());
}
