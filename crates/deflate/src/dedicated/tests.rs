//! Tests of `dedicated`: memory, and starting over.
//! Settings and messages → bytes of memory and of payload.
//! Uses only `dedicated`; round trips are in `tests/it`.
//! Changed here: cases of memory.

use super::*;

#[test]
fn memory_is_what_zlib_promises_for_the_same_bits() {
    let mut scratch = Scratch::default();
    for window_bits in 9..=15 {
        for memory_level in 1..=9 {
            let most = (1 << (window_bits + 2)) + (1 << (memory_level + 9));
            let mut dedicated = Dedicated::new(window_bits, memory_level, 6);
            let new = dedicated.memory();
            for bytes in [10, 1_000, 100_000, 3] {
                dedicated.compress(&vec![b'x'; bytes], &mut scratch, &mut Vec::new());
                assert_eq!(dedicated.memory(), new, "no more than at the start");
            }
            assert!(new <= most, "{new} of {most} with {window_bits}/{memory_level}");
        }
    }
}

#[test]
fn after_a_reset_a_message_compresses_as_the_first_one() {
    let mut scratch = Scratch::default();
    let mut dedicated = Dedicated::new(12, 5, 6);
    let mut payloads = [const { Vec::new() }; 3];
    let message = b"a message that is sent again and again, again and again";
    dedicated.compress(message, &mut scratch, &mut payloads[0]);
    dedicated.compress(message, &mut scratch, &mut payloads[1]);
    dedicated.reset();
    dedicated.compress(message, &mut scratch, &mut payloads[2]);
    assert_eq!(payloads[0], payloads[2]);
    assert!(payloads[1].len() < 8, "{} bytes in context", payloads[1].len());
}
