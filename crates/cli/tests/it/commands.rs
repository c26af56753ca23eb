//! Tests of the commands that print and exit.
//! In: arguments and files → out: exit code, stdout, stderr.
//! Uses the binary. Never: a server.
//! A command has a test or two here.

use super::{fanwire, file, run};

#[test]
fn check_config_reports_a_good_file_as_fine() {
    let path = file(
        "good.yaml",
        "client: {token: {hmac_secret_key: 0123456789abcdef-0123456789abcdef}}\n",
    );
    let (code, out, error) = run(&["check-config", &path]);
    assert_eq!((code, error.as_str()), (0, ""));
    assert_eq!(out, format!("{path}: fine\n"));
}

#[test]
fn check_config_lists_warnings_and_succeeds() {
    let text = "[client]\ninsecur = true\nallow_anonymous_connect_without_token = true\n[webtransport]\nenabled = true\n";
    let path = file("warnings.toml", text);
    let (code, out, _) = run(&["check-config", &path]);
    assert_eq!(code, 0);
    assert_eq!(
        out,
        format!(
            "warning: {path}: client.insecur is not a known key, did you mean client.insecure?\n\
             warning: {path}: webtransport.enabled is not supported yet. WebTransport; set SDKs to use WebSocket.\n\
             {path}: the server would start, with 2 warnings\n"
        )
    );
}

#[test]
fn check_config_fails_on_errors_and_names_file_and_key() {
    let path = file("errors.json", r#"{"client": {"ping_interval": 25, "insecure": true}}"#);
    let (code, out, error) = run(&["check-config", &path]);
    assert_eq!(code, 1);
    let last = out.lines().last().expect("a line");
    assert!(last.starts_with(&format!("error: {path}: client.ping_interval is 25, ")), "{out}");
    assert_eq!(error, format!("fanwire: {path}: 1 error stops the start\n"));
}

#[test]
fn check_config_with_strict_fails_on_unknown_keys_and_variables() {
    let text = "client: {insecur: true, allow_anonymous_connect_without_token: true}\n";
    let path = file("strict.yaml", text);
    for flag in ["--strict", "-s"] {
        let (code, out, error) = run(&["check-config", &path, flag]);
        assert_eq!(code, 1);
        assert_eq!(out.lines().count(), 1, "{out}");
        assert!(out.starts_with(&format!("error: {path}: client.insecur is not a known")), "{out}");
        assert_eq!(error, format!("fanwire: {path}: 1 unknown key, which --strict refuses\n"));
    }
    let good = file("strict-good.yaml", "client: {allow_anonymous_connect_without_token: true}\n");
    assert_eq!(run(&["check-config", &good, "--strict"]).0, 0);
    let mut command = fanwire();
    command.args(["check-config", &good, "--strict"]).env("FANWIRE_CLIENT_INSECUR", "1");
    let output = command.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(1));
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(
        out.starts_with("error: environment FANWIRE_CLIENT_INSECUR is not a known key"),
        "{out}"
    );
    let wrong = file("strict-wrong.yaml", "client: {insecur: true}\nhttp_server: {port: -1}\n");
    let error = run(&["check-config", &wrong, "--strict"]).2;
    assert_eq!(error, format!("fanwire: {wrong}: 1 error stops the start\n"));
}

#[test]
fn check_config_reads_the_environment_as_the_server_does() {
    let path = file("env.yaml", "http_server: {port: 8000}\n");
    let check = |arguments: &[&str], variable: Option<(&str, &str)>| {
        let mut command = fanwire();
        command.args(["check-config", &path]).args(arguments).envs(variable);
        let output = command.output().expect("the binary runs");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    assert!(check(&[], None).1.starts_with("warning: client.token has no key"));
    let secret = "FANWIRE_CLIENT_TOKEN_HMAC_SECRET_KEY";
    let fine = (Some(0), format!("{path}: fine\n"), String::new());
    assert_eq!(check(&[], Some((secret, "0123456789abcdef-0123456789abcdef"))), fine);

    let variables = file("check.env", &format!("{secret}=0123456789abcdef-0123456789abcdef\n"));
    assert_eq!(check(&["--env-file", &variables], None), fine);
    let (code, out, _) = check(&["--env-file", &variables], Some((secret, "${SECRET}")));
    assert_eq!(code, Some(1), "a variable of the environment wins");
    assert!(out.starts_with(&format!("error: environment {secret}: ")), "{out}");
    let wrong = file("wrong.env", "FANWIRE_HTTP_SERVER_PORT=http\n");
    assert!(check(&["--env-file", &wrong], None).1.contains("http_server.port is \"http\""));
}

#[test]
fn a_file_of_variables_that_cannot_be_read_is_named() {
    let path = file("unread.yaml", "client: {insecure: true}\n");
    let binary = format!("{}/binary.env", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&binary, b"A=\xff\n").expect("the folder for tests is writable");
    for (variables, reason) in [
        ("nowhere.env", "No such file"),
        (env!("CARGO_TARGET_TMPDIR"), "Is a directory"),
        (binary.as_str(), "stream did not contain valid UTF-8"),
    ] {
        let (code, out, error) = run(&["check-config", &path, "--env-file", variables]);
        assert_eq!((code, out.as_str()), (1, ""));
        let expected = format!("fanwire: the file {variables} cannot be read: {reason}");
        assert!(error.starts_with(&expected) && error.lines().count() == 1, "{error}");
    }
    let folder = format!("{}/with-unreadable-env", env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(format!("{folder}/.env")).expect("the folder for tests is writable");
    for arguments in [&["check-config", path.as_str()][..], &["serve", "--config", &path]] {
        let output = fanwire().args(arguments).current_dir(&folder).output();
        let output = output.expect("the binary runs");
        assert_eq!(output.status.code(), Some(1));
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            error.starts_with("fanwire: the file .env cannot be read: Is a directory"),
            "{error}"
        );
    }
}

#[test]
fn check_config_refuses_placeholders_and_warns_of_short_secrets() {
    let text = "client: {token: {hmac_secret_key: s}}\nhttp_api: {key: '${API_KEY}'}\n";
    let path = file("secrets.yaml", text);
    let (code, out, _) = run(&["check-config", &path]);
    assert_eq!(code, 1);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 2, "{out}");
    let expected = format!("error: {path}: http_api.key is \"${{API_KEY}}\" as it stands there");
    assert!(lines[1].starts_with(&expected), "{out}");
    let expected = format!("warning: {path}: client.token.hmac_secret_key has 1 byte, ");
    assert!(lines[0].starts_with(&expected), "{out}");
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
    let path = file(
        "token.yaml",
        "client: {token: {hmac_secret_key: 0123456789abcdef-0123456789abcdef}}\n",
    );
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
            "namespaces is not a known key, did you mean channel.namespaces?",
            "token_hmac_secret_key is not a known key, did you mean client.token.hmac_secret_key?",
            "3 keys are of Centrifugo before v6, which had no sections, and are not obeyed; \
             https://centrifugal.dev/docs/getting-started/migration_v6 converts files and variables",
            "admin is true, expected a section of keys, such as admin.enabled",
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
    assert!(out.lines().last().is_some_and(|line| line.starts_with(&expected)), "{out}");
}

#[test]
fn the_names_of_centrifugos_commands_are_aliases() {
    assert_eq!(run(&["configdoc"]).0, 0);
    let path = file(
        "centrifugo.yaml",
        "client: {token: {hmac_secret_key: 0123456789abcdef-0123456789abcdef}}\n",
    );
    let (code, token, _) = run(&["gentoken", "-u", "42", "-t", "3600", "-c", &path]);
    assert_eq!((code, run(&["checktoken", token.trim_end(), "-c", &path]).0), (0, 0));
    let (code, token, _) = run(&["gensubtoken", "-u", "42", "-s", "$news", "-c", &path]);
    let check = ["checksubtoken", token.trim_end(), "-s", "$news", "-c", &path];
    assert_eq!((code, run(&check).0), (0, 0));
}

#[test]
fn a_full_device_is_an_error_and_a_closed_pipe_is_none() {
    let path = file(
        "printed.yaml",
        "client: {token: {hmac_secret_key: 0123456789abcdef-0123456789abcdef}}\n",
    );
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

#[test]
fn the_version_names_the_commit_and_verbose_the_build() {
    let (code, out, _) = run(&["version"]);
    let line = concat!("fanwire ", env!("CARGO_PKG_VERSION"), " (");
    assert!(code == 0 && out.starts_with(line) && out.ends_with(")\n"), "{out}");
    assert_eq!(run(&["--version"]).1, out);
    let (_, verbose, _) = run(&["version", "--verbose"]);
    let commit = out.trim_end().trim_end_matches(')').split('(').nth(1).expect("a commit");
    for part in [&format!("commit: {commit}\n"), "compiler: rustc ", "target: ", "features: "] {
        assert!(verbose.contains(part), "{part} in {verbose}");
    }
}

#[test]
fn config_prints_values_in_force_with_sources_and_without_secrets() {
    let text = "http_api: {key: hunter2}\nchannel: {namespaces: [{name: chat, history_size: 5, history_ttl: 1m}]}\n";
    let path = file("shown.yaml", text);
    let mut command = fanwire();
    command.args(["config", "--config", &path]).env("FANWIRE_CLIENT_INSECURE", "true");
    let output = command.output().expect("the binary runs");
    let out = String::from_utf8(output.stdout).expect("text");
    assert_eq!(
        out,
        format!(
            "client.insecure: \"true\"  # environment FANWIRE_CLIENT_INSECURE\n\
             http_api.key: ***  # {path}\n\
             channel.namespaces[chat].history_size: 5  # {path}\n\
             channel.namespaces[chat].history_ttl: \"1m\"  # {path}\n\
             channel.namespaces[chat].name: \"chat\"  # {path}\n"
        )
    );
    let (code, out, _) = run(&["config", "--config", &path, "--all"]);
    assert!(code == 0 && out.contains("\nlog.level: \"info\"  # default\n"), "{out}");
    let (code, _, error) = run(&["config", "--config", "/nowhere.yaml"]);
    assert!(code == 1 && error.contains("/nowhere.yaml"), "{error}");
}
