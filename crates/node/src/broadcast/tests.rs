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
fn the_time_to_encode_is_taken_once() {
    let broadcast = broadcast("1");
    assert_eq!(broadcast.take_encode_time(), Duration::ZERO, "nothing was encoded");
    broadcast.message(Encoding::Json).expect("JSON");
    assert!(broadcast.take_encode_time() > Duration::ZERO);
    broadcast.message(Encoding::Json).expect("JSON");
    assert_eq!(broadcast.take_encode_time(), Duration::ZERO, "the same message again");
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
        Box::new(self.0.fetch_add(1, Relaxed))
    }
}

#[test]
fn what_the_shell_prepared_rides_along() {
    let count = Count::default();
    let mut broadcasts = [broadcast("1"), broadcast("2")];
    assert_eq!(broadcasts[0].prepared::<u32>(), None);
    broadcasts.iter_mut().for_each(|broadcast| broadcast.prepare(&count));
    assert_eq!(broadcasts.each_ref().map(Broadcast::prepared::<u32>), [Some(&0), Some(&1)]);
    assert_eq!(broadcasts[0].prepared::<u64>(), None, "of another kind");
}

fn candidate(data: &'static str, previous: &'static str) -> Broadcast {
    let mut broadcast = broadcast(data);
    broadcast.allow_delta(Delta::Against(previous.into()));
    broadcast
}

const BEFORE: &str = r#"{"n":1,"text":"the same in all of them"}"#;
const AFTER: &str = r#"{"n":2,"text":"the same in all of them"}"#;

#[test]
fn every_shape_is_made_at_the_first_call_and_nothing_before_it() {
    let broadcast = candidate(AFTER, BEFORE);
    assert!(broadcast.is_json());
    assert!(broadcast.messages.iter().all(|slot| slot.get().is_none()), "asked, not made");
    let text = |delta_mode, encoding| {
        let message = broadcast.message_in(delta_mode, encoding).expect("it exists");
        assert_eq!(
            message.as_ptr(),
            broadcast.message_in(delta_mode, encoding).expect("it").as_ptr()
        );
        String::from_utf8_lossy(message).into_owned()
    };
    let full = text(DeltaMode::Full, Encoding::Json);
    assert!(full.contains(r#""data":"{\"n\":2,"#), "{full}");
    assert!(broadcast.messages.iter().all(|slot| slot.get().is_none()), "not the plain one");
    let patch = text(DeltaMode::Patch, Encoding::Json);
    assert!(patch.contains(r#""delta":true"#) && patch.len() < full.len(), "{patch}");
    let bytes = text(DeltaMode::Patch, Encoding::Protobuf);
    assert!(bytes.contains(str::from_utf8(broadcast.patch().expect("alike")).expect("text")));
    assert!(broadcast.messages.iter().all(|slot| slot.get().is_none()), "not the plain one");
    let plain = broadcast.message(Encoding::Protobuf).expect("always").as_ptr();
    let full = broadcast.message_in(DeltaMode::Full, Encoding::Protobuf).expect("always").as_ptr();
    assert_eq!(plain, full, "the same bytes");
}

#[test]
fn what_is_no_delta_has_no_patch() {
    for broadcast in [broadcast(AFTER), candidate(AFTER, ""), candidate("2", BEFORE)] {
        assert_eq!(broadcast.patch(), None);
        assert_eq!(broadcast.message_in(DeltaMode::Patch, Encoding::Json), None);
    }
}

#[test]
fn data_that_is_not_json_has_a_patch_in_protobuf_only() {
    let broken = candidate("the same in all of them, 2", "the same in all of them, 1");
    assert!(!broken.is_json());
    for delta_mode in [DeltaMode::Full, DeltaMode::Patch] {
        assert_eq!(broken.message_in(delta_mode, Encoding::Json), None);
        assert!(broken.message_in(delta_mode, Encoding::Protobuf).is_some());
    }
    assert!(!candidate("", "").is_json() && candidate("", "").message(Encoding::Json).is_some());
}

#[test]
fn a_base_is_equal_to_what_was_handed_out_not_only_of_the_same_place() {
    let broadcast = candidate(AFTER, BEFORE);
    assert!(broadcast.follows(&BEFORE.into()) && broadcast.follows(&BEFORE.to_owned().into()));
    assert!(!broadcast.follows(&AFTER.into()));
    assert!(!self::broadcast(AFTER).follows(&BEFORE.into()), "no candidate");
}

#[test]
fn without_a_stream_the_first_who_asks_names_the_base() {
    let mut broadcast = broadcast(AFTER);
    broadcast.allow_delta(Delta::Alone);
    assert_eq!(broadcast.patch(), None);
    assert!(!broadcast.follows_stream());
    assert!(broadcast.follows(&BEFORE.into()));
    assert!(broadcast.patch().is_some(), "from now on");
    assert!(!broadcast.follows(&"another".into()));
    assert_eq!(broadcast.payload_bytes(), AFTER.len());
    assert_eq!(candidate(AFTER, "123").payload_bytes(), AFTER.len() + 3);
}

#[test]
fn a_publication_takes_the_place_of_one_with_its_key_or_its_tag() {
    let of = |key: &str, tag: &str| {
        let tags = [("symbol".to_owned(), tag.to_owned())].into();
        let publication = Publication { key: key.into(), tags, ..Publication::default() };
        let id = NamespaceId::default();
        let mut one = Broadcast::new("p".into(), id, publication, Epoch::NONE, Instant::now());
        let delivery = DeliveryOptions { key_tag: "symbol".into(), ..DeliveryOptions::default() };
        one.may_be_replaced(Arc::new(delivery));
        one.conflation_key().to_owned()
    };
    assert_eq!(of("", "ACME"), "ACME");
    assert_eq!(of("key", "ACME"), "key");
}
