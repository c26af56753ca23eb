//! Tests of the table itself: every row is complete, true to the node, and sets the field that it names.
//! In: all rows → out: nothing, when each is right.
//! Uses the tables and the node's own defaults. Never: single findings.
//! A rule that every row has to follow is a test here.

use fanwire_policy::options::Options;

use super::super::catalog::{consumers, find, is_section, names};
use super::super::{Config, Kind, entries};

#[test]
fn every_default_fits_its_kind() {
    for entry in entries().iter().chain(consumers()) {
        let value = entry.key.kind.read_text(entry.key.default);
        assert!(value.is_ok(), "{}: {value:?}", entry.name);
    }
}

#[test]
fn every_key_is_documented_by_one_sentence() {
    for entry in entries().iter().chain(consumers()) {
        let doc = entry.key.doc;
        assert!(doc.len() > 8 && doc.ends_with('.'), "{}: {doc:?}", entry.name);
        assert!(doc.starts_with(|c: char| c.is_uppercase()), "{}: {doc:?}", entry.name);
        assert!(!doc.contains(". ") && !doc.contains('|'), "{}: {doc:?}", entry.name);
    }
}

#[test]
fn every_name_stands_once_and_no_key_is_a_section_too() {
    for entry in entries() {
        assert_eq!(find(&entry.name).map(|found| found.key.doc), Some(entry.key.doc));
        assert!(!is_section(&entry.name), "{}", entry.name);
    }
    assert_eq!(names().filter(|name| find(name).is_some()).count(), entries().len());
}

#[test]
fn defaults_of_the_table_are_those_of_the_node_and_the_api() {
    let config = Config::default();
    // The server names a node without a name.
    assert_eq!(config.node, Options { name: String::new(), ..Options::default() });
    assert_eq!(config.http_api.api, fanwire_api::ApiOptions::default());
}

#[test]
fn limits_lie_inside_the_fields_they_land_in() {
    for entry in entries() {
        let Kind::Integer { min, max } = entry.key.kind else { continue };
        for limit in [min, max] {
            let flag = (entry.name.clone(), limit.to_string());
            // Landing panics when a field is too small; findings of relations between keys are fine here.
            let _ = super::super::load(None, std::iter::empty(), &[flag]);
        }
    }
}
