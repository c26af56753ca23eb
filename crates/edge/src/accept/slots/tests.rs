//! Tests of `slots`: what is scarce, and who gives way.
//! In: slots that are taken → out: time limits, woken connections.
//! Uses tokio's test runtime; never a socket.
//! Changed here: tests of `slots.rs`.

use std::future::poll_fn;

use fanwire_testing::wait_for_async;

use super::*;

#[tokio::test]
async fn peers_get_less_time_while_slots_are_scarce() {
    let ample = Duration::from_secs(180);
    for all in [10_000, 100] {
        let slots = ConnectionSlots::new(all);
        let mut taken = Vec::new();
        for count in 0..=all {
            let expected = if count > all - all / 2 { TIMEOUT_SCARCE } else { ample };
            assert_eq!(slots.limit(ample), expected, "{count} of {all}");
            assert_eq!(slots.may_keep(), count <= all - all / 8, "{count} of {all}");
            if count < all {
                taken.push(slots.take(|| panic!("one is free")).await);
            }
        }
    }
    assert_eq!(ConnectionSlots::new(1).limit(Duration::from_secs(1)), Duration::from_secs(1));
}

#[tokio::test]
async fn the_connection_that_is_idle_for_the_longest_time_gives_way() {
    let slots = ConnectionSlots::new(2);
    let [first, second] = [slots.take(|| {}).await, slots.take(|| {}).await];
    let mut idle = [slots.idle(), slots.idle()].map(Box::pin);
    let mut is_woken = async |number: usize| {
        poll_fn(|context| Poll::Ready(idle[number].as_mut().poll(context).is_ready())).await
    };
    assert!(!is_woken(0).await && !is_woken(1).await);
    let third = tokio::spawn({
        let slots = slots.clone();
        async move { slots.take(|| panic!("no shard has any")).await }
    });
    wait_for_async(async || is_woken(0).await, Duration::from_secs(10)).await;
    assert!(!is_woken(1).await);
    drop(first);
    drop((third.await.expect("a slot"), second));
}

#[tokio::test]
async fn clients_on_shards_give_way_before_backends() {
    let slots = ConnectionSlots::new(1);
    let only = slots.take(|| {}).await;
    let (on_shard, backend) = (slots.idle_on_shard(), slots.idle());
    let closed = slots.take(|| drop((on_shard, only)));
    let only = closed.await;
    let mut backend = Box::pin(backend);
    assert!(poll_fn(|context| Poll::Ready(backend.as_mut().poll(context).is_pending())).await);
    drop(only);
    let mut nothing = Box::pin(slots.take(|| panic!("no shard has any")));
    let is_pending = poll_fn(|context| Poll::Ready(nothing.as_mut().poll(context).is_pending()));
    assert!(!is_pending.await, "its slot is free again");
}
