//! Tests of wake-ups: when a sleeping shard is woken.
//! In: messages, some of them while wake-ups are postponed → out: events of the shard's poller.
//! Uses a poller without sockets; never a shard.
//! Changed here: expectations of `shard::wake_ups`.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use mio::{Events, Poll, Token};

use super::{MESSAGES_PER_WAKE_UP, ShardSleep, wake_shards_after};

/// A shard that sleeps.
struct Sleeper {
    poll: Poll,
    sleep: Arc<ShardSleep>,
}

impl Sleeper {
    fn new() -> Self {
        let poll = Poll::new().expect("a poller");
        let waker = mio::Waker::new(poll.registry(), Token(0)).expect("a waker");
        let sleep = ShardSleep::new(waker);
        sleep.set_asleep(true);
        Self { poll, sleep }
    }

    /// Whether it was woken. Then it sleeps again.
    fn is_woken(&mut self) -> bool {
        let mut events = Events::with_capacity(1);
        self.poll.poll(&mut events, Some(Duration::ZERO)).expect("a poller");
        let is_woken = !events.is_empty();
        if is_woken {
            self.sleep.set_asleep(true);
        }
        is_woken
    }
}

#[test]
fn a_message_wakes_at_once_unless_that_is_postponed() {
    let mut shard = Sleeper::new();
    shard.sleep.message_sent();
    assert!(shard.is_woken());

    wake_shards_after(|| {
        shard.sleep.message_sent();
        shard.sleep.message_sent();
        assert!(!shard.is_woken());
    });
    assert!(shard.is_woken());
    assert!(!shard.is_woken());
}

#[test]
fn a_shard_that_is_awake_is_not_woken() {
    let mut shard = Sleeper::new();
    shard.sleep.set_asleep(false);
    wake_shards_after(|| shard.sleep.message_sent());
    assert!(!shard.is_woken());
}

#[test]
fn another_thread_wakes_a_shard_at_once() {
    let mut shard = Sleeper::new();
    let sleep = Arc::clone(&shard.sleep);
    wake_shards_after(|| {
        shard.sleep.message_sent();
        let other = std::thread::spawn(move || sleep.message_sent());
        other.join().expect("it does not panic");
        assert!(shard.is_woken());
    });
}

#[test]
fn many_messages_wake_before_the_end() {
    let mut shard = Sleeper::new();
    wake_shards_after(|| {
        for _ in 1..MESSAGES_PER_WAKE_UP {
            shard.sleep.message_sent();
        }
        assert!(!shard.is_woken());
        shard.sleep.message_sent();
        assert!(shard.is_woken());
    });
    assert!(!shard.is_woken());
}

#[test]
fn the_inner_of_two_wakes_its_own() {
    let mut inner = Sleeper::new();
    let mut outer = Sleeper::new();
    wake_shards_after(|| {
        wake_shards_after(|| inner.sleep.message_sent());
        assert!(inner.is_woken());
        outer.sleep.message_sent();
        assert!(!outer.is_woken());
    });
    assert!(outer.is_woken());
}

#[test]
fn a_panic_wakes_the_shards() {
    let mut shard = Sleeper::new();
    let sleep = Arc::clone(&shard.sleep);
    let panicked = std::panic::catch_unwind(AssertUnwindSafe(|| {
        wake_shards_after(|| {
            sleep.message_sent();
            panic!("in the work");
        })
    }));
    assert!(panicked.is_err());
    assert!(shard.is_woken());
    shard.sleep.message_sent();
    assert!(shard.is_woken());
}
