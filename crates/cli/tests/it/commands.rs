//! Tests of the commands that print and end.
//! In: arguments and files → out: exit code, stdout, stderr.
//! Uses the binary. Never: a server.
//! A command is a test or two here.

use super::{file, run};

#[test]
fn check_config_says_that_a_good_file_is_fine() {
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
             warning: {path}: sse.enabled is not supported yet. Server-Sent Events transport.\n\
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
fn a_file_that_cannot_be_parsed_names_the_place() {
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
fn token_takes_its_secret_from_the_configuration() {
    let path = file("token.yaml", "client: {token: {hmac_secret_key: secret}}\n");
    let (code, token, _) = run(&["token", "--user", "42", "--config", &path]);
    assert_eq!(code, 0);
    assert_eq!(token.trim_end().split('.').count(), 3, "{token}");
}

#[test]
fn token_without_a_secret_says_where_to_put_one() {
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
fn api_doc_prints_the_document_of_the_repository() {
    let (code, out, _) = run(&["api-doc"]);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let golden = std::fs::read_to_string(path).expect("the repository has docs/openapi.json");
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    assert_eq!((code, read(&out)), (0, read(&golden)));
}
