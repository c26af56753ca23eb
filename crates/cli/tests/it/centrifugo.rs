//! Fanwire started and called as people start and call Centrifugo: by its name, with its files, variables, flags and commands.
//! In: command lines of containers, environments, working directories → out: answers at an address that is not 127.0.0.1.
//! Uses the built `fanwire`, a link `centrifugo` to it, and `sh`. Never: containers, fixed ports.
//! A start line that must work is a row here; what ends development mode is tested in `fanwire-config`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Command, Output, Stdio};

use fanwire_testing::{Folder, wait_for};
use serde_json::Value;

use super::serve::{request, send, status};
use super::started::process::Process;
use super::{fanwire, run};

/// A folder with a link `centrifugo` to the binary, in which commands run.
struct Place(Folder);

impl Place {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        symlink(env!("CARGO_BIN_EXE_fanwire"), format!("{}/centrifugo", folder.path()))
            .expect("the folder is new");
        Self(folder)
    }

    /// A command with nothing in its environment but where programs are.
    fn command(&self, words: &[&str]) -> Command {
        let program = match words[0] {
            "centrifugo" => format!("{}/centrifugo", self.0.path()),
            "fanwire" => env!("CARGO_BIN_EXE_fanwire").to_owned(),
            other => other.to_owned(),
        };
        let mut command = Command::new(program);
        command.args(&words[1..]).env_clear().current_dir(self.0.path());
        command.env("PATH", format!("{}:/usr/bin:/bin", self.0.path()));
        command
    }

    /// Exit code, stdout and stderr.
    fn run(&self, words: &[&str]) -> (i32, String, String) {
        let Output { status, stdout, stderr } =
            self.command(words).output().expect("the binary runs");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (status.code().expect("an exit code"), text(stdout), text(stderr))
    }
}

/// One way to start a server, and what it then answers.
struct StartLine {
    words: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
    config: Option<&'static str>,
    request: &'static str,
    status: u16,
}

const INFO: &str = "POST /api/info";
const HEALTH: &str = "GET /health";
const CONFIG: &str = r#"{
  "client": {"token": {"hmac_secret_key": "0123456789abcdef-0123456789abcdef"}, "allowed_origins": []},
  "admin": {"enabled": true, "password": "0123456789abcdef", "secret": "0123456789abcdef-0123456789abcdef"},
  "http_api": {"key": "the-key-of-32-random-bytes-or-more"},
  "health": {"enabled": true}
}"#;

/// The port does not end development mode.
const PORT: (&str, &str) = ("FANWIRE_HTTP_SERVER_PORT", "0");

const START_LINES: [StartLine; 13] = [
    line(&["centrifugo", "-c", "config.json"], &[], Some(CONFIG), HEALTH),
    line(&["fanwire", "centrifugo", "-c", "config.json"], &[], Some(CONFIG), HEALTH),
    line(&["fanwire", "centrifugo", "--config=config.json"], &[], Some(CONFIG), HEALTH),
    line(&["centrifugo"], &[], Some(CONFIG), HEALTH),
    line(&["fanwire"], &[], Some(CONFIG), HEALTH),
    line(&["centrifugo", "--health"], &[], None, HEALTH),
    line(&["fanwire", "/usr/local/bin/centrifugo", "--health.enabled"], &[], None, HEALTH),
    line(&["sh", "-c", "true && exec centrifugo --health.enabled=true"], &[], None, HEALTH),
    line(
        &["fanwire"],
        &[("CENTRIFUGO_HTTP_API_KEY", "the-key-of-32-random-bytes-or-more")],
        None,
        INFO,
    ),
    line(
        &["fanwire"],
        &[("FANWIRE_HTTP_API_KEY", "the-key-of-32-random-bytes-or-more")],
        None,
        INFO,
    ),
    line(
        &["fanwire"],
        &[
            ("FANWIRE_ADMIN_ENABLED", "true"),
            ("FANWIRE_ADMIN_PASSWORD", "p"),
            ("FANWIRE_ADMIN_SECRET", "s"),
        ],
        None,
        "GET /",
    ),
    line(&["fanwire", "--http_api.insecure"], &[], None, INFO),
    line(&["fanwire", "--admin.enabled", "--demo.enabled"], &[], None, "GET /admin/init"),
];

const fn line(
    words: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
    config: Option<&'static str>,
    request: &'static str,
) -> StartLine {
    StartLine { words, variables, config, request, status: 200 }
}

#[test]
fn the_start_lines_of_containers_answer_beyond_loopback() {
    for (index, line) in START_LINES.iter().enumerate() {
        let place = Place::new(&format!("start-line-{index}"));
        if let Some(config) = line.config {
            place.0.write("config.json", config);
        }
        let mut command = place.command(line.words);
        command.envs([PORT]).envs(line.variables.iter().copied());
        let server = Process::serve(&mut command);
        let (_, port) = server.address.rsplit_once(':').expect("a port");
        // A server for this machine alone listens on 127.0.0.1.
        let elsewhere = format!("127.0.0.2:{port}");
        let answer = request(
            &elsewhere,
            &format!(
                "{} HTTP/1.1\r\nHost: chat.example.com\r\nX-API-Key: the-key-of-32-random-bytes-or-more\r\nConnection: close\r\n\
                 Content-Length: 2\r\n\r\n{{}}",
                line.request
            ),
        );
        let expected = format!("HTTP/1.1 {}", line.status);
        assert!(answer.starts_with(&expected), "{:?}: {answer}", line.words);
        assert!(!answer.contains("\"error\""), "{:?}: {answer}", line.words);
    }
}

#[test]
fn under_its_name_a_server_without_a_file_is_closed_and_says_so() {
    let place = Place::new("closed");
    let mut command = place.command(&["centrifugo", "--admin", "--log.file=log"]);
    let server = Process::serve(command.envs([PORT]));
    let (_, port) = server.address.rsplit_once(':').expect("a port");
    let address = format!("127.0.0.1:{port}");
    assert_eq!(status(&address, "GET", "/metrics"), 404, "it is on in development mode");
    assert_eq!(server.stop("-TERM"), Some(0));
    let log = std::fs::read_to_string(format!("{}/log", place.0.path())).expect("it logs");
    let messages: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(messages[0]["level"], "warn");
    let message = |index: usize| messages[index]["message"].as_str().expect("text").to_owned();
    assert_eq!(
        message(0),
        "there is no file config.json: variables and flags alone are the configuration"
    );
    assert_eq!(message(1), "--admin is a flag of Centrifugo before v6, read as --admin.enabled");
    assert!(log.contains("client.token has no key, so no client can connect"), "{log}");
    let (code, _, error) = run(&["--admin"]);
    assert_eq!(code, 2, "under our own name it is an error: {error}");
}

#[test]
fn the_log_names_files_that_look_like_a_configuration_and_are_not_read() {
    for (files, read, remarks) in [
        (
            &["fanwire.yaml", "config.json"][..],
            "fanwire.yaml",
            &["config.json of this folder is not read: use"][..],
        ),
        (
            &["config.yaml", "config.toml"],
            "",
            &["config.toml of this folder", "config.yaml of this folder"],
        ),
    ] {
        let place = Place::new(&format!("unread-{}", files[0]));
        for file in files {
            let text = if file.ends_with("toml") {
                "[health]\nenabled = true\n"
            } else {
                "{\"health\": {\"enabled\": true}}"
            };
            place.0.write(file, text);
        }
        let mut command = place.command(&["fanwire", "--log.file=log"]);
        let server = Process::serve(command.envs([PORT]));
        assert_eq!(server.stop("-TERM"), Some(0));
        let log = std::fs::read_to_string(format!("{}/log", place.0.path())).expect("it logs");
        let first = log.lines().next().expect("a line");
        match read {
            "" => assert!(first.contains("there is no configuration: development mode"), "{log}"),
            read => assert!(
                first.contains(&format!("the configuration is in {}/{read}", place.0.path())),
                "{log}"
            ),
        }
        for remark in remarks {
            assert!(log.contains(remark), "{remark}: {log}");
        }
    }
}

#[test]
fn a_config_json_of_another_program_is_named_and_leaves_development_mode_on() {
    for (text, why) in
        [(r#"{"name": "app"}"#, "it has no section of the configuration"), ("{", "not valid JSON")]
    {
        let place = Place::new(&format!("foreign-{}", text.len()));
        place.0.write("config.json", text);
        let mut command = place.command(&["fanwire", "--log.file=log"]);
        let server = Process::serve(command.envs([PORT]));
        assert!(server.address.starts_with("127.0.0.1:"), "{}", server.address);
        assert_eq!(server.stop("-TERM"), Some(0));
        let log = std::fs::read_to_string(format!("{}/log", place.0.path())).expect("it logs");
        assert!(
            log.contains("config.json of this folder is not read: ") && log.contains(why),
            "{log}"
        );
        assert_eq!(log.matches("of this folder is not read").count(), 1, "{log}");
        // Under Centrifugo's name it is the configuration.
        let (code, _, error) = place.run(&["centrifugo", "--http_server.port=0", "--no-such-flag"]);
        assert_eq!(code, 2, "{error}");
        let (code, ..) = place.run(&["centrifugo", "checkconfig", "-s"]);
        assert_eq!(code, 1);
    }
}

#[test]
fn commands_read_the_file_of_the_folder() {
    let place = Place::new("commands");
    let path = place.0.write("config.json", CONFIG);
    for name in ["fanwire", "centrifugo"] {
        let (code, out, error) = place.run(&[name, "check-config"]);
        assert!(code == 0 && out.ends_with(&format!("{path}: fine\n")), "{out}{error}");
        let (_, out, _) = place.run(&[name, "config"]);
        assert!(out.contains(&format!("health.enabled: true  # {path}\n")), "{out}");
        let (code, token, _) = place.run(&[name, "token", "-u", "42"]);
        assert_eq!((code, place.run(&[name, "checktoken", token.trim_end()]).0), (0, 0));
        let (_, _, error) =
            place.run(&[name, "publish", "news", "1", "--url", "http://127.0.0.1:1/api"]);
        assert!(!error.contains("http_api.key"), "{error}");
    }
    let empty = Place::new("no-commands");
    let (code, _, error) = empty.run(&["centrifugo", "checkconfig"]);
    assert_eq!((code, error.as_str()), (1, "fanwire: no configuration file is here: name one\n"));
}

#[test]
fn a_reload_reads_the_file_that_was_found() {
    let place = Place::new("reload");
    place.0.write("config.json", CONFIG);
    let log = place.0.write("log", "");
    let mut command = place.command(&["centrifugo", "--log.file", &log]);
    let server = Process::serve(command.envs([PORT]));
    place.0.write(
        "new.json",
        &CONFIG.replace("the-key-of-32-random-bytes-or-more", "another-of-32-random-bytes-or-more"),
    );
    std::fs::rename(
        format!("{}/new.json", place.0.path()),
        format!("{}/config.json", place.0.path()),
    )
    .expect("it is there");
    server.send("-HUP");
    let port = server.address.rsplit_once(':').expect("a port").1.to_owned();
    let head = "POST /api/info HTTP/1.1\r\nHost: x\r\nX-API-Key: another-of-32-random-bytes-or-more\r\n\
                Connection: close\r\nContent-Length: 2\r\n\r\n{}";
    wait_for(
        || request(&format!("127.0.0.1:{port}"), head).starts_with("HTTP/1.1 200"),
        super::started::PATIENCE,
    );
    assert_eq!(server.stop("-TERM"), Some(0));
}

#[test]
fn tokens_are_made_and_checked_with_the_flags_of_centrifugo() {
    let place = Place::new("tokens");
    place.0.write("config.json", CONFIG);
    for command in [&["gentoken"][..], &["gensubtoken", "-s", "news"]] {
        let words = [&["centrifugo"], command, &["-u", "42", "-t", "-1"]].concat();
        let (code, loud, error) = place.run(&words);
        assert_eq!((code, error.as_str()), (0, ""));
        let (_, quiet, _) = place.run(&[&words[..], &["-q"]].concat());
        assert!(loud.ends_with('\n') && !quiet.ends_with('\n'), "{loud}{quiet}");
        let check = if command[0] == "gentoken" { "checktoken" } else { "checksubtoken" };
        let (code, out, _) = place.run(&["centrifugo", check, &quiet]);
        assert_eq!((code, out.as_str()), (0, "the token is valid for user \"42\" without limit\n"));
        let other = if check == "checktoken" { "checksubtoken" } else { "checktoken" };
        assert_eq!(place.run(&["centrifugo", other, &quiet]).0, 1);
    }
}

#[test]
fn defaultconfig_writes_a_file_once_or_prints_it() {
    let place = Place::new("defaultconfig");
    let base = place.0.write(
        "base.yaml",
        "client: {channel_limit: 7}\nhttp_server:\nconsumers: [{name: box, type: kafka}]\n",
    );
    let (code, printed, _) = place.run(&["centrifugo", "defaultconfig", "-d"]);
    let tree: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!((code, &tree["client"]["channel_limit"]), (0, &Value::from(128)));
    assert_eq!(place.run(&["centrifugo", "checkconfig"]).0, 1, "no file was written");
    assert_eq!(place.run(&["centrifugo", "defaultconfig"]).0, 0);
    assert_eq!(place.run(&["centrifugo", "checkconfig"]).0, 0);
    let (code, _, error) = place.run(&["centrifugo", "defaultconfig"]);
    assert!(code == 1 && error.contains("config.json exists"), "{error}");
    for file in ["all.json", "all.yaml", "all.toml"] {
        let words = ["fanwire", "defaultconfig", "-c", file, "-b", &base];
        assert_eq!(place.run(&words).0, 0, "{file}");
        let (_, shown, _) = place.run(&["fanwire", "config", "-c", file]);
        assert!(shown.contains("client.channel_limit: 7  # "), "{shown}");
        assert!(shown.contains("http_server.port: 8000  # "), "{shown}");
        assert!(shown.contains("consumers[box].type: \"kafka\"  # "), "{shown}");
    }
    for (words, what) in [
        (["fanwire", "defaultconfig", "-c", "x.txt"], "unknown format"),
        (["fanwire", "defaultconfig", "-d", "-bnowhere.json"], "nowhere.json: cannot be read"),
    ] {
        let (code, _, error) = place.run(&words);
        assert!(code == 1 && error.contains(what), "{error}");
    }
}

#[test]
fn variables_of_a_file_are_the_same_configuration() {
    let place = Place::new("defaultenv");
    let base = place.0.write("base.yaml", BASE);
    let words = ["centrifugo", "defaultenv", "-b", &base, "--base-non-zero-only"];
    let (code, variables, _) = place.run(&words);
    assert_eq!(code, 0);
    place.0.write(".env", &variables);
    let empty = place.0.write("empty.yaml", "");
    let check = place.run(&["fanwire", "check-config", "--strict", &empty]);
    assert_eq!(check.0, 0, "{check:?}");
    let values = |output: (i32, String, String)| -> Vec<String> {
        let lines = output.1.lines().map(|line| line.split_once("  # ").expect("a source").0);
        let mut lines: Vec<_> = lines.map(|line| line.replace(['"', '\\'], "")).collect();
        lines.sort();
        lines
    };
    let of_variables = values(place.run(&["fanwire", "config", "-c", &empty]));
    std::fs::remove_file(format!("{}/.env", place.0.path())).expect("it was written");
    let of_file = values(place.run(&["fanwire", "config", "-c", &base]));
    assert_eq!(of_variables, of_file);
    let secret = "CENTRIFUGO_CLIENT_TOKEN_HMAC_SECRET_KEY=\"it's \\$HOME \\\"\\\\ ü\"\n";
    assert!(variables.contains(secret), "{variables}");

    let (_, all, _) = place.run(&["centrifugo", "defaultenv"]);
    assert!(all.lines().is_sorted() && all.lines().count() > 300, "{all}");
    assert!(all.lines().all(|line| line.starts_with("CENTRIFUGO_")), "{all}");
    assert!(all.contains("CENTRIFUGO_HTTP_SERVER_PORT=8000\n"), "{all}");
    let (_, ours, _) = place.run(&["fanwire", "sample-env"]);
    assert_eq!(ours.replace("FANWIRE_", "CENTRIFUGO_"), all);
}

const BASE: &str = r#"
client:
  token: {hmac_secret_key: "it's $HOME \"\\ ü"}
  allowed_origins: ["https://a.example", "https://b.example"]
  proxy: {connect: {http: {static_headers: {X-One: "a b"}}}}
http_server: {port: 9000}
channel:
  namespaces: [{name: chat, history_size: 5, history_ttl: 1m, presence: true}]
consumers: [{name: my_outbox, enabled: false, type: postgresql, postgresql: {outbox_table_name: t}}]
"#;

/// The server reads its configuration from a pipe, so that it is known to be starting.
#[test]
fn signals_of_log_rotation_and_reload_do_not_end_a_server_that_starts() {
    let folder = Folder::new("early-signals");
    let pipe = format!("{}/fanwire.yaml", folder.path());
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let mut command = fanwire();
    command.args(["--config", &pipe, "--http_server.port=0", "--shards=1"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary runs");
    // Opens when the server has opened the other end.
    let mut config = std::fs::File::options().write(true).open(&pipe).expect("a pipe");
    for signal in ["-HUP", "-USR1", "-USR2"] {
        send(signal, &child);
    }
    config.write_all(b"client: {insecure: true}\n").expect("it is read");
    drop(config);
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    stdout.read_line(&mut line).expect("text");
    assert!(line.contains(" listens on "), "{line}");
    // The reload that was asked for would wait at the pipe.
    child.kill().and_then(|()| child.wait()).expect("it runs");
}

#[test]
fn a_service_manager_is_told_when_the_server_listens() {
    let folder = Folder::new("notify");
    let path = format!("{}/notify.sock", folder.path());
    let name = format!("fanwire-test-{}", std::process::id());
    let abstract_address = SocketAddr::from_abstract_name(&name).expect("a short name");
    let by_path = UnixDatagram::bind(&path).expect("a new socket");
    let by_name = UnixDatagram::bind_addr(&abstract_address).expect("a new socket");
    for (socket, variable) in [(by_path, path), (by_name, format!("@{name}"))] {
        socket.set_read_timeout(Some(super::started::PATIENCE)).expect("a time above zero");
        let mut command = fanwire();
        command.args(["--http_server.port=0", "--shards=1"]).env("NOTIFY_SOCKET", &variable);
        let server = Process::serve(&mut command);
        let mut message = [0; 64];
        let length = socket.recv(&mut message).expect("a datagram");
        assert_eq!(&message[..length], b"READY=1");
        assert_eq!(server.stop("-TERM"), Some(0));
    }
    let mut command = fanwire();
    command.args(["--http_server.port=0"]).env("NOTIFY_SOCKET", "/nowhere/notify.sock");
    let server = Process::serve(&mut command);
    assert_eq!(server.stop("-TERM"), Some(0), "a manager that is gone does not stop the server");
}

#[test]
fn the_root_answers_a_line_and_the_admin_page_is_found_without_its_slash() {
    let folder = Folder::new("root");
    let config = folder.write(
        "fanwire.yaml",
        "client: {insecure: true}\nadmin: {enabled: true, insecure: true, handler_prefix: /team/ops}\n",
    );
    for flags in [&[][..], &["--http_api.disabled"]] {
        let mut command = fanwire();
        command.args([
            "--config",
            &config,
            "--http_server.port=0",
            "--http_server.address=127.0.0.1",
        ]);
        let server = Process::serve(command.args(flags));
        let get = |path: &str| {
            request(
                &server.address,
                &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
            )
        };
        let root = get("/");
        assert!(
            root.starts_with("HTTP/1.1 200") && root.contains("\r\n\r\nFanwire runs here."),
            "{root}"
        );
        assert!(get("/nothing").starts_with("HTTP/1.1 404"));
        let redirect = get("/team/ops").to_ascii_lowercase();
        assert!(
            redirect.starts_with("http/1.1 307") && redirect.contains("location: ops/\r\n"),
            "{redirect}"
        );
        assert!(get("/team/ops/").starts_with("HTTP/1.1 200"));
        assert_eq!(server.stop("-TERM"), Some(0));
    }
}

#[test]
fn check_config_finds_more_clients_than_descriptors() {
    let folder = Folder::new("descriptors");
    let config =
        folder.write("fanwire.yaml", "client: {insecure: true, connection_limit: 150000}\n");
    let limited = r#"ulimit -n 1000; exec "$0" check-config "$1""#;
    let mut shell = Command::new("sh");
    shell.args(["-c", limited, env!("CARGO_BIN_EXE_fanwire"), &config]);
    let output = shell.output().expect("there is a shell");
    let text = String::from_utf8(output.stdout).expect("text");
    let line = "client.connection_limit is 150000, but there are descriptors for 875 clients";
    assert!(output.status.success() && text.contains(line), "{text}");
}
