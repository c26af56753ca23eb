//! Tests of the format of files with logs.
//! In: records of any bytes, damage → out: the records that are still read.
//! Uses proptest. Never: files.
//! Changed here: tests of the format. Rotation is tested in `fanwire`, what is in a record in `fanwire_node`.

use proptest::prelude::*;

use super::*;

fn file(records: &[Vec<u8>]) -> Vec<u8> {
    records.iter().flat_map(|record| encode(record)).collect()
}

fn records(file: &[u8]) -> (Vec<Vec<u8>>, usize) {
    let mut records = Vec::new();
    let damaged = read(file, |record| records.push(record.to_vec()));
    (records, damaged)
}

/// Where each record of a file begins, and the end of the file.
fn begins(all: &[Vec<u8>]) -> Vec<usize> {
    (0..=all.len()).map(|count| file(&all[..count]).len()).collect()
}

fn some_records() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..8)
}

proptest! {
    #[test]
    fn records_come_back_as_they_were(all in some_records()) {
        prop_assert_eq!(records(&file(&all)), (all, 0));
    }

    #[test]
    fn a_torn_record_is_skipped_and_those_behind_it_are_read(
        all in some_records(),
        at in any::<prop::sample::Index>(),
    ) {
        let mut torn = file(&all);
        torn.truncate(at.index(torn.len()));
        let whole = begins(&all).into_iter().filter(|end| *end <= torn.len()).count() - 1;
        let left = torn.len() - begins(&all)[whole];
        prop_assert_eq!(records(&torn), (all[..whole].to_vec(), left));
        // A checksum that lacks only bytes that the next mark has is complete: this record is read, and the next one is not.
        let missing = &file(&all)[torn.len()..begins(&all)[whole + 1]];
        prop_assume!(!MARK.starts_with(missing));
        torn.extend(file(&all));
        prop_assert_eq!(records(&torn), ([&all[..whole], &all].concat(), left));
    }

    #[test]
    fn a_changed_byte_costs_the_record_that_has_it(
        mut all in some_records(),
        at in any::<prop::sample::Index>(),
        change in 1..=255_u8,
    ) {
        let mut changed = file(&all);
        let at = at.index(changed.len());
        changed[at] ^= change;
        let begins = begins(&all);
        let hit = begins.iter().filter(|begin| **begin <= at).count() - 1;
        all.remove(hit);
        prop_assert_eq!(records(&changed), (all, begins[hit + 1] - begins[hit]));
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300), marks in 0..4_usize) {
        let bytes = [&MARK.repeat(marks)[..], &bytes].concat();
        let (found, damaged) = records(&bytes);
        prop_assert_eq!(file(&found).len() + damaged, bytes.len());
    }
}

#[test]
fn the_format_is_what_files_of_earlier_versions_have() {
    assert_eq!(encode(b"abc"), b"\xfeFW\x01\x03\0\0\0abc\x0d\x24\x82\x02");
}
