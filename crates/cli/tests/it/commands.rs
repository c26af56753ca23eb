//! Tests of the commands that print and exit.
//! In: arguments and files → out: exit code, stdout, stderr.
//! Uses the binary. Never: a server.
//! A command has a test or two here.

use super::{fanwire, file, run};

#[test]
fn check_config_reports_a_good_file_as_fine() {
    let path = file("good.yaml", "client: {token: {hmac_secret_key: secret}}\n");
    let (code, out, error) = run(&["check-config", &path]);
    assert_eq!((code, error.as_str()), (0, ""));
    assert_eq!(out, format!("{path}: fine\n"));
}

#[test]
fn check_config_lists_warnings_and_succeeds() {
    let text = "[client]\ninsecur = true\nallow_anonymous_connect_without_token = true\n[sse]\nenabled = true\n";
    let path = file("warnings.toml", text);
    let (code, out, _) = run(&["check-config", &path]);
    assert_eq!(code, 0);
    assert_eq!(
        out,
        format!(
            "warning: {path}: client.insecur is not a known key, did you mean client.insecure?\n\
             warning: {path}: sse.enabled is not supported yet. Server-Sent Events; whoever asks for them \
             gets 404, SDKs must be told to use WebSocket.\n\
             {path}: the server would start, with 2 warnings\n"
        )
    );
}

#[test]
fn check_config_fails_on_errors_and_names_file_and_key() {
    let path = file("errors.json", r#"{"client": {"ping_interval": 25, "insecure": true}}"#);
    let (code, out, error) = run(&["check-config", &path]);
    assert_eq!(code, 1);
    assert!(out.starts_with(&format!("error: {path}: client.ping_interval is 25, ")), "{out}");
    assert_eq!(error, format!("fanwire: {path}: 1 error stops the start\n"));
}

#[test]
fn a_file_that_cannot_be_parsed_is_reported_with_the_line() {
    let path = file("broken.json", "{\n\"client\": }");
    let (code, _, error) = run(&["check-config", &path]);
    assert_eq!(code, 1);
    assert!(error.contains("broken.json: not valid JSON: ") && error.contains("line 2"), "{error}");
}

#[test]
fn the_sample_passes_the_check_in_every_format() {
    for format in ["json", "yaml", "toml"] {
        let (code, sample, _) = run(&["sample-config", "--format", format]);
        assert_eq!(code, 0);
        let path = file(&format!("sample.{format}"), &sample);
        let (code, out, _) = run(&["check-config", &path]);
        assert!(code == 0 && out.ends_with("the server would start, with 1 warning\n"), "{out}");
    }
}

#[test]
fn token_uses_the_secret_of_the_configuration() {
    let path = file("token.yaml", "client: {token: {hmac_secret_key: secret}}\n");
    let (code, token, _) = run(&["token", "--user", "42", "--config", &path]);
    assert_eq!(code, 0);
    assert_eq!(token.trim_end().split('.').count(), 3, "{token}");
}

#[test]
fn token_without_a_secret_names_the_options_for_one() {
    let (code, out, error) = run(&["token", "--user", "42"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(error.contains("client.token.hmac_secret_key"), "{error}");
}

#[test]
fn serve_refuses_a_wrong_configuration_with_all_findings() {
    let path = file("refused.yaml", "broker: {enabled: true}\nhttp_server: {port: 99999}\n");
    let (code, out, error) = run(&["serve", "--config", &path]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(error.contains("http_server.port is 99999"), "{error}");
    assert!(error.contains("broker.enabled is not supported yet"), "{error}");
}

#[test]
fn a_usage_error_has_a_code_of_its_own() {
    assert_eq!(run(&["serve", "--no.such.key=1"]).0, 2);
}

#[test]
fn a_flag_from_before_centrifugo_v6_is_reported_with_its_new_name() {
    for (flag, now) in [
        ("--client_insecure", "--client.insecure"),
        ("--admin=true", "--admin.enabled"),
        ("--port=8000", "--http_server.port"),
        ("--redis_address=redis:6379", "--engine.redis.address"),
    ] {
        let (code, out, error) = run(&[flag]);
        assert_eq!((code, out.as_str()), (2, ""), "{flag}");
        let expected = format!("found: since Centrifugo v6 it is {now}\n");
        assert!(error.contains(&expected), "{flag}: {error}");
    }
}

#[test]
fn a_file_from_before_centrifugo_v6_is_recognised_and_stops_the_start() {
    let path =
        file("old.json", r#"{"token_hmac_secret_key": "s", "namespaces": [], "admin": true}"#);
    let (code, out, _) = run(&["check-config", &path]);
    assert_eq!(code, 1);
    let lines: Vec<&str> =
        out.lines().map(|line| line.split(": ").last().unwrap_or(line)).collect();
    assert_eq!(
        lines,
        [
            "3 keys are of Centrifugo before v6, which had no sections, and are not obeyed; \
             https://centrifugal.dev/docs/getting-started/migration_v6 converts files and variables",
            "admin is true, expected a section of keys, such as admin.enabled",
            "namespaces is not a known key, did you mean channel.namespaces?",
            "token_hmac_secret_key is not a known key, did you mean client.token.hmac_secret_key?",
        ]
    );
}

#[test]
fn api_doc_prints_the_document_of_the_repository() {
    let (code, out, _) = run(&["api-doc"]);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let golden = std::fs::read_to_string(path).expect("the repository has docs/openapi.json");
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    assert_eq!((code, read(&out)), (0, read(&golden)));
}

#[test]
fn check_config_finds_invalid_certificates() {
    let text = "client: {insecure: true}\nengine: {type: redis, redis: {tls: {enabled: true, server_ca_pem: no/such.pem}}}\n";
    let path = file("certificates.yaml", text);
    let (code, out, error) = run(&["check-config", &path]);
    assert_eq!((code, error), (1, format!("fanwire: {path}: 1 error stops the start\n")));
    let expected =
        format!("error: {path}: engine.redis.tls.server_ca_pem: \"no/such.pem\" cannot be read");
    assert!(out.starts_with(&expected), "{out}");
}

#[test]
fn the_names_of_centrifugos_commands_are_aliases() {
    for name in ["defaultconfig", "configdoc"] {
        assert_eq!(run(&[name]).0, 0, "{name}");
    }
    let path = file("centrifugo.yaml", "client: {token: {hmac_secret_key: secret}}\n");
    let (code, token, _) = run(&["gentoken", "-u", "42", "-t", "3600", "-c", &path]);
    assert_eq!((code, run(&["checktoken", token.trim_end(), "-c", &path]).0), (0, 0));
    let (code, token, _) = run(&["gensubtoken", "-u", "42", "-s", "$news", "-c", &path]);
    let check = ["checksubtoken", token.trim_end(), "-s", "$news", "-c", &path];
    assert_eq!((code, run(&check).0), (0, 0));
}

#[test]
fn a_full_device_is_an_error_and_a_closed_pipe_is_none() {
    let path = file("printed.yaml", "client: {token: {hmac_secret_key: secret}}\n");
    let token = run(&["token", "--config", &path]).1;
    let commands = [
        &["check-config", &path][..],
        &["token", "--config", &path],
        &["check-token", token.trim_end(), "--config", &path],
        &["sample-config"],
    ];
    for arguments in commands {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        let output = fanwire().args(arguments).stdout(full).output().expect("the binary runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.starts_with("fanwire: standard output cannot be written to"), "{error}");
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let status = fanwire().args(arguments).stdout(writer).status().expect("the binary runs");
        assert_eq!(status.code(), Some(0), "{arguments:?}");
    }
}
