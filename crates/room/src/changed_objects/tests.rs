//! Tests of `changed_objects`: a client that applies the texts has the objects of the room.
//! In: random changes. Out: nothing.
//! Uses proptest, a small reader of the texts.
//! Changed here: tests of the form of the texts.

use proptest::prelude::*;

use super::*;

fn every(texts: u32) -> ChangedObjects {
    ChangedObjects::new(NonZeroU32::new(texts).expect("not 0"))
}

#[test]
fn a_text_contains_what_changed_and_all_of_it_in_its_turn() {
    let mut objects = every(3);
    objects.set(7, r#"{"x":1}"#);
    objects.set(9, "2");
    assert_eq!(objects.update().expect("the first"), r#"{"full":true,"set":{"7":{"x":1},"9":2}}"#);
    objects.set(7, r#"{"x":1}"#);
    assert_eq!(objects.update(), None);
    objects.set(7, r#"{"x":2}"#);
    objects.remove(9);
    objects.remove(10);
    assert_eq!(objects.update().expect("a change"), r#"{"set":{"7":{"x":2}},"removed":[9]}"#);
    assert_eq!(objects.update().expect("its turn"), r#"{"full":true,"set":{"7":{"x":2}}}"#);
}

/// Applies a text to the objects of a client. States are single digits.
fn apply(text: &str, objects: &mut BTreeMap<u64, char>) {
    if text.starts_with("{\"full\":true") {
        objects.clear();
    }
    let set = text.split_once("{\"set\":{").or(text.split_once("\"set\":{")).expect("set").1;
    let (set, rest) = set.split_once('}').expect("an end");
    if let Some((_, removed)) = rest.split_once("\"removed\":[") {
        let ids = removed.trim_end_matches("]}").split(',');
        for id in ids {
            objects.remove(&id.parse().expect("an id"));
        }
    }
    for entry in set.split(',').filter(|entry| !entry.is_empty()) {
        let (id, state) = entry.split_once(':').expect("id and state");
        let id = id.trim_matches('"').parse().expect("an id");
        objects.insert(id, state.chars().next().expect("a digit"));
    }
}

proptest! {
    #[test]
    fn a_client_that_applies_the_texts_has_the_objects(
        ticks in prop::collection::vec(prop::collection::vec((0..6_u64, prop::option::of(0..4_u8)), 0..5), 1..40),
        full_every in 1..6_u32,
        joins_at in 0..40_usize,
    ) {
        let mut objects = every(full_every);
        let mut early = BTreeMap::new();
        let mut late = None;
        for (number, changes) in ticks.into_iter().enumerate() {
            for (id, state) in changes {
                match state {
                    Some(state) => objects.set(id, state.to_string()),
                    None => objects.remove(id),
                }
            }
            let text = objects.update();
            let clients = [Some(&mut early), late.as_mut()];
            for client in clients.into_iter().flatten() {
                text.iter().for_each(|text| apply(str::from_utf8(text).expect("text"), client));
                let expected: BTreeMap<_, _> =
                    objects.objects.iter().map(|(id, state)| (*id, char::from(state[0]))).collect();
                prop_assert_eq!(&*client, &expected);
            }
            if number == joins_at {
                let client = late.insert(BTreeMap::new());
                apply(str::from_utf8(&objects.full()).expect("text"), client);
            }
        }
    }
}
