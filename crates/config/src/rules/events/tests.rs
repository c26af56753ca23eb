//! Tests of the rules of events out: targets and types.
//! In: flags → out: what is still wrong with them.
//! Uses `load` with flags. Never: connects.
//! Changed here: mistakes about events. Limits of single keys are in their rows.

use crate::rules::tests::found;

#[test]
fn events_go_to_one_place_that_can_be_read_and_have_types_that_exist() {
    let with = |flags: &[(&str, &str)]| found(&[&[("client.insecure", "true")], flags].concat());
    let stream = ("events.redis_stream.address", "redis://:secret@one:6379");
    let both = with(&[stream, ("events.http.endpoint", "http://backend/events")]);
    assert_eq!(
        both[0],
        "error: flag --events.redis_stream.address: events.redis_stream.address and \
         events.http.endpoint are both set, but events go to one of them; leave one out"
    );
    for address in ["redis+cluster://one:6379", "http://one", "redis://one:port"] {
        let wrong = with(&[("events.redis_stream.address", address)]);
        assert!(wrong[0].starts_with("error: flag --events.redis_stream.address: "), "{wrong:?}");
    }
    assert!(
        with(&[stream, ("events.types", "connected lost")])
            .iter()
            .all(|line| !line.contains("events"))
    );
    let unknown = with(&[stream, ("events.types", "conected lost")]);
    assert_eq!(
        unknown[0],
        "error: flag --events.types: events.types has \"conected\"; did you mean connected?"
    );
}
