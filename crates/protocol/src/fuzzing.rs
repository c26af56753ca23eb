//! Properties that hold for any bytes at all: the bodies of fuzz targets, also run as property tests by `tests/it/any_bytes.rs`.
//! In: bytes from a fuzzer. Out: nothing, or a panic that names the broken promise.
//! Uses the decoders and encoders of this crate, and serde_json as the oracle; never part of the server.
//! A new decoder gets a function here; the targets that call them live in the fuzz folder.

use std::io;

use prost::Message as _;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::ser::Formatter;

use crate::{
    Command, Commands, Encoding, MessageReplies, Publication, Push, Reply, SubscribeResult,
    bare_push, encode_publication, encode_reply, fossil, has_json, is_json, is_json_object, json,
    publication_in_push, scan::is_line_end,
};

/// A client's message: decoding ends, and what was understood survives being written and read.
pub fn commands(frame: &[u8]) {
    for encoding in Encoding::ALL {
        let count = Commands::new(encoding, frame).map_while(Result::ok).map(command).count();
        assert!(count <= frame.len(), "every command takes at least a byte");
        let connects = Commands::of_connect_request(encoding, frame).map(|it| it.map(command));
        assert_eq!(connects.count(), 1, "one command or one error");
    }
}

fn command(command: Command) {
    let bytes = command.encode_to_vec();
    assert_eq!(Command::decode(&*bytes).as_ref(), Ok(&command), "Protobuf changes a command");
    let mut text = Vec::new();
    if json::write(&command, &mut text).is_ok() {
        assert!(
            !text.iter().any(|byte| is_line_end(*byte)),
            "a raw line end would end the command"
        );
        let read: Command = json::read(&text).expect("reads what it wrote");
        let again = written(&read);
        let value = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).ok();
        assert_eq!(value(&text), value(&again), "JSON changes a command");
        // A payload may have come with space around it, which is no part of it in JSON.
        let read: Command = json::read(&again).expect("reads what it wrote");
        assert_eq!(again, written(&read), "JSON changes a command that it wrote");
    }
}

fn written(command: &Command) -> Vec<u8> {
    let mut text = Vec::new();
    json::write(command, &mut text).expect("writes what it read");
    text
}

/// A message of a server: decoding ends.
pub fn replies(message: &[u8]) {
    for encoding in Encoding::ALL {
        let mut replies = MessageReplies::new(encoding, message);
        let mut bytes_left = message.len();
        while let Some(Ok(_)) = replies.next() {
            assert!(replies.bytes_left() < bytes_left, "every reply takes at least a byte");
            bytes_left = replies.bytes_left();
        }
        assert_eq!(replies.bytes_left(), 0, "an error ends the message");
    }
}

/// A payload: the verdict is that of serde_json.
pub fn payload(data: &[u8]) {
    let oracle = std::str::from_utf8(data)
        .is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
    assert_eq!(is_json(data), oracle, "not the verdict of serde_json");
    let is_object = oracle && data.trim_ascii_start().starts_with(b"{");
    assert_eq!(is_json_object(data), is_object, "an object starts with a brace");
}

/// A publication in Protobuf: the hand-written push is that of prost.
pub fn publication(bytes: &[u8]) {
    if let Ok(publication) = Publication::decode(bytes) {
        let channel = publication.key.clone();
        publication_push(&channel, &publication);
    }
}

/// The push has the bytes that prost and serde_json write.
pub fn publication_push(channel: &str, publication: &Publication) {
    let r#pub = Some(publication.clone());
    let push = Some(Push { channel: channel.to_owned(), r#pub, ..Push::default() });
    let reply = Reply { push, ..Reply::default() };
    let mut expect = Vec::new();
    encode_reply(Encoding::Protobuf, &reply, &mut expect).expect("Protobuf takes any payload");
    let message = encode_publication(Encoding::Protobuf, channel, publication);
    assert_eq!(message.as_deref(), Some(&*expect), "not the Protobuf of prost");

    let expect = derived(&reply);
    let message = encode_publication(Encoding::Json, channel, publication);
    assert_eq!(message.as_deref(), expect.as_deref(), "not the JSON that serde_json writes");
    assert_eq!(has_json(publication), message.is_some(), "another verdict without writing");
    if let Some(message) = message {
        assert!(
            !message.iter().any(|byte| is_line_end(*byte)),
            "a raw line end would end the push"
        );
    }
    bare(&reply);
    quoted_publication(channel, publication);
}

/// The push of a message stands in it as it would stand alone.
pub(crate) fn bare(message: &Reply) {
    let push = message.push.as_ref().expect("a push");
    let mut text = Vec::new();
    if json::write(message, &mut text).is_ok() {
        let mut alone = Vec::new();
        json::write(push, &mut alone).expect("as in the message");
        assert_eq!(bare_push(Encoding::Json, &text), Some(&*alone), "another push in JSON");
    }
    let bytes = message.encode_length_delimited_to_vec();
    let alone = push.encode_to_vec();
    assert_eq!(bare_push(Encoding::Protobuf, &bytes), Some(&*alone), "another push in Protobuf");
}

/// A publication has the same bytes in its push and in a subscribe result.
fn quoted_publication(channel: &str, publication: &Publication) {
    let publications = vec![publication.clone()];
    let subscribe = Some(SubscribeResult { publications, ..SubscribeResult::default() });
    let reply = Reply { subscribe, ..Reply::default() };
    for (encoding, after) in Encoding::ALL.into_iter().zip([&b"]}}"[..], b""]) {
        let Some(push) = encode_publication(encoding, channel, publication) else { continue };
        let range = publication_in_push(encoding, &push).expect("a push");
        let mut result = Vec::new();
        encode_reply(encoding, &reply, &mut result).expect("as in the push");
        let end = result.strip_suffix(after).expect("nothing else in it");
        assert!(end.ends_with(&push[range]), "not the publication of the push");
    }
}

/// The JSON text of a message, written by ourselves, if it has one. serde_json writes the same.
pub fn json_text(message: &impl Serialize) -> Option<String> {
    let mut text = Vec::new();
    let expect = derived(message);
    assert_eq!(json::write(message, &mut text).is_ok(), expect.is_some(), "not its verdict");
    assert_eq!(text, expect.clone().unwrap_or_default(), "not the JSON that serde_json writes");
    expect.map(|text| String::from_utf8(text).expect("JSON is UTF-8"))
}

/// Returns the JSON that serde_json writes.
fn derived(message: &impl Serialize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    message.serialize(&mut serde_json::Serializer::with_formatter(&mut out, HtmlSafe)).ok()?;
    Some(out)
}

/// serde_json's compact format with the HTML-safe escapes, and payloads as they are.
struct HtmlSafe;

impl Formatter for HtmlSafe {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for character in fragment.chars() {
            match character {
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    write!(writer, "\\u{:04x}", u32::from(character))?;
                }
                _ => write!(writer, "{character}")?,
            }
        }
        Ok(())
    }

    fn write_byte_array<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        payload: &[u8],
    ) -> io::Result<()> {
        let text = std::str::from_utf8(payload).map_err(io::Error::other)?;
        serde_json::from_str::<IgnoredAny>(text)?;
        writer.write_all(text.replace(['\n', '\r'], "").as_bytes())
    }
}

/// Two payloads, the first of the length that the first byte says: a delta makes the second of the
/// first, and the second taken for a delta ends within its limit.
pub fn fossil(data: &[u8]) {
    let Some((&cut, data)) = data.split_first() else { return };
    let (source, target) = data.split_at(data.len() * usize::from(cut) / 256);
    let mut delta = Vec::new();
    let mut made = b"before".to_vec();
    fossil::Differ::default().create(source, target, &mut delta);
    assert!(delta.len() <= target.len() + 24, "longer than promised");
    assert_eq!(fossil::apply(source, &delta, target.len(), &mut made), Ok(()));
    assert_eq!(&made[6..], target, "a delta makes something else");
    if let Ok(text) = std::str::from_utf8(target) {
        let mut delta = Vec::new();
        let mut made = Vec::new();
        fossil::Differ::default().create_text(source, text, &mut delta);
        assert!(std::str::from_utf8(&delta).is_ok(), "a character is cut");
        assert_eq!(fossil::apply(source, &delta, target.len(), &mut made), Ok(()));
        assert_eq!(made, target, "a delta of text makes something else");
    }
    if let Some(bytes_max) = target.len().checked_sub(1) {
        let error = fossil::DeltaError::TooLarge { announced: target.len(), bytes_max };
        assert_eq!(fossil::apply(source, &delta, bytes_max, &mut made), Err(error));
    }

    made.truncate(6);
    let applied = fossil::apply(source, target, 1 << 12, &mut made);
    assert!(made.len() <= 6 + (1 << 12), "beyond the limit");
    assert!(applied.is_ok() || made == b"before", "an error leaves something");
}
