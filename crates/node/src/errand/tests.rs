//! Tests of errands: what is one, and that each is answered once, whatever becomes of it.
//! In: crowds and histories of different sizes → out: large or not, encoded replies.
//! Uses: values only. Never: hubs; what a session does meanwhile is tested in `tests/it/errands.rs`.
//! Change here: tests of `errand.rs`.

use fanwire_protocol::Publication;

use super::*;
use crate::answer::Answer;

fn crowd(count: usize, info: &str) -> Found {
    let member = |number: usize| {
        let (client, conn_info) = (number.to_string(), info.to_owned().into());
        Arc::new(ClientInfo { client, conn_info, ..ClientInfo::default() })
    };
    Found::Members((0..count).map(member).collect())
}

fn history(count: usize, data: &str) -> Found {
    let publication = Publication { data: data.to_owned().into(), ..Publication::default() };
    Found::Stretch(Stretch { publications: vec![publication; count], ..Stretch::default() })
}

#[test]
fn many_or_heavy_answers_are_large() {
    let heavy = "1".repeat(10_000);
    for small in
        [crowd(0, ""), crowd(256, ""), crowd(6, &heavy), history(256, ""), history(6, &heavy)]
    {
        assert!(!small.is_large(), "{small:?}");
    }
    for large in [crowd(257, ""), crowd(7, &heavy), history(257, ""), history(7, &heavy)] {
        assert!(large.is_large());
    }
}

#[test]
fn an_errand_makes_the_bytes_that_a_small_answer_would_be() {
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        for found in [crowd(3, "1"), history(3, "1")] {
            let mut expected = Vec::new();
            let reply = Reply { id: 7, ..found.clone().reply() };
            encode_reply(encoding, &reply, &mut expected).expect("JSON inside");
            let (promise, answer) = Answer::later();
            Errand::new(found, (7, encoding), promise).run();
            assert_eq!(answer.wait(), Ok(Some(expected.into())));
        }
    }
}

#[test]
fn what_is_no_json_cannot_be_told_in_json() {
    let (promise, answer) = Answer::later();
    Errand::new(crowd(1, "boom"), (7, Encoding::Json), promise).run();
    assert_eq!(answer.wait(), Ok(None));
}

#[test]
fn an_errand_that_nobody_does_is_an_error() {
    let (promise, answer) = Answer::later();
    drop(Errand::new(crowd(1, ""), (7, Encoding::Json), promise));
    assert_eq!(answer.wait(), Err(ErrorCode::INTERNAL));
}
