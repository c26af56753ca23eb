//! Arrows between the crates: down only, never sideways, and only those of the table.
//! In: the members of the workspace as `cargo metadata` names them → out: a finding per forbidden arrow.
//! May use cargo_metadata; never reads source text, because a crate cannot use what its manifest does not name.
//! A new crate or a new arrow is a row of `CRATES` here, and a line of ARCHITECTURE.md first.

use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::{Dependency, DependencyKind};

use super::Finding;

/// A member of the workspace and which other members it depends on, whatever the kind (normal, dev, build).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Crate {
    pub(crate) name: String,
    /// Folder from the root, such as `crates/ws`.
    pub(crate) folder: String,
    pub(crate) uses: Vec<String>,
}

/// The members of the workspace at `root`.
///
/// # Errors
/// When cargo cannot read the workspace.
pub(crate) fn crates(root: &Path) -> Result<Vec<Crate>> {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("cargo metadata")?;
    let folder = |path: &Path| {
        let inside = path.parent().and_then(|parent| parent.strip_prefix(root).ok());
        inside.map(|inside| inside.to_string_lossy().replace('\\', "/")).unwrap_or_default()
    };
    let packages = metadata.packages.iter().map(|package| Crate {
        name: package.name.to_string(),
        folder: folder(package.manifest_path.as_std_path()),
        uses: package
            .dependencies
            .iter()
            .filter(|dependency| dependency.path.is_some())
            .filter(|dependency| !is_for_tests(dependency))
            .map(|dependency| dependency.name.clone())
            .filter(|name| *name != *package.name) // for its own tests, with features
            .collect(),
    });
    Ok(packages.collect())
}

/// Whether it is the crate with the waits of tests, used by tests or by a suite that an optional feature switches on.
fn is_for_tests(dependency: &Dependency) -> bool {
    let is_left_out = dependency.kind == DependencyKind::Development || dependency.optional;
    dependency.name == "fanwire-testing" && is_left_out
}

/// Compares the workspace with [`CRATES`].
pub(crate) fn check(crates: &[Crate]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in crates {
        let manifest = format!("{}/Cargo.toml", member.folder);
        let Some(rule) = CRATES.iter().find(|rule| rule.name == member.name) else {
            findings.push(Finding::new(&manifest, 0, format!("{} has no level yet", member.name)));
            continue;
        };
        for used in member.uses.iter().filter(|used| !rule.may_use.contains(&used.as_str())) {
            findings.push(Finding::new(&manifest, 0, forbidden(rule, used)));
        }
    }
    for rule in CRATES.iter().filter(|rule| crates.iter().all(|member| member.name != rule.name)) {
        findings.push(Finding::new(
            "Cargo.toml",
            0,
            format!("{} is not in the workspace", rule.name),
        ));
    }
    findings
}

/// The folders of the crates that ARCHITECTURE.md, in `page`, calls pure or without sockets.
pub(crate) fn pure(page: &str) -> Vec<&str> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let pure = rows.filter(|(_, rest)| PURE.iter().any(|kind| rest.contains(kind)));
    pure.map(|(folder, _)| folder).collect()
}

fn forbidden(rule: &CrateRule, used: &str) -> String {
    let CrateRule { name, level, may_use } = rule;
    let below = CRATES.iter().any(|other| other.name == used && other.level < *level);
    let why =
        if below { "an arrow that the table does not have" } else { "an arrow up or sideways" };
    format!("{name} (level {level}) → {used}: {why}; it may use: {}", may_use.join(", "))
}

/// A crate, its level, and the crates of lower levels that it may use.
struct CrateRule {
    name: &'static str,
    level: u8,
    may_use: &'static [&'static str],
}

/// Beginnings of what ARCHITECTURE.md says of crates whose tests need no sockets.
const PURE: [&str; 2] = ["| pure: ", "| no sockets: "];

/// The one table of levels. An arrow must point to a lower level, which a test checks.
const CRATES: &[CrateRule] = &[
    CrateRule { name: "fanwire-area", level: 0, may_use: &[] },
    CrateRule { name: "fanwire-auth", level: 0, may_use: &[] },
    CrateRule { name: "fanwire-deflate", level: 0, may_use: &[] },
    CrateRule { name: "fanwire-load", level: 0, may_use: &[] },
    CrateRule { name: "fanwire-protocol", level: 0, may_use: &[] },
    CrateRule { name: "fanwire-recorder", level: 0, may_use: &[] },
    CrateRule { name: "fanwire-telemetry", level: 0, may_use: &[] },
    CrateRule { name: "fanwire-testing", level: 0, may_use: &[] },
    CrateRule { name: "fanwire-broker", level: 1, may_use: &["fanwire-protocol"] },
    CrateRule { name: "fanwire-profile", level: 1, may_use: &["fanwire-telemetry"] },
    CrateRule { name: "fanwire-room", level: 1, may_use: &["fanwire-area"] },
    CrateRule { name: "fanwire-tls", level: 1, may_use: &["fanwire-auth", "fanwire-telemetry"] },
    CrateRule { name: "fanwire-tune", level: 1, may_use: &["fanwire-deflate", "fanwire-protocol"] },
    CrateRule { name: "fanwire-ws", level: 1, may_use: &["fanwire-deflate"] },
    CrateRule {
        name: "fanwire-cluster",
        level: 2,
        may_use: &["fanwire-auth", "fanwire-broker", "fanwire-protocol", "fanwire-telemetry"],
    },
    CrateRule {
        name: "fanwire-policy",
        level: 2,
        may_use: &[
            "fanwire-area",
            "fanwire-auth",
            "fanwire-broker",
            "fanwire-protocol",
            "fanwire-telemetry",
        ],
    },
    CrateRule {
        name: "fanwire-shard",
        level: 2,
        may_use: &["fanwire-deflate", "fanwire-telemetry", "fanwire-ws"],
    },
    CrateRule {
        name: "fanwire-client",
        level: 3,
        may_use: &["fanwire-deflate", "fanwire-protocol", "fanwire-ws"],
    },
    CrateRule {
        name: "fanwire-node",
        level: 3,
        may_use: &[
            "fanwire-area",
            "fanwire-auth",
            "fanwire-broker",
            "fanwire-cluster",
            "fanwire-policy",
            "fanwire-protocol",
            "fanwire-recorder",
            "fanwire-telemetry",
        ],
    },
    CrateRule {
        name: "fanwire-sim",
        level: 6,
        may_use: &[
            "fanwire-auth",
            "fanwire-broker",
            "fanwire-events",
            "fanwire-node",
            "fanwire-protocol",
        ],
    },
    CrateRule {
        name: "fanwire-api",
        level: 4,
        may_use: &["fanwire-auth", "fanwire-broker", "fanwire-node", "fanwire-telemetry"],
    },
    CrateRule {
        name: "fanwire-fanout",
        level: 4,
        may_use: &[
            "fanwire-auth",
            "fanwire-broker",
            "fanwire-deflate",
            "fanwire-node",
            "fanwire-protocol",
            "fanwire-shard",
            "fanwire-telemetry",
            "fanwire-ws",
        ],
    },
    CrateRule {
        name: "fanwire-proxy",
        level: 4,
        may_use: &[
            "fanwire-auth",
            "fanwire-broker",
            "fanwire-cluster",
            "fanwire-node",
            "fanwire-protocol",
            "fanwire-telemetry",
            "fanwire-tls",
        ],
    },
    CrateRule {
        name: "fanwire-redis",
        level: 4,
        may_use: &[
            "fanwire-auth",
            "fanwire-broker",
            "fanwire-node",
            "fanwire-protocol",
            "fanwire-telemetry",
        ],
    },
    CrateRule {
        name: "fanwire-traces",
        level: 4,
        may_use: &["fanwire-node", "fanwire-telemetry", "fanwire-tls"],
    },
    CrateRule {
        name: "fanwire-consumers",
        level: 5,
        may_use: &[
            "fanwire-api",
            "fanwire-auth",
            "fanwire-node",
            "fanwire-redis",
            "fanwire-telemetry",
            "fanwire-tls",
        ],
    },
    CrateRule {
        name: "fanwire-durable",
        level: 5,
        may_use: &[
            "fanwire-api",
            "fanwire-auth",
            "fanwire-broker",
            "fanwire-node",
            "fanwire-telemetry",
        ],
    },
    CrateRule {
        name: "fanwire-edge",
        level: 5,
        may_use: &[
            "fanwire-fanout",
            "fanwire-node",
            "fanwire-protocol",
            "fanwire-shard",
            "fanwire-telemetry",
            "fanwire-tls",
            "fanwire-ws",
        ],
    },
    CrateRule {
        name: "fanwire-events",
        level: 5,
        may_use: &[
            "fanwire-auth",
            "fanwire-node",
            "fanwire-redis",
            "fanwire-telemetry",
            "fanwire-tls",
        ],
    },
    CrateRule {
        name: "fanwire-config",
        level: 6,
        may_use: &[
            "fanwire-api",
            "fanwire-auth",
            "fanwire-broker",
            "fanwire-cluster",
            "fanwire-consumers",
            "fanwire-deflate",
            "fanwire-durable",
            "fanwire-edge",
            "fanwire-events",
            "fanwire-policy",
            "fanwire-protocol",
            "fanwire-proxy",
            "fanwire-redis",
            "fanwire-telemetry",
            "fanwire-tls",
        ],
    },
    CrateRule {
        name: "fanwire-metrics",
        level: 6,
        may_use: &[
            "fanwire-api",
            "fanwire-broker",
            "fanwire-cluster",
            "fanwire-consumers",
            "fanwire-edge",
            "fanwire-events",
            "fanwire-fanout",
            "fanwire-node",
            "fanwire-profile",
            "fanwire-proxy",
            "fanwire-redis",
            "fanwire-shard",
            "fanwire-telemetry",
            "fanwire-tls",
        ],
    },
    CrateRule {
        name: "fanwire",
        level: 7,
        may_use: &[
            "fanwire-api",
            "fanwire-area",
            "fanwire-auth",
            "fanwire-broker",
            "fanwire-client",
            "fanwire-cluster",
            "fanwire-config",
            "fanwire-consumers",
            "fanwire-deflate",
            "fanwire-durable",
            "fanwire-edge",
            "fanwire-events",
            "fanwire-fanout",
            "fanwire-metrics",
            "fanwire-node",
            "fanwire-policy",
            "fanwire-profile",
            "fanwire-protocol",
            "fanwire-proxy",
            "fanwire-redis",
            "fanwire-room",
            "fanwire-shard",
            "fanwire-telemetry",
            "fanwire-tls",
            "fanwire-traces",
            "fanwire-ws",
        ],
    },
    CrateRule {
        name: "fanwire-cli",
        level: 8,
        may_use: &[
            "fanwire",
            "fanwire-api",
            "fanwire-auth",
            "fanwire-client",
            "fanwire-config",
            "fanwire-load",
            "fanwire-node",
            "fanwire-telemetry",
            "fanwire-profile",
            "fanwire-tls",
            "fanwire-tune",
        ],
    },
    CrateRule {
        name: "fanwire-bench",
        level: 8,
        may_use: &[
            "fanwire",
            "fanwire-broker",
            "fanwire-deflate",
            "fanwire-load",
            "fanwire-node",
            "fanwire-protocol",
        ],
    },
    CrateRule { name: "fanwire-example-world", level: 8, may_use: &["fanwire"] },
    CrateRule { name: "xtask", level: 0, may_use: &[] },
];

#[cfg(test)]
mod tests;
