//! Occupied and vacated channels of this node: one event for the first subscriber, one for a while without any.
//! In: subscriptions and their ends, the time → out: whether a channel becomes occupied, which ones are vacated.
//! Uses values only. Never: the time other than that of its caller.
//! Changed here: the delay, in which a client that reloads its page changes nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Occupancy {
    subscribers: HashMap<Arc<str>, usize>,
    /// Channels without subscribers, and since when.
    empty: HashMap<Arc<str>, Instant>,
    vacated_delay: Duration,
}

impl Occupancy {
    pub(crate) fn new(vacated_delay: Duration) -> Self {
        Self { subscribers: HashMap::new(), empty: HashMap::new(), vacated_delay }
    }

    /// A subscription began. Returns whether the channel becomes occupied.
    pub(crate) fn enter(&mut self, channel: &Arc<str>) -> bool {
        let count = self.subscribers.entry(Arc::clone(channel)).or_default();
        *count += 1;
        *count == 1 && self.empty.remove(channel).is_none()
    }

    /// A subscription ended.
    pub(crate) fn leave(&mut self, channel: &Arc<str>, now: Instant) {
        let Some(count) = self.subscribers.get_mut(channel) else { return };
        *count -= 1;
        if *count == 0 {
            self.subscribers.remove(channel);
            self.empty.insert(Arc::clone(channel), now);
        }
    }

    /// The channels that have had no subscriber for the delay; each once.
    pub(crate) fn vacated(&mut self, now: Instant) -> Vec<Arc<str>> {
        let delay = self.vacated_delay;
        let vacated = self.empty.extract_if(|_, since| *since + delay <= now);
        vacated.map(|(channel, _)| channel).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_vacated_after_the_delay_unless_somebody_returns() {
        let (mut occupancy, start) = (Occupancy::new(Duration::from_secs(5)), Instant::now());
        let channel: Arc<str> = "a".into();
        assert!(occupancy.enter(&channel));
        assert!(!occupancy.enter(&channel));
        occupancy.leave(&channel, start);
        assert!(occupancy.vacated(start + Duration::from_secs(9)).is_empty(), "one is left");
        occupancy.leave(&channel, start);
        assert!(occupancy.vacated(start + Duration::from_secs(4)).is_empty());
        assert!(!occupancy.enter(&channel), "it was not vacated yet");
        occupancy.leave(&channel, start);
        assert_eq!(
            occupancy.vacated(start + Duration::from_secs(5)),
            std::slice::from_ref(&channel)
        );
        assert!(occupancy.vacated(start + Duration::from_secs(9)).is_empty(), "once");
        assert!(occupancy.enter(&channel));
        occupancy.leave(&"b".into(), start);
    }
}
