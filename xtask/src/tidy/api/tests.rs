//! Tests of the listing of the public interface.
//! In: made-up crates and listings → out: items and findings.
//! Uses the listing only; never reads a file.
//! That the listing of this workspace is true is seen in a run of `cargo xtask tidy`.

use super::*;

fn check_items(files: &[(&str, &str)], expect: &[&str]) {
    let source = |(path, text): &(&str, &str)| Source::new(path, &format!("//! A card.\n{text}"));
    let sources: Vec<Source> = files.iter().map(source).collect();
    assert_eq!(items(&sources), expect, "{files:?}");
}

fn check_findings(items: &[&str], listing: &str, expect: &[&str]) {
    let items: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
    let found = compare(&items, listing);
    assert_eq!(found.len(), expect.len(), "{found:?}");
    for (finding, expect) in found.iter().zip(expect) {
        assert!(finding.what.contains(expect), "{finding}");
    }
}

#[test]
fn exported_names_have_the_kind_of_their_definition() {
    check_items(
        &[
            (
                "crates/fanwire/src/lib.rs",
                "mod a;\npub use a::Server;\npub use fanwire_node::{\n    Page, // of history\n    hooks::{Event, Hook},\n};\n",
            ),
            ("crates/fanwire/src/a.rs", "pub struct Server;\npub struct Inner;\n"),
            ("crates/node/src/hooks.rs", "pub enum Event {}\npub type Hook<E> = Box<E>;\n"),
            ("crates/room/src/lib.rs", "pub trait Page {}\n"),
        ],
        &[
            "fanwire::Event enum",
            "fanwire::Hook type",
            "fanwire::Page struct",
            "fanwire::Server struct",
        ],
    );
}

#[test]
fn public_modules_are_followed_and_private_items_are_not_listed() {
    check_items(
        &[
            ("crates/fanwire/src/lib.rs", "pub mod config;\npub(crate) fn a() {}\nuse b::C;\n"),
            (
                "crates/fanwire/src/config.rs",
                "pub const fn load() {}\n\nimpl A {\n    pub fn b() {}\n}\n",
            ),
        ],
        &["fanwire::config mod", "fanwire::config::load fn"],
    );
}

#[test]
fn everything_of_a_crate_is_a_finding() {
    let exports = "pub use fanwire_node::*;\n";
    check_items(&[("crates/fanwire/src/lib.rs", exports)], &["fanwire::* struct"]);
    check_findings(&["fanwire::* struct"], "fanwire::* struct", &["by its name"]);
}

#[test]
fn a_difference_is_a_finding_in_both_directions() {
    check_findings(&["fanwire::A struct"], "fanwire::A struct\n", &[]);
    check_findings(&["fanwire::A struct"], "", &["is new"]);
    check_findings(&["fanwire::A struct"], "fanwire::A enum\n", &["is new", "is gone"]);
}

#[test]
fn members_stand_behind_their_item_and_do_not_count() {
    check_items(
        &[
            ("crates/fanwire/src/lib.rs", "mod a;\npub use a::{Kind, Server};\n"),
            (
                "crates/fanwire/src/a.rs",
                "pub struct Server {\n    pub port: u16,\n    inner: u8,\n}\n\nimpl Server {\n    \
                 pub fn start(\n        port: u16,\n    ) -> Self {\n        let pub_port = port;\n    }\n\n    \
                 fn own() {}\n}\n\nimpl Clone for Server {\n    fn clone(&self) -> Self {}\n}\n\npub enum Kind {\n    \
                 One(u8),\n    Two,\n}\n",
            ),
        ],
        &[
            "fanwire::Kind enum",
            "  fanwire::Kind One(u8)",
            "  fanwire::Kind Two",
            "fanwire::Server struct",
            "  fanwire::Server pub fn start( port: u16, ) -> Self",
            "  fanwire::Server pub port: u16",
        ],
    );
    assert_eq!(count(&["fanwire::A struct".to_owned(), "  fanwire::A pub b: u8".to_owned()]), 1);
}

#[test]
fn the_interface_has_a_limit() {
    let items: Vec<String> =
        (0..=ITEMS_MAX).map(|number| format!("fanwire::A{number} fn")).collect();
    let items: Vec<&str> = items.iter().map(String::as_str).collect();
    check_findings(&items[1..], &items.join("\n"), &["is gone"]);
    check_findings(&items, &items.join("\n"), &["88 items"]);
}
