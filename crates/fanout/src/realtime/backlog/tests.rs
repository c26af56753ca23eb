//! A backlog against a plain model: a list from which a newer publication with the same key removes the older one.
//! In: random publications, ends of subscriptions and pops → out: what is popped, in its order.
//! Uses broadcasts without frames; never a socket.
//! Changed here: the model. Real readers are in `realtime/tests/latest.rs`.

use fanwire_broker::Epoch;
use fanwire_node::{broker::DeliveryClass, options::DeliveryOptions};
use fanwire_protocol::Publication;
use proptest::{collection::vec, prelude::*};

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Hold {
        connection: u32,
        subscription: SubscriptionIndex,
        key: Option<u8>,
    },
    Pop {
        connection: u32,
    },
    /// A subscription ends, and the last one moves to its index.
    End {
        connection: u32,
        subscription: SubscriptionIndex,
    },
    Remove {
        connection: u32,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (connection, subscription) = (0..2_u32, (0..SUBSCRIPTIONS).prop_map(SubscriptionIndex));
    prop_oneof![
        6 => (connection.clone(), subscription.clone(), proptest::option::weighted(0.8, 0..8_u8))
            .prop_map(|(connection, subscription, key)| Step::Hold { connection, subscription, key }),
        3 => connection.clone().prop_map(|connection| Step::Pop { connection }),
        1 => (connection.clone(), subscription)
            .prop_map(|(connection, subscription)| Step::End { connection, subscription }),
        1 => connection.prop_map(|connection| Step::Remove { connection }),
    ]
}

/// (subscription, key or reliable, number), in the order in which they were published.
type Model = Vec<(SubscriptionIndex, Option<u8>, u64)>;

proptest! {
    #[test]
    fn pops_the_newest_of_each_key_in_the_order_of_the_channel(steps in vec(step(), 0..200)) {
        let mut backlogs = Backlogs::new(1);
        let mut models: [Model; 2] = Default::default();
        let delivery = Arc::new(DeliveryOptions {
            class: DeliveryClass::Latest,
            key_tag: "key".into(),
            keys_max: KEYS_MAX,
        ..DeliveryOptions::default()
        });
        for (number, step) in (1..).zip(steps) {
            match step {
                Step::Hold { connection, subscription, key } => {
                    let broadcast = broadcast(number, key, &delivery);
                    let held = backlogs.hold(connection, subscription, &broadcast, DeltaMode::Patch);
                    let model = &mut models[connection as usize];
                    let waits = key.is_some() || model.iter().any(|one| one.0 == subscription);
                    prop_assert_eq!(held, waits);
                    if waits {
                        add(model, subscription, key, number);
                    }
                }
                Step::Pop { connection } => {
                    let model = &mut models[connection as usize];
                    let popped = backlogs.pop(connection, Instant::now());
                    let Some(waiting) = popped else {
                        prop_assert!(model.is_empty());
                        continue;
                    };
                    prop_assert_eq!(waiting.delta_mode, DeltaMode::Full);
                    let first = model.iter().position(|one| one.0 == waiting.subscription);
                    let (_, _, number) = model.remove(first.expect("it waits"));
                    prop_assert_eq!(waiting.broadcast.publication().offset, number);
                }
                Step::End { connection, subscription } => {
                    let last = SubscriptionIndex(SUBSCRIPTIONS - 1);
                    let reliable = backlogs.ended(
                        connection,
                        MovedSubscription { to: subscription, from: last },
                    );
                    let model = &mut models[connection as usize];
                    prop_assert_eq!(numbers(&reliable), reliable_of(model, |at| at == subscription));
                    model.retain(|one| one.0 != subscription);
                    model.iter_mut().filter(|one| one.0 == last).for_each(|one| one.0 = subscription);
                }
                Step::Remove { connection } => {
                    let mut reliable = numbers(&backlogs.remove(connection));
                    reliable.sort_unstable();
                    let model = std::mem::take(&mut models[connection as usize]);
                    prop_assert_eq!(reliable, reliable_of(&model, |_| true));
                }
            }
            check_sums(&backlogs, &models);
        }
    }
}

fn add(model: &mut Model, subscription: SubscriptionIndex, key: Option<u8>, number: u64) {
    if key.is_some() {
        let before = model.iter().position(|one| (one.0, one.1) == (subscription, key));
        let keys = model.iter().filter(|one| one.0 == subscription && one.1.is_some()).count();
        let oldest = || model.iter().position(|one| one.0 == subscription && one.1.is_some());
        if let Some(removed) = before.or_else(|| (keys == KEYS_MAX).then(oldest).flatten()) {
            model.remove(removed);
        }
    }
    model.push((subscription, key, number));
}

fn check_sums(backlogs: &Backlogs, models: &[Model; 2]) {
    let mut subscriptions = 0;
    for (connection, model) in (0..).zip(models) {
        assert_eq!(backlogs.has_waiting(connection), !model.is_empty());
        let reliable = model.iter().filter(|one| one.1.is_none()).count();
        assert_eq!(backlogs.reliable_bytes(connection), reliable * (WAITING_BYTES + DATA.len()));
        subscriptions += (0..SUBSCRIPTIONS)
            .map(SubscriptionIndex)
            .filter(|subscription| model.iter().any(|one| one.0 == *subscription))
            .count();
    }
    assert_eq!(backlogs.counters[0].subscriptions.value(), subscriptions as u64);
}

fn broadcast(number: u64, key: Option<u8>, delivery: &Arc<DeliveryOptions>) -> Arc<Broadcast> {
    let tags = key.map(|key| ("key".to_owned(), key.to_string()));
    let publication = Publication {
        offset: number,
        data: DATA.into(),
        tags: tags.into_iter().collect(),
        ..Publication::default()
    };
    let (namespace, now) = (NamespaceId::default(), Instant::now());
    let mut broadcast = Broadcast::new("a".into(), namespace, publication, Epoch::NONE, now);
    if key.is_some() {
        broadcast.may_be_replaced(Arc::clone(delivery));
    }
    Arc::new(broadcast)
}

fn numbers(waiting: &[Waiting]) -> Vec<u64> {
    waiting.iter().map(|one| one.broadcast.publication().offset).collect()
}

fn reliable_of(model: &Model, is_of: impl Fn(SubscriptionIndex) -> bool) -> Vec<u64> {
    model.iter().filter(|one| one.1.is_none() && is_of(one.0)).map(|one| one.2).collect()
}

const SUBSCRIPTIONS: u32 = 3;
const KEYS_MAX: usize = 5;
const DATA: &str = "{}";
