//! Tests of what ends consumers: tasks that fail or panic, queues that this build lacks.
//! In: tasks, options → out: errors with the names of consumers.
//! Uses values and tasks only. Never: a queue.
//! A way to end is a test here.

use super::*;

#[tokio::test]
async fn a_task_that_ends_for_good_is_named_with_its_reason() {
    let (_phase, phase) = watch::channel(StartPhase::Serving);
    let (_stop, stop) = watch::channel(false);
    let mut tasks = Tasks::new(StartGate { phase, stop, delay: Duration::ZERO });
    let fenced = QueueError { why: "fenced".to_owned(), is_final: true };
    tasks.spawn(&"kafka_1".into(), async { Err(fenced) });
    tasks.spawn(&"outbox".into(), async { panic!("no rows") });
    tasks.spawn(&"other".into(), async { Ok(()) });
    let errors = Arc::new(Mutex::new(Vec::new()));
    let of_test = Arc::clone(&errors);
    tasks.supervise(move |error| of_test.lock().push(error.to_string())).await;
    let mut errors = std::mem::take(&mut *errors.lock());
    errors.sort();
    assert_eq!(errors[0], "consumers[kafka_1]: fenced");
    assert!(errors[1].starts_with("consumers[outbox]: task "), "{errors:?}");
    assert!(errors[1].ends_with("panicked with message \"no rows\""), "{errors:?}");
    assert_eq!(errors.len(), 2);
}

#[cfg(not(feature = "kafka"))]
#[test]
fn a_build_without_kafka_names_the_one_that_has_it() {
    let kafka = ConsumerOptions {
        enabled: true,
        kind: Some(ConsumerKind::Kafka),
        ..ConsumerOptions::default()
    };
    let error = Consumers::check(&[("records".to_owned(), kafka)].into()).expect("it is missing");
    let error = error.to_string();
    assert!(
        error.starts_with("consumers[records].type: \"kafka\": this build has no client of Kafka")
    );
    assert!(error.contains("cargo build --release --features full"), "{error}");
}
