//! Tests of slots: the vector of the specification, and answers of CLUSTER KEYSLOT of Redis 7.0.
//! In: names → out: slots.
//! Uses published and recorded answers. Never: a Redis.
//! A change that fails here sends commands to the wrong master.

use super::*;

#[test]
fn slots_are_those_of_redis() {
    let rows: [(&str, u16); 8] = [
        ("123456789", 0x31c3),
        ("foo", 12_182),
        ("{user1000}.following", of(b"user1000")),
        ("foo{bar}{zap}", of(b"bar")),
        ("foo{{bar}}zap", of(b"{bar")),
        ("foo{}{bar}", of_tag("foo{}{bar}".bytes())),
        ("foo{bar", of_tag("foo{bar".bytes())),
        ("", 0),
    ];
    for (name, expected) in rows {
        assert_eq!(of(name.as_bytes()), expected, "{name}");
    }
    assert_eq!(of(b"bar"), 5_061);
}

#[test]
fn slots_are_used_evenly() {
    let mut counts = [0_u32; 16];
    for number in 0..16_000 {
        counts[usize::from(of(format!("fanwire.feed.{{:channel:{number}}}").as_bytes())) / 1024] +=
            1;
    }
    assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
}
