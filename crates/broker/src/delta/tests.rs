//! Tests of what a broker says about deltas.
//! In: what the publisher wants and the stream holds → out: the candidate.
//! Uses shared payloads. Never: patches.
//! A new case of `Delta` is a line here.

use super::*;

#[test]
fn a_candidate_is_made_against_what_the_stream_has() {
    let base = Bytes::from("1");
    assert_eq!(Delta::candidate(false, Some(&base)), Delta::Off);
    assert_eq!(Delta::candidate(true, None), Delta::Alone);
    assert_eq!(Delta::candidate(true, Some(&base)), Delta::Against(base));
}
