//! Tests of shared replies: which are equal, and how long they are kept.
//! In: subscribe results → out: messages, encoded once or again.
//! Uses: values only. Never: hubs; `tests/it/recovery.rs` has clients that recover.
//! Changed here: tests of `shared_replies.rs`.

use super::*;

/// A recovery of the publications after `offset`, up to `top`.
fn recovery(offset: u64, top: u64) -> SubscribeResult {
    let publication =
        |offset| Publication { offset, data: "{\"n\":1}".into(), ..Publication::default() };
    SubscribeResult {
        recovered: true,
        offset,
        epoch: "e".to_owned(),
        publications: (offset + 1..=top).map(publication).collect(),
        ..SubscribeResult::default()
    }
}

fn plain(encoding: Encoding, id: u32, result: SubscribeResult) -> Vec<u8> {
    let reply = Reply { id, subscribe: Some(result), ..Reply::default() };
    let mut message = Vec::new();
    encode_reply(encoding, &reply, &mut message).expect("JSON inside");
    message
}

#[test]
fn equal_replies_are_one_message() {
    let mut replies = SharedReplies::default();
    let now = Instant::now();
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        let mut message = |result| {
            replies.message(SubscribeReply { channel: "news", encoding, id: 2 }, result, now)
        };
        let first = message(recovery(3, 203)).expect("it is shared");
        assert_eq!(first, plain(encoding, 2, recovery(3, 203)));
        let second = message(recovery(3, 203)).expect("it is shared");
        assert_eq!(first.as_ptr(), second.as_ptr(), "encoded once");
    }
    assert_eq!(replies.len(), 2);
}

#[test]
fn other_replies_are_other_messages() {
    let mut replies = SharedReplies::default();
    let now = Instant::now();
    let epoch = SubscribeResult { epoch: "f".to_owned(), ..recovery(3, 203) };
    let data = SubscribeResult { data: "1".into(), ..recovery(3, 203) };
    for (channel, id, result) in [
        ("news", 2, recovery(3, 203)),
        ("news", 3, recovery(3, 203)),
        ("olds", 2, recovery(3, 203)),
        ("news", 2, recovery(4, 203)),
        ("news", 2, recovery(3, 204)),
        ("news", 2, epoch),
        ("news", 2, data),
    ] {
        let wanted = SubscribeReply { channel, encoding: Encoding::Json, id };
        let message = replies.message(wanted, result.clone(), now).expect("it is shared");
        assert_eq!(message, plain(Encoding::Json, id, result));
    }
    assert_eq!(replies.len(), 7);
}

#[test]
fn small_replies_failed_ones_and_those_without_a_json_form_are_given_back() {
    let mut replies = SharedReplies::default();
    let failed = SubscribeResult { recovered: false, ..recovery(3, 203) };
    let mut binary = recovery(3, 203);
    binary.publications[100].data = "\0".into();
    assert!(!SharedReplies::is_shared(&recovery(3, 18)) && !SharedReplies::is_shared(&failed));
    let wanted = SubscribeReply { channel: "news", encoding: Encoding::Json, id: 2 };
    let given_back = replies.message(wanted, binary.clone(), Instant::now());
    assert_eq!(given_back, Err(Box::new(binary)));
    assert_eq!(replies.len(), 0);
}

#[test]
fn few_replies_are_kept_and_only_as_long_as_clients_return() {
    let mut replies = SharedReplies::default();
    let start = Instant::now();
    let mut message = |offset, second| {
        let now = start + Duration::from_secs(second);
        let wanted = SubscribeReply { channel: "news", encoding: Encoding::Json, id: 2 };
        replies.message(wanted, recovery(offset, 203), now).expect("shared")
    };
    let first = message(0, 0);
    for offset in 1..20 {
        message(offset, 1);
        assert_eq!(message(0, 1).as_ptr(), first.as_ptr(), "the one that is used stays");
    }
    assert_eq!(replies.len(), REPLIES_MAX);
    replies.drop_unused(start + Duration::from_millis(2_900));
    assert_eq!(replies.len(), REPLIES_MAX);
    replies.drop_unused(start + Duration::from_secs(3));
    assert_eq!(replies.len(), 0);
}
