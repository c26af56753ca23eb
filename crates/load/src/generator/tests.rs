//! Tests of subscribers against a tiny server that follows a script.
//! In: what a server might send, whole and byte by byte → out: what the handler gets, what comes back, what fails.
//! Uses loopback sockets and one thread per server; waits for bytes, never for time.
//! Sequences of a connection belong here; single frames and messages are tested in their own modules.

use super::*;
use std::io::Write;
use std::net::{TcpListener, TcpStream as Stream};
use std::thread::{self, JoinHandle};
use zlib_rs::{Deflate, DeflateFlush};

/// Accepts one subscriber, upgrades it, answers its commands and plays the script.
fn server(
    extension: &'static str,
    script: impl FnOnce(&mut Stream) + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let commands = Encoding::Json.commands(None, &["a".to_owned()], SubscribeForm::default());
    server_that_receives(extension, commands, script)
}

/// The same, with the first message that it expects.
fn server_that_receives(
    extension: &'static str,
    first_message: Vec<u8>,
    script: impl FnOnce(&mut Stream) + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("bound");
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a subscriber");
        upgrade(&mut stream, extension);
        assert_eq!(receive(&mut stream), first_message);
        script(&mut stream);
    });
    (address, thread)
}

/// Answers the upgrade request of a subscriber.
pub(super) fn upgrade(stream: &mut (impl Read + Write), extension: &str) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("the request");
        request.push(byte[0]);
    }
    let accept = handshake::ACCEPT;
    let upgrade = "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: ";
    stream.write_all(format!("{upgrade}{accept}\r\n{extension}\r\n").as_bytes()).expect("open");
}

/// The payload of the next (short, masked) frame from the subscriber.
pub(super) fn receive(stream: &mut impl Read) -> Vec<u8> {
    let mut head = [0; 6];
    stream.read_exact(&mut head).expect("a frame header with its mask");
    let mut payload = vec![0; usize::from(head[1] & 0x7f)];
    stream.read_exact(&mut payload).expect("the payload");
    payload.iter().zip(head[2..].iter().cycle()).map(|(byte, mask)| byte ^ mask).collect()
}

pub(super) fn text(payload: &str) -> Vec<u8> {
    let mut frame = Vec::new();
    frame::encode_text(payload.as_bytes(), &mut frame);
    frame
}

pub(super) fn profile(compression: bool) -> Profile {
    Profile { plain: false, encoding: Encoding::Json, compression, channels: vec!["a".to_owned()] }
}

#[derive(Default)]
pub(super) struct Messages(pub(super) Vec<String>);

impl PublicationHandler for Messages {
    fn publication(&mut self, _subscriber: usize, message: &[u8]) -> Result<()> {
        self.0.push(String::from_utf8_lossy(message).into_owned());
        Ok(())
    }
}

/// Opens one subscriber and collects this many messages.
fn collect(address: SocketAddr, inflate: bool, count: usize) -> Result<Vec<String>> {
    let mut generator = Generator::new(inflate)?;
    generator.open(address, 1, &profile(true))?;
    let mut messages = Messages::default();
    while messages.0.len() < count {
        generator.turn(Some(STALL), &mut messages)?;
    }
    Ok(messages.0)
}

pub(super) const REPLIES: &str = "{\"id\":1,\"connect\":{\"client\":\"x\",\"ping\":25,\"pong\":true}}\n{\"id\":2,\"subscribe\":{}}";

#[test]
fn publications_arrive_however_the_bytes_are_cut() {
    let (address, thread) = server("", |stream| {
        let mut bytes = text(REPLIES);
        bytes.extend(text("{\"push\":1}\n{\"push\":2}"));
        bytes.extend(text(&format!("{{\"push\":\"{}\"}}", "x".repeat(300))));
        stream.set_nodelay(true).expect("an open socket");
        bytes.iter().for_each(|byte| stream.write_all(&[*byte]).expect("open"));
        stream.write_all(&text("{\"push\":4}")).expect("open");
    });
    // The opening's handler accepts no publication, so it must end exactly with the replies.
    let mut generator = Generator::new(true).expect("a poller");
    generator.open_some(address, 1, |_| profile(false)).expect("a listening server");
    let mut messages = Messages::default();
    while messages.0.len() < 4 {
        generator.turn(Some(STALL), &mut messages).expect("right frames");
    }
    assert_eq!(messages.0[..2], ["{\"push\":1}", "{\"push\":2}"]);
    assert_eq!((messages.0[2].len(), messages.0[3].as_str()), (311, "{\"push\":4}"));
    thread.join().expect("the script ran");
}

#[test]
fn pings_of_both_kinds_are_answered() {
    let (address, thread) = server("", |stream| {
        stream.write_all(&text(REPLIES)).expect("open");
        stream.write_all(&text("{}")).expect("open");
        assert_eq!(receive(stream), b"{}");
        stream.write_all(&[0x89, 1, b'p']).expect("open");
        assert_eq!(receive(stream), b"p");
        stream.write_all(&text("{\"push\":1}")).expect("open");
    });
    assert_eq!(collect(address, false, 1).expect("right frames"), ["{\"push\":1}"]);
    thread.join().expect("the script ran");
}

#[test]
fn a_unidirectional_subscriber_asks_for_channels_and_answers_ping_frames_alone() {
    let request = br#"{"name":"bench","subs":{"a":{}}}"#.to_vec();
    let (address, thread) = server_that_receives("", request, |stream| {
        let connect = r#"{"connect":{"client":"x","version":"1","subs":{"a":{}},"ping":25}}"#;
        stream.write_all(&text(connect)).expect("open");
        stream.write_all(&text("{}")).expect("open");
        stream.write_all(&[0x89, 1, b'p']).expect("open");
        assert_eq!(receive(stream), b"p");
        stream.write_all(&text(r#"{"channel":"a","pub":{"data":1}}"#)).expect("open");
    });
    let mut generator = Generator::new(true).expect("a poller");
    let transport = SubscriberTransport::UniWebSocket;
    generator.set_endpoint(ConnectTarget { transport, ..ConnectTarget::default() });
    generator.open(address, 1, &profile(false)).expect("a connect push");
    assert_eq!(generator.server_version(), Some("1"));
    let mut messages = Messages::default();
    while messages.0.is_empty() {
        generator.turn(Some(STALL), &mut messages).expect("right frames");
    }
    assert_eq!(messages.0, [r#"{"channel":"a","pub":{"data":1}}"#]);
    thread.join().expect("the script ran");
}

#[test]
fn messages_in_context_are_inflated_from_the_first_reply_on() {
    let (address, thread) = server("Sec-WebSocket-Extensions: permessage-deflate\r\n", |stream| {
        let mut deflate = Deflate::new(6, false, 15);
        for message in [REPLIES, "{}", "{\"push\":\"subscribe\"}", "{\"push\":\"subscribe\"}"] {
            let mut payload = vec![0; 200];
            let before = deflate.total_out();
            deflate
                .compress(message.as_bytes(), &mut payload, DeflateFlush::SyncFlush)
                .expect("room");
            payload.truncate((deflate.total_out() - before) as usize - 4);
            let mut frame = vec![0xc1, payload.len() as u8];
            frame.extend(payload);
            stream.write_all(&frame).expect("open");
            if message == "{}" {
                assert_eq!(receive(stream), b"{}", "opened, so publications may come");
            }
        }
    });
    let messages = collect(address, true, 2).expect("right frames");
    assert_eq!(messages, ["{\"push\":\"subscribe\"}"; 2]);
    thread.join().expect("the script ran");
}

#[test]
fn a_light_generator_counts_compressed_frames_unopened() {
    let extension = "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n";
    let (address, thread) = server(extension, |stream| {
        stream.write_all(&text(&format!("{REPLIES}\n{{}}"))).expect("open");
        assert_eq!(receive(stream), b"{}", "opened, so publications may come");
        // A publication equal to an earlier one takes as few bytes as a ping would.
        stream.write_all(b"\xc1\x0a0123456789\xc1\x040123").expect("open");
    });
    assert_eq!(collect(address, false, 2).expect("right frames"), ["0123456789", "0123"]);
    thread.join().expect("the script ran");
}

#[test]
fn what_a_right_server_would_not_send_ends_the_run() {
    let cases: [(Vec<u8>, &str); 5] = [
        (b"\x88\x0c\x0d\xafbad reques".to_vec(), "the server closed: 3503 bad reques"),
        (
            text("{\"id\":1,\"error\":{\"code\":109,\"message\":\"token expired\"}}"),
            "token expired",
        ),
        (b"\xc1\x01\x00".to_vec(), "no compression was agreed"),
        (b"\x83\x00".to_vec(), "a frame with opcode 3"),
        (Vec::new(), "closed without a close frame"),
    ];
    for (bytes, words) in cases {
        let (address, thread) = server("", move |stream| stream.write_all(&bytes).expect("open"));
        let error = collect(address, true, 1).expect_err("a wrong frame");
        assert!(format!("{error:#}").contains(words), "{error:#}");
        thread.join().expect("the script ran");
    }
}
