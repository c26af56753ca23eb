//! Clients of unidirectional streams that come back: how a request names their last event, and what they may send there.
//! In: headers and parameters, good and bad → out: what they missed, or the message that it is lost.
//! Uses the test client; ids are those of events before.
//! Changed here: expectations of `edge::clients::endpoint::last_event_id`. What is recovered is tested in `fanout`.

use super::*;
use crate::client::{publish, start};

fn recoverable(config: &mut Config) {
    unidirectional(config);
    let open = &mut config.channel.without_namespace;
    (open.history_size, open.history_ttl) = (10, Duration::from_secs(60));
    open.force_recovery = true;
}

const REQUEST: &str = r#"{"subs":{"a":{}}}"#;

/// A GET of events with this last event in the query, if it is not "".
fn events(id: &str, headers: &str) -> String {
    let query = query(REQUEST);
    let id = if id.is_empty() { String::new() } else { format!("&lastEventId={id}") };
    format!("GET /sse?{query}{id} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")
}

/// The server after five publications, and their epoch.
async fn start_with_history() -> (Server, String) {
    let server = start(recoverable).await;
    let mut client = Client::request(server.address(), &events("", "")).await;
    let push = client.text_until("\n\n").await;
    let epoch = member(&push, "epoch").to_owned();
    assert!(push.starts_with("\ndata: {\"connect\":"), "{push}");
    assert!(push.ends_with(&format!("}}\nid: 0.{epoch}\n\n")), "{push}");
    for number in 1..=5 {
        publish(server.address(), "a", &number.to_string()).await;
        let text = client.text_until("\n\n").await;
        assert!(text.ends_with(&format!("}}\nid: {number}.{epoch}\n\n")), "{text}");
    }
    (server, epoch)
}

#[tokio::test]
async fn header_and_parameter_name_the_last_event() {
    let (server, epoch) = start_with_history().await;
    let address = server.address();
    let header = |id: &str| format!("Last-Event-ID: {id}.{epoch}\r\n");
    let id = format!("4.{epoch}");
    let post_to = |path: &str, headers: &str| post(path, headers, REQUEST);
    for request in [
        events("", &header("4")),
        events("", &header("4").to_lowercase().replace(&epoch.to_lowercase(), &epoch)),
        events(&id, ""),
        events(&format!("1.{epoch}"), &header("4")), // the header is newer
        events(&id, "Last-Event-ID: \r\n"),
        post_to("/sse", &header("4")),
        post_to(&format!("/sse?lastEventID={id}"), ""),
    ] {
        let mut client = Client::request(address, &request).await;
        let connect = client.text_until("\n\n").await;
        assert!(connect.ends_with(&format!("}}\nid: 4.{epoch}\n\n")), "{connect}");
        let push = r#"{"channel":"a","pub":{"data":5,"offset":5}}"#;
        let missed = client.text_until("\n\n").await;
        assert_eq!(missed, format!("data: {push}\nid: 5.{epoch}\n\n"), "{request}");
    }
    let mut lines =
        Client::request(address, &post_to(&format!("/stream?lastEventId={id}"), "")).await;
    let text = lines.text_until("\"offset\":5}}\n").await;
    assert_eq!(text.lines().count(), 2, "{text}");
    let query = format!("?{}&lastEventId={id}", query(REQUEST));
    let mut socket = websocket(address, &query, "").await;
    assert!(socket.next_text().await.starts_with("{\"connect\":"));
    assert_eq!(socket.next_text().await, r#"{"channel":"a","pub":{"data":5,"offset":5}}"#);
}

#[tokio::test]
async fn anything_else_is_answered_with_the_reason() {
    let (server, epoch) = start_with_history().await;
    let address = server.address();
    let five_kilobytes = "7".repeat(5_000);
    publish(address, "b", "0").await;
    let query = query(r#"{"subs":{"b":{}}}"#);
    let request = format!("GET /sse?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let push = Client::request(address, &request).await.text_until("\n\n").await;
    let of_another_channel = format!("1.{}", member(&push, "epoch"));
    for (id, reason) in [
        ("x", "invalid"),
        ("5", "invalid"),
        ("\u{e4}.\u{1f600}", "invalid"),
        ("5.AbCdEfGh", "epoch"),
        (&format!("6.{epoch}"), "epoch"),
        (&of_another_channel, "epoch"),
        (&five_kilobytes, "invalid"),
    ] {
        let request = events("", &format!("Last-Event-ID: {id}\r\n"));
        let mut client = Client::request(address, &request).await;
        let connect = client.text_until("\n\n").await;
        assert!(connect.ends_with(&format!("}}\nid: 5.{epoch}\n\n")), "{connect}");
        let event = client.text_until("\n\n").await;
        let start = format!("event: unrecovered\ndata: {{\"reason\":\"{reason}\",\"message\":\"");
        assert!(event.starts_with(&start), "{event}");
        publish(address, "b", "1").await; // the connection lives
    }
    let bytes = "%0D%0A%00%FF%22";
    let mut client = Client::request(address, &events(bytes, "")).await;
    client.text_until("\n\n").await;
    let event = client.text_until("\n\n").await;
    assert!(event.starts_with("event: unrecovered\ndata: {\"reason\":\"invalid\""), "{event}");
    for request in [
        events("", &format!("Last-Event-ID: {}\r\n", "7".repeat(1 << 20))),
        events(&"7".repeat(1 << 20), ""),
        events("", "Last-Event-ID: 5\rX: 1\r\n"),
    ] {
        let client = Client::request(address, &request).await;
        assert!(client.response.starts_with("HTTP/1.1 4"), "{}", client.response);
    }
}
