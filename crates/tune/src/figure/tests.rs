//! Tests of figures.
//! In: numbers → out: text.
//! Uses the room's functions. Never: a locale.
//! A new kind of figure is a test here.

use super::{bytes, cores, dollars, grouped, memory, micros, percent, ratio, volume};

#[test]
fn whole_numbers_are_grouped_by_three() {
    let numbers = [0.0, 7.4, 999.4, 999.6, 1_000.0, 1_234_567.0, -1_234.0, -0.2];
    let expect = ["0", "7", "999", "1,000", "1,000", "1,234,567", "-1,234", "0"];
    assert_eq!(numbers.map(grouped), expect);
}

#[test]
fn small_figures_have_decimals_and_large_ones_none() {
    assert_eq!([58.44, 999.9, 999.96, 1684.0].map(bytes), ["58.4", "999.9", "1,000", "1,684"]);
    assert_eq!([0.1, 9.99, 10.0, 1234.5].map(micros), ["0.10", "9.99", "10.0", "1,234"]);
    assert_eq!([1.0, 9.96, 120.2].map(ratio), ["1.00×", "10.0×", "120×"]);
    assert_eq!([0.419, 5087.2].map(dollars), ["$0.42", "$5,087"]);
    assert_eq!([0.034, 0.5].map(percent), ["3.4 %", "50 %"]);
}

#[test]
fn memory_is_binary_and_traffic_decimal() {
    let sizes = [8.0, 1023.0, 1024.0, 42_189.0, 268_435_456.0];
    assert_eq!(sizes.map(memory), ["8 B", "1,023 B", "1.0 KiB", "41.2 KiB", "256 MiB"]);
    let sizes = [512.0, 1e3, 58.1e12, 1e21];
    assert_eq!(sizes.map(volume), ["512 B", "1.0 kB", "58.1 TB", "1,000 EB"]);
}

#[test]
fn less_than_a_core_is_a_share_of_one() {
    let expect = ["1.4 cores", "14 % of a core", "2.1 % of a core", "less than 0.1 % of a core"];
    assert_eq!([1.42, 0.14, 0.0213, 0.0002].map(cores), expect);
}
