//! Tests of the first configuration.
//! In: jobs, formats → out: a configuration without findings, words for a shell.
//! Uses `fanwire_config`. Never: a server, which is in `tests/it/started/init.rs`.
//! A promise about the text of a file is a test here.

use std::path::Path;

use clap::ValueEnum as _;
use fanwire_config::load;
use fanwire_testing::Folder;

use super::{converted, quoted, yaml};
use crate::arguments::Job;

#[test]
fn a_file_of_each_job_and_format_is_the_same_configuration_without_findings() {
    let snapshot = Path::new("/var/lib/it's \"mine\"/snapshot");
    let folder = Folder::new("init");
    for job in Job::value_variants() {
        let [first, rest @ ..] = ["yaml", "json", "toml"].map(|extension| {
            let path = folder.join(format!("config.{extension}"));
            let text = converted(&path, yaml(*job, &"s".repeat(43), &"k".repeat(32), snapshot));
            std::fs::write(&path, text.expect("a format")).expect("the folder is writable");
            let loaded = load(Some(&path), std::iter::empty(), &[]);
            loaded.unwrap_or_else(|error| panic!("{job:?}, {extension}: {error}"))
        });
        assert_eq!(first.1, [], "{job:?}");
        assert!(rest.iter().all(|other| *other == first), "{job:?}");
        assert_eq!(Path::new(&first.0.engine.memory.snapshot_path), snapshot);
        assert_eq!(first.0.channel.namespaces[0].name, job.name());
    }
}

#[test]
fn a_file_is_short() {
    for job in Job::value_variants() {
        let text = yaml(*job, "secret", "key", Path::new("/snapshot"));
        assert!(text.lines().count() <= 25, "{text}");
    }
}

#[test]
fn a_path_is_one_word_of_a_shell() {
    for (path, word) in [
        ("fanwire.yaml", "fanwire.yaml"),
        ("/tmp/x-1_2/~a.json", "/tmp/x-1_2/~a.json"),
        ("my server.yaml", "'my server.yaml'"),
        ("it's.yaml", r"'it'\''s.yaml'"),
        ("$(reboot).toml", "'$(reboot).toml'"),
    ] {
        assert_eq!(quoted(path), word);
    }
}

#[test]
fn a_name_without_a_known_format_is_refused() {
    let error = converted(Path::new("fanwire.txt"), String::new()).expect_err("no format");
    assert!(error.to_string().contains("ends in .json, .yaml, .yml or .toml"), "{error}");
}
