//! A backend of a shared poll that answers with 100 MB: the memory of the server stays bounded, and its clients stay connected.
//! In: answers that never end as the server wants → out: the memory of its process.
//! Uses the binary and a backend of the test's own. Never: a real backend.
//! Changed here: how large an answer is. What is refused is tested in the crate `proxy`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use fanwire_auth::{TrackClaim, sign_track};
use fanwire_testing::wait_for;
use serde_json::json;

use super::fanwire;
use super::started::PATIENCE;
use super::started::chat_client::ChatClient;
use super::started::process::Process;

const ORIGIN: &str = "https://app.example.com";
const ANSWER_BYTES: usize = 100_000_000;
/// More than a polled answer of 4 MiB takes, and much less than one of 100 MB.
const GROWTH_BYTES_MAX: u64 = 40 << 20;

/// Answers each call with a value of 100 MB, and counts what the server has taken of them.
fn start_backend() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it listens").to_string();
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let calls = Arc::clone(&counted);
            std::thread::spawn(move || {
                let _ = answer(socket);
                calls.fetch_add(1, Relaxed);
            });
        }
    });
    (address, calls)
}

/// Reads the head of a request and writes the answer, until the server has read enough.
fn answer(socket: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(socket);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
    }
    let socket = reader.get_mut();
    let start = r#"{"result":{"items":[{"key":"k","version":1,"data":""#;
    write!(socket, "HTTP/1.1 200 OK\r\nContent-Length: {ANSWER_BYTES}\r\n\r\n{start}")?;
    let part = [b'x'; 1 << 16];
    for _ in 0..ANSWER_BYTES / part.len() {
        socket.write_all(&part)?;
    }
    Ok(())
}

#[test]
fn an_answer_of_100_mb_does_not_fill_the_memory() {
    let (backend, calls) = start_backend();
    let poll = json!({"mode": "versioned", "refresh_interval": "100ms"});
    let namespaces =
        json!([{"name": "prices", "subscription_type": "shared_poll", "shared_poll": poll}]);
    let node = Process::serve(
        fanwire()
            .args(["serve", "--http_server.address=127.0.0.1", "--http_server.port=0"])
            .args(["--shards=1", "--client.insecure=true", "--shared_poll.hmac_secret_key=secret"])
            .arg(format!("--client.allowed_origins={ORIGIN}"))
            .arg(format!("--channel.proxy.shared_poll_refresh.endpoint=http://{backend}/poll"))
            .env("FANWIRE_CHANNEL_NAMESPACES", namespaces.to_string()),
    );
    let mut ada = ChatClient::open(&node.address, ORIGIN);
    ada.ask("connect", &json!({}));
    ada.ask("subscribe", &json!({"channel": "prices:all", "type": 4}));
    let before = node.resident_bytes();
    let claim = TrackClaim { user: "", channel: "prices:all", keys: &["k"] };
    let signature = sign_track(&"secret".into(), claim, 1, 0).expect("a secret, and no NUL");
    let track = json!([{"signature": signature, "items": [{"key": "k"}]}]);
    ada.ask("sub_refresh", &json!({"channel": "prices:all", "type": 1, "track": track}));
    wait_for(|| calls.load(Relaxed) >= 5, PATIENCE);
    let grown = node.resident_bytes().saturating_sub(before);
    println!("{grown} bytes more are resident");
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes after 5 answers");
    ada.ask("sub_refresh", &json!({"channel": "prices:all", "type": 2, "untrack": ["k"]}));
    assert_eq!(node.stop("-TERM"), Some(0));
}
