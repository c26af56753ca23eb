//! Tests of hashing: known hashes, an even spread, and few moves when a Redis is added.
//! In: channels → out: indices.
//! Uses published vectors of FNV-1a. Never: a Redis.
//! A change that fails here moves channels of existing installations.

use super::*;

#[test]
fn the_hash_is_fnv_1a() {
    let rows = [
        ("", 0xcbf2_9ce4_8422_2325),
        ("a", 0xaf63_dc4c_8601_ec8c),
        ("foobar", 0x8594_4171_f739_67e8),
    ];
    for (text, expected) in rows {
        assert_eq!(hash(text), expected, "{text}");
    }
}

#[test]
fn one_more_moves_only_to_the_new_one() {
    let mut moved = 0;
    for number in 0..10_000 {
        let hash = hash(&format!("channel:{number}"));
        let before = jump(hash, 3);
        let after = jump(hash, 4);
        assert!(before < 3 && after < 4);
        assert!(before == after || after == 3, "moved between old ones");
        moved += usize::from(before != after);
    }
    assert!((2_200..2_800).contains(&moved), "{moved} of 10,000 moved, a quarter expected");
}

#[test]
fn connections_of_each_redis_are_used_evenly() {
    let mut counts = [[0; 4]; 3];
    for number in 0..12_000 {
        let hash = hash(&format!("channel:{number}"));
        counts[jump(hash, 3)][spread(hash, 4)] += 1;
    }
    for count in counts.into_iter().flatten() {
        assert!((800..1_200).contains(&count), "{counts:?}");
    }
}

#[test]
fn one_has_all() {
    assert_eq!((jump(hash("a"), 1), spread(hash("a"), 1)), (0, 0));
}
