//! Tests of `publish_many`: other tasks run between the parts, and every channel is published to.
//! In: channels, polls. Out: the number of channels with a publication.
//! Uses a node whose channels keep history. Never: an executor.
//! Changed here: tests of `publish_many.rs`. The result of a broadcast is tested in `tests/it`.

use std::pin::pin;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use fanwire_node::Node;
use fanwire_node::Page;
use fanwire_node::options::Options;

use super::*;

struct Fixture {
    node: Arc<Node>,
    channels: Vec<String>,
    now: Instant,
}

impl Fixture {
    fn new(channels: usize) -> Self {
        let mut options = Options::default();
        options.channel.without_namespace.history_size = 1;
        options.channel.without_namespace.history_ttl = Duration::from_secs(60);
        let node = Node::new(options).expect("the options are valid");
        let channels = (0..channels).map(|number| format!("channel {number}")).collect();
        Self { node, channels, now: Instant::now() }
    }

    fn published(&self) -> usize {
        let has_publication = |channel: &&String| {
            let page = Page { limit: Some(1), ..Page::default() };
            let slice = self
                .node
                .channels()
                .history(channel, &page, self.now)
                .wait()
                .expect("it has history");
            slice.top.offset == 1
        };
        self.channels.iter().filter(has_publication).count()
    }

    /// The number of channels with a publication after each poll, and after the drop.
    fn after_polls(&self, polls: usize) -> Vec<usize> {
        let publication = Publication { data: "1".into(), ..Publication::default() };
        let options = PublishOptions::default();
        let mut published = Vec::new();
        {
            let publish_many = PublishMany::new(
                self.node.channels().publisher(),
                &self.channels,
                publication,
                options,
                self.now,
            );
            let mut publish_many = pin!(publish_many);
            let mut context = Context::from_waker(Waker::noop());
            for _ in 0..polls {
                let polled = publish_many.as_mut().poll(&mut context);
                published.push(self.published());
                if let Poll::Ready(pending) = polled {
                    assert_eq!(pending.len(), self.channels.len());
                    break;
                }
            }
        }
        published.push(self.published());
        published
    }
}

#[test]
fn other_tasks_run_between_two_parts() {
    let check = |channels, expect: &[usize]| {
        assert_eq!(Fixture::new(channels).after_polls(9), expect, "{channels} channels");
    };
    check(1, &[1, 1]);
    check(PART_MIN, &[PART_MIN, PART_MIN]);
    check(PART_MIN + 1, &[PART_MIN, PART_MIN + 1, PART_MIN + 1]);
    check(100, &[34, 68, 100, 100]);
    let end = 3 * PART_MAX;
    check(end + 1, &[PART_MAX, 2 * PART_MAX, end, end + 1, end + 1]);
}

#[test]
fn a_dropped_broadcast_is_published_completely() {
    assert_eq!(Fixture::new(2 * PART_MIN).after_polls(1), [PART_MIN, 2 * PART_MIN]);
    assert_eq!(Fixture::new(2).after_polls(0), [2]);
}
