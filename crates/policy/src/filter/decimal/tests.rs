//! Tests of decimal numbers: which texts are numbers, and their order.
//! In: texts → out: parsed or not, the order of pairs.
//! Uses: the parser only.
//! Changed here: what a number is has to be changed here, too.

use super::*;

#[test]
fn only_digits_with_a_sign_and_a_point_between_them_are_a_number() {
    for text in ["0", "7", "-7", "+7", "007", "1.5", "-0.0", "0.000", "99999999999999999999.1"] {
        assert!(Decimal::parse(text).is_some(), "{text}");
    }
    let none = [
        "", "-", "+", ".", "1.", ".5", "1.2.3", "--1", "+-1", "1e3", "0x1", " 1", "1 ", "NaN", "٣",
    ];
    for text in none {
        assert_eq!(Decimal::parse(text), None, "{text}");
    }
}

#[test]
fn numbers_are_ordered_by_value_whatever_their_length() {
    let ascending = [
        "-100000000000000000000000000000000000000000",
        "-20.5",
        "-20.4999",
        "-3",
        "-0.01",
        "0",
        "0.009",
        "0.01",
        "0.1",
        "1",
        "9.99",
        "10",
        "18446744073709551615",
        "18446744073709551616",
    ];
    let numbers: Vec<_> = ascending.iter().map(|text| Decimal::parse(text)).collect();
    assert!(numbers.iter().is_sorted_by(|a, b| a < b), "{numbers:?}");
}

#[test]
fn zeros_around_a_number_and_a_plus_do_not_count() {
    for (one, other) in [("0", "-0.00"), ("1", "+001.0"), ("-2.50", "-02.5"), ("0.3", "0.30")] {
        assert_eq!(Decimal::parse(one), Decimal::parse(other), "{one} {other}");
    }
}
