//! Tests of the queue: numbers without a gap, and no event missing without a word.
//! In: events, removals → out: batches.
//! Uses proptest. Never: a backend.
//! Changed here: cases of full queues.

use proptest::prelude::*;

use super::*;
use crate::event::EventType;

fn event(number: usize) -> OutgoingEvent {
    OutgoingEvent::of_node(EventType::NodeGone, number.to_string())
}

proptest! {
    #[test]
    fn each_event_arrives_in_order_or_is_counted_where_it_is_missing(
        steps in prop::collection::vec((0_usize..8, 0_usize..8), 1..60),
        max in 1_usize..12,
    ) {
        let mut queue = EventQueue::new(max);
        let (mut pushed, mut received, mut seq) = (0, 0, 0);
        let mut take = |queue: &mut EventQueue, count: usize| {
            let batch: Vec<OutgoingEvent> = queue.batch(count, 0).into_iter().cloned().collect();
            for event in &batch {
                seq += 1;
                assert_eq!(event.seq, seq);
                match event.r#type {
                    EventType::Lost => received += event.count as usize,
                    _ => {
                        assert_eq!(event.node, received.to_string());
                        received += 1;
                    }
                }
            }
            queue.remove(batch.len());
            batch.len()
        };
        for (pushes, takes) in steps {
            for _ in 0..pushes {
                queue.push(event(pushed), 0);
                pushed += 1;
            }
            prop_assert!(queue.len() <= max + 1);
            take(&mut queue, takes);
        }
        while take(&mut queue, 5) > 0 {}
        prop_assert_eq!(received, pushed);
    }
}
