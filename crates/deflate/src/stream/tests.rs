//! Tests of whole streams with messages that are not compressed.
//! In: messages of all sizes → out: streams that stock zlib accepts, and what each message takes.
//! Uses flate2 with stock zlib as the client.
//! Changed here: expectations of `stream`; streams in context are in `tests/it/streams.rs`.

use flate2::{Decompress, FlushDecompress, Status};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn every_message_arrives_at_once_and_the_trailer_is_right(
        messages in vec(vec(any::<u8>(), 0..400), 0..10),
        is_text: bool,
    ) {
        let text = |bytes: &Vec<u8>| bytes.iter().map(|byte| byte & 0x7f).collect();
        let messages =
            if is_text { messages.iter().map(text).collect() } else { messages };
        check(Coding::Gzip, &messages);
        check(Coding::Deflate, &messages);
    }
}

#[test]
fn a_message_longer_than_a_stored_block_is_several() {
    let lengths = [0xffff, 0x1_0000, 0x1_ffff, 300_000];
    check(Coding::Gzip, &lengths.map(|length| vec![b'x'; length]));
}

#[test]
fn an_answer_to_a_ping_takes_few_bytes() {
    let mut frame = Vec::new();
    write_uncompressed(b"data: {}\n\n", &mut frame);
    assert_eq!(frame.len(), 12 + 4, "90 bits, three of the flush, and its tail");
}

fn check(coding: Coding, messages: &[Vec<u8>]) {
    let mut zlib = match coding {
        Coding::Gzip => Decompress::new_gzip(15),
        Coding::Deflate => Decompress::new(true),
    };
    let (mut checksum, mut bytes) = (coding.checksum(), 0);
    let mut decode = |input: &[u8], expected: &[u8]| {
        let mut out = vec![0; expected.len() + 1];
        let (read, written) = (zlib.total_in(), zlib.total_out());
        let status = zlib.decompress(input, &mut out, FlushDecompress::Sync);
        out.truncate((zlib.total_out() - written) as usize);
        assert_eq!(zlib.total_in() - read, input.len() as u64);
        assert_eq!(out, expected);
        status.expect("a valid stream")
    };
    decode(coding.header(), b"");
    for message in messages {
        let mut frame = Vec::new();
        write_uncompressed(message, &mut frame);
        decode(&frame, message);
        checksum = checksum.with(message);
        bytes += message.len() as u64;
    }
    let mut end = Vec::new();
    end_stream(checksum, bytes, &mut end);
    assert_eq!(decode(&end, b""), Status::StreamEnd);
}
