//! Ids of events: the position of a publication, and any other text.
//! In: ids as the server writes them, texts of clients → out: the same position, or the cause why there is none.
//! Uses `LastEventId` alone; never a session.
//! Changed here: the form of an id. Recoveries are played in `tests/it`.

use fanwire_broker::{Epoch, Position};

use super::{LastEventId, Unresumed};

#[test]
fn an_id_is_read_as_it_is_written() {
    for offset in [0, 1, u64::MAX] {
        let position = Position { offset, epoch: Epoch::random() };
        let id = LastEventId::of(position).expect("a position in a stream");
        assert_eq!(id.to_string(), format!("{offset}.{}", position.epoch));
        assert_eq!(LastEventId::parse(&id.to_string()), id);
        assert_eq!(id.resume(1), Ok(position));
    }
    assert_eq!(LastEventId::of(Position { offset: 1, epoch: Epoch::NONE }), None);
}

#[test]
fn an_id_is_of_one_channel() {
    let id = LastEventId::parse("7.AbCdEfGh");
    for count in [0, 2, 100] {
        assert_eq!(id.resume(count), Err(Unresumed::Channels));
    }
}

#[test]
fn other_texts_have_no_position() {
    let long = "9".repeat(1 << 20);
    let texts = [
        "",
        "7",
        ".",
        "7.",
        ".AbCdEfGh",
        "+7.AbCdEfGh",
        "-7.AbCdEfGh",
        " 7.AbCdEfGh",
        "7.AbCdEfGh ",
        "7.AbCdEfG",
        "7.AbCdEfGhI",
        "7.AbCdEfG1",
        "7.AbCdEfG\n",
        "7,AbCdEfGh",
        "7.7.AbCdEfGh",
        "7.AbCd\u{e4}Gh",
        "18446744073709551616.AbCdEfGh",
        "\u{0}",
        &long,
    ];
    for text in texts {
        assert_eq!(LastEventId::parse(text).resume(1), Err(Unresumed::Invalid), "{text:?}");
    }
}
