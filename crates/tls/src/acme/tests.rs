//! Tests of the section itself: what is refused before anything starts.
//! In: options → out: an error that names the key, or the certificates of the cache.
//! Uses folders of their own. Never: an authority; tests with one are in `with_authority`.
//! A wrong option is a test here.

#[path = "../../../fanwire/tests/it/pebble.rs"]
mod pebble;
mod tls;
mod with_authority;

use std::time::Duration;

use fanwire_testing::Folder;

use super::*;
use crate::acme::testing::{logged, self_signed};

/// The longest that a test waits for an order, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

fn options(names: &[&str]) -> AutocertOptions {
    AutocertOptions {
        enabled: true,
        host_whitelist: names.iter().map(|name| (*name).to_owned()).collect(),
        directory_url: "https://127.0.0.1:1/dir".to_owned(),
        ..AutocertOptions::default()
    }
}

fn error(options: AutocertOptions) -> String {
    match Acme::open(&options, None) {
        Ok(_) => panic!("{options:?} is accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn without_a_name_there_is_no_start() {
    let error = error(options(&[]));
    assert!(error.starts_with("http_server.tls_autocert.host_whitelist: "), "{error}");
}

#[test]
fn what_is_no_name_of_a_host_is_named() {
    for wrong in ["*.example", "192.0.2.1", "../account", "a b"] {
        let error = error(options(&["a.example", wrong]));
        assert!(error.contains("host_whitelist") && error.contains(wrong), "{error}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_to_is_named_with_its_key() {
    let folder = Folder::new("file");
    let file = format!("{}/file", folder.path());
    std::fs::write(&file, "").expect("writable");
    let error = error(AutocertOptions { cache_dir: file.clone(), ..options(&["a.example"]) });
    assert!(error.starts_with("http_server.tls_autocert.cache_dir: cannot write to "), "{error}");
    assert!(error.contains(&file), "{error}");
}

#[test]
fn an_invalid_root_is_named_with_its_key() {
    let directory_ca_pem = "/no/such/file".to_owned();
    let root = AutocertOptions { directory_ca_pem, ..options(&["a.example"]) };
    let error = error(root.clone());
    assert!(error.starts_with("http_server.tls_autocert.directory_ca_pem: "), "{error}");
    assert_eq!(Acme::check(&root).map_err(|error| error.key), Err("directory_ca_pem"));
}

#[test]
fn certificates_of_an_earlier_run_are_shown_and_files_that_cannot_be_used_are_named() {
    let folder = Folder::new("earlier");
    let options = AutocertOptions {
        cache_dir: folder.path().to_owned(),
        ..options(&["A.example", "b.example", "c.example", "d.example"])
    };
    let cache = Cache::open(&options.cache_dir, &options.directory_url).expect("writable");
    let (key, chain) = self_signed("a.example");
    cache.store_certificate("a.example", &format!("{key}{chain}")).expect("writable");
    cache.store_certificate("b.example", "half a file").expect("writable");
    cache.store_certificate("d.example", &format!("{key}{chain}")).expect("writable");
    let (acme, lines) = logged(|| Acme::open(&options, None));
    let certificates = acme.expect("the options are good").certificates();
    let shown: Vec<_> =
        certificates.stats().map(|(name, stats)| (name, stats.not_after > 0)).collect();
    let expect =
        [("a.example", true), ("b.example", false), ("c.example", false), ("d.example", false)];
    assert_eq!(shown, expect);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("name=b.example error=\"it contains no certificate\""), "{lines:?}");
    assert!(lines[1].contains("name=d.example error=\"invalid peer certificate"), "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("cache_dir, ordering another one")), "{lines:?}");
}
