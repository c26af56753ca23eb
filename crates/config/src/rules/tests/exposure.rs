//! Tests of what others can reach: open doors with their addresses, pages, metrics, origins.
//! In: flags → out: findings.
//! Uses `found` of the rules' tests. Never: sockets.
//! An address or a page that may be open by mistake is a test here.

use super::{LONG, found};

#[test]
fn an_open_door_beyond_loopback_is_named_with_its_address() {
    let line = |key: &str, flags: &[(&str, &str)]| {
        let all = [&[(key, "true"), ("client.token.hmac_secret_key", LONG)], flags].concat();
        let found = found(&all);
        let lines = found.iter().filter(|line| line.contains(&format!(": {key} is true")));
        let lines: Vec<_> = lines.collect();
        assert_eq!(lines.len(), 1, "{found:?}");
        lines[0].split_once("who reaches ").expect("a place").1.to_owned()
    };
    for key in ["client.insecure", "http_api.insecure"] {
        assert!(line(key, &[]).starts_with("port 8000 of any address of this machine may"));
        let place = [("http_server.address", "192.0.2.1"), ("http_server.port", "81")];
        assert!(line(key, &place).starts_with("port 81 of 192.0.2.1 may"));
        for here in ["127.0.0.1", "::1", "localhost", "127.8.0.1"] {
            let said = line(key, &[("http_server.address", here)]);
            assert!(said.starts_with("this server may"), "{said}");
        }
    }
    let admin = ("admin.enabled", "true");
    let internal = [admin, ("http_server.internal_port", "9000")];
    for key in ["admin.insecure", "http_api.insecure"] {
        assert!(line(key, &internal).starts_with("port 9000 of any address"), "{key}");
        let guarded = [internal[0], internal[1], ("http_server.internal_address", "127.0.0.1")];
        assert!(line(key, &guarded).starts_with("this server may"), "{key}");
    }
    let external = [admin, internal[1], ("admin.external", "true")];
    assert!(line("admin.insecure", &external).starts_with("port 8000 of any address"));
}

#[test]
fn the_demo_page_leaves_its_path_to_the_admin_page() {
    let flags = [("demo.enabled", "true"), ("admin.enabled", "true"), ("admin.insecure", "true")];
    let common = [("client.token.hmac_secret_key", LONG)];
    let both = found(&[&flags[..], &common].concat());
    let words = "demo.handler_prefix is the path of the admin page, so the demo page is not served";
    let is_told = |found: &[String]| found.iter().any(|line| line.contains(words));
    assert!(is_told(&both), "{both:?}");
    assert!(!both.iter().any(|line| line.starts_with("error")), "{both:?}");
    for elsewhere in [("admin.handler_prefix", "/ops"), ("demo.handler_prefix", "/demo")] {
        let apart = found(&[&flags[..], &common, &[elsewhere]].concat());
        assert!(!is_told(&apart), "{apart:?}");
    }
}

#[test]
fn what_everybody_may_read_or_open_is_noted() {
    let notes = |flags: &[(&str, &str)]| {
        let all = [&[("client.token.hmac_secret_key", LONG)], flags].concat();
        let found = found(&all);
        found.into_iter().filter(|line| line.starts_with("note: ")).collect::<Vec<_>>()
    };
    let metrics = ("prometheus.enabled", "true");
    let told = "note: flag --prometheus.enabled: prometheus.enabled puts metrics, which need no key, on the port of clients";
    assert!(notes(&[metrics])[0].starts_with(told));
    assert_eq!(notes(&[metrics, ("http_server.internal_port", "9000")]), [""; 0]);
    assert_eq!(notes(&[metrics, ("http_server.address", "127.0.0.1")]), [""; 0]);
    for everybody in ["*", "https://a.example *", "https://*"] {
        let found = notes(&[("client.allowed_origins", everybody)]);
        assert!(found[0].contains("so the page of anybody may connect"), "{everybody}: {found:?}");
    }
    assert_eq!(notes(&[("client.allowed_origins", "https://*.example")]), [""; 0]);
}

#[test]
fn a_snapshot_is_warned_about_where_redis_is_used() {
    let path = ("engine.memory.snapshot_path", "/var/lib/fanwire/snapshot");
    let is_found = |flags: &[(&'static str, &'static str)]| {
        let found = found(&[&[path, ("client.token.hmac_secret_key", LONG)], flags].concat());
        found.iter().any(|line| line.contains("the file is not used"))
    };
    assert!(is_found(&[("engine.type", "redis")]));
    assert!(!is_found(&[]));
}

#[test]
fn the_prefix_of_centrifugo_is_warned_about_where_redis_is_used() {
    let prefix = ("engine.redis.prefix", "centrifugo");
    let told = |flags: &[(&str, &str)]| {
        let found = found(&[&[prefix, ("client.token.hmac_secret_key", LONG)], flags].concat());
        found.iter().any(|line| line.contains("engine.redis.prefix is \"centrifugo\""))
    };
    assert!(!told(&[]));
    assert!(told(&[("engine.type", "redis")]));
}
