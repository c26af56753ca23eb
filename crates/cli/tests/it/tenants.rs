//! Limits of tenants over two nodes with a Redis: publishes of a user, and connections of an address.
//! In: clients of both nodes → out: error 111 and status 429 at the node that heard of the other.
//! Uses the binary and a Redis of its own. Never: a wait without a limit.
//! Changed here: what nodes tell each other in earnest. Rules are tested in `policy`, doors in `fanwire`.

use fanwire_testing::wait_for;
use serde_json::{Value, json};

use super::started::PATIENCE;
use super::started::chat_client::{ChatClient, handshake};
use super::started::process::{Process, Redis, no_redis};
use super::{fanwire, run};

const ORIGIN: &str = "https://app.example.com";

#[test]
fn two_nodes_with_a_redis_share_the_limits_of_tenants() {
    let Some(redis) = Redis::start(&[]) else {
        return no_redis("limits of tenants over two nodes");
    };
    let limit = json!({"limit": 3, "interval": "1h"});
    let namespaces = json!([{
        "name": "chat", "allow_publish_for_client": true, "limits": {"user_publish": limit},
    }]);
    let nodes = [(); 2].map(|()| {
        Process::serve(
            fanwire()
                .args(["serve", "--http_server.address=127.0.0.1", "--http_server.port=0"])
                .args([
                    "--shards=1",
                    "--client.token.hmac_secret_key=secret",
                    "--engine.type=redis",
                ])
                .arg(format!("--engine.redis.address=redis://127.0.0.1:{}", redis.port))
                .arg(format!("--client.allowed_origins={ORIGIN}"))
                .arg("--client.limits.address_connections.limit=3")
                .env("FANWIRE_CHANNEL_NAMESPACES", namespaces.to_string()),
        )
    });
    let (code, token, _) = run(&["token", "--user", "ada", "--secret", "secret"]);
    assert_eq!(code, 0);
    let mut clients = nodes.each_ref().map(|node| {
        let mut client = ChatClient::open(&node.address, ORIGIN);
        client.ask("connect", &json!({ "token": token.trim() }));
        client
    });
    let publication = json!({ "channel": "chat:a", "data": 1 });
    let refused = |reply: &Value| reply["error"]["code"] == 111;
    for _ in 0..3 {
        clients[0].ask("publish", &publication);
    }
    assert!(refused(&clients[0].reply("publish", &publication)));
    wait_for(|| refused(&clients[1].reply("publish", &publication)), PATIENCE);

    let _third = ChatClient::open(&nodes[0].address, ORIGIN);
    wait_for(|| handshake(&nodes[1].address, ORIGIN).0 == 429, PATIENCE);
    drop(clients);
    wait_for(|| handshake(&nodes[1].address, ORIGIN).0 == 101, PATIENCE);
    for node in nodes {
        assert_eq!(node.stop("-TERM"), Some(0));
    }
}
