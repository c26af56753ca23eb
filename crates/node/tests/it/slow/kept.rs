//! What is kept for those who wait, and for how long: limits with their consequences, and what waiting costs nobody.
//! In: clients that wait for a slow broker, orders, publications, time → out: who is let in, who is disconnected.
//! Uses: the slow world of the room above. Never: threads.
//! Change here: promises about limits of waiting. Order and completeness are tested in the room above.

use super::{SlowWorld, tracked};

#[test]
fn a_channel_that_somebody_is_always_entering_lets_everybody_in() {
    let mut slow = SlowWorld::with(tracked(), &["ada", "eve", "bob"]); // ada and bob are on one shard
    let (mut entering, mut other, mut id, mut published) = ("ada", "bob", 1, 0);
    let subscribe = |id| format!(r#"{{"id":{id},"subscribe":{{"channel":"news"}}}}"#);
    slow.world.say(other, &subscribe(id));
    for _ in 0..4 {
        id += 1;
        slow.world.say(entering, &subscribe(id));
        slow.answer(0); // the other one is in
        let reply = slow.world.heard(other).expect("a reply");
        assert!(reply.contains(r#""subscribe":{"#), "after {published} publications: {reply}");
        slow.world.say(other, r#"{"id":9,"unsubscribe":{"channel":"news"}}"#);
        while slow.world.heard(other).is_some() {}
        for _ in 0..1400 {
            published += 1;
            slow.publish("news", &published.to_string());
            slow.answer(1);
        }
        std::mem::swap(&mut entering, &mut other);
    }
}
