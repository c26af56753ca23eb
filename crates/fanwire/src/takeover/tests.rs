//! Tests of programs whose takeovers have other formats.
//! In: first messages of another version → out: a refusal on both sides, before anything has moved.
//! Uses a pair of sockets and a thread. Never: another process, which crates/cli/tests/it/takeover starts.
//! Changed here: what an older or a newer program may say.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use super::link::{LinkMessage, MessageKind, ProgramLink};
use super::*;

#[test]
fn a_new_program_refuses_an_old_one_of_another_format() {
    let (old, new) = UnixStream::pair().expect("a pair");
    let mut old = ProgramLink::new(old);
    old.limit(Duration::from_secs(10));
    let later = br#"{"format":99,"version":"9.0.0","node":"a","descriptors":[],"added":1}"#;
    for hello in [&later[..], b"{}", b"no JSON"] {
        old.send(MessageKind::Hello, hello, &[]).expect("it is read");
        let again = new.try_clone().expect("a descriptor");
        let error = Takeover::of_socket(again).map(drop).expect_err("it cannot be understood");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        let LinkMessage { kind, payload, .. } = old.receive().expect("an answer");
        assert_eq!(kind, MessageKind::Refused);
        assert!(String::from_utf8_lossy(&payload).contains("restart instead"));
    }
}

#[test]
fn an_old_program_goes_on_when_the_new_one_does_not_understand() {
    let cases = [
        (MessageKind::Refused, "no port is free", "the new program refuses: no port is free"),
        (MessageKind::Serving, "", "the new program refuses: it speaks another format"),
    ];
    for (kind, reason, expected) in cases {
        let (old, new) = UnixStream::pair().expect("a pair");
        let answering = thread::spawn(move || {
            let mut new = ProgramLink::new(new);
            new.limit(Duration::from_secs(10));
            let hello = new.receive().expect("a message");
            assert_eq!(hello.kind, MessageKind::Hello);
            new.send(kind, reason.as_bytes(), &[]).expect("it is read");
        });
        let refused = NewProgram::of_socket(old).prepare("node", &[]).expect_err("not ready");
        assert_eq!(refused.to_string(), expected);
        answering.join().expect("no panic");
    }
}
