//! The files in `deploy/`, started: each with two clients that chat, as its comments promise.
//! In: commands, environments and mounts of the files → out: a conversation, answers to checks, exit code 0.
//! Uses the built `fanwire` and a Redis of its own. Never: containers, systemd, fixed ports.
//! What the files say without being started is tested in `deploy.rs`.

pub(crate) mod chat_client;
mod init;
pub(crate) mod process;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use fanwire_testing::{Folder, wait_for};
use serde_json::{Value, json};

use self::chat_client::{ChatClient, handshake};
use self::process::{Process, Redis, no_redis};
use super::deploy::{compose, nodes, setting, text};
use super::serve::{request, status};
use super::{fanwire, run};

type Variables = BTreeMap<String, String>;

#[test]
fn the_example_configuration_is_a_chat() {
    let secrets = secrets_of_the_example();
    let redis_password = &secrets["FANWIRE_ENGINE_REDIS_PASSWORD"];
    let Some(redis) = Redis::start(&["--requirepass", redis_password]) else {
        return no_redis("the example configuration");
    };
    let folder = Folder::new("example");
    let config = folder.write("fanwire.yaml", &moved(&text("fanwire.yaml"), &redis));
    let node = Process::serve(fanwire().args(["serve", "--config", &config]).envs(&secrets));
    chat([&node, &node], &Secrets::of(&secrets));
    assert_eq!(status(&node.address, "GET", "/metrics"), 200);
    assert_eq!(node.stop("-TERM"), Some(0));
}

#[test]
fn the_unit_starts_a_chat_and_stops_it() {
    let secrets = secrets_of_the_example();
    let redis_password = &secrets["FANWIRE_ENGINE_REDIS_PASSWORD"];
    let Some(redis) = Redis::start(&["--requirepass", redis_password]) else {
        return no_redis("the unit");
    };
    let unit = text("fanwire.service");
    let folder = Folder::new("unit");
    folder.write("fanwire.yaml", &moved(&text("fanwire.yaml"), &redis));
    let lines: String = secrets.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    folder.write("environment", &lines);
    let place = |path: &str| path.replace("/etc/fanwire", folder.path());
    // "-" allows that there is no such file.
    let environment_file = place(setting(&unit, "EnvironmentFile").trim_start_matches('-'));
    let environment = std::fs::read_to_string(environment_file).expect("it was written");
    let environment: Variables = environment
        .lines()
        .map(|line| line.split_once('=').expect("NAME=VALUE"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let command = |key: &str| {
        let line = place(setting(&unit, key));
        let arguments = line.strip_prefix("/usr/bin/fanwire ").expect("the binary").to_owned();
        let mut command = fanwire();
        command.args(arguments.split(' ')).envs(&environment);
        command
    };
    let check = command("ExecStartPre").output().expect("the binary runs");
    assert!(check.status.success(), "{check:?}");
    let node = Process::serve(&mut command("ExecStart"));
    chat([&node, &node], &Secrets::of(&secrets));
    let signal = setting(&unit, "KillSignal").replace("SIG", "-");
    assert_eq!(
        node.stop(&signal),
        Some(0),
        "Restart=on-failure starts it again after another code"
    );
}

#[test]
fn the_nodes_of_the_compose_file_are_one_chat() {
    let (compose, operator) = (compose(), secrets_of_the_operator());
    let command: Vec<_> = texts(&compose["services"]["redis"]["command"]);
    let command: Vec<_> = command.iter().map(|word| interpolated(word, &operator)).collect();
    assert_eq!(command[0], "redis-server");
    let options: Vec<_> = command[1..].iter().map(String::as_str).collect();
    let Some(redis) = Redis::start(&options) else { return no_redis("the compose file") };
    let folder = Folder::new("compose");
    let mut started = Vec::new();
    let mut variables = Variables::new();
    for (name, node) in nodes(&compose) {
        let given = node["environment"].as_object().expect("a map").iter();
        let given = given.map(|(name, value)| (name, value.as_str().expect("text")));
        variables.extend(given.map(|(name, value)| (name.clone(), interpolated(value, &operator))));
        let mut command = fanwire();
        for word in image_command() {
            command.arg(mounted(&word, node, |mount| {
                folder.write(&format!("{name}.yaml"), &moved(&text(mount), &redis))
            }));
        }
        started.push(Process::serve(command.envs(&variables)));
    }
    let [first, second] = <[Process; 2]>::try_from(started).ok().expect("two nodes");
    chat([&first, &second], &Secrets::of(&variables));

    for (node, (name, service)) in [&first, &second].into_iter().zip(nodes(&compose)) {
        let (_, port) = node.address.rsplit_once(':').expect("a port");
        let mut health = fanwire();
        for word in &of_image("    CMD ")[1..] {
            let place = |_: &str| format!("{}/{name}.yaml", folder.path());
            health.arg(mounted(word, service, place));
        }
        let asked = health.envs(&variables).env("FANWIRE_HTTP_SERVER_PORT", port);
        let answer = asked.output().expect("it runs");
        assert!(answer.status.success(), "{answer:?}");
    }

    let balancer = text("haproxy.cfg");
    let check = balancer.lines().find_map(|line| line.trim().strip_prefix("option httpchk "));
    let (method, path) = check.and_then(|check| check.split_once(' ')).expect("a check");
    for node in [&first, &second] {
        assert_eq!(status(&node.address, method, path), 200);
    }
    assert_eq!(second.stop("-TERM"), Some(0));
    drop(redis);
    wait_for(|| status(&first.address, method, path) == 503, PATIENCE);
    assert_eq!(first.stop("-TERM"), Some(0));
}

/// Secrets that clients and backends need.
struct Secrets<'a> {
    api_key: &'a str,
    token: &'a str,
}

impl<'a> Secrets<'a> {
    fn of(variables: &'a Variables) -> Self {
        Self {
            api_key: &variables["FANWIRE_HTTP_API_KEY"],
            token: &variables["FANWIRE_CLIENT_TOKEN_HMAC_SECRET_KEY"],
        }
    }
}

/// Two users in a room, one at each of these nodes, and a backend that publishes there and in a channel of news.
fn chat([first, second]: [&Process; 2], secrets: &Secrets<'_>) {
    let (here, there) = (first.address.as_str(), second.address.as_str());
    assert_eq!(handshake(here, "https://elsewhere.example.com").0, 403);
    let join = |address, user| {
        let (code, token, _) = run(&["token", "--user", user, "--secret", secrets.token]);
        assert_eq!(code, 0);
        let mut client = ChatClient::open(address, ORIGIN);
        client.ask("connect", &json!({ "token": token.trim() }));
        let room = client.ask("subscribe", &json!({ "channel": ROOM }));
        assert_eq!(room["recoverable"], true, "{room}");
        client
    };
    let mut ada = join(here, "ada");
    let mut bob = join(there, "bob");
    ada.pushed(ROOM, |push| push["join"]["info"]["user"] == "bob");

    bob.ask("publish", &json!({ "channel": ROOM, "data": "from bob" }));
    for client in [&mut ada, &mut bob] {
        client.pushed(ROOM, |push| {
            push["pub"]["data"] == "from bob" && push["pub"]["info"]["user"] == "bob"
        });
    }
    publish(there, secrets.api_key, ROOM, "from the backend");
    for client in [&mut ada, &mut bob] {
        client.pushed(ROOM, |push| push["pub"]["data"] == "from the backend");
    }

    let present = ada.ask("presence", &json!({ "channel": ROOM }));
    let members = present["presence"].as_object().expect("members").values();
    let mut users: Vec<_> = members.map(|member| &member["user"]).collect();
    users.sort_by_key(|user| user.as_str());
    assert_eq!(users, ["ada", "bob"]);
    let history = bob.ask("history", &json!({ "channel": ROOM, "limit": 10 }));
    let stored = history["publications"].as_array().expect("publications").iter();
    let stored: Vec<_> = stored.map(|publication| &publication["data"]).collect();
    assert_eq!(stored, ["from bob", "from the backend"]);

    drop(bob);
    ada.pushed(ROOM, |push| push["leave"]["info"]["user"] == "bob");

    ada.ask("subscribe", &json!({ "channel": NEWS }));
    let refused = ada.reply("publish", &json!({ "channel": NEWS, "data": "from ada" }));
    assert_eq!(refused["error"]["code"], 103, "only backends publish news: {refused}");
    publish(there, secrets.api_key, NEWS, "today");
    ada.pushed(NEWS, |push| push["pub"]["data"] == "today");
    assert_eq!(api(here, "wrong", NEWS, "no").0, 401);
}

fn publish(address: &str, key: &str, channel: &str, data: &str) {
    let (status, body) = api(address, key, channel, data);
    assert!(status == 200 && body["result"]["offset"].is_u64(), "{status} {body}");
}

/// Status and body of a publish of the server API.
pub(crate) fn api(address: &str, key: &str, channel: &str, data: &str) -> (u16, Value) {
    let body = json!({ "channel": channel, "data": data }).to_string();
    let answer = request(
        address,
        &format!(
            "POST /api/publish HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ),
    );
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    (head[9..12].parse().expect("a status"), serde_json::from_str(body).unwrap_or_default())
}

/// A configuration with Redis and the listener at other places.
fn moved(config: &str, redis: &Redis) -> String {
    let places = [
        ("redis://redis:6379", format!("redis://127.0.0.1:{}", redis.port)),
        ("address: 0.0.0.0", "address: 127.0.0.1".to_owned()),
        ("port: 8000", "port: 0".to_owned()),
    ];
    places.iter().fold(config.to_owned(), |config, (from, to)| {
        assert_eq!(config.matches(from).count(), 1, "{from}");
        config.replace(from, to)
    })
}

/// The secrets that the comment of the example names, each with a value.
fn secrets_of_the_example() -> Variables {
    let example = text("fanwire.yaml");
    let comment = example.lines().take_while(|line| line.starts_with('#'));
    let words = comment.flat_map(|line| line.split([' ', ',', '.']).map(str::to_owned));
    values(words.filter(|word| word.starts_with("FANWIRE_")))
}

/// Returns the variables that the comment of the compose file exports for the operator.
fn secrets_of_the_operator() -> Variables {
    let compose = text("compose.yaml");
    let exported = compose.lines().find_map(|line| line.split_once("export "));
    let words = exported.expect("an example").1.split(' ');
    values(words.filter_map(|word| word.split_once('=')).map(|(name, _)| name.to_owned()))
}

fn values(names: impl Iterator<Item = String>) -> Variables {
    names.map(|name| (name.clone(), format!("value-of-{name}"))).collect()
}

/// `${NAME:?why}` is what the operator set, as Compose reads it.
fn interpolated(text: &str, operator: &Variables) -> String {
    match text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
        Some(variable) => {
            let name = variable.split_once(":?").map_or(variable, |(name, _)| name);
            operator.get(name).unwrap_or_else(|| panic!("nothing sets {name}")).clone()
        }
        None => text.to_owned(),
    }
}

/// The arguments with which the image calls the binary.
fn image_command() -> Vec<String> {
    assert_eq!(of_image("ENTRYPOINT "), ["fanwire"]);
    of_image("CMD ")
}

/// The words of an instruction of the last stage, which is what is built by default; it has the exec form.
fn of_image(key: &str) -> Vec<String> {
    let stages = text("Dockerfile");
    let (_, image) = stages.rsplit_once("\nFROM ").expect("stages");
    let row = image.lines().find_map(|line| line.strip_prefix(key));
    texts(&serde_json::from_str(row.expect(key)).expect("the exec form"))
}

fn texts(list: &Value) -> Vec<String> {
    let words = list.as_array().expect("a list").iter();
    words.map(|word| word.as_str().expect("text").to_owned()).collect()
}

/// A path inside a container is that of what is mounted there; other words are as they are.
fn mounted(word: &str, node: &Value, place: impl Fn(&str) -> String) -> String {
    let volumes = texts(&node["volumes"]);
    let mount = volumes.iter().find_map(|volume| {
        let (source, rest) = volume.split_once(':')?;
        (rest.split(':').next() == Some(word)).then_some(source)
    });
    assert!(mount.is_some() || !Path::new(word).is_absolute(), "{word} is not mounted");
    mount.map_or_else(|| word.to_owned(), |source| place(source.trim_start_matches("./")))
}

/// Origin that `client.allowed_origins` of the example lists.
const ORIGIN: &str = "https://app.example.com";
const ROOM: &str = "room:1";
const NEWS: &str = "news:today";
/// More than any of it takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
