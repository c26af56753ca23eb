//! Tests of `event`: the part of a growing message that a publication is.
//! Tags → key and end.
//! Uses only `event`.
//! Changed here: cases of tags.

use super::*;

#[test]
fn the_tags_of_a_publication_name_a_growing_message_and_its_end() {
    let mut publication = Publication::default();
    assert_eq!(growing_part(&publication), None);
    publication.tags.insert("key".to_owned(), "answer".to_owned());
    let part = GrowingPart { key: "answer", is_final: false };
    assert_eq!(growing_part(&publication), Some(part));
    publication.tags.insert("final".to_owned(), "true".to_owned());
    let end = GrowingPart { key: "answer", is_final: true };
    assert_eq!(growing_part(&publication), Some(end));
}
