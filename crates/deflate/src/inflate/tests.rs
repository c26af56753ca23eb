//! Tests of `inflate` on hand-made payloads (RFC 7692 §7.2.3, RFC 1951 §3.2).
//! Payload in hex → message or error.
//! Uses only `inflate`; random payloads against an independent decoder are in `tests/it`.
//! Changed here: cases of single payloads.

use super::*;

#[test]
fn the_examples_of_rfc_7692_section_7_2_3_inflate() {
    // §7.2.3.1 one block; §7.2.3.3 a stored block; §7.2.3.4 BFINAL=1; §7.2.3.5 two blocks.
    check("f2 48 cd c9 c9 07 00", Ok(b"Hello"));
    check("00 05 00 fa ff 48 65 6c 6c 6f 00", Ok(b"Hello"));
    check("f3 48 cd c9 c9 07 00 00", Ok(b"Hello"));
    check("f2 48 05 00 00 00 ff ff ca c9 c9 07 00", Ok(b"Hello"));
}

#[test]
fn an_empty_message_is_one_zero_byte_or_nothing() {
    check("00", Ok(b"")); // RFC 7692 §7.2.3.6
    check("", Ok(b""));
}

#[test]
fn data_behind_a_final_block_belongs_to_the_message() {
    // "Hello" with BFINAL=1, then "Hello" again, final or not.
    check("f3 48 cd c9 c9 07 00 f3 48 cd c9 c9 07 00 00", Ok(b"HelloHello"));
    check("f3 48 cd c9 c9 07 00 f2 48 cd c9 c9 07 00", Ok(b"HelloHello"));
}

#[test]
fn a_final_block_without_the_closing_zero_byte_is_complete() {
    check("f3 48 cd c9 c9 07 00", Ok(b"Hello"));
    check("01 05 00 fa ff 48 65 6c 6c 6f", Ok(b"Hello"));
}

#[test]
fn a_final_block_may_be_the_one_that_the_tail_completes() {
    check("01", Ok(b""));
    check("f2 48 cd c9 c9 07 04", Ok(b"Hello"));
}

#[test]
fn a_block_behind_a_final_block_may_refer_back_into_it() {
    let mut inflater = Inflater::new();
    let mut out = Vec::new();
    inflater.push(&hex("01 05 00 fa ff 48 65 6c 6c 6f"), &mut out, 100).expect("a stored block");
    // Fixed block: match of length 3 (code 0000001) at distance 5 (code 00100, extra bit 0), end.
    // Bits, lowest first: 0 (not final) 10 (fixed) 0000001 00100 0 0000000, then 000 (stored).
    inflater.push(&hex("02 12 00 00"), &mut out, 100).expect("a match into the block before");
    inflater.finish(&mut out, 100).expect("complete");
    assert_eq!(out, b"HelloHel");
}

#[test]
fn a_message_after_one_with_bfinal_is_delivered() {
    let mut inflater = Inflater::new();
    for payload in ["f3 48 cd c9 c9 07 00 00", "f3 48 cd c9 c9 07 00", "f2 48 cd c9 c9 07 00"] {
        let mut out = Vec::new();
        inflater.reset();
        inflater.push(&hex(payload), &mut out, 100).expect("valid");
        inflater.finish(&mut out, 100).expect("complete");
        assert_eq!(out, b"Hello");
    }
}

#[test]
fn a_payload_that_stops_inside_a_block_is_corrupt() {
    check("f2 48 cd c9 c9", Err(InflateError::Corrupt));
    check("f2 48 cd c9 c9 07", Err(InflateError::Corrupt));
    check("00 05 00 fa ff 48 65", Err(InflateError::Corrupt));
    check("00 05", Err(InflateError::Corrupt));
}

#[test]
fn a_payload_with_its_flush_tail_left_on_is_corrupt() {
    check("f2 48 cd c9 c9 07 00 00 00 ff ff", Err(InflateError::Corrupt)); // RFC 7692 §7.2.1
}

#[test]
fn what_rfc_1951_forbids_is_corrupt() {
    check("06 00", Err(InflateError::Corrupt)); // §3.2.3: BTYPE 11
    check("00 05 00 00 00 48 65 6c 6c 6f 00", Err(InflateError::Corrupt)); // §3.2.4: NLEN
    check("02 12 00 00", Err(InflateError::Corrupt)); // §3.2.5: distance beyond the beginning
}

#[test]
fn a_window_of_one_message_is_not_seen_by_the_next() {
    let mut inflater = Inflater::new();
    let mut out = Vec::new();
    inflater.push(&hex("f2 48 cd c9 c9 07 00"), &mut out, 100).expect("valid");
    inflater.finish(&mut out, 100).expect("complete");
    inflater.reset();
    let result = inflater.push(&hex("02 12 00 00"), &mut Vec::new(), 100);
    assert_eq!(result, Err(InflateError::Corrupt));
}

#[test]
fn a_limit_equal_to_the_message_lets_it_pass_and_one_less_does_not() {
    assert_eq!(inflate(&hex("f2 48 cd c9 c9 07 00"), 5), Ok(b"Hello".to_vec()));
    let too_large = Err(InflateError::TooLarge { bytes_max: 4 });
    assert_eq!(inflate(&hex("f2 48 cd c9 c9 07 00"), 4), too_large);
    assert_eq!(inflate(&hex("00"), 0), Ok(Vec::new()));
}

/// Found by the fuzzer: a byte, then a block that is none; and a byte, then a copy that is none.
#[test]
fn what_is_too_large_before_it_is_corrupt_is_too_large_however_it_is_cut() {
    for payload in [hex("2a 00 00 ff 00 60 6c 6f 00"), hex("f2 07 3f")] {
        for cut in 0..=payload.len() {
            let (mut inflater, mut out) = (Inflater::new(), Vec::new());
            let (first, second) = payload.split_at(cut);
            let result =
                inflater.push(first, &mut out, 0).and_then(|()| inflater.push(second, &mut out, 0));
            let too_large = Err(InflateError::TooLarge { bytes_max: 0 });
            assert_eq!(result, too_large, "{payload:02x?} cut at {cut}");
        }
    }
}

#[test]
fn output_that_waits_for_room_is_not_lost() {
    // A run takes two bits for 258 bytes, so that one byte of input is more than a step of output.
    let run = vec![7; 300_000];
    let mut payload = Vec::new();
    crate::Compressor::new(9).standalone(&run, &mut payload);
    let mut inflater = Inflater::new();
    let mut out = Vec::new();
    for byte in payload {
        inflater.push(&[byte], &mut out, run.len()).expect("valid");
    }
    inflater.finish(&mut out, run.len()).expect("complete");
    assert!(out == run, "{} bytes", out.len());
}

#[test]
fn final_blocks_are_counted_anew_in_each_message() {
    let mut inflater = Inflater::new();
    for _ in 0..=FINAL_BLOCKS_FREE {
        inflater.reset();
        inflater.push(&hex("03 00 00"), &mut Vec::new(), 0).expect("valid");
        inflater.finish(&mut Vec::new(), 0).expect("complete");
    }
}

#[test]
fn endless_final_blocks_are_corrupt() {
    let payload = |blocks: u64| hex("03 00").repeat(blocks as usize);
    assert_eq!(inflate(&payload(FINAL_BLOCKS_FREE + 1), 10), Ok(Vec::new()));
    assert_eq!(inflate(&payload(FINAL_BLOCKS_FREE + 2), 10), Err(InflateError::Corrupt));
}

#[test]
fn final_blocks_of_some_size_are_not_limited() {
    let piece: Vec<u8> = (0..=255).collect();
    let stored = [&[0x01, 0x00, 0x01, 0xFF, 0xFE], &piece[..]].concat();
    assert_eq!(inflate(&stored.repeat(500), 500 * 256), Ok(piece.repeat(500)));
}

#[test]
fn a_message_may_refer_to_the_one_before_it() {
    // RFC 7692 §7.2.3.2: "Hello" twice.
    let hellos = [Ok("Hello"), Ok("Hello")];
    check_stream(&["f2 48 cd c9 c9 07 00", "f2 00 11 00 00"], &hellos);
    // The second stands alone, too, as the sender chooses.
    check_stream(&["f2 48 cd c9 c9 07 00", "f2 48 cd c9 c9 07 00"], &hellos);
    check_stream(&["f2 00 11 00 00"], &[Err(InflateError::Corrupt)]);
}

#[test]
fn an_empty_message_leaves_the_window_as_it_is() {
    for empty in ["00", ""] {
        let stream = ["f2 48 cd c9 c9 07 00", empty, "f2 00 11 00 00"];
        check_stream(&stream, &[Ok("Hello"), Ok(""), Ok("Hello")]);
    }
}

#[test]
fn the_window_stays_after_a_final_block() {
    // RFC 7692 §7.2.3.4, with and without the closing zero byte.
    for last in ["f3 48 cd c9 c9 07 00 00", "f3 48 cd c9 c9 07 00", "f2 48 cd c9 c9 07 04"] {
        check_stream(&[last, "f2 00 11 00 00"], &[Ok("Hello"), Ok("Hello")]);
    }
}

#[test]
fn a_block_behind_a_final_block_may_refer_to_the_message_before() {
    // An empty final block, then a copy of "Hello" from the message before; then one across both.
    let stream = ["f2 48 cd c9 c9 07 00", "03 00 f2 00 11 00 00", "03 00 02 12 00 00"];
    check_stream(&stream, &[Ok("Hello"), Ok("Hello"), Ok("Hel")]);
}

#[test]
fn what_left_the_window_is_corrupt() {
    let (mut inflater, mut window) = (Inflater::new(), SenderWindow::new(9));
    let hello = [hex("f2 48 cd c9 c9 07 00"), hex("f2 00 11 00 00")];
    let mut read = |payload: &[u8]| {
        let mut out = Vec::new();
        inflater.message(payload, &mut window, &mut out, 1000).map(|()| out)
    };
    // A fixed block with a match of length 3 at distance 512 (code 10001, extra bits 1111111): the oldest bytes.
    let oldest = hex("02 c6 3f 00");
    assert_eq!(read(&stored(&[7; 511])).map(|it| it.len()), Ok(511));
    assert_eq!(read(&oldest), Err(InflateError::Corrupt));
    assert_eq!(read(&stored(b"8")).map(|it| it.len()), Ok(1));
    assert_eq!(read(&oldest), Ok(vec![7; 3]));
    assert_eq!(read(&hello[0]), Ok(b"Hello".to_vec()));
    assert_eq!(read(&hello[1]), Ok(b"Hello".to_vec()));
}

#[test]
fn a_message_that_fails_is_not_in_the_window() {
    let (mut inflater, mut window) = (Inflater::new(), SenderWindow::new(9));
    let mut read = |payload: &str, bytes_max| {
        let mut out = Vec::new();
        inflater.message(&hex(payload), &mut window, &mut out, bytes_max).map(|()| out)
    };
    assert_eq!(read("f2 48 cd c9 c9 07 00", 5), Ok(b"Hello".to_vec()));
    let too_large = Err(InflateError::TooLarge { bytes_max: 4 });
    assert_eq!(read("f2 00 11 00 00", 4), too_large);
    assert_eq!(read("f2 48 cd c9 c9", 5), Err(InflateError::Corrupt));
    assert_eq!(read("f2 00 11 00 00", 5), Ok(b"Hello".to_vec()));
}

#[test]
fn one_inflater_serves_several_senders_in_turn() {
    let mut inflater = Inflater::new();
    let mut windows = [SenderWindow::new(9), SenderWindow::new(15), SenderWindow::new(12)];
    let mut read = |payload: &[u8], window: &mut SenderWindow| {
        let mut out = Vec::new();
        inflater.message(payload, window, &mut out, 1000).map(|()| out)
    };
    for (window, byte) in windows.iter_mut().zip(*b"abc") {
        assert_eq!(read(&stored(&[byte; 5]), window), Ok(vec![byte; 5]));
    }
    for (window, byte) in windows.iter_mut().zip(*b"abc") {
        assert_eq!(read(&hex("02 12 00 00"), window), Ok(vec![byte; 3]));
    }
}

/// Decodes payloads of one sender with context takeover, one after another.
fn check_stream(payloads: &[&str], expect: &[Result<&str, InflateError>]) {
    let (mut inflater, mut window) = (Inflater::new(), SenderWindow::new(15));
    let results = payloads.iter().map(|payload| {
        let mut out = Vec::new();
        inflater.message(&hex(payload), &mut window, &mut out, 1000)?;
        Ok(String::from_utf8(out).expect("ASCII"))
    });
    let expect: Vec<_> = expect.iter().map(|one| one.map(str::to_owned)).collect();
    assert_eq!(results.collect::<Vec<_>>(), expect, "{payloads:?}");
}

/// A payload of one stored block (RFC 1951 §3.2.4).
fn stored(message: &[u8]) -> Vec<u8> {
    let bytes = message.len() as u16;
    [&[0][..], &bytes.to_le_bytes(), &(!bytes).to_le_bytes(), message, &[0]].concat()
}

fn check(payload: &str, expect: Result<&[u8], InflateError>) {
    let payload = hex(payload);
    let expect = expect.map(<[u8]>::to_vec);
    assert_eq!(inflate(&payload, 1000), expect, "{payload:02x?} at once");
    let mut inflater = Inflater::new();
    let mut out = Vec::new();
    let result = payload
        .iter()
        .try_for_each(|byte| inflater.push(&[*byte], &mut out, 1000))
        .and_then(|()| inflater.finish(&mut out, 1000));
    assert_eq!(result.map(|()| out), expect, "{payload:02x?} byte by byte");
}

fn inflate(payload: &[u8], bytes_max: usize) -> Result<Vec<u8>, InflateError> {
    let mut inflater = Inflater::new();
    let mut out = Vec::new();
    inflater.push(payload, &mut out, bytes_max)?;
    inflater.finish(&mut out, bytes_max)?;
    Ok(out)
}

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect()
}
