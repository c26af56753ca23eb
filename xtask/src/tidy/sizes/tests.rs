//! Tests of the size limit.
//! In: made-up files → out: the findings.
//! Uses nothing but the check; never reads a file.
//! Changed here: examples of files, whose limit stands in `sizes.rs`.

use super::*;

#[test]
fn a_file_stops_at_six_hundred_lines() {
    let check_one = |lines| check(&[Source::new("crates/ws/src/a.rs", &"// a\n".repeat(lines))]);
    assert_eq!(check_one(600), []);
    assert_eq!(check_one(601)[0].line, 601);
}
