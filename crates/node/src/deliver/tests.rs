//! Tests of the router: which inboxes hear of what, and whether there is room in them.
//! In: publications and orders of the API → out: notices in the inboxes of two shards.
//! Uses: a registry and inboxes that keep.
//! Order from many threads is tested in `tests/it/threads.rs`.

use std::time::Instant;

use fanwire_broker::{Epoch, Position};
use fanwire_policy::options::{Namespace, Options};
use parking_lot::Mutex;

use super::*;
use crate::broadcast::Prepared;

/// Congested by its first notice.
#[derive(Default)]
struct Letters(Mutex<Vec<Notice>>);

impl Inbox for Letters {
    fn push(&self, notice: Notice) {
        self.0.lock().push(notice);
    }

    fn is_congested(&self) -> bool {
        !self.0.lock().is_empty()
    }
}

fn door_with_two_shards() -> (Arc<Registry>, BroadcastRouter, [Arc<Letters>; 2]) {
    door_that_prepares(None)
}

fn door_that_prepares(
    prepare: Option<Arc<dyn Prepare>>,
) -> (Arc<Registry>, BroadcastRouter, [Arc<Letters>; 2]) {
    let registry = Arc::new(Registry::new());
    let namespaces = vec![Namespace::default(); 7];
    let options = ChannelOptions { namespaces, ..Options::default().channel };
    let router = BroadcastRouter::new(Arc::clone(&registry), &options, prepare);
    let ids = (0..).map(NamespaceId);
    router.deliver_as(ids.zip(NamespaceId::all(&options))).expect("as many as there are");
    let notices = [Arc::new(Letters::default()), Arc::new(Letters::default())];
    for (number, inbox) in notices.iter().enumerate() {
        assert_eq!(usize::from(router.attach(Arc::clone(inbox) as _).0), number);
    }
    (registry, router, notices)
}

#[test]
fn a_publication_goes_to_the_shards_that_listen_and_nowhere_else() {
    let (registry, router, [first, second]) = door_with_two_shards();
    registry.join("a", ShardId(1), NamespaceId::default, || ());
    for channel in ["a", "b"] {
        router.deliver(channel, Publication::default(), DeliverOptions::new(Instant::now()));
    }
    assert!(first.0.lock().is_empty());
    let notices = second.0.lock();
    assert!(matches!(&notices[..], [Notice::Broadcast(one)] if one.channel().as_ref() == "a"));
}

#[test]
fn an_announcement_goes_to_the_shards_that_listen() {
    let (registry, router, [first, second]) = door_with_two_shards();
    registry.join("a", ShardId(1), NamespaceId::default, || ());
    for channel in ["a", "b"] {
        router.deliver_join_leave(channel, Change::Join, ClientInfo::default());
    }
    assert!(first.0.lock().is_empty());
    let notices = second.0.lock();
    assert!(matches!(&notices[..], [Notice::JoinLeave(one)] if one.channel() == "a"));
}

#[test]
fn an_order_of_the_api_goes_to_every_shard() {
    let (_, router, notices) = door_with_two_shards();
    let disconnect = fanwire_protocol::Disconnect::FORCE_DISCONNECT;
    router.send_to_all_shards(&Notice::Disconnect { target: Default::default(), disconnect });
    assert!(notices.iter().all(|inbox| inbox.0.lock().len() == 1));
}

/// Prepares the name of the channel.
struct Name;

impl Prepare for Name {
    fn prepare(&self, broadcast: &Broadcast) -> Prepared {
        Box::new(broadcast.channel().to_string())
    }
}

#[test]
fn a_broadcast_is_prepared_before_a_shard_sees_it_and_knows_its_namespace() {
    let (registry, router, [notices, _]) = door_that_prepares(Some(Arc::new(Name)));
    registry.join("a", ShardId(0), || NamespaceId(7), || ());
    router.deliver("a", Publication::default(), DeliverOptions::new(Instant::now()));
    let notices = notices.0.lock();
    let [Notice::Broadcast(broadcast)] = &notices[..] else { panic!("one broadcast") };
    assert_eq!(broadcast.prepared::<String>().expect("prepared"), "a");
    assert_eq!(broadcast.namespace(), NamespaceId(7));
}

#[test]
fn the_first_publication_of_a_stream_carries_its_epoch_and_every_broadcast_its_position() {
    let (registry, router, [notices, _]) = door_with_two_shards();
    registry.join("a", ShardId(0), NamespaceId::default, || ());
    let epoch = Epoch::random();
    for offset in [1, 2] {
        let publication = Publication { offset, ..Publication::default() };
        let options = DeliverOptions { epoch, ..DeliverOptions::new(Instant::now()) };
        router.deliver("a", publication, options);
    }
    let notices = notices.0.lock();
    let [Notice::Broadcast(first), Notice::Broadcast(second)] = &notices[..] else {
        panic!("two broadcasts");
    };
    assert_eq!(first.publication().epoch, epoch.as_str());
    assert_eq!(second.publication().epoch, "");
    assert_eq!(second.position(), Position { offset: 2, epoch });
}

#[test]
fn a_door_is_congested_as_long_as_one_of_its_shards_is() {
    let (registry, router, [_, second]) = door_with_two_shards();
    registry.join("a", ShardId(1), NamespaceId::default, || ());
    assert!(!router.is_congested());
    router.deliver_join_leave("a", Change::Join, ClientInfo::default());
    assert!(router.is_congested());
    second.0.lock().clear();
    assert!(!router.is_congested());
}
