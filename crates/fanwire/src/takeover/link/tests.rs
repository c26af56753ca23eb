//! Tests of the messages between the two programs.
//! In: messages with descriptors → out: the same at the other end, or an error.
//! Uses a pair of sockets in one process. Never: another process.
//! Changed here: expectations of `link`.

use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::os::fd::AsFd as _;
use std::thread;

use fanwire_testing::fingerprint;

use super::*;
use crate::takeover::FORMAT;

fn pair() -> [ProgramLink; 2] {
    let (one, other) = UnixStream::pair().expect("a pair");
    let mut links = [one, other].map(ProgramLink::new);
    links.iter_mut().for_each(|link| link.limit(Duration::from_secs(10)));
    links
}

#[test]
fn messages_arrive_in_order_with_their_descriptors() {
    let [mut sender, mut receiver] = pair();
    let mut files: Vec<File> = (0..300).map(|_| File::from(unnamed_file())).collect();
    for (number, file) in files.iter_mut().enumerate() {
        write!(file, "{number}").expect("memory");
    }
    let sending = thread::spawn(move || {
        sender.send(MessageKind::Hello, b"hello", &[]).expect("it is read");
        for (number, batch) in files.chunks(DESCRIPTORS_MAX).enumerate() {
            let descriptors: Vec<_> = batch.iter().map(|file| file.as_fd()).collect();
            let payload = vec![number as u8; number * 1_000_000];
            sender.send(MessageKind::Connections, &payload, &descriptors).expect("it is read");
        }
    });
    let hello = receiver.receive().expect("a message");
    assert_eq!((hello.kind, &hello.payload[..]), (MessageKind::Hello, &b"hello"[..]));
    let mut number = 0;
    for batch in 0..300_usize.div_ceil(DESCRIPTORS_MAX) {
        let message = receiver.receive().expect("a message");
        assert_eq!(message.kind, MessageKind::Connections);
        assert_eq!(message.payload, vec![batch as u8; batch * 1_000_000]);
        for descriptor in message.descriptors {
            let mut file = File::from(descriptor);
            file.seek(SeekFrom::Start(0)).expect("memory");
            let mut text = String::new();
            file.read_to_string(&mut text).expect("text");
            assert_eq!(text, number.to_string());
            number += 1;
        }
    }
    assert_eq!(number, 300);
    sending.join().expect("no panic");
    let end = receiver.receive().map(|message| message.kind).expect_err("the other end is gone");
    assert_eq!(end.kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn a_message_that_is_cut_or_unknown_is_an_error() {
    let cuts: [(&[u8], ErrorKind); 3] = [
        (&[MessageKind::Ready as u8, 0, 9], ErrorKind::UnexpectedEof),
        (&[MessageKind::Ready as u8, 0, 9, 0, 0, 0, b'a'], ErrorKind::UnexpectedEof),
        (&[99, 0, 0, 0, 0, 0], ErrorKind::InvalidData),
    ];
    for (bytes, expected) in cuts {
        let [sender, mut receiver] = pair();
        (&sender.socket).write_all(bytes).expect("room");
        drop(sender);
        let error = receiver.receive().map(|message| message.kind).expect_err("no message");
        assert_eq!(error.kind(), expected);
    }
}

#[test]
fn a_program_that_hangs_is_not_waited_for() {
    let [mut sender, receiver] = pair();
    sender.limit(Duration::from_millis(20));
    let error =
        sender.send(MessageKind::Engine, &vec![0; 16 << 20], &[]).expect_err("the pair is full");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let error = sender.receive().map(|message| message.kind).expect_err("the time is over");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    drop(receiver);
}

/// Another layout takes another format, in `takeover.rs`, and then this number.
#[test]
fn the_layout_of_messages_is_that_of_their_format() {
    let [mut sender, receiver] = pair();
    for kind in MessageKind::ALL {
        sender.send(kind, b"payload", &[]).expect("room");
    }
    drop(sender);
    let mut bytes = vec![DESCRIPTORS_MAX as u8];
    (&receiver.socket).read_to_end(&mut bytes).expect("what was sent");
    assert_eq!((FORMAT, fingerprint(&bytes)), (3, 0x4035_522c));
}

/// A file that has no name.
fn unnamed_file() -> OwnedFd {
    let path = std::env::temp_dir().join(format!("fanwire-link-{}", rand::random::<u64>()));
    let file = File::options().create_new(true).read(true).write(true).open(&path);
    let file = file.expect("a writable folder");
    std::fs::remove_file(path).expect("it is there");
    file.into()
}
