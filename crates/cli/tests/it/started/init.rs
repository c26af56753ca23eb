//! `fanwire init`: the server, the client and the request that it prints, for each job, used as they are printed.
//! In: the text on stdout → out: a message that the client receives; refusals of files that cannot be written.
//! Uses the built `fanwire`, and `sh` to read command lines. Never: the stock SDK, which tests/interop uses.
//! The text of a file is tested in `src/init/tests.rs`.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use fanwire_testing::Folder;
use serde_json::{Value, json};

use super::chat_client::ChatClient;
use super::process::Process;
use crate::serve::request;
use crate::{fanwire, run};

/// Output of `init`, and the server that it makes.
struct FirstServer {
    node: Process,
    token: String,
    channel: String,
    curl: Vec<String>,
    _folder: Folder,
}

impl FirstServer {
    fn start(job: &str, file: &str) -> Self {
        let folder = Folder::new(&format!("init {job} {file}"));
        let path = format!("{}/{file}", folder.path());
        let (code, out, error) = run(&["init", &path, "--for", job]);
        assert_eq!((code, error.as_str()), (0, ""));
        let mode = std::fs::metadata(&path).expect("it was written").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "only its owner may read secrets");
        assert_eq!(run(&["check-config", &path]).1, format!("{path}: fine\n"));

        let serve = words(&out, "  fanwire ");
        let node = Process::serve(fanwire().args(&serve).arg("--http_server.port=0"));
        assert!(out.contains("new Centrifuge('ws://localhost:8000/connection/websocket', {"));
        let within = |before: &str, after: &str| {
            let rest = out.split_once(before).unwrap_or_else(|| panic!("{before}: {out}")).1;
            rest.split_once(after).expect("an end").0.to_owned()
        };
        Self {
            node,
            token: within("token: '", "',\n"),
            channel: within("client.newSubscription('", "');\n"),
            curl: words(&out, "  curl "),
            _folder: folder,
        }
    }

    /// A client with the token, subscribed; and the result of the subscribe command.
    fn subscriber(&self) -> (ChatClient, Value) {
        let mut client = ChatClient::open(&self.node.address, "http://localhost:3000");
        client.ask("connect", &json!({ "token": self.token }));
        let subscribed = client.ask("subscribe", &json!({ "channel": self.channel }));
        (client, subscribed)
    }

    /// Sends the request of the printed `curl`, and returns its data.
    fn publish(&self) -> Value {
        let [header, key, data, body, url] = &self.curl[..] else { panic!("{:?}", self.curl) };
        assert_eq!([header, data], ["-H", "-d"]);
        let path = url.strip_prefix("http://127.0.0.1:8000").expect("the default address");
        let answer = request(
            &self.node.address,
            &format!(
                "POST {path} HTTP/1.1\r\nHost: {}\r\n{key}\r\nConnection: close\r\nContent-Type: \
                 application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
                self.node.address,
                body.len()
            ),
        );
        assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("\"error\""), "{answer}");
        serde_json::from_str::<Value>(body).expect("JSON")["data"].take()
    }
}

/// The arguments of the line that starts so, as a shell reads them.
fn words(out: &str, start: &str) -> Vec<String> {
    let line = out.lines().find(|line| line.starts_with(start)).expect(start);
    let name = start.trim();
    let script = format!("{name}() {{ printf '%s\\n' \"$@\"; }}\n{line}");
    let output = Command::new("sh").args(["-c", &script]).output().expect("a shell runs");
    assert!(output.status.success(), "{line}");
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn each_job_starts_and_its_client_receives_what_the_printed_request_publishes() {
    for (job, file) in [
        ("chat", "fanwire.yaml"),
        ("scores", "fanwire.toml"),
        ("game", "config.json"),
        ("dashboard", "my first.yaml"),
        ("answers", "answers.yaml"),
        ("notifications", "notifications.yaml"),
    ] {
        let server = FirstServer::start(job, file);
        let (mut client, _) = server.subscriber();
        let data = server.publish();
        client.pushed(&server.channel, |push| push["pub"]["data"] == data);
    }
}

#[test]
fn a_late_viewer_of_scores_or_a_dashboard_gets_the_newest_publication() {
    for job in ["scores", "dashboard"] {
        let server = FirstServer::start(job, "late.yaml");
        let data = server.publish();
        let (_, subscribed) = server.subscriber();
        assert_eq!(subscribed["publications"][0]["data"], data, "{job}: {subscribed}");
    }
}

#[test]
fn members_of_the_chat_write_scroll_back_and_see_each_other() {
    let server = FirstServer::start("chat", "members.yaml");
    let (mut alice, _) = server.subscriber();
    let (mut second, _) = server.subscriber();
    let channel = server.channel.as_str();
    alice.pushed(channel, |push| push["join"]["info"]["user"] == "alice");
    second.ask("publish", &json!({ "channel": channel, "data": { "text": "hi" } }));
    alice.pushed(channel, |push| push["pub"]["info"]["user"] == "alice");
    let history = alice.ask("history", &json!({ "channel": channel, "limit": 10 }));
    assert_eq!(history["publications"][0]["data"]["text"], "hi", "{history}");
    let present = alice.ask("presence", &json!({ "channel": channel }));
    assert_eq!(present["presence"].as_object().expect("members").len(), 2);
}

#[test]
fn two_files_have_different_secrets() {
    let folder = Folder::new("secrets");
    let text = |name: &str| {
        let path = format!("{}/{name}", folder.path());
        assert_eq!(run(&["init", &path]).0, 0);
        std::fs::read_to_string(path).expect("it was written")
    };
    let (first, second) = (text("a.yaml"), text("b.yaml"));
    let differing = first.lines().zip(second.lines()).filter(|(one, other)| one != other);
    assert_eq!(
        differing.count(),
        3,
        "the secret of tokens, the key of the API, the path of the snapshot"
    );
}

#[test]
fn without_a_name_init_and_genconfig_write_the_usual_files() {
    for (command, file) in [("init", "fanwire.yaml"), ("genconfig", "config.json")] {
        let folder = Folder::new(command);
        let status = fanwire().arg(command).current_dir(folder.path()).output();
        assert!(status.expect("the binary runs").status.success());
        assert!(Path::new(folder.path()).join(file).is_file(), "{command}");
    }
    let folder = Folder::new("named");
    let path = format!("{}/other.json", folder.path());
    assert_eq!(run(&["genconfig", "-c", &path]).0, 0);
    assert!(Path::new(&path).is_file());
}

#[test]
fn a_file_that_exists_is_kept_unless_it_is_to_be_replaced() {
    let folder = Folder::new("exists");
    let path = folder.write("fanwire.yaml", "mine");
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("it is ours");
    let (code, out, error) = run(&["init", &path]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert_eq!(
        error,
        format!("fanwire: {path} exists; name another file, or replace it with --force\n")
    );
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "mine");

    assert_eq!(run(&["init", &path, "--force"]).0, 0);
    assert!(std::fs::read_to_string(&path).expect("it is there").starts_with("client:"));
    let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// `ulimit -f 0` lets no file grow, as a full disk does.
#[test]
fn on_a_full_disk_nothing_is_written_and_an_old_file_is_kept() {
    let folder = Folder::new("full");
    let (path, other) = (folder.write("old.yaml", "mine"), format!("{}/new.yaml", folder.path()));
    for arguments in [vec![path.as_str(), "--force"], vec![other.as_str()]] {
        let limited = r#"trap "" XFSZ; ulimit -f 0; exec "$0" init "$@""#;
        let mut shell = Command::new("sh");
        shell.args(["-c", limited, env!("CARGO_BIN_EXE_fanwire")]).args(&arguments);
        let output = shell.output().expect("there is a shell");
        let error = String::from_utf8(output.stderr).expect("text");
        let expected = format!("fanwire: {} cannot be written: File too large", arguments[0]);
        assert_eq!((output.status.code(), output.stdout), (Some(1), Vec::new()), "{error}");
        assert!(error.starts_with(&expected) && error.lines().count() == 1, "{error}");
    }
    let left = std::fs::read_dir(folder.path()).expect("it is there");
    let left: Vec<_> = left.map(|entry| entry.expect("readable").file_name()).collect();
    assert_eq!(left, ["old.yaml"]);
    assert_eq!(std::fs::read_to_string(path).expect("it is there"), "mine");
}

#[test]
fn what_cannot_be_a_file_is_one_line_and_a_code() {
    let folder = Folder::new("is a folder");
    let folder = folder.path();
    for (path, reason) in [
        ("/sys/fanwire.yaml", "/sys/fanwire.yaml cannot be written: "),
        ("/nowhere/fanwire.yaml", "/nowhere/fanwire.yaml cannot be written: No such file"),
        ("fanwire.txt", "fanwire.txt: unknown format, expected a name that ends in"),
        (folder, &format!("{folder} is a folder; name a file, such as {folder}/fanwire.yaml")),
    ] {
        for flag in [None, Some("--force")] {
            let arguments: Vec<&str> = ["init", path].into_iter().chain(flag).collect();
            let (code, out, error) = run(&arguments);
            assert_eq!((code, out.as_str()), (1, ""), "{path}");
            assert!(error.starts_with(&format!("fanwire: {reason}")), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}

#[test]
fn an_environment_that_stops_the_start_is_named() {
    let folder = Folder::new("environment");
    let path = format!("{}/fanwire.yaml", folder.path());
    let mut command = fanwire();
    command.args(["init", &path]).env("FANWIRE_HTTP_SERVER_PORT", "http");
    let output = command.output().expect("the binary runs");
    assert_eq!((output.status.code(), output.stdout), (Some(1), Vec::new()));
    let error = String::from_utf8(output.stderr).expect("text");
    let expected = format!(
        "fanwire: {path} was written, but the server does not start with it: environment FANWIRE_HTTP_SERVER_PORT: "
    );
    assert!(error.starts_with(&expected) && error.lines().count() == 1, "{error}");
}

#[test]
fn a_job_that_is_none_is_a_usage_error_with_the_list() {
    let (code, _, error) = run(&["init", "--for", "blog"]);
    assert_eq!(code, 2);
    assert!(
        error.contains("[possible values: chat, scores, game, dashboard, answers, notifications]"),
        "{error}"
    );
}

#[test]
fn notifications_are_for_their_user_alone() {
    let server = FirstServer::start("notifications", "alone.yaml");
    let (mut alice, _) = server.subscriber();
    let refused = alice.reply("subscribe", &json!({ "channel": "notifications:#bob" }));
    assert_eq!(refused["error"]["code"], 103, "{refused}");
    let refused = alice.reply("subscribe", &json!({ "channel": "notifications:all" }));
    assert_eq!(refused["error"]["code"], 103, "{refused}");
}
