//! Tests of what is asked of the programs of the machine.
//! In: versions as programs print them → out: whether they are new enough.
//! Uses nothing but the comparison; never asks the machine.
//! What is installed, and how, is exercised by a run on a fresh machine.

use super::*;

#[test]
fn versions_are_compared_by_their_numbers() {
    for (found, wanted) in
        [("go1.19.8", "1.22"), ("v18.20.4", "20"), ("go1.9", "1.19"), ("v20.18.0", "20.18.1")]
    {
        assert!(is_older(found, wanted), "{found} {wanted}");
    }
    for (found, wanted) in
        [("go1.22", "1.22"), ("go1.26.8 X:greenteagc", "1.22"), ("v20.0.0", "18"), ("v18", "18")]
    {
        assert!(!is_older(found, wanted), "{found} {wanted}");
    }
}
