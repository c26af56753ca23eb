//! Tests of offsets: their grammar and their order.
//! In: texts → out: places of reads.
//! Uses proptest. Never: streams.
//! Changed here: what is an offset.

use fanwire_broker::{Epoch, Position};
use proptest::prelude::*;

use super::{ReadStart, format};

#[test]
fn only_texts_of_this_server_are_offsets() {
    assert_eq!(ReadStart::parse("-1"), Some(ReadStart::Beginning));
    assert_eq!(ReadStart::parse("now"), Some(ReadStart::Tail));
    assert_eq!(
        ReadStart::parse("0000000000000000_0000000000000000"),
        Some(ReadStart::Beginning),
        "number 0 of any epoch"
    );
    for wrong in [
        "",
        " ",
        "-2",
        "NOW",
        "0",
        "1_abcdefgh",
        "0000000000000001",
        "0000000000000001_",
        "0000000000000001_abcdefg",
        "0000000000000001_abcdefg1",
        "0000000000000001_abcdefgh ",
        "+000000000000001_abcdefgh",
        "0000000000000000_",
        "0000000000000000_a,b",
        "../../etc",
        "a\0b",
        "0000000000000001_abcdefgh\n",
        "00000000000000001_abcdefgh",
        "٠000000000000001_abcdefgh",
    ] {
        assert_eq!(ReadStart::parse(wrong), None, "{wrong:?}");
    }
}

proptest! {
    #[test]
    fn an_offset_is_read_as_it_was_written_and_later_ones_compare_greater(
        one in 1..1_u64 << 53, other in 1..1_u64 << 53,
    ) {
        let epoch = Epoch::random();
        let [first, second] = [one, other].map(|offset| format(Position { offset, epoch }));
        prop_assert_eq!(ReadStart::parse(&first), Some(ReadStart::At(Position { offset: one, epoch })));
        prop_assert_eq!(first.cmp(&second), one.cmp(&other));
    }

    #[test]
    fn no_text_panics(text in ".*") {
        let _ = ReadStart::parse(&text);
    }
}
