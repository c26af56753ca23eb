//! Tests of encode jobs: which replies become one, and that each is answered once in all cases.
//! In: crowds and histories of different sizes → out: large or not, encoded replies.
//! Uses: values only. Never: hubs; what a session does while it waits is tested in `tests/it/encode_jobs.rs`.
//! Changed here: tests of `encode_job.rs`.

use fanwire_broker::Answer;
use fanwire_protocol::Publication;

use super::*;

fn clients(count: usize, info: &str) -> ReplySource {
    let member = |number: usize| {
        let client = number.to_string();
        let conn_info = info.to_owned().into();
        Arc::new(ClientInfo { client, conn_info, ..ClientInfo::default() })
    };
    ReplySource::Members((0..count).map(member).collect())
}

fn job(source: ReplySource, promise: Promise<Encoded, ErrorCode>, interest: Weak<()>) -> EncodeJob {
    EncodeJob { source, id: 7, encoding: Encoding::Json, promise, interest }
}

fn publications(count: usize, data: &str) -> Vec<Publication> {
    vec![Publication { data: data.to_owned().into(), ..Publication::default() }; count]
}

fn history(count: usize, data: &str) -> ReplySource {
    ReplySource::StreamSlice(StreamSlice {
        publications: publications(count, data),
        ..StreamSlice::default()
    })
}

fn missed(count: usize, data: &str) -> ReplySource {
    let publications = publications(count, data);
    ReplySource::Missed(Box::new(SubscribeResult { publications, ..Default::default() }), false)
}

/// A connect reply with the publications in both of its channels.
fn welcome(count: usize, data: &str) -> ReplySource {
    let publications = publications(count, data);
    let result = SubscribeResult { publications, ..Default::default() };
    let subs = ["a", "b"].map(|channel| (channel.to_owned(), result.clone())).into();
    let result = Box::new(ConnectResult { subs, ..ConnectResult::default() });
    ReplySource::Connect { result, command_source: CommandSource::Connection, apart: false }
}

fn ordered(count: usize, data: &str) -> ReplySource {
    let publications = publications(count, data);
    ReplySource::Ordered(
        "a".into(),
        Box::new(SubscribeResult { publications, ..Default::default() }),
    )
}

fn messages(answer: Answer<Encoded, ErrorCode>) -> Result<Option<Vec<Bytes>>, ErrorCode> {
    answer.wait().map(|encoded| encoded.messages)
}

#[test]
fn many_or_heavy_answers_are_large() {
    let heavy = "1".repeat(20_000);
    for small in
        [clients(0, ""), clients(256, ""), clients(6, &heavy), history(1024, ""), missed(6, &heavy)]
    {
        assert!(!small.is_large(), "{small:?}");
    }
    for small in [welcome(512, ""), welcome(3, &heavy), ordered(1024, ""), ordered(6, &heavy)] {
        assert!(!small.is_large(), "{small:?}");
    }
    for large in [clients(257, ""), clients(7, &heavy), history(1025, ""), missed(7, &heavy)] {
        assert!(large.is_large());
    }
    for large in [welcome(513, ""), welcome(4, &heavy), ordered(1025, ""), ordered(7, &heavy)] {
        assert!(large.is_large());
    }
}

#[test]
fn an_errand_makes_the_bytes_that_a_small_answer_would_be() {
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        for (source, count) in [
            (clients(3, "1"), 1),
            (history(3, "1"), 1),
            (missed(3, "1"), 1),
            (welcome(3, "1"), 1),
            (ordered(3, "1"), 4),
        ] {
            let (reply, behind) = source.clone().replies();
            let mut expected = Vec::new();
            for reply in iter::once(Reply { id: 7, ..reply }).chain(behind) {
                let mut message = Vec::new();
                encode_reply(encoding, &reply, &mut message).expect("JSON inside");
                expected.push(Bytes::from(message));
            }
            assert_eq!(expected.len(), count);
            let (promise, answer) = Answer::later();
            let interest = Arc::default();
            EncodeJob { source, id: 7, encoding, promise, interest: Arc::downgrade(&interest) }
                .run();
            assert_eq!(messages(answer), Ok(Some(expected)));
        }
    }
}

#[test]
fn what_is_no_json_cannot_be_told_in_json() {
    let (promise, answer) = Answer::later();
    let interest = Arc::default();
    job(clients(1, "boom"), promise, Arc::downgrade(&interest)).run();
    assert_eq!(messages(answer), Ok(None));
}

#[test]
fn an_errand_that_nobody_does_is_an_error() {
    let (promise, answer) = Answer::later();
    let interest = Arc::default();
    drop(job(clients(1, ""), promise, Arc::downgrade(&interest)));
    assert_eq!(messages(answer), Err(ErrorCode::INTERNAL));
}

#[test]
fn what_nobody_waits_for_is_not_done() {
    let (promise, answer) = Answer::later();
    job(clients(1, ""), promise, Weak::new()).run();
    assert_eq!(messages(answer), Err(ErrorCode::INTERNAL));
}
