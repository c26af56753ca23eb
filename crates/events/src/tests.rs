//! Tests of the way from a report to a backend: order, signature, repetition, loss.
//! In: reports, a backend on a real socket that fails first → out: the batches that it gets.
//! Uses the hook as a node does. Never: a node.
//! Changed here: cases of delivery. The queue has tests of its own.

use crate::options::EventsHttpOptions;
use fanwire_node::protocol::{ClientInfo, Disconnect};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::*;

/// Starts a backend that gives these answers to the first requests, and then 204. Returns its URL and the requests.
async fn backend(
    answers: Vec<String>,
) -> (String, mpsc::UnboundedReceiver<(String, serde_json::Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/events", listener.local_addr().expect("bound"));
    let (sender, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut answers = answers.into_iter();
        while let Ok((mut socket, _)) = listener.accept().await {
            while let Some((head, body)) = read(&mut socket).await {
                let _ = sender.send((head, body));
                let answer = answers.next().unwrap_or_else(|| answer("204 No Content", 0, 0));
                // The sender may end the connection before a long body does.
                let _ = socket.write_all(answer.as_bytes()).await;
                if answer.contains("Connection: close") {
                    break;
                }
            }
        }
    });
    (url, requests)
}

/// A response that promises a body of some length, and has one of another length.
fn answer(status: &str, promised: usize, length: usize) -> String {
    let body = "x".repeat(length);
    format!("HTTP/1.1 {status}\r\nContent-Length: {promised}\r\n\r\n{body}")
}

async fn read(socket: &mut TcpStream) -> Option<(String, serde_json::Value)> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str(body)
        {
            return Some((head.to_owned(), body));
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

fn events(endpoint: String, queue_max: usize, types: &[&str]) -> Events {
    let http = EventsHttpOptions {
        endpoint,
        secret: "secret".to_owned().into(),
        timeout: Duration::from_secs(5),
        ..EventsHttpOptions::default()
    };
    let types = types.iter().map(|name| (*name).to_owned()).collect();
    let options = EventsOptions { http, types, batch_size: 3, queue_max, ..Default::default() };
    Events::new(&options).expect("good options").expect("an endpoint")
}

fn ada() -> ClientInfo {
    ClientInfo { user: "ada".into(), client: "c".into(), ..ClientInfo::default() }
}

/// Lets the events of occupied channels come, as of a node without others.
fn look(events: &Events) {
    let present = BTreeSet::from(["node".to_owned()]);
    let mut watch = Watch::new(Arc::clone(&events.0), "node", unix_ms());
    let messages = watch.compare(present, false, Instant::now());
    assert_eq!(messages, []);
}

/// The types of a batch, with their numbers.
fn types(batch: &serde_json::Value) -> Vec<String> {
    let events = batch["events"].as_array().expect("a list");
    events
        .iter()
        .map(|event| format!("{} {}", event["seq"], event["type"].as_str().expect("a text")))
        .collect()
}

#[test]
fn types_have_the_names_that_json_has() {
    for one in EventType::ALL {
        assert_eq!(serde_json::to_value(one).expect("JSON"), one.name());
        assert_eq!(EventType::named(one.name()), Some(one));
    }
}

#[tokio::test]
async fn a_failed_batch_is_sent_again_and_nothing_is_out_of_order() {
    let (url, mut requests) = backend(vec![answer("500 Internal Server Error", 0, 0); 2]).await;
    let events = events(url, 100, &[]);
    let report = events.hooks().report.expect("there is one");
    let channel: Arc<str> = "a".into();
    report(ClientReport::Connected { client: ada() });
    report(ClientReport::Subscribed {
        client: ada(),
        channel: channel.clone(),
        data: Default::default(),
    });
    report(ClientReport::Unsubscribed { client: ada(), channel });
    let disconnect = Disconnect::CONNECTION_CLOSED;
    report(ClientReport::Disconnected { client: ada(), disconnect });
    look(&events);
    events.0.send_all("node").await;
    let mut batches = Vec::new();
    while let Ok((head, body)) = requests.try_recv() {
        assert!(head.contains("x-fanwire-signature: sha256="), "{head}");
        assert!(head.contains("x-fanwire-timed-signature: t="), "{head}");
        batches.push(body);
    }
    let first = ["1 connected", "2 subscribed", "3 unsubscribed"];
    assert_eq!(batches.len(), 4, "two fail, two batches arrive");
    for batch in &batches[..3] {
        assert_eq!(types(batch), first);
    }
    assert_eq!(types(&batches[3]), ["4 disconnected", "5 recount_started", "6 recount_ended"]);
    assert_eq!(batches[3]["node"], "node");
    assert_eq!(batches[3]["events"][0]["code"], 3000);
    let expected = EventStats { sent: 6, lost: 0, waiting: 0, failed_requests: 2 };
    assert_eq!(events.stats(), expected);
}

#[tokio::test]
async fn what_does_not_fit_is_counted_in_the_stream_and_unwanted_types_are_left_out() {
    let (url, mut requests) = backend(Vec::new()).await;
    let events = events(url, 2, &["connected", "lost"]);
    let report = events.hooks().report.expect("there is one");
    for _ in 0..5 {
        report(ClientReport::Connected { client: ada() });
        report(ClientReport::Disconnected { client: ada(), disconnect: Disconnect::SHUTDOWN });
    }
    events.0.send_all("node").await;
    assert_eq!(types(&requests.recv().await.expect("a batch").1), ["1 connected", "2 connected"]);
    let (_, last) = requests.recv().await.expect("a batch");
    assert_eq!(types(&last), ["3 lost"]);
    assert_eq!(last["events"][0]["count"], 3);
    assert_eq!(events.stats().lost, 3);
}

#[tokio::test]
async fn a_status_2xx_decides_whatever_the_body_is() {
    let too_long = 10 * 64 * 1024;
    let answers = vec![
        answer("200 OK", too_long, too_long),
        answer("200 OK", 100, 10),
        answer("200 OK\r\nConnection: close", 100, 10),
        "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\nnot a chunk".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx".to_owned(),
    ];
    let count = answers.len() as u64;
    let (url, mut requests) = backend(answers).await;
    let events = events(url, 100, &["connected"]);
    let report = events.hooks().report.expect("there is one");
    for number in 1..=count {
        report(ClientReport::Connected { client: ada() });
        events.0.send_all("node").await;
        let (_, batch) = requests.recv().await.expect("a batch");
        assert_eq!(types(&batch), [format!("{number} connected")]);
    }
    let expected = EventStats { sent: count, lost: 0, waiting: 0, failed_requests: 0 };
    assert_eq!(events.stats(), expected);
}
