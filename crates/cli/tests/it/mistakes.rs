//! Mistakes of users at run time, each made once: what the caller sees and what the log contains, as docs/mistakes.md has it.
//! In: wrong connects, commands and API requests to one started server → out: the rows of the page.
//! Uses the built `fanwire` at log level debug. Never: what a library for the protocol would correct.
//! A mistake is one row of a table here; `FANWIRE_REGENERATE=1` writes the page.

use std::fmt::Write as _;

use fanwire_testing::Folder;
use serde_json::Value;

use super::serve::request;
use super::started::chat_client::{ChatClient, handshake};
use super::started::process::Process;
use super::{fanwire, run};

#[test]
fn the_page_of_mistakes_has_what_callers_see_and_what_the_log_contains() {
    let folder = Folder::new("mistakes");
    let log = folder.write("fanwire.log", "");
    let config = folder.write("fanwire.yaml", CONFIG);
    let node = Process::serve(fanwire().args(["serve", "--config", &config, "--log.file", &log]));
    let server = Server { address: &node.address, log: &log };
    let mut page = INTRODUCTION.to_owned();
    let mut count = 0;
    for (title, rows) in sections() {
        let _ = write!(page, "\n## {title}\n\n{HEAD}");
        for Row { mistake, action, remedy } in rows {
            let before = server.lines().len();
            let seen = server.make(&action);
            let logged: Vec<String> = server.lines().drain(before..).collect();
            // The WebSocket layer refuses a message that is too large before it is a command.
            let is_logged = mistake != TOO_LARGE;
            assert_eq!(logged.len(), usize::from(is_logged), "{mistake}: {seen}: {logged:?}");
            let logged = logged.first().map_or("", String::as_str);
            let _ = writeln!(page, "| {mistake} | {} | {} | {remedy} |", cell(&seen), cell(logged));
            count += 1;
        }
    }
    assert!(count >= 25, "{count}");
    assert!(!page.contains(SECRET) && !page.contains("eyJ") && !page.contains(API_KEY), "{page}");
    assert_eq!(node.stop("-TERM"), Some(0));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mistakes.md");
    if std::env::var_os("FANWIRE_REGENERATE").is_some() {
        std::fs::write(path, &page).expect("the page is writable");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        page == written,
        "docs/mistakes.md differs; run: FANWIRE_REGENERATE=1 cargo test -p fanwire-cli --test it mistakes"
    );
}

struct Row {
    mistake: &'static str,
    action: Action,
    remedy: &'static str,
}

enum Action {
    /// A page of this origin opens a connection.
    Page(&'static str),
    /// A connection sends this as its first message.
    Connect(String),
    /// A connected client of user 42 sends these.
    Client(Vec<String>),
    /// An HTTP request: method and path, key, body.
    Http(&'static str, &'static str, String),
}

/// A started server, and its log.
struct Server<'a> {
    address: &'a str,
    log: &'a str,
}

impl Server<'_> {
    /// Makes a mistake. Returns what the caller sees.
    fn make(&self, action: &Action) -> String {
        match action {
            Action::Page(origin) => format!("HTTP {}", handshake(self.address, origin).0),
            Action::Connect(message) => {
                let mut client = ChatClient::open(self.address, ORIGIN);
                client.send(message);
                next(&mut client)
            }
            Action::Client(messages) => {
                let mut client = ChatClient::open(self.address, ORIGIN);
                client.send(&connect(&token(&["--user", "42", "--secret", SECRET])));
                assert!(next(&mut client).contains("\"client\""), "it is connected");
                let mut seen = String::new();
                for message in messages {
                    client.send(message);
                    seen = next(&mut client);
                }
                seen
            }
            Action::Http(line, key, body) => {
                let address = self.address;
                let answer = request(
                    address,
                    &format!(
                        "{line} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\nConnection: close\r\n\
                         Content-Length: {}\r\n\r\n{body}",
                        body.len()
                    ),
                );
                let (head, body) = answer.split_once("\r\n\r\n").expect("a whole response");
                format!("HTTP {}: {}", &head[9..12], body.trim_end())
            }
        }
    }

    /// The lines about refusals so far, without what differs from run to run.
    fn lines(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.log).expect("text");
        let lines = log.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        lines.filter_map(|line: Value| described(&line)).collect()
    }
}

/// The message and the fields of a line about a refusal.
fn described(line: &Value) -> Option<String> {
    let message = line["message"].as_str()?;
    if !MESSAGES.contains(&message) {
        return None;
    }
    let mut text = message.to_owned();
    for name in ["command", "method", "status", "code", "channel", "user", "origin", "cause"] {
        if !line[name].is_null() {
            let _ = write!(text, " {name}={}", line[name]);
        }
    }
    // The age of the expired token differs from run to run.
    if let Some((begin, rest)) = text.split_once("it expired ")
        && let Some((_, end)) = rest.split_once(" s ago")
    {
        text = format!("{begin}it expired … s ago{end}");
    }
    Some(text)
}

/// The next reply, or the end of the connection.
fn next(client: &mut ChatClient) -> String {
    let (head, payload) = client.frame();
    if head != CLOSE_FRAME {
        let text = String::from_utf8(payload).expect("text");
        let reply: Value = serde_json::from_str(&text).expect("JSON");
        let error = &reply["error"];
        return if error.is_null() { text } else { format!("error {error}") };
    }
    let code = u16::from_be_bytes([payload[0], payload[1]]);
    format!("close {code} {}", String::from_utf8_lossy(&payload[2..]))
}

fn token(arguments: &[&str]) -> String {
    let (code, token, error) = run(&[&["token"], arguments].concat());
    assert_eq!(code, 0, "{error}");
    token.trim().to_owned()
}

fn connect(token: &str) -> String {
    format!(r#"{{"id":1,"connect":{{"token":"{token}"}}}}"#)
}

/// A value of a table, as code.
fn cell(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{}`", text.replace('|', "\\|")) }
}

fn sections() -> [(&'static str, Vec<Row>); 3] {
    [("Connecting", connecting()), ("Commands of clients", commands()), ("Server API", api())]
}

fn connecting() -> Vec<Row> {
    let user = |more: &[&str]| token(&[&["--user", "42"], more].concat());
    let of = |token: &str| Action::Connect(connect(token));
    let forged = user(&["--secret", "another-secret-of-at-least-32-bytes"]);
    let for_channel = user(&["--secret", SECRET, "--channel", "news:a"]);
    vec![
        row(
            "the page has another origin",
            Action::Page("https://elsewhere.example"),
            "add the origin to `client.allowed_origins`",
        ),
        row(
            "no token",
            Action::Connect(r#"{"id":1,"connect":{}}"#.to_owned()),
            "give the SDK a token, or allow anonymous users",
        ),
        row(
            "an expired token",
            of(EXPIRED),
            "give the SDK `getToken`, which gets a new token from your backend",
        ),
        row(
            "a token signed with another secret",
            of(&forged),
            "sign with `client.token.hmac_secret_key`; `fanwire check-token` checks one",
        ),
        row(
            "something that is no token",
            of("secret"),
            "send the JWT of your backend, not the secret",
        ),
        row(
            "a token without a signature",
            of(UNSIGNED),
            "sign with HS256 or another algorithm for which a key is configured",
        ),
        row("`sub` is a number", of(NUMBER), "write the user id as a text"),
        row(
            "a subscription token for `connect`",
            of(&for_channel),
            "give it to `newSubscription`; a connection token has no `channel`",
        ),
        row(
            "another command before `connect`",
            Action::Connect(r#"{"id":1,"subscribe":{"channel":"news:a"}}"#.to_owned()),
            "send `connect` first; SDKs do",
        ),
        row(
            "a message that is not JSON",
            Action::Connect("hello".to_owned()),
            "use an SDK, or send commands of the protocol",
        ),
    ]
}

/// A subscribe with a token of another channel.
fn foreign() -> String {
    let other = token(&["--user", "42", "--secret", SECRET, "--channel", "closed:b"]);
    format!(r#""subscribe":{{"channel":"closed:a","token":"{other}"}}"#)
}

fn commands() -> Vec<Row> {
    let of = |command: &str| Action::Client(vec![format!("{{\"id\":2,{command}}}")]);
    let twice = r#"{"id":2,"subscribe":{"channel":"news:a"}}"#.to_owned();
    let large = format!(r#""publish":{{"channel":"room:a","data":"{}"}}"#, "x".repeat(4096));
    vec![
        row(
            "an unknown command",
            of(r#""subscrib":{"channel":"news:a"}"#),
            "use a command of the protocol",
        ),
        row(
            "`chanel` for `channel`",
            of(r#""subscribe":{"chanel":"news:a"}"#),
            "name the channel in `channel`",
        ),
        row(
            "a channel of an unknown namespace",
            of(r#""subscribe":{"channel":"nws:a"}"#),
            "add the namespace to `channel.namespaces`, or correct the channel",
        ),
        row(
            "a subscribe without permission",
            of(r#""subscribe":{"channel":"closed:a"}"#),
            "set `allow_subscribe_for_client` of the namespace, or give the client a subscription token",
        ),
        row(
            "a channel of another user",
            of(r#""subscribe":{"channel":"dialog:a#43"}"#),
            "list the user in the name of the channel",
        ),
        row(
            "a subscription token of another channel",
            of(&foreign()),
            "make the token for this channel and this user",
        ),
        row(
            "a second subscribe to one channel",
            Action::Client(vec![twice.clone(), twice]),
            "keep one subscription for each channel",
        ),
        row(
            "a publish without permission",
            of(r#""publish":{"channel":"news:a","data":{}}"#),
            "publish from the backend, or set `allow_publish_for_subscriber`",
        ),
        row(
            "data of another format",
            of(r#""publish":{"channel":"room:a","data":1}"#),
            "send what `publication_data_format` of the namespace demands",
        ),
        row(
            "history where there is none",
            of(r#""history":{"channel":"news:a"}"#),
            "set `history_size` and `history_ttl` of the namespace",
        ),
        row(
            "presence where there is none",
            of(r#""presence":{"channel":"news:a"}"#),
            "set `presence` of the namespace",
        ),
        row("an RPC", of(r#""rpc":{"method":"f"}"#), "enable a proxy of rpc"),
        row(
            "`send`, which has no receiver",
            Action::Client(vec![r#"{"send":{"data":{}}}"#.to_owned()]),
            "publish to a channel, or call your backend over HTTP",
        ),
        row(TOO_LARGE, of(&large), "send less, or raise `websocket.message_size_limit`"),
    ]
}

fn api() -> Vec<Row> {
    let of = |line, body: &str| Action::Http(line, API_KEY, body.to_owned());
    let publish = r#"{"channel":"news:a","data":{}}"#;
    vec![
        row(
            "a wrong API key",
            Action::Http("POST /api/publish", "wrong", publish.to_owned()),
            "send `http_api.key` in the header `X-API-Key`",
        ),
        row("GET for POST", of("GET /api/publish", publish), "send POST"),
        row("`publsh` for `publish`", of("POST /api/publsh", publish), "correct the path"),
        row(
            "`chanel` for `channel`",
            of("POST /api/publish", r#"{"chanel":"news:a","data":{}}"#),
            "name the channel in `channel`",
        ),
        row(
            "a text for a number",
            of("POST /api/history", r#"{"channel":"room:a","limit":"10"}"#),
            "send a JSON number",
        ),
        row(
            "a body that is cut",
            of("POST /api/publish", r#"{"channel":"news:a""#),
            "send the whole JSON text with its `Content-Length`",
        ),
        row(
            "a body over the limit",
            of(
                "POST /api/publish",
                &format!(r#"{{"channel":"news:a","data":"{}"}}"#, "x".repeat(4096)),
            ),
            "send less, or raise `http_api.max_request_body_size`",
        ),
        row(
            "a channel of an unknown namespace",
            of("POST /api/publish", r#"{"channel":"nws:a","data":{}}"#),
            "add the namespace to `channel.namespaces`, or correct the channel",
        ),
        row(
            "history where there is none",
            of("POST /api/history", r#"{"channel":"news:a"}"#),
            "set `history_size` and `history_ttl` of the namespace",
        ),
    ]
}

fn row(mistake: &'static str, action: Action, remedy: &'static str) -> Row {
    Row { mistake, action, remedy }
}

const CONFIG: &str = r#"
http_server: {address: 127.0.0.1, port: 0}
shards: 1
log: {level: debug}
client:
  allowed_origins: ["https://app.example.com"]
  token: {hmac_secret_key: a-secret-of-the-tests-with-32-bytes}
http_api: {key: the-key-of-the-tests, max_request_body_size: 1024}
websocket: {message_size_limit: 2048}
channel:
  namespaces:
    - {name: news, allow_subscribe_for_client: true}
    - {name: closed}
    - {name: dialog, allow_user_limited_channels: true}
    - {name: room, allow_publish_for_client: true, publication_data_format: json_object}
"#;

const INTRODUCTION: &str = "# Mistakes

What the caller sees, and the line of the log, for mistakes at run time. In a browser, the SDK's events `error` and `disconnected` have
code and message; a close of the connection has code and reason, with the cause in development mode alone. Lines also have `time`, `level`, `client` and `address` where they are
known. At level `info` there is one line in 10 s for each kind, with its `count`, and at `debug` each ([operation.md](operation.md)).

A test makes these mistakes and compares this page: `FANWIRE_REGENERATE=1 cargo test -p fanwire-cli --test it mistakes` writes it.
";

const HEAD: &str = "| mistake | the caller sees | the log | remedy |\n|---|---|---|---|\n";

const MESSAGES: [&str; 5] = [
    "refused a command",
    "disconnected a client",
    "refused a handshake",
    "an API call failed",
    "refused an API request",
];

const ORIGIN: &str = "https://app.example.com";
const SECRET: &str = "a-secret-of-the-tests-with-32-bytes";
const API_KEY: &str = "the-key-of-the-tests";
const TOO_LARGE: &str = "a message over the limit";

/// FIN and the opcode of a close frame (RFC 6455 §5.2).
const CLOSE_FRAME: u8 = 0x88;

/// `{"sub":"42","exp":1}`, signed with [`SECRET`].
const EXPIRED: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI0MiIsImV4cCI6MX0.7jQuU4KzSefUYoWzOM64T49Uj4w0CyUbw8kEOKFBFqE";
/// `{"sub":"42"}` with `alg` none.
const UNSIGNED: &str = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJzdWIiOiI0MiJ9.FHPdQN1xdUTBF0uCdujfPp1nMBrbYbq9MxFcgNHRZ0s";
/// `{"sub":42}`, signed with [`SECRET`].
const NUMBER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOjQyfQ.kXJvvnK0WxmMmlazMgv6ztmVYOJn9t-8b3UzyHPuUlY";
