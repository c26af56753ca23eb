//! The promises of every broker about deltas: a publication arrives with the previous payload of its stream (protocol §11).
//! In: a function that makes a broker in front of a recorder → out: a panic that names the broken promise.
//! Uses: the recorder of `conformance.rs`. Never: patches, which the node makes.
//! Changed here: the promises about the base of a delta.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{MakeBroker, Recorder, THREADS, in_threads, numbered, start};
use crate::{Broker, Delta, PublishOptions, Retention};

pub(super) fn check(make: MakeBroker<'_>) {
    a_delta_is_made_against_the_publication_before_it(make);
    one_stored_publication_is_enough(make);
    a_publication_that_is_not_stored_has_no_base_and_is_none(make);
    a_publication_that_is_not_published_is_no_base(make);
    removed_history_is_no_base(make);
    channels_are_not_bases_of_one_another(make);
    the_base_is_the_previous_publication_of_any_thread(make);
}

fn retention(size: usize) -> Retention {
    Retention { size, ttl: Duration::from_secs(600), meta_ttl: Duration::from_secs(6000) }
}

fn with_delta() -> PublishOptions {
    PublishOptions { delta: true, ..PublishOptions::default() }
}

fn put(broker: &dyn Broker, number: usize, options: &PublishOptions, retention: Retention) {
    let published = broker.publish("a", numbered(0, number), options, retention, Instant::now());
    published.wait().expect("the broker is available");
}

fn against(number: usize) -> Delta {
    Delta::Against(Bytes::from(format!("0 {number}")))
}

fn expect(recorder: &Recorder, deltas: &[Delta]) {
    recorder.wait_for(deltas.len());
    assert_eq!(recorder.deltas(), deltas);
}

fn a_delta_is_made_against_the_publication_before_it(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    for (number, delta) in [true, true, false, false, true, true].into_iter().enumerate() {
        put(&*broker, number, &PublishOptions { delta, ..PublishOptions::default() }, retention(5));
    }
    expect(&recorder, &[Delta::Alone, against(0), Delta::Off, Delta::Off, against(3), against(4)]);
}

fn one_stored_publication_is_enough(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    (0..3).for_each(|number| put(&*broker, number, &with_delta(), retention(1)));
    expect(&recorder, &[Delta::Alone, against(0), against(1)]);
}

fn a_publication_that_is_not_stored_has_no_base_and_is_none(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    let skipped = PublishOptions { skip_history: true, ..with_delta() };
    put(&*broker, 0, &with_delta(), retention(5));
    put(&*broker, 1, &skipped, retention(5));
    put(&*broker, 2, &with_delta(), retention(5));
    put(&*broker, 3, &with_delta(), Retention::default());
    put(&*broker, 4, &PublishOptions::default(), Retention::default());
    expect(&recorder, &[Delta::Alone, Delta::Alone, against(0), Delta::Alone, Delta::Off]);
}

fn a_publication_that_is_not_published_is_no_base(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    let keyed = PublishOptions { idempotency_key: "key".into(), ..with_delta() };
    let versioned = PublishOptions { version: 7, ..with_delta() };
    put(&*broker, 0, &keyed, retention(5));
    put(&*broker, 1, &keyed, retention(5));
    put(&*broker, 2, &versioned, retention(5));
    put(&*broker, 3, &versioned, retention(5));
    put(&*broker, 4, &with_delta(), retention(5));
    expect(&recorder, &[Delta::Alone, against(0), against(2)]);
}

fn removed_history_is_no_base(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    put(&*broker, 0, &with_delta(), retention(5));
    broker.remove_history("a", Instant::now()).wait().expect("the broker is available");
    put(&*broker, 1, &with_delta(), retention(5));
    put(&*broker, 2, &with_delta(), retention(5));
    expect(&recorder, &[Delta::Alone, Delta::Alone, against(1)]);
}

fn channels_are_not_bases_of_one_another(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a", "b"]);
    put(&*broker, 0, &with_delta(), retention(5));
    let options = with_delta();
    let published = broker.publish("b", numbered(0, 1), &options, retention(5), Instant::now());
    assert_eq!(published.wait().expect("the broker is available").offset, 1);
    put(&*broker, 2, &with_delta(), retention(5));
    recorder.wait_for(3);
    let mut deltas = recorder.deltas();
    deltas.sort_by_key(|delta| *delta != Delta::Alone);
    assert_eq!(deltas, [Delta::Alone, Delta::Alone, against(0)]);
}

fn the_base_is_the_previous_publication_of_any_thread(make: MakeBroker<'_>) {
    let (recorder, broker) = start(make, &["a"]);
    in_threads(|thread| {
        for number in 0..50 {
            let publication = numbered(thread, number);
            let options = with_delta();
            let now = Instant::now();
            let published = broker.publish("a", publication, &options, retention(5), now);
            published.wait().expect("the broker is available");
        }
    });
    let arrived = recorder.wait_for(THREADS * 50);
    let deltas = recorder.deltas();
    assert_eq!(deltas[0], Delta::Alone);
    for (number, pair) in arrived.windows(2).enumerate() {
        assert_eq!(deltas[number + 1], Delta::Against(pair[0].1.data.clone()), "{number}");
    }
}
