//! The files in `deploy/`: the server understands their configuration.
//! In: the compose file, the unit, the balancer's file → out: findings of the configuration, and what must fit together.
//! Uses `fanwire_config` and a reader of YAML. Never: containers, systemd.
//! A promise of `docs/scaling.md` about these files is tested here; they are started in `started.rs`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{fanwire, file, run};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)
}

pub(crate) fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("deploy/{name}: {error}"))
}

pub(crate) fn compose() -> Value {
    serde_saphyr::from_str(&text("compose.yaml")).expect("YAML")
}

pub(crate) fn nodes(compose: &Value) -> Vec<(&String, &Value)> {
    let services = compose["services"].as_object().expect("services");
    services.iter().filter(|(_, service)| service["image"] == "fanwire").collect()
}

#[test]
fn every_node_of_the_compose_file_starts_without_a_remark() {
    let compose = compose();
    let nodes = nodes(&compose);
    assert_eq!(nodes.len(), 2);
    for (name, node) in nodes {
        let variables = node["environment"].as_object().expect("a map").iter();
        let variables = variables.map(|(name, value)| {
            let value = value.as_str().expect("text");
            // The operator who starts it sets `${NAME:?why}`.
            let value = if value.starts_with("${") { SECRET } else { value };
            (name.clone(), value.to_owned())
        });
        let (config, findings) =
            fanwire_config::load(Some(&path("fanwire.yaml")), variables, &[]).expect("it starts");
        // The balancer refuses the path of metrics.
        let others: Vec<_> =
            findings.iter().filter(|finding| finding.key != "prometheus.enabled").collect();
        assert!(others.is_empty(), "{name}: {others:?}");
        assert_eq!(config.node.name, *name);
        assert_eq!(config.http_server.port, 8_000);
        assert_eq!(node["volumes"][0], "./fanwire.yaml:/etc/fanwire/fanwire.yaml:ro");
        let own = node["ports"][0].as_str().expect("a port of its own, for Prometheus");
        assert!(own.starts_with("127.0.0.1:") && own.ends_with(":8000"), "{own}");
        let grace = seconds(node["stop_grace_period"].as_str().expect("a duration"));
        assert!(grace > config.shutdown.timeout.as_secs(), "closing takes {grace} s at most");
    }
}

/// Centrifugo's rules: a subscriber may do all that a chat needs, and receives joins and leaves without asking.
#[test]
fn the_rooms_of_the_example_are_a_chat() {
    let key = ("FANWIRE_HTTP_API_KEY".to_owned(), SECRET.to_owned());
    let (config, _) = fanwire_config::load(Some(&path("fanwire.yaml")), [key].into_iter(), &[])
        .expect("it starts");
    let rooms = config.channel.namespaces.iter().find(|namespace| namespace.name == "room");
    let rooms = rooms.expect("the example has rooms");
    assert!(rooms.allow_subscribe_for_client && rooms.allow_publish_for_subscriber);
    assert!(rooms.allow_history_for_subscriber && rooms.retention().keeps_history());
    assert!(rooms.presence && rooms.allow_presence_for_subscriber);
    assert!(rooms.join_leave && rooms.force_push_join_leave);
}

#[test]
fn the_balancer_knows_every_node_and_asks_where_health_answers() {
    let (compose, balancer) = (compose(), text("haproxy.cfg"));
    for (name, _) in nodes(&compose) {
        let server = format!("server {name} {name}:8000");
        for line in [server.clone(), format!("{server} track nodes/{name}")] {
            assert!(balancer.lines().any(|there| there.trim() == line), "{line}");
        }
    }
    let service = &compose["services"]["balancer"];
    for port in service["ports"].as_array().expect("ports") {
        let (_, inside) = port.as_str().expect("text").rsplit_once(':').expect("a port inside");
        assert!(balancer.lines().any(|line| line.trim() == format!("bind :{inside}")), "{port}");
    }
    let mount = service["volumes"][0].as_str().expect("text");
    assert_eq!(mount.split_once(':').expect("a mount").0, "./haproxy.cfg");
    let (config, _) = fanwire_config::load(
        Some(&path("fanwire.yaml")),
        std::iter::empty::<(String, String)>(),
        &[],
    )
    .expect("it starts");
    assert!(config.health.enabled);
    assert!(balancer.contains(&format!("option httpchk GET {}", config.health.handler_prefix)));
    let told_apart = "http-request set-header X-Forwarded-For %[src]";
    for line in [told_apart, "http-request del-header Forwarded"] {
        let count = balancer.lines().filter(|there| there.trim() == line).count();
        assert_eq!(count, 2, "{line}: each frontend tells clients apart");
    }
    let maxconn = balancer.lines().find_map(|line| line.trim().strip_prefix("maxconn "));
    let maxconn: u64 = maxconn.expect("a limit").parse().expect("a number");
    let descriptors = service["ulimits"]["nofile"]["soft"].as_u64();
    assert!(descriptors > Some(2 * maxconn + 1_000), "one to the client and one to the node");
    let tunnel = balancer.lines().find_map(|line| line.trim().strip_prefix("timeout tunnel "));
    let tunnel = seconds(tunnel.expect("a timeout"));
    assert!(tunnel > config.client.ping_interval.as_secs() * 2, "pings keep tunnels open");
}

#[test]
fn the_image_runs_what_the_compose_file_mounts() {
    let image = text("Dockerfile");
    assert!(image.contains(r#"CMD ["serve", "--config", "/etc/fanwire/fanwire.yaml"]"#));
    let version = image.split_once("FROM rust:").expect("a builder").1;
    assert!(version.starts_with(env!("CARGO_PKG_RUST_VERSION")), "the compiler of the workspace");
    let check = r#"CMD ["fanwire", "health", "live", "--config", "/etc/fanwire/fanwire.yaml"]"#;
    assert!(image.contains(check), "the image has no curl");
}

#[test]
fn the_manifest_has_a_good_configuration_and_time_to_end() {
    let manifest = text("kubernetes.yaml");
    let of = |kind: &str| -> Value {
        let is_it = |part: &&str| part.lines().any(|line| line == format!("kind: {kind}"));
        let document = manifest.split("\n---\n").find(is_it).expect(kind);
        serde_saphyr::from_str(document).expect("YAML")
    };
    let config = of("ConfigMap")["data"]["fanwire.yaml"].as_str().expect("text").to_owned();
    let config = file("kubernetes.yaml", &config);
    // The Secret has the key of tokens.
    let mut check = fanwire();
    check.env("FANWIRE_CLIENT_TOKEN_HMAC_SECRET_KEY", "0123456789abcdef-0123456789abcdef");
    let output = check.args(["check-config", "--strict", &config]).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let path = PathBuf::from(config);
    let (config, _) = fanwire_config::load(Some(&path), std::iter::empty(), &[]).expect("good");
    let pod = &of("Deployment")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let before = container["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().expect("a hook");
    let ends = before + (config.shutdown.drain_interval + config.shutdown.timeout).as_secs();
    assert!(pod["terminationGracePeriodSeconds"].as_u64() > Some(ends));
    for (probe, answer) in [("liveness", "live"), ("readiness", "ready"), ("startup", "live")] {
        let asked = &container[format!("{probe}Probe")]["httpGet"];
        assert_eq!(asked["path"], format!("{}/{answer}", config.health.handler_prefix));
        assert_eq!(asked["port"], "internal");
    }
}

#[test]
fn the_unit_calls_commands_that_there_are_and_waits_for_the_end() {
    let unit = text("fanwire.service");
    let value = |key: &str| setting(&unit, key);
    let config = path("fanwire.yaml").into_os_string().into_string().expect("UTF-8");
    let check: Vec<_> = value("ExecStartPre").split(' ').skip(1).collect();
    let check: Vec<_> =
        check.iter().map(|word| if word.starts_with('/') { &config } else { *word }).collect();
    assert_eq!(run(&check).0, 0, "{check:?}");
    assert_eq!(value("ExecStart"), "/usr/bin/fanwire serve --config /etc/fanwire/fanwire.yaml");
    assert!(seconds(value("TimeoutStopSec")) > 30, "shutdown.timeout is 30 s");
    let descriptors: u64 = value("LimitNOFILE").parse().expect("a number");
    assert!(descriptors >= 1_000_000);
}

#[test]
fn the_action_of_the_unit_asks_where_the_server_listens() {
    let unit = text("fanwire.service");
    let action = text("fanwire-upgrade.service");
    let folder = setting(&unit, "RuntimeDirectory");
    assert_eq!(setting(&action, "Environment"), format!("RUNTIME_DIRECTORY=/run/{folder}"));
    for key in ["User", "Group", "EnvironmentFile"] {
        assert_eq!(setting(&action, key), setting(&unit, key));
    }
    let mut words: Vec<_> = setting(&action, "ExecStart").split(' ').skip(1).collect();
    assert_eq!(words, ["upgrade", "--config", "/etc/fanwire/fanwire.yaml"]);
    let config = path("fanwire.yaml").into_os_string().into_string().expect("UTF-8");
    words[2] = &config;
    let (code, _, error) = run(&words);
    assert_ne!(code, 0);
    assert!(error.contains("it is not known where the server can be asked"), "{error}");
    assert_eq!(setting(&unit, "Type"), "notify");
    assert_eq!(setting(&unit, "NotifyAccess"), "main");
    assert_eq!(setting(&unit, "StateDirectory"), "fanwire");
    assert_eq!(setting(&unit, "StateDirectoryMode"), "0700");
}

/// Returns the value of a key in a unit.
pub(crate) fn setting<'a>(unit: &'a str, key: &str) -> &'a str {
    let row = unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    row.unwrap_or_else(|| panic!("{key} is not set"))
}

/// Returns the seconds of a duration such as `45s`.
fn seconds(duration: &str) -> u64 {
    duration.strip_suffix('s').and_then(|number| number.parse().ok()).expect("seconds")
}

/// A secret of the required length.
const SECRET: &str = "0123456789abcdef0123456789abcdef";
