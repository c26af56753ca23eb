//! Tests of combined checksums against crc32fast, inside flate2, and against a second way to compute Adler-32.
//! In: random pieces of a plaintext → out: the checksum of the whole.
//! Uses the private operator for lengths that no test can hold.
//! Changed here: expectations of `checksum`.

use flate2::Crc;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn segments_one_after_the_other_have_the_checksum_of_the_whole(
        pieces in vec(vec(any::<u8>(), 0..600), 0..20),
        reads in vec(any::<bool>(), 20),
    ) {
        let whole = pieces.concat();
        let (mut crc32, mut adler32) = (Checksum::Crc32(0), Checksum::Adler32(1));
        for (piece, reads) in pieces.iter().zip(reads) {
            let (first, second) = piece.split_at(piece.len() / 3);
            let segment = Segment::new(&[first, second]);
            prop_assert_eq!(segment.bytes(), piece.len() as u64);
            for sum in [&mut crc32, &mut adler32] {
                *sum = if reads { sum.with(piece) } else { sum.with_segment(&segment) };
            }
        }
        prop_assert_eq!(crc32, Checksum::Crc32(crc32_of(&whole)));
        prop_assert_eq!(adler32, Checksum::Adler32(adler32_of(&whole)));
    }

    #[test]
    fn a_long_segment_is_as_many_short_ones(
        sum: u32,
        byte: u8,
        bytes in 0..40_000usize,
    ) {
        let piece = vec![byte; bytes];
        let twice = Segment::new(&[&piece, &piece]);
        let once = Segment::new(&[&piece]);
        // As an Adler-32, each half is below 65521.
        for sum in [Checksum::Crc32(sum), Checksum::Adler32(sum & 0x7fff_7fff)] {
            let expected = sum.with_segment(&once).with_segment(&once);
            prop_assert_eq!(sum.with_segment(&twice), expected);
        }
    }

    #[test]
    fn powers_of_lengths_that_no_message_has_add_up(a: u32, b: u32, c in 0..64u32) {
        let (a, b) = (u64::from(a) << c.min(31), u64::from(b));
        prop_assert_eq!(times(power(a), power(b)), power(a + b));
    }
}

#[test]
fn the_well_known_check_values() {
    let segment = Segment::new(&[b"1234", b"56789"]);
    assert_eq!(Checksum::Crc32(0).with_segment(&segment), Checksum::Crc32(0xcbf4_3926));
    assert_eq!(Checksum::Adler32(1).with_segment(&segment), Checksum::Adler32(0x091e_01de));
}

#[test]
fn an_empty_segment_changes_nothing() {
    let segment = Segment::new(&[]);
    for sum in [Checksum::Crc32(0xdead_beef), Checksum::Adler32(0x1234_5678)] {
        assert_eq!(sum.with_segment(&segment), sum);
    }
}

fn crc32_of(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// RFC 1950 §9, word for word.
fn adler32_of(bytes: &[u8]) -> u32 {
    let (mut s1, mut s2) = (1u32, 0u32);
    for byte in bytes {
        s1 = (s1 + u32::from(*byte)) % 65_521;
        s2 = (s2 + s1) % 65_521;
    }
    s2 << 16 | s1
}
