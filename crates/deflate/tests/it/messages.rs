//! The messages that the property tests of this crate compress: JSON-like and random ones.
//! proptest strategies → messages of up to some 100 KB.
//! Uses proptest only.
//! Changed here: the form of typical and unusual messages.

use proptest::collection::vec;
use proptest::prelude::*;

/// JSON-like text, bytes without pattern, long runs, and mixtures of them.
pub(crate) fn message() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => json(),
        2 => vec(any::<u8>(), 0..600),
        1 => (any::<u8>(), 0..40_000usize).prop_map(|(byte, count)| vec![byte; count]),
        1 => vec(0..4u8, 0..3_000),
    ];
    vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

fn json() -> impl Strategy<Value = Vec<u8>> {
    let row = ("[a-z]{1,8}", any::<u32>(), -1e6..1e6f64, any::<bool>());
    vec(row, 0..60).prop_map(|rows| {
        let rows = rows.iter().map(|(name, id, price, live)| {
            format!(r#"{{"symbol":"{name}","id":{id},"price":{price:.2},"live":{live}}}"#)
        });
        format!("[{}]", rows.collect::<Vec<_>>().join(",")).into_bytes()
    })
}
