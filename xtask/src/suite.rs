//! `cargo xtask check`, `test` and `test --all`: which steps there are, and in which order and company they run.
//! In: names of steps, none meaning all of a speed → out: a header and a time per step, what failed, a table, and the sums.
//! May run cargo, npm, pip and apt-get; goes on after a failed step, so that one run shows everything.
//! The order is the tables here; what a step does stands in `steps`, how they run side by side in `lanes`.

mod acme;
mod binaries;
mod consumers;
mod durable;
mod interop;
mod lanes;
mod nextest;
mod packages;
mod steps;
mod summary;
mod tally;
mod tools;

use anyhow::{Result, bail};

use crate::Workspace;
pub(crate) use interop::main as interop;
use lanes::Stage;
use tally::Tally;

/// While editing: the checks of the text, and the tests of the crates without sockets.
///
/// # Errors
/// When the workspace cannot be read.
pub(crate) fn check() -> Result<bool> {
    Ok(lanes::run(&Workspace::find()?, &lanes::chosen(CHECK, |_| true)))
}

/// Runs the named steps, or all but those at length, or with `--all` these, too; `true` when nothing failed.
///
/// # Errors
/// When a name is unknown or the workspace cannot be read.
pub(crate) fn main(words: &[&str]) -> Result<bool> {
    let workspace = Workspace { at_length: words.contains(&"--all"), ..Workspace::find()? };
    let names: Vec<&str> = words.iter().copied().filter(|word| *word != "--all").collect();
    let is_known = |name: &&str| lanes::steps(STAGES).any(|step| step.name == *name);
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        let known: Vec<&str> = lanes::steps(STAGES).map(|step| step.name).collect();
        bail!("no step is called {unknown}; the steps are: {}", known.join(" "));
    }
    let is_chosen = |step: &Step| {
        if names.is_empty() {
            workspace.at_length || !step.is_long
        } else {
            names.contains(&step.name)
        }
    };
    Ok(lanes::run(&workspace, &lanes::chosen(STAGES, is_chosen)))
}

/// A piece of work with a name and a result.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    name: &'static str,
    what: &'static str,
    run: fn(&Workspace) -> Result<Tally>,
    /// Whether only `--all` runs it, or its name.
    is_long: bool,
}

const fn step(
    name: &'static str,
    what: &'static str,
    run: fn(&Workspace) -> Result<Tally>,
) -> Step {
    Step { name, what, run, is_long: false }
}

const fn long(step: Step) -> Step {
    Step { is_long: true, ..step }
}

const CHECK: &[Stage] = &[&[&[FMT, TIDY, CLIPPY, PURE]]];

/// Stages of all suites. The build and the installation do not wait for each other; the suites need both. Each suite
/// starts servers at ports of its own, and most of them wait more than they work. The longest begin first.
const STAGES: &[Stage] = &[
    &[&[FMT, TIDY, BUILD, long(DIST)], &[NPM, PIP, GO_CLIENTS, PEBBLE, NATS, long(FIREFOX)]],
    &[
        &[UNIT],
        &[AUTOBAHN],
        &[DOC],
        &[ORACLE],
        &[JS],
        &[long(DURABLE)],
        &[GO],
        &[GO_NEXT, long(GO_API), long(CHART)],
        &[PYTHON],
        // Of these each counts on ports that stay free while its Redis is away.
        &[REDIS, long(SOAK), long(FAILURES)],
        &[CONSUMERS, long(KAFKA)],
        &[ACME],
        &[INTEROP],
        &[BROWSER],
        &[CORPUS],
        &[long(PACKAGES), long(SITE)],
        &[CHURN],
    ],
];

const FMT: Step = step("fmt", "rustfmt changes nothing", steps::fmt);
const TIDY: Step = step("tidy", "the rules of the workspace", steps::tidy);
const CLIPPY: Step = step("clippy", "no warning in any target", steps::clippy);
const PURE: Step = step("pure", "tests of the crates without sockets", steps::pure);
const BUILD: Step =
    step("build", "tests, examples, the server, with clippy, all in one profile", steps::build);
const DIST: Step = step("dist", "the server as it is packaged, for the suites", steps::dist);
const NPM: Step = step("npm", "npm packages from the lock file", steps::npm);
const PIP: Step = step("pip", "Python packages from the lock file", steps::pip);
const GO_CLIENTS: Step =
    step("go-clients", "Go WebSocket clients, modules as in go.sum", steps::go_clients_built);
const PEBBLE: Step =
    step("pebble", "a certificate authority for tests, modules as in go.sum", acme::pebble);
const NATS: Step = step("nats", "a NATS server for tests, modules as in go.sum", consumers::nats);
const UNIT: Step =
    step("unit", "tests of the workspace but those with Redis, queues or Pebble", steps::unit);
const CONSUMERS: Step =
    step("consumers", "tests that start PostgreSQL, Redis and NATS", consumers::tests);
const KAFKA: Step = step("kafka", "tests with librdkafka and its brokers", consumers::kafka);
const DOC: Step = step("doc", "the examples in the documentation", steps::doc);
const ACME: Step = step("acme", "tests that order certificates from Pebble", acme::tests);
const REDIS: Step = step("redis", "tests that start Redis, Sentinels and Clusters", steps::redis);
const SOAK: Step = step("soak", "hundreds of failures of a Redis, one after another", steps::soak);
const FAILURES: Step =
    step("failures", "Sentinels and Clusters lose masters, again and again", steps::failures);
const JS: Step =
    step("js", "npm centrifuge and ws against the server, fossil-delta against ours", steps::js);
const DURABLE: Step = step(
    "durable",
    "the conformance suite of Durable Streams, where Node.js is new enough",
    durable::tests,
);
const PYTHON: Step =
    step("python", "PyPI centrifuge-python, cent, websockets and prometheus-client", steps::python);
const GO: Step = step("go", "Go centrifuge-go and gocent", steps::go_sdk);
const GO_NEXT: Step = step(
    "go-next",
    "a newer Go centrifuge-go, with deltas, where Go is new enough",
    steps::go_sdk_next,
);
const GO_API: Step =
    step("go-api", "stubs of the server API that Go's generators make", steps::go_api);
const CHART: Step = step("chart", "the Helm chart, with Helm's own engine", steps::chart);
const ORACLE: Step = step(
    "oracle",
    "the same commands to the centrifuge Go library, where Go is new enough",
    steps::oracle,
);
const BROWSER: Step = step("browser", "pages in Chromium, streams in Firefox too", steps::browser);
const INTEROP: Step = step("interop", "real WebSocket stacks; all nine with --all", steps::stacks);
const AUTOBAHN: Step =
    step("autobahn", "the quick groups of Autobahn; every case with --all", steps::autobahn);
const CHURN: Step = step("churn", "300 clients come and go for 5 s", steps::churn);
const CORPUS: Step = step("corpus", "real messages to 1,000 subscribers", steps::corpus);
const PACKAGES: Step =
    step("packages", "packages on a clean Debian, AArch64 under qemu", packages::packages);
const SITE: Step = step("site", "links and search of the documentation as a site", packages::site);
const CHROMIUM: Step = step("chromium", "a browser", steps::chromium);
const FIREFOX: Step = step("firefox", "another browser", steps::firefox);
