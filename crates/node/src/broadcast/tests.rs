//! Tests of broadcasts: made once, shared afterwards, no JSON where there is none.
//! In: publications → out: their messages and frames, compared by address.
//! Uses: the public face and the slots themselves.
//! Who gets a broadcast is tested in `tests/it`.

use super::*;

fn broadcast(data: &'static str) -> Broadcast {
    let publication = Publication { data: data.into(), ..Publication::default() };
    Broadcast::new("news".into(), publication, Instant::now())
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

#[test]
fn every_form_has_a_slot_of_its_own() {
    let mut indices = Vec::new();
    for encoding in Encoding::ALL {
        for compressed in [false, true] {
            indices.push(Form { encoding, compressed }.index());
        }
    }
    indices.sort_unstable();
    assert_eq!(indices, (0..Form::COUNT).collect::<Vec<_>>());
}

#[test]
fn a_frame_is_made_once_even_when_several_shards_ask() {
    let broadcast = broadcast("1");
    let made = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let form = Form { encoding: Encoding::Protobuf, compressed: true };
                let frame = broadcast.frame(form, |message| {
                    made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    message.clone()
                });
                assert!(!frame.is_empty());
            });
        }
    });
    assert_eq!(made.into_inner(), 1);
}
