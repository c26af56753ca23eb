//! Endpoints beside the real-time one: which are there, and which the configuration takes away.
//! In: a configuration → out: answers over sockets.
//! Uses the test client.
//! What the server API answers is tested in `api`.

use crate::client::{Client, start};

#[tokio::test(flavor = "multi_thread")]
async fn the_description_of_the_api_is_served_where_the_configuration_says() {
    let server = start(|config| {
        config.swagger.enabled = true;
        config.swagger.handler_prefix = "/api-description".to_owned();
        config.http_api.api.handler_prefix = "/v1".to_owned();
    })
    .await;
    let request = "GET /api-description HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let client = Client::request(server.address(), request).await;
    assert!(client.response.contains("content-type: application/json\r\n"), "{}", client.response);
    let body = client.text_to_the_end().await;
    let document: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert!(document["paths"]["/v1/publish"]["post"].is_object());
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_switched_on_is_not_there() {
    let server = start(|config| config.http_api.disabled = true).await;
    for path in ["/swagger", "/metrics", "/health", "/", "/api", "/api/info"] {
        let request = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        let client = Client::request(server.address(), &request).await;
        assert!(client.response.starts_with("HTTP/1.1 404 "), "{path}: {}", client.response);
    }
    server.shutdown().await;
}
