//! Tests of the loop over a lane in memory.
//! In: batches and failures of a scripted lane → out: settled counts, publications.
//! Uses a node in memory and a clock that jumps. Never: a queue of others.
//! A rule about order, failures or the stop is a test here.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use bytes::Bytes;
use fanwire_api::ApiOptions;
use fanwire_node::Node;
use fanwire_node::options::Options;
use parking_lot::Mutex;
use tracing::{Event, Metadata, Subscriber, field, span};

use super::*;

/// Answers in the order of the script, then stops the runner.
struct Scripted {
    script: VecDeque<Result<Vec<QueueMessage>, QueueError>>,
    settled: Arc<Mutex<Vec<usize>>>,
    stop: watch::Sender<bool>,
}

impl Lane for Scripted {
    async fn receive(&mut self) -> Result<MessageBatch, QueueError> {
        match self.script.pop_front() {
            Some(answer) => {
                answer.map(|messages| MessageBatch { messages, ..MessageBatch::default() })
            }
            None => {
                let _ = self.stop.send(true);
                std::future::pending().await
            }
        }
    }

    async fn settle(&mut self, done: usize) -> Result<(), QueueError> {
        self.settled.lock().push(done);
        Ok(())
    }
}

fn message(method: &str, channel: &str) -> QueueMessage {
    let payload = format!(r#"{{"channel":"{channel}","data":1}}"#).into_bytes();
    QueueMessage {
        method: method.to_owned(),
        payload: Some(Bytes::from(payload)),
        ..QueueMessage::default()
    }
}

/// Runs a script. Returns the result, the settled counts and the state.
async fn run(
    script: Vec<Result<Vec<QueueMessage>, QueueError>>,
) -> (Result<(), QueueError>, Vec<usize>, Arc<ConsumerState>) {
    let node = Node::new(Options::default()).expect("valid options");
    let api = Arc::new(Api::new(node, ApiOptions::default()));
    let (sender, stop) = watch::channel(false);
    let state = Arc::new(ConsumerState::new("a"));
    let settled = Arc::default();
    let pause = Arc::default();
    let runner = Runner { api, state: Arc::clone(&state), mode: None, stop, pause };
    let lane = Scripted { script: script.into(), settled: Arc::clone(&settled), stop: sender };
    let result = runner.run(lane).await;
    let settled = settled.lock().clone();
    (result, settled, state)
}

#[tokio::test(start_paused = true)]
async fn messages_that_cannot_be_executed_are_done_with_a_cause() {
    let batch = vec![
        message("publish", "a"),
        message("publish", ""),
        message("publish", "unknown:a"),
        message("history", "a"),
        QueueMessage { payload: Some(Bytes::from_static(b"{")), ..QueueMessage::default() },
    ];
    let (result, settled, state) = run(vec![Ok(batch), Ok(Vec::new())]).await;
    assert_eq!((result, settled), (Ok(()), vec![5]));
    let stats = state.stats();
    assert_eq!((stats.processed, stats.errors), (5, 0));
    let counts = stats.skipped.map(|(cause, count)| (cause.name(), count));
    let expected = [
        ("payload", 0),
        ("malformed", 1),
        ("method", 1),
        ("channels", 0),
        ("header", 0),
        ("refused", 2),
    ];
    assert_eq!(counts, expected);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_fails_is_tried_again_and_its_trouble_ends() {
    let failure = || Err(QueueError::new("gone"));
    let (result, settled, state) =
        run(vec![failure(), failure(), Ok(vec![message("publish", "a")])]).await;
    assert_eq!((result, settled), (Ok(()), vec![1]));
    let stats = state.stats();
    assert_eq!((stats.errors, stats.failure), (2, None));
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_comes_during_a_pause_waits_and_is_given_back_at_the_stop() {
    let node = Node::new(Options::default()).expect("valid options");
    let api = Arc::new(Api::new(node, ApiOptions::default()));
    for (is_stopped, expected) in [(false, 1), (true, 0)] {
        let (sender, stop) = watch::channel(false);
        let state = Arc::new(ConsumerState::new("a"));
        let settled = Arc::<Mutex<Vec<_>>>::default();
        let pause = Arc::<RwLock<()>>::default();
        let runner =
            Runner { api: api.clone(), state, mode: None, stop, pause: Arc::clone(&pause) };
        let script = VecDeque::from([Ok(vec![message("publish", "a")])]);
        let lane = Scripted { script, settled: Arc::clone(&settled), stop: sender.clone() };
        let paused = pause.write().await;
        let running = tokio::spawn(runner.run(lane));
        timeout(Duration::from_secs(3600), sender.closed()).await.expect_err("the lane waits");
        assert!(settled.lock().is_empty());
        sender.send_replace(is_stopped);
        drop(paused);
        running.await.expect("no panic").expect("it was stopped");
        assert_eq!(*settled.lock(), [expected]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_final_error_ends_the_lane() {
    let error = QueueError { why: "fenced".to_owned(), is_final: true };
    let (result, settled, _) = run(vec![Err(error.clone()), Ok(Vec::new())]).await;
    assert_eq!((result, settled), (Err(error), vec![]));
}

#[tokio::test(start_paused = true)]
async fn the_log_has_the_id_and_the_begin_of_each_skipped_message() {
    let log = Log::default();
    let lines = Arc::clone(&log.0);
    let _guard = tracing::subscriber::set_default(log);
    let binary = Bytes::from_static(b"\x1b\xff{");
    let batch = vec![
        QueueMessage { id: "7-1".to_owned(), ..message("history", "a") },
        QueueMessage { id: "7-2".to_owned(), ..message("publish", "unknown:ü") },
        QueueMessage { id: "7-3".to_owned(), payload: Some(binary), ..message("publish", "") },
        QueueMessage { id: "7-4".to_owned(), payload: None, ..message("publish", "") },
    ];
    let (result, ..) = run(vec![Ok(batch), Ok(Vec::new())]).await;
    assert_eq!(result, Ok(()));
    let lines = std::mem::take(&mut *lines.lock());
    let of = |name: &str| -> Vec<String> {
        lines.iter().map(|line| line.get(name).cloned().unwrap_or_default()).collect()
    };
    assert_eq!(of("id"), ["7-1", "7-2", "7-3", "7-4"]);
    assert_eq!(of("cause"), ["method", "refused", "malformed", "payload"]);
    let payloads = [
        r#"{"channel":"a","data":1}"#,
        r#"{"channel":"unknown:ü","data":1}"#,
        "\\u{1b}\u{fffd}{",
        "",
    ];
    assert_eq!(of("payload"), payloads);
    assert!(of("details")[1].contains("102"), "{:?}", of("details"));
}

/// The fields of log lines about skipped messages.
#[derive(Default)]
struct Log(Arc<Mutex<Vec<BTreeMap<String, String>>>>);

struct Fields(BTreeMap<String, String>);

impl field::Visit for Fields {
    fn record_str(&mut self, field: &field::Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &field::Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(BTreeMap::new());
        event.record(&mut fields);
        if fields.0.get("message").is_some_and(|text| text == "skipped a message") {
            self.0.lock().push(fields.0);
        }
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
