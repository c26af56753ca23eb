//! Tests of `reader`: streams of client frames (RFC 6455 §5.4–§5.6, §8.1; RFC 7692 §6).
//! Bytes in hex → events, then perhaps a failure; at once and byte by byte.
//! Keys are mostly 00 00 00 00, so that payloads can be read; random keys are in `tests/it`.
//! Changed here: cases of streams; memory is at the end. Headers alone are tested in `header`.

use super::*;

#[test]
fn the_masked_example_of_rfc_6455_section_5_7_is_read() {
    check("81 85 37 fa 21 3d 7f 9f 4d 51 58", &[text("Hello")]);
}

#[test]
fn a_message_may_be_empty() {
    check("81 80 01 02 03 04", &[text("")]);
    check("82 80 01 02 03 04", &[OwnedEvent::Binary(vec![])]);
}

#[test]
fn several_frames_in_one_read_are_several_events() {
    // RFC 6455 §6.2a, §6.2d
    check(
        "81 81 00 00 00 00 61  82 82 00 00 00 00 01 02  8a 80 00 00 00 00",
        &[text("a"), OwnedEvent::Binary(vec![1, 2]), OwnedEvent::Pong(vec![])],
    );
}

#[test]
fn fragments_become_one_message() {
    // RFC 6455 §5.4b, §5.4e, §6.2c
    check("01 83 00 00 00 00 48 65 6c  80 82 00 00 00 00 6c 6f", &[text("Hello")]);
    check("02 81 00 00 00 00 01  00 80 00 00 00 00  80 81 00 00 00 00 02", &[binary(&[1, 2])]);
    check("01 80 00 00 00 00  00 80 00 00 00 00  80 80 00 00 00 00", &[text("")]);
    // Each fragment has a key of its own.
    check("02 82 01 01 01 01 11 12  80 82 ff 00 00 00 00 01", &[binary(&[0x10, 0x13, 0xff, 1])]);
}

#[test]
fn control_frames_may_stand_between_fragments() {
    // RFC 6455 §5.4d, §6.2b
    check(
        "01 81 00 00 00 00 61  89 82 00 00 00 00 70 71  8a 80 00 00 00 00  80 81 00 00 00 00 62",
        &[OwnedEvent::Ping(b"pq".to_vec()), OwnedEvent::Pong(vec![]), text("ab")],
    );
}

#[test]
fn a_close_frame_ends_the_stream() {
    // RFC 6455 §5.5.1: what follows is ignored, even if it is nonsense.
    check("88 80 00 00 00 00  ff ff ff", &[OwnedEvent::Close(None)]);
    let bye = OwnedEvent::Close(Some((1000, "bye".to_owned())));
    check("88 85 00 00 00 00 03 e8 62 79 65  81 81 00 00 00 00 61", &[bye]);
    let closed = OwnedEvent::Close(Some((1001, String::new())));
    check("01 81 00 00 00 00 61  88 82 00 00 00 00 03 e9", &[closed]);
}

#[test]
fn a_bad_close_frame_is_a_failure() {
    // RFC 6455 §5.5.1, §7.4
    check("88 81 00 00 00 00 03", &[OwnedEvent::Failed(Failure::CloseTooShort)]);
    check("88 82 00 00 00 00 03 ed", &[OwnedEvent::Failed(Failure::CloseCode { code: 1005 })]);
    check("88 83 00 00 00 00 03 e8 ff", &[OwnedEvent::Failed(Failure::CloseReasonNotUtf8)]);
}

#[test]
fn a_failure_ends_the_stream() {
    // RFC 6455 §7.1.7b, §10.7a: no further data is processed.
    let failed = OwnedEvent::Failed(Failure::ReservedOpcode { opcode: 3 });
    check("81 81 00 00 00 00 61  83 80 00 00 00 00  81 81 00 00 00 00 62", &[text("a"), failed]);
}

#[test]
fn a_message_within_a_message_fails_with_1002() {
    // RFC 6455 §5.4
    let failed = OwnedEvent::Failed(Failure::MessageInterleaved);
    check("01 81 00 00 00 00 61  81 81 00 00 00 00 62", &[failed]);
}

#[test]
fn a_continuation_after_the_last_fragment_fails_with_1002() {
    // RFC 6455 §5.4
    let failed = OwnedEvent::Failed(Failure::ContinuationWithoutStart);
    let message = "01 81 00 00 00 00 61  80 81 00 00 00 00 62";
    check(&format!("{message}  80 81 00 00 00 00 63"), &[text("ab"), failed.clone()]);
    check("81 81 00 00 00 00 61  80 81 00 00 00 00 63", &[text("a"), failed]);
}

#[test]
fn text_that_is_not_utf_8_fails_with_1007() {
    // RFC 6455 §5.6a, §8.1a
    let failed = [OwnedEvent::Failed(Failure::TextNotUtf8)];
    check("81 82 00 00 00 00 c3 28", &failed);
    check("81 81 00 00 00 00 ce", &failed);
    check("01 81 00 00 00 00 ce  80 80 00 00 00 00", &failed);
    check("01 81 00 00 00 00 ce  80 81 00 00 00 00 ba", &[text("κ")]);
    // Binary messages may hold anything, also inside fragments.
    check("02 81 00 00 00 00 ff  80 81 00 00 00 00 fe", &[binary(&[0xff, 0xfe])]);
}

#[test]
fn invalid_text_fails_before_its_fragment_or_frame_is_complete() {
    // Autobahn 6.4.1–6.4.4: the frame would go on, and the message too.
    let failed = [OwnedEvent::Failed(Failure::TextNotUtf8)];
    check("81 88 00 00 00 00 ce ba f4 90", &failed);
    check("01 83 00 00 00 00 ce ba f4  80 82 00 00 00 00 90", &failed);
    check("01 88 00 00 00 00 ff", &failed);
}

#[test]
fn a_message_over_the_limit_fails_with_1009_at_its_header() {
    // RFC 6455 §7.4.1. No payload follows these headers.
    let failed = [OwnedEvent::Failed(Failure::MessageTooBig { bytes_max: 8 })];
    check("82 89", &failed);
    check("02 84 00 00 00 00 01 02 03 04  80 85", &failed);
    check("02 83 00 00 00 00 01 02 03  00 83 00 00 00 00 04 05 06  80 83", &failed);
    check("82 fe 01 00", &failed);
    let eight = [binary(&[1, 2, 3, 4, 5, 6, 7, 8])];
    check("82 88 00 00 00 00 01 02 03 04 05 06 07 08", &eight);
    check("02 84 00 00 00 00 01 02 03 04  80 84 00 00 00 00 05 06 07 08", &eight);
}

#[test]
fn control_frames_do_not_count_towards_the_message() {
    check(
        "02 88 00 00 00 00 01 02 03 04 05 06 07 08  89 8a 00 00 00 00 30 31 32 33 34 35 36 37 38 39
         80 80 00 00 00 00",
        &[OwnedEvent::Ping(b"0123456789".to_vec()), binary(&[1, 2, 3, 4, 5, 6, 7, 8])],
    );
}

#[test]
fn a_message_of_too_many_fragments_fails_with_1008() {
    let three = "02 80 00 00 00 00  00 80 00 00 00 00  00 80 00 00 00 00";
    check(&format!("{three}  80 80 00 00 00 00"), &[binary(&[])]);
    let failed = OwnedEvent::Failed(Failure::TooManyFragments { fragments_max: 4 });
    check(&format!("{three}  00 80 00 00 00 00  80 80 00 00 00 00"), &[failed]);
    // The count starts again with each message.
    check(
        &format!("{three}  80 80 00 00 00 00  {three}  80 80 00 00 00 00"),
        &[binary(&[]), binary(&[])],
    );
}

#[test]
fn a_compressed_message_is_inflated() {
    // RFC 7692 §6.2a; §7.2.3.1, in one frame and in two
    check_compressed("c1 87 00 00 00 00 f2 48 cd c9 c9 07 00", &[text("Hello")]);
    check_compressed("41 83 00 00 00 00 f2 48 cd  80 84 00 00 00 00 c9 c9 07 00", &[text("Hello")]);
    check_compressed("c2 87 00 00 00 00 f2 48 cd c9 c9 07 00", &[binary(b"Hello")]);
    check_compressed("c1 81 00 00 00 00 00", &[text("")]);
    check_compressed("41 80 00 00 00 00  80 81 00 00 00 00 00", &[text("")]);
}

#[test]
fn a_compressed_message_with_bfinal_is_inflated_and_so_is_the_next() {
    // RFC 7692 §7.2.3.4
    let bfinal = "c1 88 00 00 00 00 f3 48 cd c9 c9 07 00 00";
    let plain = "c1 87 00 00 00 00 f2 48 cd c9 c9 07 00";
    check_compressed(
        &format!("{bfinal} {bfinal} {plain}"),
        &[text("Hello"), text("Hello"), text("Hello")],
    );
}

#[test]
fn compressed_and_raw_messages_may_alternate() {
    // RFC 7692 §6.2b
    check_compressed(
        "81 81 00 00 00 00 61  c1 87 00 00 00 00 f2 48 cd c9 c9 07 00  81 81 00 00 00 00 62",
        &[text("a"), text("Hello"), text("b")],
    );
}

#[test]
fn a_control_frame_may_stand_inside_a_compressed_message() {
    check_compressed(
        "41 83 00 00 00 00 f2 48 cd  89 80 00 00 00 00  80 84 00 00 00 00 c9 c9 07 00",
        &[OwnedEvent::Ping(vec![]), text("Hello")],
    );
}

#[test]
fn a_compressed_message_that_does_not_inflate_fails_with_1007() {
    let failed = [OwnedEvent::Failed(Failure::CorruptDeflate)];
    check_compressed("c1 82 00 00 00 00 06 00", &failed);
    check_compressed("c1 84 00 00 00 00 f2 48 cd c9", &failed);
}

#[test]
fn a_message_that_does_not_inflate_spoils_nothing_for_other_connections() {
    let mut pool = Pool::new();
    for failing in ["c1 82 00 00 00 00 06 00", "c1 84 00 00 00 00 f2 48 cd c9"] {
        let seen = read(&mut Reader::new(true), &mut pool, &mut hex(failing));
        assert_eq!(seen, [OwnedEvent::Failed(Failure::CorruptDeflate)]);
        let mut hello = hex("c1 87 00 00 00 00 f2 48 cd c9 c9 07 00");
        assert_eq!(read(&mut Reader::new(true), &mut pool, &mut hello), [text("Hello")]);
    }
}

#[test]
fn a_compressed_text_that_is_not_utf_8_fails_with_1007() {
    // One stored block with the byte ff (RFC 1951 §3.2.4).
    let failed = [OwnedEvent::Failed(Failure::TextNotUtf8)];
    check_compressed("c1 87 00 00 00 00 00 01 00 fe ff ff 00", &failed);
    check_compressed("c2 87 00 00 00 00 00 01 00 fe ff ff 00", &[binary(&[0xff])]);
}

#[test]
fn a_message_that_inflates_beyond_the_limit_fails_with_1009() {
    // RFC 6455 §7.4.1
    let mut pool = Pool::new();
    for (message, allowed) in [("x".repeat(16), true), ("x".repeat(17), false)] {
        let mut payload = Vec::new();
        fanwire_deflate::Compressor::new(6).standalone(message.as_bytes(), &mut payload);
        let mut frame = vec![0xc1, 0x80 | payload.len() as u8, 0, 0, 0, 0];
        frame.extend(payload);
        let seen = read(&mut Reader::new(true), &mut pool, &mut frame);
        let failed = OwnedEvent::Failed(Failure::InflatedTooBig { bytes_max: 16 });
        assert_eq!(seen, [if allowed { text(&message) } else { failed }]);
    }
}

#[test]
fn with_takeover_a_message_may_refer_to_the_one_before() {
    // RFC 7692 §7.2.2a; §7.2.3.2, in one frame and in fragments with a ping between them
    let first = "c1 87 00 00 00 00 f2 48 cd c9 c9 07 00";
    let second = "c1 85 00 00 00 00 f2 00 11 00 00";
    check_takeover(
        &format!("{first} {second} {second}"),
        &[text("Hello"), text("Hello"), text("Hello")],
    );
    let fragments =
        "41 82 00 00 00 00 f2 00  89 80 00 00 00 00  00 80 00 00 00 00  80 83 00 00 00 00 11 00 00";
    let ping = OwnedEvent::Ping(vec![]);
    check_takeover(&format!("{first} {fragments}"), &[text("Hello"), ping, text("Hello")]);
    let failed = OwnedEvent::Failed(Failure::CorruptDeflate);
    check_takeover(second, std::slice::from_ref(&failed));
    // Without takeover it refers to nothing.
    check_compressed(&format!("{first} {second}"), &[text("Hello"), failed]);
}

#[test]
fn with_takeover_empty_messages_and_final_blocks_keep_the_window() {
    // RFC 7692 §7.2.3.4, §7.2.3.6
    let first = "c1 88 00 00 00 00 f3 48 cd c9 c9 07 00 00";
    let again = "c2 85 00 00 00 00 f2 00 11 00 00";
    let hello = binary(b"Hello");
    check_takeover(&format!("{first} {again}"), &[text("Hello"), hello.clone()]);
    for empty in
        ["c1 81 00 00 00 00 00", "c1 80 00 00 00 00", "41 80 00 00 00 00  80 81 00 00 00 00 00"]
    {
        let stream = format!("{first} {empty} {again}");
        check_takeover(&stream, &[text("Hello"), text(""), hello.clone()]);
    }
    // A final block, then one that refers to the message before (§7.2.3.5: several blocks).
    let behind = "c1 87 00 00 00 00 03 00 f2 00 11 00 00";
    check_takeover(&format!("{first} {behind}"), &[text("Hello"), text("Hello")]);
}

#[test]
fn messages_that_are_not_compressed_are_not_in_the_window() {
    // RFC 7692 §7.2.2
    let first = "c1 87 00 00 00 00 f2 48 cd c9 c9 07 00";
    let raw = "81 83 00 00 00 00 61 62 63  01 81 00 00 00 00 64  80 81 00 00 00 00 65";
    let again = "c1 85 00 00 00 00 f2 00 11 00 00";
    let seen = [text("Hello"), text("abc"), text("de"), text("Hello")];
    check_takeover(&format!("{first} {raw} {again}"), &seen);
    let failed = OwnedEvent::Failed(Failure::CorruptDeflate);
    let hello = "81 85 00 00 00 00 48 65 6c 6c 6f";
    check_takeover(&format!("{hello} {again}"), &[text("Hello"), failed]);
}

#[test]
fn with_takeover_the_limit_is_that_of_one_message() {
    let mut sender = fanwire_deflate::Dedicated::new(9, 1, 6);
    let mut frame = |message: &str| {
        let mut payload = Vec::new();
        sender.compress(message.as_bytes(), &mut Default::default(), &mut payload);
        [&[0xc1, 0x80 | payload.len() as u8, 0, 0, 0, 0], &payload[..]].concat()
    };
    let (mut reader, mut pool) = (Reader::with_takeover(9), Pool::new());
    for bytes in [15, 14, 16] {
        let message = "x".repeat(bytes);
        assert_eq!(read(&mut reader, &mut pool, &mut frame(&message)), [text(&message)]);
    }
    assert_eq!(reader.window_bytes(), 60, "from 15, by doubling");
    let failed = OwnedEvent::Failed(Failure::InflatedTooBig { bytes_max: 16 });
    let mut long = frame(&"x".repeat(17));
    assert_eq!(read(&mut reader, &mut pool, &mut long), [failed]);
    assert_eq!(reader.window_bytes(), 0, "what failed keeps no window");
}

#[test]
fn the_window_of_a_client_is_allocated_with_its_first_compressed_message() {
    let (mut reader, mut pool) = (Reader::with_takeover(12), Pool::new());
    let raw = "81 83 00 00 00 00 61 62 63  89 80 00 00 00 00  41 83 00 00 00 00 f2 48 cd";
    read(&mut reader, &mut pool, &mut hex(raw));
    assert!(reader.window.is_none());
    read(&mut reader, &mut pool, &mut hex("80 84 00 00 00 00 c9 c9 07 00"));
    assert_eq!(reader.window_bytes(), 5);
    read(&mut reader, &mut pool, &mut hex("88 80 00 00 00 00"));
    assert!(reader.window.is_none(), "no message comes after a close frame");
}

#[test]
fn rsv1_without_agreement_fails_with_1002() {
    // RFC 6455 §5.2
    check("c1 81 00 00 00 00 00", &[OwnedEvent::Failed(Failure::ReservedBits)]);
}

#[test]
fn every_failure_fits_a_close_frame_as_its_reason() {
    let longest = Failure::InflatedTooBig { bytes_max: usize::MAX };
    assert!(longest.to_string().len() <= 123);
    assert!(Failure::MessageInterleaved.to_string().len() <= 123);
}

#[test]
fn a_reader_at_rest_is_at_most_24_bytes_and_owns_no_heap_block() {
    assert!(size_of::<Reader>() <= 24);
    let mut reader = Reader::new(true);
    let mut pool = Pool::new();
    let message = hex("01 83 00 00 00 00 48 65 6c  89 81 00 00 00 00 70  80 82 00 00 00 00 6c 6f");
    for byte in &message[..message.len() - 1] {
        read(&mut reader, &mut pool, &mut [*byte]);
        assert!(reader.partial.is_some());
    }
    let seen = read(&mut reader, &mut pool, &mut [message[message.len() - 1]]);
    assert_eq!(seen, [text("Hello")]);
    assert!(reader.partial.is_none());
    // A frame that arrives whole allocates nothing; nor do bytes after a failure.
    read(&mut reader, &mut pool, &mut hex("81 81 00 00 00 00 61"));
    assert!(reader.partial.is_none());
    read(&mut reader, &mut pool, &mut hex("01 81 00 00 00 00 61  81 81"));
    assert!(reader.partial.is_none());
}

#[test]
fn a_header_that_promises_much_reserves_nothing() {
    let limits = Limits { message_bytes_max: usize::MAX, ..LIMITS };
    let mut reader = Reader::new(false);
    let mut pool = Pool::new();
    let mut bytes = hex("82 ff 00 00 00 40 00 00 00 00 00 00 00 00 01 02 03");
    let mut input = Input::new(&mut bytes);
    assert_eq!(reader.receive(&mut input, &mut pool, &limits), Ok(None));
    let partial = reader.partial.expect("256 GiB minus three bytes are missing");
    assert!(partial.heap_bytes() < 64, "{} bytes", partial.heap_bytes());
}

#[test]
fn the_pool_gives_back_what_a_large_message_needed() {
    let limits = Limits { message_bytes_max: 1 << 20, ..LIMITS };
    let mut reader = Reader::new(false);
    let mut pool = Pool::new();
    let mut bytes = hex("82 ff 00 00 00 00 00 08 00 00 00 00 00 00");
    bytes.resize(bytes.len() + (1 << 19), 7);
    let (first, second) = bytes.split_at_mut(1000);
    let mut input = Input::new(first);
    assert_eq!(reader.receive(&mut input, &mut pool, &limits), Ok(None));
    let mut input = Input::new(second);
    let event = reader.receive(&mut input, &mut pool, &limits);
    assert!(matches!(event, Ok(Some(Event::Binary(payload))) if payload == [7; 1 << 19]));
    assert_eq!(reader.receive(&mut input, &mut pool, &limits), Ok(None));
    assert_eq!(pool.bytes.capacity(), 0);
}

const LIMITS: Limits = Limits { message_bytes_max: 8, inflated_bytes_max: 16, fragments_max: 4 };

/// An event that owns its bytes, or the failure that ended the stream.
#[derive(Clone, Debug, PartialEq)]
enum OwnedEvent {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<(u16, String)>),
    Failed(Failure),
}

fn text(text: &str) -> OwnedEvent {
    OwnedEvent::Text(text.to_owned())
}

fn binary(bytes: &[u8]) -> OwnedEvent {
    OwnedEvent::Binary(bytes.to_vec())
}

fn check(stream: &str, expect: &[OwnedEvent]) {
    check_with(false, stream, expect);
    if !expect.contains(&OwnedEvent::Failed(Failure::ReservedBits)) {
        check_with(true, stream, expect);
    }
}

fn check_compressed(stream: &str, expect: &[OwnedEvent]) {
    check_with(true, stream, expect);
}

fn check_takeover(stream: &str, expect: &[OwnedEvent]) {
    check_reader(|| Reader::with_takeover(9), stream, expect);
}

fn check_with(compression_agreed: bool, stream: &str, expect: &[OwnedEvent]) {
    check_reader(|| Reader::new(compression_agreed), stream, expect);
}

fn check_reader(make: impl Fn() -> Reader, stream: &str, expect: &[OwnedEvent]) {
    let stream = hex(stream);
    let mut pool = Pool::new();
    let mut reader = make();
    assert_eq!(read(&mut reader, &mut pool, &mut stream.clone()), expect, "{stream:02x?}");
    assert!(reader.partial.is_none() || expect.is_empty());
    let mut reader = make();
    let seen = stream.iter().flat_map(|byte| read(&mut reader, &mut pool, &mut [*byte]));
    assert_eq!(seen.collect::<Vec<_>>(), expect, "{stream:02x?} byte by byte");
    check_resumed(make(), &stream, expect);
}

/// Before each byte another reader takes the place of the one before, which knows no number of fragments.
fn check_resumed(mut reader: Reader, stream: &[u8], expect: &[OwnedEvent]) {
    let counts =
        |event: &OwnedEvent| matches!(event, OwnedEvent::Failed(Failure::TooManyFragments { .. }));
    if expect.iter().any(counts) {
        return;
    }
    let mut pool = Pool::new();
    let mut seen = Vec::new();
    for byte in stream {
        seen.extend(read(&mut reader, &mut pool, &mut [*byte]));
        if !reader.ended {
            let mut replayed = reader.replay();
            reader = Reader::resumed(reader.compression(), &reader.window());
            let again = read(&mut reader, &mut pool, &mut replayed);
            assert!(again.is_empty(), "{again:?} came twice of {stream:02x?}");
        }
    }
    assert_eq!(seen, expect, "{stream:02x?} with another reader for each byte");
}

fn read(reader: &mut Reader, pool: &mut Pool, bytes: &mut [u8]) -> Vec<OwnedEvent> {
    let mut input = Input::new(bytes);
    let mut seen = Vec::new();
    loop {
        seen.push(match reader.receive(&mut input, pool, &LIMITS) {
            Ok(None) => break,
            Ok(Some(Event::Text(text))) => OwnedEvent::Text(text.to_owned()),
            Ok(Some(Event::Binary(bytes))) => OwnedEvent::Binary(bytes.to_vec()),
            Ok(Some(Event::Ping(bytes))) => OwnedEvent::Ping(bytes.to_vec()),
            Ok(Some(Event::Pong(bytes))) => OwnedEvent::Pong(bytes.to_vec()),
            Ok(Some(Event::Close(close))) => {
                OwnedEvent::Close(close.map(|(code, reason)| (code, reason.to_owned())))
            }
            Err(failure) => OwnedEvent::Failed(failure),
        });
    }
    assert!(input.is_empty());
    seen
}

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect()
}
