//! The programs that the steps need, and their installation before the first step.
//! In: the names of the steps of a run → out: one line that says what is installed and for what; the tools that cannot be had.
//! May install Debian packages through `machine`; never fails a run: a step without its tool is skipped, and the summary says so.
//! A new requirement is a row of `TOOLS` here; where its program is found is decided in `machine`.

use std::fmt;

use anyhow::{Context, Result};

use crate::command::ask;
use crate::machine;

/// A tool that is not there and cannot be installed, with the steps that cannot be run without it.
pub(super) struct Missing {
    name: &'static str,
    why: String,
    pub(super) steps: &'static [&'static str],
}

impl Missing {
    pub(super) fn new(name: &'static str, why: &str, steps: &'static [&'static str]) -> Self {
        Self { name, why: why.to_owned(), steps }
    }
}

/// The reason why a step was not run.
impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs {}: {}", self.name, self.why)
    }
}

/// Installs what the named steps need and the machine lacks, all of it at once.
pub(super) fn install(steps: &[&str]) -> Vec<Missing> {
    let lacking: Vec<&Tool> =
        TOOLS.iter().filter(|tool| tool.is_for(steps) && (tool.find)().is_err()).collect();
    if lacking.is_empty() {
        return Vec::new();
    }
    println!("{}", plan(&lacking, steps));
    let packages: Vec<&str> = lacking.iter().map(|tool| tool.package).collect();
    let is_whole = machine::install(&packages).is_ok();
    let one_by_one = lacking.into_iter().filter_map(|tool| {
        let alone = if is_whole { Ok(()) } else { machine::install(&[tool.package]) };
        let error = alone.and_then(|()| (tool.find)()).err()?;
        Some(Missing::new(tool.name, &format!("{error:#}"), tool.needed_by))
    });
    one_by_one.inspect(|missing| println!("{missing}")).collect()
}

/// Lists the tools to install, and the steps that need them.
fn plan(lacking: &[&Tool], steps: &[&str]) -> String {
    let part = |tool: &&Tool| {
        let users = [tool.needed_by, tool.used_by].concat();
        let of: Vec<&str> = users.into_iter().filter(|step| steps.contains(step)).collect();
        format!("{} for {}", tool.package, of.join(", "))
    };
    let parts: Vec<String> = lacking.iter().map(part).collect();
    format!("installing Debian packages: {}", parts.join("; "))
}

/// A program, its Debian package, the steps that need it, and those that leave out a part without it.
struct Tool {
    name: &'static str,
    package: &'static str,
    /// The reason why it is not there, or not new enough.
    find: fn() -> Result<()>,
    needed_by: &'static [&'static str],
    used_by: &'static [&'static str],
}

impl Tool {
    fn is_for(&self, steps: &[&str]) -> bool {
        steps.iter().any(|step| self.needed_by.contains(step) || self.used_by.contains(step))
    }
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "Node.js",
        package: "nodejs",
        find: || machine::node().map(drop),
        needed_by: &["npm", "js", "browser", "interop", "durable", "packages", "site"],
        used_by: &[],
    },
    Tool {
        name: "npm",
        package: "npm",
        find: || machine::npm().map(drop),
        needed_by: &["npm", "js", "browser", "interop", "durable"],
        used_by: &[],
    },
    Tool {
        name: "Python 3 with venv",
        package: "python3-venv",
        find: || {
            ask("python3", &["-c", "import ensurepip, venv"])
                .map(drop)
                .context("no python3 with venv")
        },
        needed_by: &[
            "unit",
            "acme",
            "redis",
            "consumers",
            "soak",
            "failures",
            "pip",
            "python",
            "autobahn",
            "go-api",
            "packages",
        ],
        used_by: &["interop"],
    },
    Tool {
        name: "Go",
        package: "golang-go",
        find: || machine::go().map(drop),
        needed_by: &[
            "go",
            "go-next",
            "oracle",
            "go-clients",
            "pebble",
            "nats",
            "chart",
            "go-api",
            "packages",
        ],
        used_by: &["browser"],
    },
    Tool {
        name: "Redis",
        package: "redis-tools",
        find: || machine::redis().map(drop),
        needed_by: &["redis", "soak", "failures"],
        used_by: &["unit", "js", "oracle", "consumers"],
    },
    Tool {
        name: "PostgreSQL",
        package: "postgresql",
        find: || machine::postgres().map(drop),
        needed_by: &[],
        used_by: &["consumers", "js"],
    },
    Tool {
        name: "PgBouncer",
        package: "pgbouncer",
        find: || machine::pgbouncer().map(drop),
        needed_by: &[],
        used_by: &["consumers"],
    },
    Tool {
        name: "nginx",
        package: "nginx-light",
        find: || machine::service("nginx"),
        needed_by: &[],
        used_by: &["unit"],
    },
    Tool {
        name: "HAProxy",
        package: "haproxy",
        find: || machine::service("haproxy"),
        needed_by: &[],
        used_by: &["unit"],
    },
    Tool {
        name: "debootstrap",
        package: "debootstrap",
        find: || machine::service("debootstrap"),
        needed_by: &["packages"],
        used_by: &[],
    },
    Tool {
        name: "qemu for AArch64",
        package: "qemu-user-static",
        find: || machine::program(&["qemu-aarch64-static"]).map(drop),
        needed_by: &["packages"],
        used_by: &[],
    },
    Tool {
        name: "buildah",
        package: "buildah",
        find: || machine::program(&["buildah"]).map(drop),
        needed_by: &[],
        used_by: &["packages"],
    },
    Tool {
        name: "rpm",
        package: "rpm",
        find: || machine::program(&["rpm"]).map(drop),
        needed_by: &["packages"],
        used_by: &[],
    },
    Tool {
        name: "Chromium",
        package: "chromium",
        find: || machine::chromium().map(drop),
        needed_by: &["browser", "chromium"],
        used_by: &["interop"],
    },
    Tool {
        name: "Firefox",
        package: "firefox-esr",
        find: || machine::firefox().map(drop),
        needed_by: &["firefox"],
        used_by: &["browser"],
    },
];

#[cfg(test)]
mod tests;
