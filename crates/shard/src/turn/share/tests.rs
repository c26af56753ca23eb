//! Tests of `share`: reads and commands that use it up.
//! In: reads and commands → out: whether something is left.
//! Uses the numbers alone; turns of real shards are tested in `fanwire/tests/it/fairness.rs`.
//! Changed here: expectations of `share`.

use super::*;

#[test]
fn many_small_commands_use_a_share_up_as_few_large_ones_do() {
    let uses = |commands: usize, bytes: usize| {
        let mut share = Share::default();
        (0..)
            .take_while(|_| {
                share.read(bytes);
                share.spend(commands, bytes);
                share.is_left()
            })
            .count()
    };
    assert_eq!(uses(1, 0), 255);
    assert_eq!(uses(1, 1 << 16), 15);
    assert_eq!(uses(usize::MAX, 0), 0, "and nothing overflows");
}
