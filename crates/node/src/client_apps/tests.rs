//! Tests of shared names of programs.
//! In: names → out: the same copy for equal ones, and how many are kept.
//! Uses: the table alone.
//! Changed here: tests of the table.

use super::*;

/// The label `region`, if it is not empty.
fn labels(region: &str) -> BTreeMap<String, String> {
    let label = (!region.is_empty()).then(|| ("region".to_owned(), region.to_owned()));
    label.into_iter().collect()
}

#[test]
fn equal_programs_share_a_copy_and_long_texts_are_cut() {
    let mut apps = ClientApps::default();
    let first = apps.shared("sse", "js", "5.4.0", labels(""));
    assert!(Arc::ptr_eq(&first, &apps.shared("sse", "js", "5.4.0", labels(""))));
    for (transport, name, version) in
        [("websocket", "js", "5.4.0"), ("sse", "go", "5.4.0"), ("sse", "js", "5.4.1")]
    {
        assert!(!Arc::ptr_eq(&first, &apps.shared(transport, name, version, labels(""))), "{name}");
    }
    let labelled = apps.shared("sse", "js", "5.4.0", labels("eu"));
    assert!(!Arc::ptr_eq(&first, &labelled));
    assert!(Arc::ptr_eq(&labelled, &apps.shared("sse", "js", "5.4.0", labels("eu"))));
    assert_eq!(&*apps.shared("sse", &"ö".repeat(99), "", labels("")).name, "ö".repeat(32));
}

#[test]
fn copies_without_a_connection_go() {
    let mut apps = ClientApps::default();
    let kept: Vec<_> = (0..100)
        .map(|number| apps.shared("sse", "kept", &number.to_string(), labels("")))
        .collect();
    (0..10_000)
        .for_each(|number| drop(apps.shared("sse", "gone", &number.to_string(), labels(""))));
    assert!(apps.known.len() <= 2 * kept.len(), "{}", apps.known.len());
    assert!(kept.iter().all(|app| apps.known.contains(app)));
}
