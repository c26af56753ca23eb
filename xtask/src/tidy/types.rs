//! Names of types: one idea for each, so a public one is defined in one crate, and any in two at most.
//! In: the Rust files of `crates` without tests → out: a finding per name in more crates.
//! May use the lexer; never counts associated types and generic parameters.
//! A public name with two meanings is a row of `SHARED` with its reason; the list only shrinks, because a row without need fails.

use std::collections::BTreeMap;

use super::lexer::lex;
use super::{Finding, Source};

/// Finds names that too many crates define.
pub(crate) fn check(rust: &[Source]) -> Vec<Finding> {
    check_with(rust, SHARED)
}

/// The crates that define a name, each with a file.
type Homes<'a> = BTreeMap<&'a str, &'a str>;

fn check_with(rust: &[Source], shared: &[Shared]) -> Vec<Finding> {
    let mut all: BTreeMap<String, Homes<'_>> = BTreeMap::new();
    let mut public: BTreeMap<String, Homes<'_>> = BTreeMap::new();
    for source in rust.iter().filter(|source| !source.is_test()) {
        let Some(member) = member(&source.path) else { continue };
        for (name, is_public) in types(&lex(&source.text).code) {
            if is_public {
                public.entry(name.clone()).or_default().entry(member).or_insert(&source.path);
            }
            all.entry(name).or_default().entry(member).or_insert(&source.path);
        }
    }
    all.retain(|_, homes| homes.len() > CRATES_MAX);
    public.retain(|name, homes| homes.len() > 1 && !all.contains_key(name));
    let unneeded = shared.iter().filter(|row| !public.contains_key(row.name));
    let idle: Vec<Finding> = unneeded
        .map(|Shared { name, why }| {
            let what = format!("`{name}` is public in one crate ({why}): remove its row");
            Finding::new(HERE, 0, what)
        })
        .collect();
    public.retain(|name, _| shared.iter().all(|row| row.name != name));
    let many = all.iter().chain(&public).filter_map(|(name, homes)| {
        let members: Vec<&str> = homes.keys().copied().collect();
        let what = format!("`{name}` is a type in {}: give each idea a name", members.join(", "));
        Some(Finding::new(homes.values().next()?, 0, what))
    });
    many.chain(idle).collect()
}

/// The crate of a file: `ws` of `crates/ws/src/a.rs`.
pub(super) fn member(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split_once("/src/").map(|(member, _)| member)
}

/// The types that code defines, those inside functions and modules, too, and whether they are public.
fn types(code: &str) -> Vec<(String, bool)> {
    let defined = code.lines().filter_map(|line| {
        let start = line.trim_start();
        let public = start.strip_prefix("pub ");
        let restricted = start.strip_prefix("pub(").and_then(|rest| rest.split_once(") "));
        let rest = restricted.map(|(_, rest)| rest).or(public).unwrap_or(start);
        let is_alias = rest.starts_with("type ") && rest.len() == line.len() || rest != start;
        let keyword = KEYWORDS.iter().find(|keyword| rest.starts_with(**keyword))?;
        if *keyword == "type " && !is_alias {
            return None;
        }
        let name = &rest[keyword.len()..];
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        Some((name[..end].to_owned(), public.is_some()))
    });
    defined.collect()
}

/// A public name that two crates define.
struct Shared {
    name: &'static str,
    why: &'static str,
}

const KEYWORDS: [&str; 4] = ["struct ", "enum ", "trait ", "type "];
const CRATES_MAX: usize = 2;
const HERE: &str = "xtask/src/tidy/types.rs";

const SHARED: &[Shared] = &[
    Shared { name: "Client", why: "a client for programs, and the server API's row about one" },
    Shared {
        name: "ClientState",
        why: "the simulated client shares no code with the one for programs",
    },
    Shared { name: "Encoding", why: "the load generator shares no code with what it checks" },
    Shared { name: "Hook", why: "the library's hooks, and those of the node that they become" },
    Shared { name: "Hooks", why: "the library's hooks, and those of the node that they become" },
    Shared { name: "Inbox", why: "the port of the node, and the inbox of a shard behind it" },
    Shared { name: "Inflater", why: "the load generator shares no code with what it checks" },
    Shared {
        name: "SubscriptionState",
        why: "the simulated client shares no code with the one for programs",
    },
    Shared { name: "Shards", why: "an alias: the shards with their application" },
];

#[cfg(test)]
mod tests;
