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

fn publications(count: usize, data: &str) -> Vec<Publication> {
    vec![Publication { data: data.to_owned().into(), ..Publication::default() }; count]
}

fn history(count: usize, data: &str) -> Found {
    Found::Stretch(Stretch { publications: publications(count, data), ..Stretch::default() })
}

fn missed(count: usize, data: &str) -> Found {
    let publications = publications(count, data);
    Found::Missed(Box::new(SubscribeResult { publications, ..Default::default() }), false)
}

fn message(answer: Answer<Encoded, ErrorCode>) -> Result<Option<Bytes>, ErrorCode> {
    answer.wait().map(|encoded| encoded.message)
}

#[test]
fn many_or_heavy_answers_are_large() {
    let heavy = "1".repeat(10_000);
    for small in
        [crowd(0, ""), crowd(256, ""), crowd(6, &heavy), history(256, ""), missed(6, &heavy)]
    {
        assert!(!small.is_large(), "{small:?}");
    }
    for large in [crowd(257, ""), crowd(7, &heavy), history(257, ""), missed(7, &heavy)] {
        assert!(large.is_large());
    }
}

#[test]
fn an_errand_makes_the_bytes_that_a_small_answer_would_be() {
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        for found in [crowd(3, "1"), history(3, "1"), missed(3, "1")] {
            let mut expected = Vec::new();
            let reply = Reply { id: 7, ..found.clone().reply() };
            encode_reply(encoding, &reply, &mut expected).expect("JSON inside");
            let (promise, answer) = Answer::later();
            Errand::new(found, (7, encoding), promise).run();
            assert_eq!(message(answer), Ok(Some(expected.into())));
        }
    }
}

#[test]
fn what_is_no_json_cannot_be_told_in_json() {
    let (promise, answer) = Answer::later();
    Errand::new(crowd(1, "boom"), (7, Encoding::Json), promise).run();
    assert_eq!(message(answer), Ok(None));
}

#[test]
fn an_errand_that_nobody_does_is_an_error() {
    let (promise, answer) = Answer::later();
    drop(Errand::new(crowd(1, ""), (7, Encoding::Json), promise));
    assert_eq!(message(answer), Err(ErrorCode::INTERNAL));
}
