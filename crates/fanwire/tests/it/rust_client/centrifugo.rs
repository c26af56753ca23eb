//! The dialogue against Centrifugo, whose binary the variable `FANWIRE_TEST_CENTRIFUGO` names.
//! In: the path of a binary → out: the same assertions as against Fanwire.
//! Uses a process and a port of loopback; without the variable, the test says that it is skipped.
//! Changed here: how Centrifugo is started. The dialogue is `dialogue`.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fanwire_testing::{free_port, wait_for};

use super::{configs, dialogue};

#[tokio::test]
async fn the_dialogue_works_against_centrifugo_too() {
    let Ok(binary) = std::env::var("FANWIRE_TEST_CENTRIFUGO") else {
        let _ = writeln!(std::io::stderr(), "skipped: FANWIRE_TEST_CENTRIFUGO names no binary");
        return;
    };
    let server = Centrifugo::start(&binary);
    let url = format!("ws://127.0.0.1:{}/connection/websocket", server.port);
    for (number, config) in configs().into_iter().enumerate() {
        dialogue::run(&url, &config, &format!("dialogue{number}")).await;
    }
}

/// A running server, which ends with the test.
struct Centrifugo {
    process: Child,
    port: u16,
}

impl Centrifugo {
    fn start(binary: &str) -> Self {
        let port = free_port();
        let process = Command::new(binary)
            .env("CENTRIFUGO_HTTP_SERVER_ADDRESS", "127.0.0.1")
            .env("CENTRIFUGO_HTTP_SERVER_PORT", port.to_string())
            .env("CENTRIFUGO_CLIENT_INSECURE", "true")
            .env("CENTRIFUGO_WEBSOCKET_COMPRESSION", "true")
            .env("CENTRIFUGO_CHANNEL_WITHOUT_NAMESPACE_PRESENCE", "true")
            .env("CENTRIFUGO_CHANNEL_WITHOUT_NAMESPACE_HISTORY_SIZE", "100")
            .env("CENTRIFUGO_CHANNEL_WITHOUT_NAMESPACE_HISTORY_TTL", "300s")
            .env("CENTRIFUGO_CHANNEL_WITHOUT_NAMESPACE_FORCE_RECOVERY", "true")
            .env("CENTRIFUGO_CHANNEL_WITHOUT_NAMESPACE_ALLOWED_DELTA_TYPES", "fossil")
            .env("CENTRIFUGO_CHANNEL_WITHOUT_NAMESPACE_DELTA_PUBLISH", "true")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let server = Self { process, port };
        wait_for(|| TcpStream::connect(("127.0.0.1", port)), Duration::from_secs(20));
        server
    }
}

impl Drop for Centrifugo {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
