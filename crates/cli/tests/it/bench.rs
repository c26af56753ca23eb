//! `fanwire bench` with a running server: every way to publish, faults on the way, interruption, mistakes.
//! In: arguments → out: exit code, stdout, the reports as files.
//! Uses the binary on both sides, and a proxy that damages what the server sends. Never: fixed ports, measured speed.
//! What a fault is counted as is tested in the crate `load`.

use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::serve::{send, start, stop};
use super::{fanwire, file, run};
use proxy::{Fault, Proxy};

mod proxy;

struct Server {
    child: Child,
    address: String,
    key: String,
}

impl Server {
    fn start() -> Self {
        let (child, lines) = start(&[]);
        let address = lines[0].rsplit(' ').next().expect("the address ends the line").to_owned();
        let key = lines.iter().find_map(|line| line.trim_start().strip_prefix("API key "));
        let key = key.and_then(|rest| rest.split_whitespace().next()).expect("a key was made");
        Self { child, key: key.to_owned(), address }
    }

    /// The options that find it, through another address if there is one.
    fn options(&self, through: Option<&str>) -> Vec<String> {
        let client = through.unwrap_or(&self.address);
        let options = [
            "bench",
            "--url",
            &format!("ws://{client}/connection/websocket"),
            "--api-url",
            &format!("http://{}/api", self.address),
            "--key",
            &self.key,
            "--warm-up=0",
            "--duration=500ms",
        ];
        options.map(str::to_owned).to_vec()
    }

    fn bench(&self, more: &[&str]) -> (i32, String, String) {
        let options = self.options(None);
        let all: Vec<&str> =
            options.iter().map(String::as_str).chain(more.iter().copied()).collect();
        run(&all)
    }
}

fn report(path: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(path).expect("the report was written");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn every_way_to_publish_delivers_everything() {
    let server = Server::start();
    let binary = file("bench.bin", "\u{3}\0\0\0abc\u{2}\0\0\0de");
    let lines = file("bench.jsonl", "{\"price\":1}\n{\"price\":2}\n");
    let json = file("bench-report.json", "");
    for more in [
        &["--publish=api", "--connections=20"][..],
        &["--publish=batch", "--channels=10", "--subscriptions=3", "--zipf"],
        &["--publish=stream", "--compression", "--file", &lines],
        &["--publish=client", "--protobuf"],
        &["--protobuf", "--compression", "--file", &binary],
        &["--closed=4", "--size=5000", "--random=1"],
        &["--churn=100", "--channels=3", "--subscriptions=2"],
        &["--latest", "--slow=3", "--slow-rate=2000", "--stopped=3", "--size=3000"],
    ] {
        let more = [more, &["--json", &json]].concat();
        let (code, out, error) = server.bench(&more);
        assert!(code == 0, "{more:?}: {out}{error}");
        let report = report(&json);
        let number = |name: &str| report[name].as_f64().expect("a number");
        // How many there are in this time is a question of speed.
        assert!(number("published") > 0.0 && number("deliveries") > 0.0, "{more:?}: {out}");
        assert!(report["latency"]["p99_ms"].as_f64() > Some(0.0), "{more:?}: {out}");
        assert_eq!(report["server"]["version"], concat!(env!("CARGO_PKG_VERSION"), " Fanwire"));
        assert!(out.contains("every publication arrived once, in order, intact"), "{out}");
    }
    assert_eq!(stop(server.child), Some(0));
}

#[test]
fn one_lost_doubled_reordered_and_broken_message_of_many_is_found() {
    let server = Server::start();
    let faults = [
        (2_000, Fault::Drop),
        (4_000, Fault::Double),
        (6_000, Fault::Swap),
        (8_000, Fault::Damage),
    ];
    let proxy = Proxy::start(&server.address, &faults, mpsc::channel().0);
    let json = file("bench-faults.json", "");
    let mut options = server.options(Some(&proxy));
    let more = ["--connections=100", "--rate=1000", "--publish=batch", "--json", &json];
    options.extend(more.map(str::to_owned));
    let all: Vec<&str> = options.iter().map(String::as_str).collect();
    let (code, out, error) = run(&all);
    assert_eq!(code, 1, "{out}{error}");
    let regular = &report(&json)["regular"];
    // The broken one has not arrived either.
    let found = ["lost", "duplicates", "reordered", "broken"].map(|name| regular[name].as_u64());
    assert_eq!(found, [Some(2), Some(1), Some(1), Some(1)], "{out}");
    assert!(out.contains("FAULT: 2 publications lost (regular connections)"), "{out}");
    assert_eq!(stop(server.child), Some(0));
}

#[test]
fn an_interrupted_run_reports_what_was_measured() {
    let server = Server::start();
    let (sender, pushed) = mpsc::channel();
    let proxy = Proxy::start(&server.address, &[], sender);
    let html = file("bench-interrupted.html", "");
    let mut options = server.options(Some(&proxy));
    options.retain(|option| !option.starts_with("--duration"));
    options.extend(["--duration=60m", "--runs=1", "--html", &html].map(str::to_owned));
    let mut command = fanwire();
    let child = command.args(options).stdout(Stdio::piped()).spawn().expect("the binary runs");
    pushed.recv_timeout(PATIENCE).expect("publications arrive");
    send("-INT", &child);
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("interrupted: these are the figures until then"), "{text}");
    let page = std::fs::read_to_string(&html).expect("the page was written");
    assert!(page.starts_with("<!doctype html>") && page.contains("Interrupted"), "{page}");
    assert_eq!(stop(server.child), Some(0));
}

#[test]
fn a_server_that_goes_away_ends_the_run_with_a_report() {
    let server = Server::start();
    let (sender, pushed) = mpsc::channel();
    let proxy = Proxy::start(&server.address, &[], sender);
    let mut options = server.options(Some(&proxy));
    options.retain(|option| !option.starts_with("--duration"));
    options.push("--duration=60m".to_owned());
    let mut command = fanwire();
    let child = command.args(options).stdout(Stdio::piped()).spawn().expect("the binary runs");
    pushed.recv_timeout(PATIENCE).expect("publications arrive");
    assert_eq!(stop(server.child), Some(0));
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(" connections closed by the server with 3001"), "{text}");
}

#[test]
fn without_figures_the_code_is_2_and_one_line_says_why() {
    let server = Server::start();
    let folder = env!("CARGO_TARGET_TMPDIR");
    for (more, part) in [
        (&["--key", "wrong"][..], "the API answers HTTP/1.1 401 Unauthorized"),
        (&["--key", "wrong", "--publish=stream"], "the API answers HTTP/1.1 401 Unauthorized"),
        (&["--token", "forged"], "the server closed: 3500 invalid token"),
        (&["--channel", "nowhere:a"], "unknown channel"),
        (&["--html", folder], "cannot be written"),
        (&["--subscriptions=2"], "--subscriptions 2: at most as many as --channels 1"),
        (&["--file", "/dev/null"], "holds no message"),
        (&["--pid", "4194305"], "--pid 4194305"),
        (&["--connections=9000000"], "connections need 9000100 descriptors"),
        (&["--rate=0"], "--rate 0: expected above 0"),
        (&["--churn=-1"], "--churn -1: expected 0 to"),
        (&["--latest", "--publish=client"], "--latest needs the server API"),
    ] {
        let mut options = server.options(None);
        if let ["--key", ..] = more {
            let at = options.iter().position(|option| option == "--key").expect("there is one");
            options.drain(at..at + 2);
        }
        let all: Vec<&str> =
            options.iter().map(String::as_str).chain(more.iter().copied()).collect();
        let (code, out, error) = run(&all);
        assert_eq!((code, &*out), (2, ""), "{more:?}: {error}");
        assert!(error.contains(part) && error.trim_end().lines().count() == 1, "{more:?}: {error}");
    }
    for (url, part) in [
        (
            format!("ws://{}/nowhere", server.address),
            "the upgrade was refused: HTTP/1.1 404 Not Found",
        ),
        ("localhost:8000".to_owned(), "expected ws://HOST:PORT/PATH or wss://HOST:PORT/PATH"),
    ] {
        let (code, _, error) = run(&["bench", "--publish=client", "--url", &url]);
        assert!(code == 2 && error.contains(part), "{url}: {error}");
    }
    assert_eq!(stop(server.child), Some(0));
    let url = format!("ws://{}/connection/websocket", server.address);
    let (code, _, error) = run(&["bench", "--publish=client", "--url", &url]);
    assert!(code == 2 && error.contains("Connection refused"), "{error}");
}

#[test]
fn a_run_without_a_message_has_a_report_that_says_so() {
    let server = Server::start();
    let html = file("bench-empty.html", "");
    let histogram = file("bench-empty.hlog", "");
    let files = ["--html", &html, "--histogram", &histogram];
    let (code, out, error) = server.bench(&[&["--connections=0"], &files[..]].concat());
    assert!(code == 0 && out.contains("nothing was delivered"), "{out}{error}");
    let page = std::fs::read_to_string(&html).expect("the page was written");
    assert!(page.contains("Nothing was delivered") && !page.contains("NaN"), "{page}");
    let (code, out, _) = run(&["bench", "merge", &histogram, &histogram]);
    assert!(code == 0 && out.starts_with("deliveries  0\n"), "{out}");
    let (code, _, error) = run(&["bench", "merge", &html]);
    assert!(code == 2 && error.contains("bench-empty.html: no log of HdrHistogram"), "{error}");
    assert_eq!(stop(server.child), Some(0));
}

/// How long a test waits for one event.
const PATIENCE: Duration = Duration::from_secs(60);
