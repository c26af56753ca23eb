//! The address of a client behind a proxy, in log lines: on both ways in, and with the PROXY protocol.
//! In: requests of a trusted peer that name another address → out: a line about a refused command.
//! Uses the test client and the log of the process.
//! Changed here: expectations of `edge::accept::forwarded`. Which addresses are believed is tested there.

use fanwire::config::Config;

use crate::{
    client::{Client, start, upgrade_request},
    log,
};

async fn check(
    change: impl FnOnce(&mut Config),
    proxy: &str,
    headers: &str,
    channel: &str,
    expect: &str,
) {
    log::keep();
    let server = start(|config| {
        config.http_server.trusted_proxies = vec!["127.0.0.0/8".to_owned()];
        change(config);
    })
    .await;
    let address = server.address();
    let request = format!("{proxy}{}", upgrade_request(&address.to_string(), headers));
    let mut client = Client::raw_request(address, request.as_bytes()).await;
    assert!(client.response.starts_with("HTTP/1.1 101 "), "{}", client.response);
    client.subscribe(channel).await;
    client.text(&format!(r#"{{"id":3,"subscribe":{{"channel":"{channel}"}}}}"#)).await;
    client.text_until("\"code\":105").await;
    let line = log::line_about(channel);
    assert!(line.contains(&format!(" address={expect}")), "{line}");
    drop(client);
    server.shutdown().await;
}

#[tokio::test]
async fn a_shard_believes_the_header_of_a_proxy() {
    check(|_| {}, "", "X-Forwarded-For: 192.0.2.7\r\n", "forwarded_plain", "192.0.2.7").await;
}

#[tokio::test]
async fn hyper_believes_the_header_of_a_proxy() {
    let headers = "Content-Length: 0\r\nForwarded: for=\"[2001:db8::7]:47\"\r\n";
    check(|_| {}, "", headers, "forwarded_hyper", "[2001:db8::7]:47").await;
}

#[tokio::test]
async fn a_connection_may_begin_with_the_proxy_protocol() {
    let speaks = |config: &mut Config| config.http_server.proxy_protocol = true;
    let header = "PROXY TCP4 192.0.2.8 127.0.0.1 5000 80\r\n";
    check(speaks, header, "", "forwarded_proxy", "192.0.2.8:5000").await;
}

#[tokio::test]
async fn other_peers_are_not_believed() {
    let stranger =
        |config: &mut Config| config.http_server.trusted_proxies = vec!["10.0.0.1".to_owned()];
    check(stranger, "", "X-Forwarded-For: 192.0.2.7\r\n", "forwarded_stranger", "127.0.0.1").await;
}
