//! Tests of the rules of namespaces about formats of publications; others are in `rules/tests.rs`.
//! In: flags → out: what is remarked upon.
//! Uses `load` with flags. Never: files.
//! Changed here: recommendations about formats.

use crate::rules::tests::found;

#[test]
fn json_is_recommended_where_clients_may_publish_any_bytes() {
    let check = |key: &str, format: &str| {
        let namespaces = format!(
            r#"[{{"name": "chat", "allow_subscribe_for_client": true, "history_size": 0 {key}}}]"#
        );
        let flags = [
            ("channel.namespaces", namespaces.as_str()),
            ("client.token.hmac_secret_key", "of-a-test-of-a-test-of-a-test-of-a-test"),
            ("channel.publication_data_format", format),
        ];
        let found = found(&flags);
        found
            .into_iter()
            .filter(|line| line.contains("publication_data_format"))
            .collect::<Vec<_>>()
    };
    let publish = r#", "allow_publish_for_client": true"#;
    let recommended = check(publish, "");
    assert!(recommended[0].starts_with("note:"), "{recommended:?}");
    assert!(recommended[0].contains(r#"into ["chat"], and these end subscribers with JSON"#));
    assert_eq!(check(publish, "json"), [""; 0]);
    assert_eq!(check(&format!(r#"{publish}, "publication_data_format": "binary""#), ""), [""; 0]);
    assert_eq!(check("", ""), [""; 0]);
}
