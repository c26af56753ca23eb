//! Arrows between the crates: down only, never sideways, and only those of the table.
//! In: the members of the workspace as `cargo metadata` names them → out: a finding per forbidden arrow.
//! May use cargo_metadata; never reads source text, because a crate cannot use what its manifest does not name.
//! A new crate or a new arrow is a row of `HOUSE` here, and a line of ARCHITECTURE.md first.

use std::path::Path;

use anyhow::{Context, Result};

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
            .map(|dependency| dependency.name.clone())
            .collect(),
    });
    Ok(packages.collect())
}

/// Compares the workspace with [`HOUSE`].
pub(crate) fn check(crates: &[Crate]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in crates {
        let manifest = format!("{}/Cargo.toml", member.folder);
        let Some(room) = HOUSE.iter().find(|room| room.name == member.name) else {
            findings.push(Finding::new(&manifest, 0, format!("{} has no level yet", member.name)));
            continue;
        };
        for used in member.uses.iter().filter(|used| !room.may_use.contains(&used.as_str())) {
            findings.push(Finding::new(&manifest, 0, forbidden(room, used)));
        }
    }
    for room in HOUSE.iter().filter(|room| crates.iter().all(|member| member.name != room.name)) {
        findings.push(Finding::new(
            "Cargo.toml",
            0,
            format!("{} is not in the workspace", room.name),
        ));
    }
    findings
}

fn forbidden(room: &Room, used: &str) -> String {
    let Room { name, level, may_use } = room;
    let below = HOUSE.iter().any(|other| other.name == used && other.level < *level);
    let why =
        if below { "an arrow that the table does not have" } else { "an arrow up or sideways" };
    format!("{name} (level {level}) → {used}: {why}; it may use: {}", may_use.join(", "))
}

/// A crate, its level, and the crates of lower levels that it may use.
struct Room {
    name: &'static str,
    level: u8,
    may_use: &'static [&'static str],
}

/// The one table of levels. An arrow must point to a lower level, which a test checks.
const HOUSE: &[Room] = &[
    Room { name: "fanwire-area", level: 0, may_use: &[] },
    Room { name: "fanwire-deflate", level: 0, may_use: &[] },
    Room { name: "fanwire-load", level: 0, may_use: &[] },
    Room { name: "fanwire-profile", level: 0, may_use: &[] },
    Room { name: "fanwire-protocol", level: 0, may_use: &[] },
    Room { name: "fanwire-telemetry", level: 0, may_use: &[] },
    Room { name: "fanwire-auth", level: 1, may_use: &[] },
    Room { name: "fanwire-broker", level: 1, may_use: &["fanwire-protocol"] },
    Room { name: "fanwire-room", level: 1, may_use: &["fanwire-area"] },
    Room { name: "fanwire-tune", level: 1, may_use: &["fanwire-deflate", "fanwire-protocol"] },
    Room { name: "fanwire-ws", level: 1, may_use: &["fanwire-deflate"] },
    Room {
        name: "fanwire-cluster",
        level: 2,
        may_use: &["fanwire-auth", "fanwire-broker", "fanwire-protocol"],
    },
    Room {
        name: "fanwire-node",
        level: 3,
        may_use: &[
            "fanwire-area",
            "fanwire-auth",
            "fanwire-broker",
            "fanwire-cluster",
            "fanwire-protocol",
            "fanwire-telemetry",
        ],
    },
    Room {
        name: "fanwire-shard",
        level: 2,
        may_use: &["fanwire-ws", "fanwire-deflate", "fanwire-telemetry"],
    },
    Room {
        name: "fanwire-api",
        level: 4,
        may_use: &["fanwire-auth", "fanwire-node", "fanwire-broker", "fanwire-telemetry"],
    },
    Room {
        name: "fanwire-brokers",
        level: 4,
        may_use: &["fanwire-broker", "fanwire-node", "fanwire-protocol", "fanwire-telemetry"],
    },
    Room {
        name: "fanwire-fanout",
        level: 4,
        may_use: &[
            "fanwire-auth",
            "fanwire-node",
            "fanwire-broker",
            "fanwire-shard",
            "fanwire-ws",
            "fanwire-protocol",
            "fanwire-deflate",
            "fanwire-telemetry",
        ],
    },
    Room {
        name: "fanwire-config",
        level: 5,
        may_use: &[
            "fanwire-auth",
            "fanwire-api",
            "fanwire-brokers",
            "fanwire-node",
            "fanwire-deflate",
        ],
    },
    Room {
        name: "fanwire-server",
        level: 6,
        may_use: &[
            "fanwire-auth",
            "fanwire-cluster",
            "fanwire-config",
            "fanwire-fanout",
            "fanwire-api",
            "fanwire-area",
            "fanwire-brokers",
            "fanwire-node",
            "fanwire-broker",
            "fanwire-shard",
            "fanwire-ws",
            "fanwire-profile",
            "fanwire-protocol",
            "fanwire-room",
            "fanwire-deflate",
            "fanwire-telemetry",
        ],
    },
    Room {
        name: "fanwire-cli",
        level: 7,
        may_use: &["fanwire-load", "fanwire-profile", "fanwire-server", "fanwire-tune"],
    },
    Room { name: "fanwire-example-world", level: 7, may_use: &["fanwire-server"] },
    Room {
        name: "fanwire-bench",
        level: 7,
        may_use: &[
            "fanwire-load",
            "fanwire-server",
            "fanwire-broker",
            "fanwire-brokers",
            "fanwire-node",
            "fanwire-ws",
            "fanwire-protocol",
            "fanwire-deflate",
        ],
    },
    Room { name: "xtask", level: 0, may_use: &[] },
];

#[cfg(test)]
mod tests;
