//! Tests of broadcasts: made once, shared afterwards, no JSON where there is none.
//! In: publications → out: their messages, compared by address, and what a shell prepared.
//! Uses: the public face and the slots themselves.
//! Who gets a broadcast is tested in `tests/it`.

use super::*;

fn broadcast(data: &'static str) -> Broadcast {
    let publication = Publication { data: data.into(), ..Publication::default() };
    let id = NamespaceId::default();
    Broadcast::new("news".into(), id, publication, Epoch::NONE, Instant::now())
}

#[test]
fn a_message_is_encoded_at_the_first_call_and_shared_afterwards() {
    let broadcast = broadcast("1");
    assert!(broadcast.messages.iter().all(|slot| slot.get().is_none()), "nothing before");
    let first = broadcast.message(Encoding::Json).expect("JSON");
    assert_eq!(first, r#"{"push":{"channel":"news","pub":{"data":1}}}"#.as_bytes());
    assert!(broadcast.messages[Encoding::Protobuf.index()].get().is_none(), "only what was asked");
    assert_eq!(first.as_ptr(), broadcast.message(Encoding::Json).expect("JSON").as_ptr());
}

#[test]
fn data_that_is_not_json_has_no_json_message_but_a_protobuf_one() {
    let broadcast = broadcast("boom");
    assert!(broadcast.message(Encoding::Json).is_none());
    assert!(broadcast.message(Encoding::Protobuf).is_some());
}

/// Prepares the number of publications so far.
#[derive(Default)]
struct Count(std::sync::atomic::AtomicU32);

impl Prepare for Count {
    fn prepare(&self, _broadcast: &Broadcast) -> Prepared {
        Box::new(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
    }
}

#[test]
fn what_the_shell_prepared_rides_along() {
    let (count, mut broadcasts) = (Count::default(), [broadcast("1"), broadcast("2")]);
    assert_eq!(broadcasts[0].prepared::<u32>(), None);
    broadcasts.iter_mut().for_each(|broadcast| broadcast.prepare(&count));
    assert_eq!(broadcasts.each_ref().map(Broadcast::prepared::<u32>), [Some(&0), Some(&1)]);
    assert_eq!(broadcasts[0].prepared::<u64>(), None, "of another kind");
}
