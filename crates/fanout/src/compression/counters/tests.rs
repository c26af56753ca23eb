//! Tests of the kinds of deliveries: each has an index and labels of its own.
//! In: every kind → out: its index, its labels.
//! Uses `counters` alone.
//! Changed here: expectations of labels. The numbers counted under them are tested in `realtime::frames`.

use std::collections::HashSet;

use super::*;

#[test]
fn every_kind_has_a_counter_and_labels_of_its_own() {
    let indices: Vec<usize> = DeliveryKind::all().map(DeliveryKind::index).collect();
    assert_eq!(indices, (0..DeliveryKind::COUNT).collect::<Vec<_>>());
    let labels: HashSet<_> = DeliveryKind::all().map(|kind| (kind.name(), kind.depth())).collect();
    assert_eq!(labels.len(), DeliveryKind::COUNT);
}

#[test]
fn a_depth_is_the_number_of_publications_referred_to() {
    let depths = |name: &str| -> Vec<String> {
        DeliveryKind::all().filter(|kind| kind.name() == name).map(DeliveryKind::depth).collect()
    };
    assert_eq!(depths("raw"), ["0"]);
    assert_eq!(depths("standalone"), ["0"]);
    assert_eq!(depths("newest"), ["1"]);
    assert_eq!(depths("several"), ["2", "3", "4", "5", "6", "7", "8"]);
    assert_eq!(depths("run"), ["all", "16", "4", "1"]);
    assert_eq!(depths("dedicated"), ["all"]);
}
