//! Tests of what the table looks like: the sample file and the documentation page.
//! In: the generated texts → out: the same configuration, the same page as in the repository.
//! Uses the page in `docs`. Never: the wording of single rows.
//! When a row changes: `cargo run -- config-doc > docs/configuration.md`.

use super::{is_former, markdown, sample};
use crate::file::{Format, parse};
use crate::load::assemble;
use crate::{Config, entries, keys};

#[test]
fn the_sample_is_the_default_configuration_in_every_format() {
    for format in [Format::Json, Format::Yaml, Format::Toml] {
        let text = sample(format);
        let Ok(serde_json::Value::Object(tree)) = parse(format, &text) else {
            panic!("{format}: {text}");
        };
        let file = Some((std::path::Path::new("sample"), tree));
        let (config, _) = assemble(file, std::iter::empty(), &[]).expect("the sample is right");
        assert_eq!(config, Config::default(), "{format}");
    }
}

#[test]
fn the_sample_shows_every_key_that_works_under_its_name_of_today() {
    let text = sample(Format::Yaml);
    for entry in entries().iter().filter(|entry| entry.works()) {
        assert_eq!(text.contains(entry.key.doc), !is_former(entry), "{}", entry.name);
    }
}

#[test]
fn the_page_in_the_repository_is_the_generated_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(path).expect("the repository has docs/configuration.md");
    assert!(page == markdown(), "run: cargo run -- config-doc > docs/configuration.md");
}

#[test]
fn the_example_of_the_readme_is_right() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(path).expect("the repository has a README");
    let example = readme.split("```yaml").nth(1).and_then(|rest| rest.split("```").next());
    // The secrets of the page are refused, as everybody knows them.
    let text =
        example.expect("the README has an example in YAML").replace("change-me", "of-a-test");
    let Ok(serde_json::Value::Object(tree)) = parse(Format::Yaml, &text) else { panic!("{text}") };
    let file = Some((std::path::Path::new("README.md"), tree));
    let (_, findings) = assemble(file, std::iter::empty(), &[]).expect("the example is right");
    assert_eq!(findings, []);
}

#[test]
fn the_page_names_every_key() {
    let page = markdown();
    for entry in entries() {
        let sections = keys::proxy::PLACES.into_iter().chain(["channel.without_namespace"]);
        let mut within =
            sections.filter_map(|section| entry.name.strip_prefix(section)?.strip_prefix('.'));
        let name = within.next().unwrap_or(&entry.name);
        assert!(page.contains(&format!("{name}`")), "{}", entry.name);
    }
}
