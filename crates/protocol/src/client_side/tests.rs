//! Tests of `client_side`: commands as a server reads them, and messages of a server as a client reads them.
//! In: commands, replies and broken messages. Out: the same commands and replies, or the one right error.
//! Uses the decoders and encoders of the server's side as oracles.
//! Changed here: cases of the client's side. Any bytes at all are in `tests/it/any_bytes.rs`.

use super::*;
use crate::command::Commands;
use crate::encoding::join;
use crate::message::{PublishRequest, Push, SubscribeRequest, SubscribeResult};
use crate::reply::encode_reply;

#[test]
fn a_server_reads_the_commands_of_one_message() {
    let subscribe =
        SubscribeRequest { channel: "news".into(), recover: true, ..Default::default() };
    let publish =
        PublishRequest { channel: "news".into(), data: "[1]".into(), ..Default::default() };
    let commands = [
        Command { id: 1, subscribe: Some(subscribe), ..Command::default() },
        Command { id: 2, publish: Some(publish), ..Command::default() },
        Command::default(),
    ];
    for encoding in Encoding::ALL {
        let mut message = Vec::new();
        for command in &commands {
            if !message.is_empty() {
                join(encoding, &mut message);
            }
            encode_command(encoding, command, &mut message).expect("payloads are JSON");
        }
        let read: Result<Vec<_>, _> = Commands::new(encoding, &message).collect();
        assert_eq!(read.as_deref(), Ok(&commands[..]), "{encoding:?}");
    }
}

#[test]
fn a_payload_that_is_no_json_is_an_error_and_leaves_no_bytes() {
    let publish =
        PublishRequest { channel: "news".into(), data: "boom".into(), ..Default::default() };
    let command = Command { id: 2, publish: Some(publish), ..Command::default() };
    let mut message = Vec::new();
    assert_eq!(encode_command(Encoding::Json, &command, &mut message), Err(NotJson));
    assert!(message.is_empty());
}

#[test]
fn a_client_reads_the_replies_of_one_message() {
    let subscribe = SubscribeResult { epoch: "e".into(), offset: 3, ..SubscribeResult::default() };
    let push = Push { channel: "news".into(), ..Push::default() };
    let replies = [
        Reply { id: 1, subscribe: Some(subscribe), ..Reply::default() },
        Reply { push: Some(push), ..Reply::default() },
        Reply::default(),
    ];
    for encoding in Encoding::ALL {
        let mut message = Vec::new();
        for reply in &replies {
            if !message.is_empty() {
                join(encoding, &mut message);
            }
            encode_reply(encoding, reply, &mut message).expect("payloads are JSON");
        }
        let read: Result<Vec<_>, _> = MessageReplies::new(encoding, &message).collect();
        assert_eq!(read.as_deref(), Ok(&replies[..]), "{encoding:?}");
    }
}

#[test]
fn a_broken_reply_ends_the_message() {
    let mut replies = MessageReplies::new(Encoding::Json, b"{\"id\":1}\n[]\n{}");
    assert_eq!(replies.next(), Some(Ok(Reply { id: 1, ..Reply::default() })));
    assert!(matches!(replies.next(), Some(Err(DecodeError::JsonType { .. }))));
    assert_eq!(replies.next(), None);
    let mut replies = MessageReplies::new(Encoding::Protobuf, &[0, 5, 8]);
    assert_eq!(replies.next(), Some(Ok(Reply::default())));
    assert_eq!(replies.next(), Some(Err(DecodeError::LengthOverrun { length: 5, left: 1 })));
    assert_eq!(replies.next(), None);
    for encoding in Encoding::ALL {
        let read: Vec<_> = MessageReplies::new(encoding, b"").collect();
        assert_eq!(read, [Err(DecodeError::EmptyFrame)]);
    }
}
