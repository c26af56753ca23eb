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
    let hellos = [
        r#"{"format":1,"version":"0.1.0","node":"a","descriptors":[]}"#,
        r#"{"format":2,"records":[1,1,1],"version":"0.1.0","node":"a","engine":"memory","descriptors":[]}"#,
        r#"{"format":3,"records":[1,1,9],"version":"9.0.0","node":"a","engine":"memory","descriptors":[]}"#,
        r#"{"format":99,"records":[1,1,1],"version":"9.0.0","node":"a","engine":"memory","descriptors":[],"added":1}"#,
        "{}",
        "no JSON",
    ];
    for hello in hellos.map(str::as_bytes) {
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
            assert_eq!(String::from_utf8_lossy(&hello.payload), expected_hello());
            new.send(kind, reason.as_bytes(), &[]).expect("it is read");
        });
        let refused =
            NewProgram::of_socket(old).prepare("node", "memory", &[]).expect_err("not ready");
        assert_eq!(refused.to_string(), expected);
        answering.join().expect("no panic");
    }
}

/// Another text, or another meaning of what follows, has another format.
fn expected_hello() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        r#"{{"format":3,"records":[1,1,1],"version":"{version}","node":"node","engine":"memory","descriptors":[]}}"#
    )
}
