//! Tests of a name that is removed while its subscription is being confirmed.
//! In: made-up pushes → out: the continuity check of the waiter.
//! Uses a `Deliver` in memory. Never: connections.
//! Real losses are tested in `tests/it/`.

use std::sync::{OnceLock, Weak};

use fanwire_broker::{Change, Deliver, DeliverOptions};
use fanwire_protocol::{ClientInfo, Publication};

use super::*;
use crate::keys::{KeyKind, Keys};

/// Removes all names from a connection as soon as it reports a gap.
#[derive(Default)]
struct UnsubscribingHandler(OnceLock<Weak<PubSubConnection>>);

impl Deliver for UnsubscribingHandler {
    fn deliver(&self, _: &str, _: Publication, _: DeliverOptions) {}

    fn deliver_join_leave(&self, _: &str, _: Change, _: ClientInfo) {}

    fn report_possible_gap(&self, _: &str) {
        let pubsub = self.0.get().and_then(Weak::upgrade).expect("it is alive during its call");
        assert_eq!(pubsub.take_matching(|_| true).len(), 1);
    }
}

/// A name is subscribed, lost, and subscribed again for a waiter.
#[test]
fn a_name_that_is_removed_during_its_confirmation_has_no_continuity() {
    let keys = Keys::new("p", false);
    let handler = Arc::new(UnsubscribingHandler::default());
    let name = keys.of(KeyKind::PubSub, "a");
    let message_handler =
        Arc::new(MessageHandler::new(keys, Arc::new(Health::at(std::iter::empty()))));
    message_handler.deliver_to(Arc::clone(&handler) as _);
    let pubsub = Arc::new(PubSubConnection::unrouted(
        message_handler,
        ClusterRedirects::default(),
        Duration::from_secs(1),
    ));
    handler.0.set(Arc::downgrade(&pubsub)).expect("once");
    let subscribe = || {
        let changes = pubsub.shared.table.lock().next_changes(Instant::now(), 1);
        assert_eq!(changes.subscribe.len(), 1);
        let data = vec![Value::BulkString(name.clone().into()), Value::Int(1)];
        pubsub.shared.handle_push(PushInfo { kind: PushKind::Subscribe, data });
    };
    pubsub.subscribe(&name);
    subscribe();
    pubsub.shared.connection_lost();
    let is_unbroken = Arc::new(OnceLock::new());
    let result = Arc::clone(&is_unbroken);
    pubsub.when_subscribed(&name, move |outcome| {
        let _ = result.set(outcome.expect("it was heard").is_unbroken());
    });
    subscribe();
    assert_eq!(is_unbroken.get(), Some(&false));
}
