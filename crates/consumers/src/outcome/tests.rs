//! Tests of verdicts and pauses.
//! In: results of commands, counts → out: verdicts, pauses.
//! Uses values only. Never: a clock.
//! A rule about results is a test here.

use fanwire_api::{BroadcastResult, PublishResult};

use super::*;

#[test]
fn error_100_is_tried_again_and_any_other_is_final() {
    assert_eq!(
        MessageOutcome::of(&Ok(Outcome::Publish(PublishResult::default()))),
        MessageOutcome::Done
    );
    for error in ApiError::TABLE {
        let expected =
            if error.code == 100 { MessageOutcome::Retry } else { MessageOutcome::Refused(error) };
        assert_eq!(MessageOutcome::of(&Err(error)), expected);
    }
}

#[test]
fn a_broadcast_is_tried_again_for_one_channel() {
    let (internal, unknown) = (ApiError::INTERNAL, ApiError::UNKNOWN_CHANNEL);
    for (errors, expected) in [
        (vec![], MessageOutcome::Done),
        (vec![unknown], MessageOutcome::Refused(unknown)),
        (vec![unknown, internal], MessageOutcome::Retry),
    ] {
        let published = PublishResponse::Result(PublishResult::default());
        let errors = errors.into_iter().map(PublishResponse::Error);
        let responses = std::iter::once(published).chain(errors).collect();
        let result = Ok(Outcome::Broadcast(BroadcastResult { responses, ..Default::default() }));
        assert_eq!(MessageOutcome::of(&result), expected);
    }
}

#[test]
fn pauses_double_up_to_five_seconds() {
    let ms = |failures, jitter| pause(failures, jitter).as_millis();
    assert_eq!([ms(1, 0), ms(1, 9), ms(2, 0), ms(8, 0)], [20, 38, 40, 2560]);
    assert_eq!([ms(9, 0), ms(63, 5), ms(64, 0), ms(u32::MAX, 9)], [5000; 4]);
}
