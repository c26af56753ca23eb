//! Wakes a shard that waits for events: at once, or after several messages of one thread.
//! In: messages to sleeping shards → out: wake-ups of their pollers.
//! Uses the poller's waker; never takes a lock.
//! Changed here: when a sleeping shard is woken. What it is sent lives in `inbox`.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// Whether a shard waits for events, and what wakes it.
pub(super) struct ShardSleep {
    /// The shard waits for events, or is about to.
    is_asleep: AtomicBool,
    waker: mio::Waker,
}

impl ShardSleep {
    pub(super) fn new(waker: mio::Waker) -> Arc<Self> {
        Arc::new(Self { is_asleep: AtomicBool::new(false), waker })
    }

    pub(super) fn set_asleep(&self, is_asleep: bool) {
        self.is_asleep.store(is_asleep, Relaxed);
    }

    /// To be called after each message. Wakes the shard if it sleeps, unless the wake-up is postponed.
    pub(super) fn message_sent(self: &Arc<Self>) {
        if self.is_asleep.load(Relaxed) && !postpone(self) {
            self.wake();
        }
    }

    fn wake(&self) {
        if self.is_asleep.swap(false, Relaxed) {
            // An eventfd write fails only when its counter is full, and then the shard is already awake.
            let _ = self.waker.wake();
        }
    }
}

/// Runs `work`. Each sleeping shard that gets messages is woken once, after `work`, because a wake-up costs as much as a
/// publication. After [`MESSAGES_PER_WAKE_UP`] messages the shards are woken during `work`.
pub fn wake_shards_after<T>(work: impl FnOnce() -> T) -> T {
    let _postponement = Postponement::begin();
    work()
}

/// Postpones the wake-ups of this thread until it is dropped.
struct Postponement {
    /// Those that were postponed before.
    outer: Option<PostponedWakeUps>,
}

/// The sleeping shards that were sent messages.
#[derive(Default)]
struct PostponedWakeUps {
    shards: Vec<Arc<ShardSleep>>,
    /// Messages since shards were woken.
    messages: usize,
}

thread_local! {
    static POSTPONED: RefCell<Option<PostponedWakeUps>> = const { RefCell::new(None) };
}

impl Postponement {
    fn begin() -> Self {
        Self { outer: POSTPONED.replace(Some(PostponedWakeUps::default())) }
    }
}

impl Drop for Postponement {
    fn drop(&mut self) {
        if let Some(mut postponed) = POSTPONED.replace(self.outer.take()) {
            postponed.wake_all();
        }
    }
}

impl PostponedWakeUps {
    fn add(&mut self, shard: &Arc<ShardSleep>) {
        if !self.shards.iter().any(|known| Arc::ptr_eq(known, shard)) {
            self.shards.push(Arc::clone(shard));
        }
        self.messages += 1;
        if self.messages == MESSAGES_PER_WAKE_UP {
            self.wake_all();
        }
    }

    fn wake_all(&mut self) {
        self.messages = 0;
        self.shards.drain(..).for_each(|shard| shard.wake());
    }
}

/// Notes that a sleeping shard has a message. Returns false outside of [`wake_shards_after`].
fn postpone(shard: &Arc<ShardSleep>) -> bool {
    POSTPONED.with_borrow_mut(|postponed| {
        let Some(postponed) = postponed else { return false };
        postponed.add(shard);
        true
    })
}

/// A shard begins with its first messages while the sender makes more of them.
const MESSAGES_PER_WAKE_UP: usize = 128;

#[cfg(test)]
mod tests;
