//! Questions and answers of the build before: the bytes between nodes stay as they were.
//! In: messages that version 0.1 wrote → out: the same questions and answers, and the same bytes when this build writes them.
//! Uses: `messages_of_0_1.txt`, a bus that records. Never: shards.
//! Changed here: nothing, as long as such nodes may be in a cluster. A new question gets a line of its own when it is released.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fanwire_broker::{Answer, Bus};
use fanwire_cluster::{Cluster, ConnectionSelector, NodeState, ReceiptRecord, Surveyed, Task};
use fanwire_policy::options::Options;
use fanwire_protocol::FilterNode;
use parking_lot::Mutex;

use super::connection_log::{ConnectionLogs, NodeLogs};
use super::hot_lists::{HotLists, NodeHotLists};
use super::online_users::{UserCounts, UserQuestion};
use super::publication_report::DeliveryReports;
use super::*;

/// Keeps what is sent.
#[derive(Clone, Default)]
struct Wire(Arc<Mutex<Vec<Bytes>>>);

impl Bus for Wire {
    fn send(&self, _: Option<&str>, message: Bytes) -> Answer<usize> {
        self.0.lock().push(message);
        Answer::now(Ok(2))
    }
}

impl Wire {
    fn take(&self) -> Bytes {
        self.0.lock().pop().expect("a message was sent")
    }
}

fn joined(uid: &str) -> (Cluster, Wire) {
    let cluster = Cluster::new(uid.to_owned());
    let wire = Wire::default();
    cluster.join(Arc::new(wire.clone()));
    (cluster, wire)
}

/// `a` knows that there is a node `b`.
fn introduce(a: &Cluster) {
    let (b, wire) = joined("b");
    drop(b.publish_state(None, || NodeState { name: "b".into(), ..NodeState::default() }));
    a.handle_message(&wire.take(), Instant::now());
}

/// The message of version 0.1 with this name.
fn message(name: &str) -> Vec<u8> {
    let line = MESSAGES.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    let digits = line.expect("a message of this name").as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).expect("hex"), 16);
    digits.chunks(2).map(|pair| byte(pair).expect("hex")).collect()
}

/// `question` is the one of this name, and no other question is. Checks what was sent for it, and that this build answers it.
fn check_question<Q: Ask + PartialEq>(name: &str, question: &Q, sent: &Bytes) {
    let old = message(name);
    assert_eq!(**sent, *old, "{name}: what this build sends");
    let (b, _) = joined("b");
    let now = Instant::now();
    let Task::Answer(received) = b.handle_message(&old, now) else { panic!("{name}: a question") };
    assert!(received.decoded::<Q>().as_ref() == Some(question), "{name}: what this build reads");
    let node = Node::new(Options::default()).expect("default options are valid");
    let wire = Wire::default();
    node.cluster().join(Arc::new(wire.clone()));
    let answers = QUESTIONS.iter().filter(|answer| answer(&node, &received, now));
    assert_eq!(answers.count(), 1, "{name} is one question");
    assert_eq!(wire.0.lock().len(), 1, "{name} has one answer");
    assert!(node.handle_message(&old, now), "{name} is known");
}

#[test]
fn questions_are_those_of_the_build_before() {
    let (a, wire) = joined("a");
    let now = Instant::now();
    introduce(&a);
    // The number of each question is that of its line.
    fn asked<Q: Ask + PartialEq>(a: &Cluster, wire: &Wire, name: &str, question: Q) {
        let own = Answer::now(Ok(Q::Answer::default()));
        drop(a.ask(question.clone(), None, own, Instant::now()));
        check_question(name, &question, &wire.take());
    }
    asked(&a, &wire, "channels.all", ChannelQuestion::from(""));
    let page = ChannelQuestion { pattern: "ne*".into(), after: "nea".into(), limit: 2 };
    asked(&a, &wire, "channels.page", page);
    let users = ["42", "", "43"].map(str::to_owned).into();
    asked(&a, &wire, "users", UserQuestion { users });
    let filter = FilterNode { key: "k".into(), cmp: "ex".into(), ..FilterNode::default() };
    let mut connections = ConnectionQuestion::of(&ConnectionSelector {
        user: "42".into(),
        client: "c".into(),
        session: "s".into(),
        whitelist: vec!["w".into()],
        label_filter: Some(Box::new(filter)),
        all_users: true,
    });
    connections.after = "b".into();
    connections.limit = 5;
    asked(&a, &wire, "connections", connections);
    let anonymous = ConnectionQuestion::of(&ConnectionSelector::default());
    asked(&a, &wire, "connections.anonymous", anonymous);
    for (name, limit, start) in [("page.first", 1000, 0), ("page.next", 3, 1 << 32 | 7)] {
        let question = PageQuestion { limit, start };
        let own = Answer::now(Ok(ConnectionPage::default()));
        drop(a.ask(question, Some("b"), own, now));
        check_question(name, &question, &wire.take());
    }
    for (name, user, client) in [("logs", "42", "c"), ("logs.anonymous", "", "")] {
        let user = Some(user.to_owned());
        let client = client.to_owned();
        let query = ConnectionLogQuery { user, client, limit: 20 };
        asked(&a, &wire, name, ConnectionLogQuestion::from(query));
    }
    asked(&a, &wire, "receipt", ReportQuestion { receipt: 0x0123_4567_89ab_cdef });
    asked(&a, &wire, "hot", HotListsQuestion { limit: 10 });
}

/// `answer` is the one of this name: this build reads and writes it.
fn check_answer<Q: Ask>(name: &str, question: &Q, answer: &Q::Answer)
where
    Q::Answer: PartialEq,
{
    let old = message(name);
    let (b, wire) = joined("b");
    let now = Instant::now();
    let Task::Answer(received) = b.handle_message(QUESTION_300, now) else { panic!("a question") };
    b.answer(&received, answer);
    assert_eq!(*wire.take(), *old, "{name}: what this build sends");

    let (a, _) = joined("a");
    let none = || Answer::now(Ok(Q::Answer::default()));
    let ask = || a.ask(question.clone(), None, none(), now);
    for _ in 1..300 {
        drop(ask()); // is over at once, because there is no other node
    }
    introduce(&a);
    let found = ask();
    a.handle_message(&old, now);
    let Surveyed { found, missing } = found.wait().expect("it was asked");
    assert_eq!(missing, [""; 0]);
    assert!(found == *answer, "{name}: what this build reads");
}

#[test]
fn answers_are_those_of_the_build_before() {
    let channels = |counts: &[(&str, u32)]| {
        let count = |(name, count): &(&str, u32)| ((*name).to_owned(), *count);
        counts.iter().map(count).collect::<BTreeMap<_, _>>()
    };
    let all = ChannelQuestion::from("");
    let two = ChannelCounts { channels: channels(&[("news", 2), ("sport", 1)]) };
    check_answer("answer.channels", &all, &two);
    check_answer("answer.channels.none", &all, &ChannelCounts::default());
    let counts = UserCounts { connections: channels(&[("42", 3)]) };
    check_answer("answer.users", &UserQuestion { users: vec!["42".into()] }, &counts);

    let record = ConnectionRecord {
        app_name: "js".into(),
        app_version: "5".into(),
        transport: "websocket".into(),
        protocol: "json".into(),
        connected_at_ms: 1_700_000_000_123,
        channels: vec!["news".into(), "sport".into()],
        labels: [("region".to_owned(), "eu".to_owned())].into(),
        user: "42".into(),
        meta: Bytes::from_static(b"{}"),
        token: Some(TokenRecord { uid: "t".into(), issued_at: 1_700_000_000 }),
        subscription_tokens: [("news".to_owned(), TokenRecord { uid: "s".into(), issued_at: 7 })]
            .into(),
        ping_ms: Some(0),
        address: "192.0.2.7".into(),
        node: "b".into(),
    };
    let connections =
        BTreeMap::from([("id".to_owned(), record), ("ie".to_owned(), ConnectionRecord::default())]);
    let found = ConnectionPage { connections, next: 0 };
    let of_all = ConnectionQuestion::of(&ConnectionSelector::default());
    check_answer("answer.connections", &of_all, &found);
    let page = PageQuestion { limit: 2, start: 0 };
    check_answer("answer.page", &page, &ConnectionPage { next: 1 << 32, ..found });
    check_answer("answer.page.none", &page, &ConnectionPage::default());

    let event = LoggedEvent {
        at_ms: 1,
        name: "refuse".into(),
        count: 2,
        code: 103,
        first: 3,
        second: 4,
        text: "t".into(),
        detail: "d".into(),
    };
    let log = ConnectionLogRecord {
        client: "c".into(),
        user: "42".into(),
        address: "192.0.2.7".into(),
        transport: "websocket".into(),
        opened_ms: 1_700_000_000_123,
        ended_ms: 1_700_000_000_124,
        ping_ms: Some(9),
        events: vec![event],
    };
    let question = ConnectionLogQuestion::from(ConnectionLogQuery::default());
    for (name, logs) in [("answer.logs", vec![log.clone(), log]), ("answer.logs.none", vec![])] {
        let nodes = vec![NodeLogs { node: "b".into(), logs }];
        check_answer(name, &question, &ConnectionLogs { nodes });
    }
}

#[test]
fn answers_for_diagnosis_are_those_of_the_build_before() {
    let receipt = ReceiptRecord {
        subscribers: 1,
        at_once: 2,
        waited: 3,
        replaced: 4,
        dropped: 5,
        late: 6,
        half_us: Some(7),
        most_us: Some(8),
        all_us: None,
        filtered: 10,
        repeated_keys: 11,
        old_versions: 12,
    };
    for (name, receipt) in [("answer.receipt", Some(receipt)), ("answer.receipt.none", None)] {
        let nodes = vec![NodeDeliveries { node: "b".into(), receipt }];
        check_answer(name, &ReportQuestion { receipt: 1 }, &DeliveryReports { nodes });
    }
    let entry = |name: &str, user: &str, value: u64| HotEntry {
        name: name.into(),
        user: user.into(),
        value,
    };
    let entries = |name: &str, value: u64| vec![entry(name, "", value), entry("e", "42", 1)];
    let lists = HotRecord {
        seconds: 1.5,
        publications: entries("p", 1),
        deliveries: entries("d", 2),
        history: entries("h", 3),
        namespaces: entries("n", 4),
        users: entries("u", 5),
        queues: entries("q", 6),
        refusals: entries("r", 7),
        recent_seconds: 5.25,
        recent_publications: entries("rp", 8),
        recent_deliveries: entries("rd", 9),
    };
    let nodes = vec![NodeHotLists { node: "b".into(), lists }];
    check_answer("answer.hot", &HotListsQuestion { limit: 10 }, &HotLists { nodes });
}

#[test]
fn a_question_of_a_later_version_is_refused() {
    let node = Node::new(Options::default()).expect("default options are valid");
    let of_field_1000 = b"\x01\x0a\x01a\xc2\x3e\x02\x08\x07";
    assert!(!node.handle_message(of_field_1000, Instant::now()));
    assert_eq!(node.cluster().refused(), 1);
}

/// Messages of version 0.1 by name, in hexadecimal: questions of a node `a`, each with its number, and answers of a node `b` to
/// question 300.
const MESSAGES: &str = include_str!("messages_of_0_1.txt");
/// Question 300 of a node `a`, for all channels.
const QUESTION_300: &[u8] = b"\x01\x0a\x01a\x32\x03\x08\xac\x02";
