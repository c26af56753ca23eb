//! A planned restart with `engine.memory.snapshot_path`: a client that comes back recovers what it missed.
//! In: publications before and after a client leaves → out: the reply to its next subscribe.
//! Uses the test client and a folder of the test's own.
//! Changed here: what a client sees of a restart. Crashes are in `crates/cli/tests/it/snapshots.rs`.

use std::time::Duration;

use fanwire::Server;
use fanwire_testing::Folder;
use serde_json::Value;

use crate::client::{Client, start};

async fn start_with(path: &str) -> Server {
    start(|config| {
        config.engine.memory.snapshot_path = path.to_owned();
        config.shutdown.timeout = Duration::from_secs(1);
        let channels = &mut config.channel.without_namespace;
        channels.history_size = 10;
        channels.history_ttl = Duration::from_secs(600);
        channels.force_recovery = true;
        channels.allow_subscribe_for_client = true;
    })
    .await
}

/// The reply to a subscribe of a new connection.
async fn subscribe(server: &Server, request: &str) -> Value {
    let mut client = Client::open(server.address(), "").await;
    let subscribe = format!("{{\"id\":1,\"connect\":{{}}}}\n{{\"id\":2,\"subscribe\":{request}}}");
    client.text(&subscribe).await;
    let replies = client.next_text().await;
    let reply = replies.lines().nth(1).expect("two replies");
    serde_json::from_str::<Value>(reply).expect("JSON")["subscribe"].clone()
}

#[tokio::test]
async fn after_a_planned_restart_a_client_recovers_what_it_missed() {
    let folder = Folder::new("restart");
    let path = folder.file("snapshot");
    let server = start_with(&path).await;
    let position = subscribe(&server, r#"{"channel":"news"}"#).await;
    server.handle().publish("news", r#"{"text":"missed"}"#).await.expect("it is published");
    server.shutdown().await;
    let server = start_with(&path).await;
    let epoch = position["epoch"].as_str().expect("the channel has positions");
    let claim = format!(r#"{{"channel":"news","recover":true,"offset":0,"epoch":"{epoch}"}}"#);
    let reply = subscribe(&server, &claim).await;
    assert_eq!(reply["recovered"], true, "{reply}");
    assert_eq!(reply["publications"][0]["data"]["text"], "missed", "{reply}");
    server.shutdown().await;
}
