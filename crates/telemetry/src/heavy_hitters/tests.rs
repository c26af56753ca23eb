//! Tests of heavy hitters.
//! In: names with weights → out: asserted lists.
//! Uses: plain values. Never: chance.
//! Changed here: tests of how names are counted.

use super::*;

#[test]
fn names_that_occur_often_are_found_among_many_others() {
    let mut counts = HeavyHitters::default();
    for round in 0..1000_u64 {
        counts.add("hot", 20);
        counts.add("warm", 10);
        (0..10).for_each(|name| counts.add(&format!("rare {}", round * 10 + name), 1));
    }
    let largest = counts.largest(2);
    assert_eq!(largest, [(20_000, "hot".to_owned()), (10_000, "warm".to_owned())]);
    assert_eq!(counts.counts.len(), PLACES);
    // A count is too high by the smallest at most: 10,000 of others in 254 places.
    assert!(counts.largest(PLACES).iter().skip(2).all(|(count, _)| *count <= 10_000 / 254 + 1));
    counts.clear();
    assert_eq!((counts.largest(9).len(), counts.counts.capacity()), (0, 0));
}

#[test]
fn few_of_many_values_are_kept_in_their_order() {
    let mut largest = Largest::new(3);
    for size in [5, 1, 0, 9, 3, 9, 2] {
        largest.offer(size, || size);
    }
    assert_eq!(largest.into_vec(), [(9, 9), (9, 9), (5, 5)]);
    let mut none = Largest::new(0);
    none.offer(1, || ());
    assert_eq!(none.into_vec(), []);
}
