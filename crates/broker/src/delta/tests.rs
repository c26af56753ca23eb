//! Tests of the base that a broker offers for a delta.
//! In: the request of the publisher and the newest payload of a stream → out: the candidate.
//! Uses shared payloads. Never: patches.
//! A new case of `Delta` is a line here.

use super::*;

#[test]
fn a_candidate_is_made_against_the_newest_payload_of_the_stream() {
    let base = Bytes::from("1");
    assert_eq!(Delta::candidate(false, Some(&base)), Delta::Off);
    assert_eq!(Delta::candidate(true, None), Delta::Alone);
    assert_eq!(Delta::candidate(true, Some(&base)), Delta::Against(base));
}
