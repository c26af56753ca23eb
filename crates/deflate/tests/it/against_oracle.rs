//! Property tests: `Compressor` and `Inflater` agree with a decoder written for the test.
//! Random messages and damaged payloads → the same plaintext, or the same refusal.
//! Uses `puff` as the oracle.
//! Changed here: properties about content. Limits are in `limits`.

use fanwire_deflate::{
    Compressor, Dedicated, FLUSH_TAIL, InflateError, Inflater, Scratch, Strategy,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::{messages::message, puff};

proptest! {
    #[test]
    fn a_standalone_payload_decodes_to_its_message(message in message(), level in 1..=9u8) {
        let payload = compress(level, &message);
        let plain = puff::inflate(&with_tail(&payload)).expect("valid");
        prop_assert_eq!(&plain.bytes, &message);
        prop_assert_eq!(plain.final_blocks, 0, "BFINAL is never set");
        prop_assert_eq!(inflate(&[&payload]), Ok(message));
    }

    #[test]
    fn a_payload_for_a_small_window_keeps_to_it(
        message in message(),
        window_bits in 8..=15u8,
        level in 1..=9u8,
    ) {
        // RFC 7692 §7.2.1e
        let mut payload = Vec::new();
        Compressor::new(level).standalone_within(window_bits, &message, &mut payload);
        let plain = puff::inflate_within(&with_tail(&payload), &[], 1 << window_bits);
        prop_assert_eq!(plain.expect("valid").bytes, message);
    }

    #[test]
    fn a_dedicated_context_decodes_message_by_message(
        messages in vec((message(), any::<bool>()), 1..5),
        window_bits in 9..=15u8,
        memory_level in 1..=9u8,
        level in 1..=9u8,
        strategy in strategy(),
    ) {
        let dedicated = Dedicated::new(window_bits, memory_level, level);
        let mut dedicated = dedicated.with_strategy(strategy);
        let mut scratch = Scratch::default();
        let mut stream = Vec::new();
        for (message, reset) in messages {
            if reset {
                dedicated.reset();
                stream.clear();
            }
            let mut payload = Vec::new();
            dedicated.compress(&message, &mut scratch, &mut payload);
            let plain = puff::inflate_within(&with_tail(&payload), &stream, 1 << window_bits);
            let plain = plain.expect("valid");
            prop_assert_eq!(plain.final_blocks, 0, "BFINAL is never set");
            prop_assert_eq!(&plain.bytes, &message);
            stream.extend(message);
        }
    }

    #[test]
    fn any_split_of_a_payload_gives_the_same_message(
        message in message(),
        cuts in vec(any::<Index>(), 0..6),
    ) {
        let payload = compress(6, &message);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(payload.len() + 1)).collect();
        cuts.extend([0, payload.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|cut| &payload[cut[0]..cut[1]]).collect();
        prop_assert_eq!(inflate(&pieces), Ok(message));
    }

    #[test]
    fn one_inflater_serves_message_after_message(messages in vec(message(), 1..5)) {
        let mut compressor = Compressor::new(6);
        let mut inflater = Inflater::new();
        for message in messages {
            let mut payload = Vec::new();
            compressor.standalone(&message, &mut payload);
            prop_assert_eq!(inflate_with(&mut inflater, &[&payload]), Ok(message));
            // The state after a failed message must not affect the next one.
            let _ = inflate_with(&mut inflater, &[&payload[..payload.len() / 2]]);
        }
    }

    #[test]
    fn a_stream_closed_with_bfinal_decodes(message in message(), padded: bool) {
        let mut payload = finished_stream(&message);
        if padded {
            payload.push(0); // RFC 7692 §7.2.3.4
        }
        prop_assert_eq!(inflate(&[&payload]), Ok(message));
    }

    #[test]
    fn final_blocks_in_a_row_are_one_message(messages in vec(message(), 1..5)) {
        let mut payload: Vec<u8> = messages.iter().flat_map(|part| finished_stream(part)).collect();
        payload.push(0);
        prop_assert_eq!(inflate(&[&payload]), Ok(messages.concat()));
    }

    #[test]
    fn a_shortened_payload_gives_what_the_oracle_says(message in message(), at: Index) {
        let payload = compress(6, &message);
        let cut = &payload[..at.index(payload.len())];
        // Corrupt, unless the cut is between two blocks or the tail fills up a stored block.
        check_against_oracle(cut)?;
    }

    #[test]
    fn a_damaged_payload_gives_what_the_oracle_says(
        message in vec(any::<u8>(), 0..400),
        damage in vec((any::<Index>(), any::<u8>()), 1..4),
        finished: bool,
    ) {
        let mut payload = if finished { finished_stream(&message) } else { compress(6, &message) };
        for (at, byte) in damage {
            let at = at.index(payload.len());
            payload[at] = byte;
        }
        check_against_oracle(&payload)?;
    }

    #[test]
    fn random_bytes_give_what_the_oracle_says(payload in vec(any::<u8>(), 0..200)) {
        check_against_oracle(&payload)?;
    }
}

/// A final block, and one that is not final and ends with the last bit: the header of the tail's block is shifted.
#[test]
fn a_last_block_that_is_not_final_needs_the_tail() {
    let payload = [
        0x63, 0x00, 0x60, 0x32, 0x60, 0x98, 0xc0, 0x30, 0x81, 0x81, 0x81, 0x61, 0x22, 0xc3, 0x84,
        0x09, 0x0c, 0x13, 0x00,
    ];
    assert_eq!(inflate(&[&payload]), Err(InflateError::Corrupt));
    check_against_oracle(&payload).expect("the oracle agrees");
}

fn check_against_oracle(payload: &[u8]) -> Result<(), TestCaseError> {
    let expect = puff::inflate(&with_tail(payload)).or_else(|| {
        // A finished stream without the zero byte, or nothing at all: then no tail may follow.
        puff::inflate(payload).filter(|plain| plain.is_final || payload.is_empty())
    });
    prop_assert_eq!(inflate(&[payload]).ok(), expect.map(|plain| plain.bytes));
    Ok(())
}

fn strategy() -> impl proptest::strategy::Strategy<Value = Strategy> {
    prop_oneof![
        Just(Strategy::Default),
        Just(Strategy::Filtered),
        Just(Strategy::HuffmanOnly),
        Just(Strategy::Rle),
        Just(Strategy::Fixed),
    ]
}

fn compress(level: u8, message: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    Compressor::new(level).standalone(message, &mut payload);
    payload
}

fn finished_stream(message: &[u8]) -> Vec<u8> {
    let mut out = vec![0; message.len() * 2 + 100];
    let mut deflate = zlib_rs::Deflate::new(6, false, 15);
    let status = deflate.compress(message, &mut out, zlib_rs::DeflateFlush::Finish);
    assert_eq!(status, Ok(zlib_rs::Status::StreamEnd));
    out.truncate(deflate.total_out() as usize);
    out
}

fn with_tail(payload: &[u8]) -> Vec<u8> {
    [payload, &FLUSH_TAIL].concat()
}

fn inflate(pieces: &[&[u8]]) -> Result<Vec<u8>, InflateError> {
    inflate_with(&mut Inflater::new(), pieces)
}

fn inflate_with(inflater: &mut Inflater, pieces: &[&[u8]]) -> Result<Vec<u8>, InflateError> {
    let bytes_max = 1 << 24;
    let mut out = Vec::new();
    inflater.reset();
    for piece in pieces {
        inflater.push(piece, &mut out, bytes_max)?;
    }
    inflater.finish(&mut out, bytes_max)?;
    Ok(out)
}
