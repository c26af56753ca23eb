//! Tests of what counts as a document: statuses and attempts.
//! In: responses of a small server on loopback → out: the document, or the error's text.
//! Uses tokio's sockets on the server side. Limits of a request and TLS are tested in `tls`.
//! Changed here: expectations; the parsing of documents is tested in `auth`.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;

/// Fetches from a server that sends each response on a connection of its own.
async fn fetched(responses: &[&str]) -> Result<Bytes, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let url = format!("http://{}/keys", listener.local_addr().expect("bound"));
    let tls = Tls::new(&TlsOptions::default()).expect("the defaults are good");
    let limits = RequestLimits { timeout: Duration::from_secs(3600), ..LIMITS };
    let client = HttpsClient::new(tls, limits);
    let serve = async {
        for response in responses {
            let (mut socket, _) = listener.accept().await.expect("the client connects");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.expect("a whole head"));
            }
            let response = format!("HTTP/1.1 {response}\r\nContent-Length: 2\r\n\r\n{{}}");
            socket.write_all(response.as_bytes()).await.expect("the client reads");
        }
    };
    let (answer, ()) = tokio::join!(get(&client, &url), serve);
    answer.map_err(|error| error.to_string())
}

#[tokio::test]
async fn only_a_200_is_a_document() {
    assert_eq!(fetched(&["200 OK"]).await.expect("a document"), "{}");
    for status in
        ["404 Not Found", "302 Found\r\nLocation: http://127.0.0.1:1/", "206 Partial Content"]
    {
        let error = fetched(&[status, status]).await.expect_err("no document");
        let expect =
            format!("the answer is {}, expected 200", status.lines().next().unwrap_or_default());
        assert_eq!(error, expect);
    }
}

#[tokio::test]
async fn a_second_attempt_is_made_after_the_first_fails() {
    assert_eq!(fetched(&["503 Service Unavailable", "200 OK"]).await.expect("the second"), "{}");
}
