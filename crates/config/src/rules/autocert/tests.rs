//! Tests of the section `http_server.tls_autocert`: what is refused, warned about and noted.
//! In: flags → out: lines of findings.
//! Uses `load` with flags. Never: files.
//! A relation of these keys is a test here.

use super::super::tests::found;

/// The findings of a section that is on, complete and at port 443, with these values in it.
fn check(values: &[(&str, &str)], expect: &[&str]) {
    let mut flags = vec![
        ("client.insecure".to_owned(), "true"),
        ("http_server.port".to_owned(), "443"),
        ("http_server.tls_autocert.enabled".to_owned(), "true"),
        ("http_server.tls_autocert.host_whitelist".to_owned(), "chat.example.com www.example.com"),
        ("http_server.tls_autocert.cache_dir".to_owned(), "/var/lib/fanwire/acme"),
    ];
    for (key, value) in values {
        let key = if key.contains('.') {
            (*key).to_owned()
        } else {
            format!("http_server.tls_autocert.{key}")
        };
        flags.retain(|(name, _)| *name != key);
        flags.push((key, value));
    }
    let flags: Vec<(&str, &str)> =
        flags.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let lines = found(&flags);
    let lines: Vec<&String> = lines.iter().filter(|line| line.contains("tls_autocert")).collect();
    assert_eq!(lines.len(), expect.len(), "{values:?}: {lines:?}");
    for (line, expect) in lines.iter().zip(expect) {
        assert!(line.contains(expect), "{values:?}: {line}");
    }
}

#[test]
fn a_complete_section_needs_no_remark() {
    check(&[], &[]);
    check(
        &[("server_name", "WWW.example.com"), ("http", "true"), ("http_addr", "[::1]:8080")],
        &[],
    );
    check(&[("directory_url", "https://ca.internal:9000/acme/acme/directory")], &[]);
    check(&[("enabled", "false"), ("host_whitelist", ""), ("cache_dir", "")], &[]);
}

#[test]
fn a_certificate_of_a_file_has_no_effect() {
    let expect = "warning: flag --http_server.tls.enabled: http_server.tls.enabled is true, but has no effect";
    check(&[("http_server.tls.enabled", "true")], &[expect]);
    check(&[("http_server.tls_external", "true"), ("http_server.internal_port", "9000")], &[]);
}

#[test]
fn without_names_anybody_could_cause_orders() {
    check(
        &[("host_whitelist", "")],
        &[
            "error: flag --http_server.tls_autocert.host_whitelist: http_server.tls_autocert.host_whitelist is empty",
        ],
    );
}

#[test]
fn what_is_no_name_of_a_host_is_an_error_of_its_own() {
    for wrong in ["192.0.2.1", "example.com:443", "https://example.com", "example.com."] {
        check(&[("host_whitelist", wrong)], &["expected the name of a host such as"]);
    }
    check(
        &[("host_whitelist", "*.example.com a.example.com -b")],
        &["needs the challenge dns-01", "has \"-b\""],
    );
}

#[test]
fn a_server_name_without_a_certificate_is_an_error() {
    check(
        &[("server_name", "api.example.com")],
        &["is \"api.example.com\", expected one of the names"],
    );
}

#[test]
fn the_directory_is_an_https_url() {
    for wrong in
        ["", "http://ca.example/dir", "ca.example", "https://", "https:///dir", "https://a b/"]
    {
        check(&[("directory_url", wrong)], &["expected an https URL such as"]);
    }
}

#[test]
fn without_a_folder_each_start_orders_everything() {
    check(&[("cache_dir", "")], &["warning: flag --http_server.tls_autocert.cache_dir: "]);
}

#[test]
fn the_authority_connects_to_port_443_or_80() {
    check(
        &[("http_server.port", "8000")],
        &["note: flag --http_server.port: http_server.port is 8000"],
    );
    check(&[("http_server.port", "8000"), ("http", "true")], &[]);
    check(&[("http", "true"), ("http_addr", "80")], &["is \"80\", expected host:port or :port"]);
    check(&[("http", "false"), ("http_addr", "80")], &[]);
}
