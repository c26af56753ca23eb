//! Tests of beginning a broadcast in parts: others have a turn in between, and whatever happens all of it is published.
//! In: channels, polls. Out: how many of the channels have a publication.
//! Uses a node whose channels keep history. Never: an executor.
//! Change here: tests of `spread.rs`. What a broadcast answers is tested in `tests/it`.

use std::pin::pin;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use fanwire_node::Page;
use fanwire_node::options::Options;

use super::*;

struct World {
    node: Arc<Node>,
    channels: Vec<String>,
    now: Instant,
}

impl World {
    fn new(channels: usize) -> Self {
        let mut options = Options::default();
        options.channel.without_namespace.history_size = 1;
        options.channel.without_namespace.history_ttl = Duration::from_secs(60);
        let node = Node::new(options).expect("the options are valid");
        let channels = (0..channels).map(|number| format!("channel {number}")).collect();
        Self { node, channels, now: Instant::now() }
    }

    fn published(&self) -> usize {
        let has_one = |channel: &&String| {
            let page = Page { limit: Some(1), ..Page::default() };
            let stretch = self.node.history(channel, &page, self.now).wait().expect("it has one");
            stretch.top.offset == 1
        };
        self.channels.iter().filter(has_one).count()
    }

    /// How many channels have a publication after each poll, and at last when nobody polls any more.
    fn after_polls(&self, polls: usize) -> Vec<usize> {
        let publication = Publication { data: "1".into(), ..Publication::default() };
        let options = PublishOptions::default();
        let mut published = Vec::new();
        {
            let spread = Spread::new(&self.node, &self.channels, publication, options, self.now);
            let mut spread = pin!(spread);
            let mut context = Context::from_waker(Waker::noop());
            for _ in 0..polls {
                let polled = spread.as_mut().poll(&mut context);
                published.push(self.published());
                if let Poll::Ready(begun) = polled {
                    assert_eq!(begun.len(), self.channels.len());
                    break;
                }
            }
        }
        published.push(self.published());
        published
    }
}

#[test]
fn others_have_a_turn_between_two_parts() {
    let check = |channels, expect: &[usize]| {
        assert_eq!(World::new(channels).after_polls(9), expect, "{channels} channels");
    };
    check(1, &[1, 1]);
    check(PART_MIN, &[PART_MIN, PART_MIN]);
    check(PART_MIN + 1, &[PART_MIN, PART_MIN + 1, PART_MIN + 1]);
    check(100, &[34, 68, 100, 100]);
    let end = 3 * PART_MAX;
    check(end + 1, &[PART_MAX, 2 * PART_MAX, end, end + 1, end + 1]);
}

#[test]
fn a_caller_who_goes_away_leaves_no_broadcast_half_done() {
    assert_eq!(World::new(2 * PART_MIN).after_polls(1), [PART_MIN, 2 * PART_MIN]);
    assert_eq!(World::new(2).after_polls(0), [2]);
}
