//! Tests of replaced filters: the marks in the lists of subscribers, the filter of the client, the tiles of a view.
//! In: filters of a server → out: what subscribers get, and how many of a channel have a filter.
//! Uses: the tables. Never: sessions of a node (see `tests/it/server_filters.rs`).
//! Changed here: tests of what changes with a filter.

use std::collections::BTreeMap;
use std::sync::Arc;

use fanwire_area::{Grid, Shape, View};
use fanwire_policy::filter::{Filter, SubscriptionFilter};
use fanwire_policy::tiles::tile_channel;
use fanwire_protocol::FilterNode;

use crate::index::{SubscriptionIndex, SubscriptionKey};
use crate::pending::GridView;
use crate::registry::ShardId;
use crate::session::SubscriptionGrant;
use crate::session_table::tests::{join, opened};
use crate::session_table::{NewSubscription, SessionTable};

const CHANNEL: &str = "news";

fn equals(key: &str, value: &str) -> Filter {
    let node = FilterNode {
        key: key.into(),
        cmp: "eq".into(),
        val: value.into(),
        ..FilterNode::default()
    };
    Filter::new(&node).expect("a good filter")
}

/// Whether the only subscriber of a channel wants a publication with these tags.
fn wants(session_table: &SessionTable, channel: &str, tags: &[(&str, &str)]) -> bool {
    let subscribers = session_table.subscribers();
    let index = subscribers.find(channel).expect("one subscriber");
    let list = &subscribers.channel_subscribers(index).list;
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let tags: BTreeMap<_, _> = tags.iter().map(owned).collect();
    session_table.wants(list[0], &tags)
}

/// How many subscribers of a channel have a filter, by its count and by their marks.
fn filtered(session_table: &SessionTable, channel: &str) -> u32 {
    let subscribers = session_table.subscribers();
    let index = subscribers.find(channel).expect("a subscriber");
    let channel_subscribers = subscribers.channel_subscribers(index);
    let marked = channel_subscribers.list.iter().filter(|one| one.has_filter()).count();
    assert_eq!(channel_subscribers.filtered as usize, marked);
    channel_subscribers.filtered
}

fn subscribed(of_client: Option<Filter>) -> (SessionTable, SubscriptionIndex) {
    let mut session_table = SessionTable::new(ShardId(0));
    opened(&mut session_table, 0);
    let filter = SubscriptionFilter { of_server: None, of_client }.shared();
    let terms = SubscriptionGrant::filtering(None, filter);
    let own = join(&mut session_table, (0, CHANNEL), terms);
    (session_table, own)
}

#[test]
fn a_filter_of_the_server_comes_changes_and_goes() {
    let (mut session_table, own) = subscribed(None);
    assert_eq!(filtered(&session_table, CHANNEL), 0);
    session_table.set_server_filter(0, own, Some(equals("team", "red")));
    assert_eq!(filtered(&session_table, CHANNEL), 1);
    assert!(wants(&session_table, CHANNEL, &[("team", "red")]));
    assert!(!wants(&session_table, CHANNEL, &[("team", "blue")]));
    session_table.set_server_filter(0, own, Some(equals("team", "blue")));
    assert_eq!(filtered(&session_table, CHANNEL), 1);
    assert!(wants(&session_table, CHANNEL, &[("team", "blue")]));
    session_table.set_server_filter(0, own, None);
    assert_eq!(filtered(&session_table, CHANNEL), 0);
    assert!(wants(&session_table, CHANNEL, &[]));
}

#[test]
fn the_filter_of_the_client_stays_and_both_must_match() {
    let (mut session_table, own) = subscribed(Some(equals("about", "art")));
    session_table.set_server_filter(0, own, Some(equals("team", "red")));
    assert!(wants(&session_table, CHANNEL, &[("team", "red"), ("about", "art")]));
    assert!(!wants(&session_table, CHANNEL, &[("team", "red")]));
    assert!(!wants(&session_table, CHANNEL, &[("about", "art")]));
    session_table.set_server_filter(0, own, None);
    assert_eq!(filtered(&session_table, CHANNEL), 1);
    assert!(wants(&session_table, CHANNEL, &[("about", "art")]));
    assert!(!wants(&session_table, CHANNEL, &[("team", "red")]));
}

#[test]
fn the_tiles_of_a_view_have_the_filter_of_their_channel() {
    let (mut session_table, own) = subscribed(None);
    let channel: Arc<str> = CHANNEL.into();
    let key = SubscriptionKey { connection: 0, channel: &channel };
    let shape = Shape::Circle { radius: 10.0 };
    let view = View { x: 50.0, y: 50.0, layer: 0, shape, margin: 0.0 };
    let wanted = GridView { grid: Grid::new(100, 4), view };
    let (change, _) = session_table.change_view(key, wanted).expect("a possible view");
    let tile = tile_channel(CHANNEL, change.entered[0]);
    let subscription = NewSubscription { server_side: false, is_tile: true, terms: None };
    session_table.add_subscription(0, &tile.as_str().into(), subscription);
    session_table.set_server_filter(0, own, Some(equals("team", "red")));
    assert_eq!(filtered(&session_table, &tile), 1);
    assert!(!wants(&session_table, &tile, &[("team", "blue")]));
    session_table.set_server_filter(0, own, None);
    assert_eq!(filtered(&session_table, &tile), 0);
}
