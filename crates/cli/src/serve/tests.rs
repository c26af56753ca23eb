//! Tests of the text at the start.
//! In: configurations → out: the text.
//! Uses `fanwire_config` defaults. Never: sockets, signals.
//! A line of the text is also changed here.

use fanwire_config::{Config, load};

use super::{Addresses, Event, generate_key, greeting, until_failed};

fn development() -> Config {
    load(None, std::iter::empty(), &[]).expect("no configuration is a configuration").0
}

fn words(config: &Config, generated: bool) -> String {
    let address = "0.0.0.0:8000".parse().expect("an address");
    let internal = "0.0.0.0:9000".parse().expect("an address");
    let addresses =
        Addresses { public: address, internal, api: address, grpc_api: None, uni_grpc: None };
    greeting(config, &addresses, generated)
}

#[test]
fn development_mode_shows_the_demo_the_key_and_a_command_that_publishes() {
    let mut config = development();
    let generated = generate_key(&mut config);
    let key = config.http_api.key.to_string();
    assert!(generated && key.len() == 32);
    let text = words(&config, generated);
    for line in [
        "  demo page  http://127.0.0.1:8000/\n".to_owned(),
        "  WebSocket  ws://127.0.0.1:8000/connection/websocket\n".to_owned(),
        format!("  API key    {key} "),
        format!(
            "  curl -H 'X-API-Key: {key}' -d '{{\"channel\":\"demo\",\"data\":{{\"text\":\"hello\"}}}}' \
             http://127.0.0.1:8000/api/publish\n"
        ),
        "Development mode".to_owned(),
    ] {
        assert!(text.contains(&line), "{text}");
    }
}

#[test]
fn a_configured_key_is_kept_and_not_shown() {
    let mut config = Config::default();
    config.http_api.key = "hunter2".into();
    assert!(!generate_key(&mut config));
    let text = words(&config, false);
    assert!(!text.contains("hunter2") && !text.contains("Development"), "{text}");
}

#[test]
fn an_api_without_keys_or_none_at_all_gets_no_key() {
    let mut config = Config::default();
    config.http_api.insecure = true;
    assert!(!generate_key(&mut config));
    assert!(words(&config, false).contains("curl -d "));
    config.http_api.disabled = true;
    assert!(!generate_key(&mut config));
    assert!(!words(&config, false).contains("/api"));
}

#[test]
fn the_admin_page_is_named_where_it_is_and_takes_the_place_of_the_demo() {
    let mut config = development();
    config.admin.enabled = true;
    let text = words(&config, false);
    assert!(text.contains("  admin page http://127.0.0.1:9000/\n"), "{text}");
    assert!(!text.contains("demo page"), "{text}");
    config.admin.handler_prefix = "/ops".to_owned();
    config.admin.external = true;
    let text = words(&config, false);
    assert!(text.contains("  admin page http://127.0.0.1:8000/ops/\n"), "{text}");
    assert!(text.contains("  demo page  http://127.0.0.1:8000/\n"), "{text}");
}

#[test]
fn addresses_with_tls_say_so() {
    let mut config = development();
    config.http_server.tls.enabled = true;
    let text = words(&config, true);
    for line in [
        "  demo page  https://127.0.0.1:8000/\n",
        "  WebSocket  wss://127.0.0.1:8000/connection/websocket\n",
        "  server API https://127.0.0.1:8000/api\n",
        " https://127.0.0.1:8000/api/publish\n",
        "use a name that it has in place of the address.\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    config.http_server.internal_port = "9000".to_owned();
    config.http_server.tls_external = true;
    let text = words(&config, true);
    assert!(
        text.contains("  server API http://") && text.contains("  WebSocket  wss://"),
        "{text}"
    );
}

#[tokio::test]
async fn a_server_that_has_lost_a_part_ends_the_command_with_its_error() {
    let error = std::io::Error::other("a consumer has ended for good");
    let ended = until_failed(std::future::pending::<Event>(), std::future::ready(error)).await;
    let error = ended.err().expect("`main` exits with 1 after any error");
    assert!(error.to_string().contains("for good"), "{error}");
    let never = std::future::pending::<std::io::Error>();
    let event = until_failed(std::future::ready(Event::Stop), never).await;
    assert!(matches!(event, Ok(Event::Stop)));
}
