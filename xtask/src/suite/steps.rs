//! The steps of `cargo xtask test`, one function each.
//! In: where the workspace and its target folder are → out: how many tests of the step passed and failed.
//! May run programs through `command`; what a step needs from the machine it asks `machine` for.
//! A step is a function here and a row of the table in `suite`; how results are counted is in `tally`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use super::binaries;
use super::interop::STACKS;
use super::nextest;
use super::tally::Tally;
use crate::command::{ask, cargo, linted_cargo, must, say, watch};
use crate::{Workspace, autobahn, machine, tidy};

pub(super) fn fmt(workspace: &Workspace) -> Result<Tally> {
    Ok(Tally::of_program(&watch(cargo(workspace).args(["fmt", "--all", "--check"]))?))
}

pub(super) fn clippy(workspace: &Workspace) -> Result<Tally> {
    let mut clippy = cargo(workspace);
    clippy.args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]);
    Ok(Tally::of_program(&watch(&mut clippy)?))
}

pub(super) fn tidy(_house: &Workspace) -> Result<Tally> {
    Ok(Tally::check(tidy::main()?))
}

/// The crates that ARCHITECTURE.md calls pure or without sockets: their tests need neither these nor other programs.
pub(super) fn pure(workspace: &Workspace) -> Result<Tally> {
    let mut test = cargo(workspace);
    test.args(["test", "--locked", "--no-fail-fast"]);
    let page = std::fs::read_to_string(workspace.root.join("ARCHITECTURE.md"))?;
    for folder in tidy::pure_crates(&page) {
        test.arg("--package").arg(folder.replace("crates/", "fanwire-"));
    }
    Ok(Tally::of_cargo(&watch(&mut test)?))
}

/// All that `unit`, `redis` and the suites start is built in one go and in one profile; a finding of clippy is a failure.
pub(super) fn build(workspace: &Workspace) -> Result<Tally> {
    Ok(Tally::of_program(&binaries::build(workspace)?))
}

/// The server as it is packaged, which the suites play to at length.
pub(super) fn dist(workspace: &Workspace) -> Result<Tally> {
    let mut build = cargo(workspace);
    build.args(["build", "--profile=dist", "--locked", "--package=fanwire-cli"]);
    Ok(Tally::of_program(&watch(&mut build)?))
}

/// Everything but the tests with Redis, with message queues and with a certificate authority.
pub(super) fn unit(workspace: &Workspace) -> Result<Tally> {
    nextest::run(workspace, "unit", |test| {
        test.envs(MODELS_AT_LENGTH.into_iter().filter(|_| workspace.at_length));
    })
}

/// The examples in the documentation.
pub(super) fn doc(workspace: &Workspace) -> Result<Tally> {
    Ok(Tally::of_cargo(&watch(linted_cargo(workspace).args([
        "test",
        "--workspace",
        "--locked",
        "--doc",
    ]))?))
}

/// Each starts Redis processes of its own, and waits for them more than it works.
pub(super) fn redis(workspace: &Workspace) -> Result<Tally> {
    nextest::run(workspace, "redis", |_| {})
}

/// Another seed each time, which is printed.
pub(super) fn soak(workspace: &Workspace) -> Result<Tally> {
    let seed = seed()?;
    say(&format!("SOAK_SEED={seed}"));
    nextest::run(workspace, "soak", |test| {
        test.env("SOAK_SEED", &seed).env("SOAK_TROUBLES", "400");
    })
}

/// Tests of Sentinels and Clusters whose master goes, ten times.
pub(super) fn failures(workspace: &Workspace) -> Result<Tally> {
    (0..10).map(|_| nextest::run(workspace, "failures", |_| {})).sum()
}

/// A number that is another one every second.
fn seed() -> Result<String> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    Ok(since.as_secs().to_string())
}

pub(super) fn npm(workspace: &Workspace) -> Result<Tally> {
    let mut npm = Command::new(machine::npm()?);
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    Ok(Tally::of_program(&watch(npm.current_dir(interop(workspace)))?))
}

pub(super) fn pip(workspace: &Workspace) -> Result<Tally> {
    let install = |requirements: &str| -> Result<Command> {
        let mut pip = Command::new(machine::python(&environment(workspace))?);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip.args(["--require-hashes", "--only-binary", ":all:", "-r"]);
        pip.arg(interop(workspace).join("python").join(requirements));
        Ok(pip)
    };
    for (name, folder) in echo_servers(workspace) {
        // A machine whose Python is newer than all wheels of a version does without that one.
        let mut pip = install(&format!("servers/{name}.txt"))?;
        watch(pip.args(["--no-deps", "--upgrade", "--target"]).arg(folder))?;
    }
    Ok(Tally::of_program(&watch(&mut install("requirements.txt")?)?))
}

/// The versions of PyPI websockets that our client meets as servers, by the names of their lock files, with their folders.
fn echo_servers(workspace: &Workspace) -> Vec<(String, PathBuf)> {
    let newest_and_oldest = [15, 10];
    let others: &[u32] = if workspace.at_length { &[11, 12, 13, 14] } else { &[] };
    let versions = newest_and_oldest.iter().chain(others);
    let of_version = |version| {
        let name = format!("websockets-{version}");
        let folder = workspace.target.join("interop").join(&name);
        (name, folder)
    };
    versions.map(of_version).collect()
}

pub(super) fn chromium(_house: &Workspace) -> Result<Tally> {
    say(&machine::chromium()?.display().to_string());
    Ok(Tally::check(true))
}

pub(super) fn firefox(_house: &Workspace) -> Result<Tally> {
    say(&machine::firefox()?.display().to_string());
    Ok(Tally::check(true))
}

/// The Go clients of the mixed suite.
pub(super) fn go_clients_built(workspace: &Workspace) -> Result<Tally> {
    let mut build = go(workspace, "go", "build")?;
    build.arg("-o").arg(go_clients(workspace).join("")).arg("./...");
    Ok(Tally::of_program(&watch(&mut build)?))
}

/// The Go SDK and API client; `-count=1` because a result of yesterday's server is none.
pub(super) fn go_sdk(workspace: &Workspace) -> Result<Tally> {
    let mut test = go(workspace, "go/sdk", "test")?;
    test.args(["-count=1", "-v", "./..."]).env("FANWIRE", server(workspace)?);
    Ok(Tally::of_go(&watch(&mut test)?))
}

/// The same tests and those of deltas with a newer SDK, which needs a newer Go than Debian 12 has.
pub(super) fn go_sdk_next(workspace: &Workspace) -> Result<Tally> {
    let modules = std::fs::read_to_string(interop(workspace).join("go/sdk/next.mod"))?;
    if let Some(reason) = machine::go_too_old(&modules)? {
        return Ok(Tally::left_out(reason));
    }
    let mut test = go(workspace, "go/sdk", "test")?;
    test.args(["-modfile=next.mod", "-tags=next", "-count=1", "-v", "./..."]);
    Ok(Tally::of_go(&watch(test.env("FANWIRE", server(workspace)?))?))
}

/// Stubs of the server API that Go's generators make, whose modules take a minute to compile.
pub(super) fn go_api(workspace: &Workspace) -> Result<Tally> {
    let proto = workspace.root.join("crates/api/proto");
    let folder = interop(workspace).join("go/api");
    let stubs = folder.join("stubs");
    let plugins = workspace.target.join("interop");
    let mut build = go(workspace, "go/api", "build")?;
    build.arg("-o").arg(plugins.join("")).args([
        "google.golang.org/protobuf/cmd/protoc-gen-go",
        "google.golang.org/grpc/cmd/protoc-gen-go-grpc",
    ]);
    must(&mut build)?;
    std::fs::create_dir_all(&stubs)?;
    let mut protoc = Command::new(machine::python(&environment(workspace))?);
    protoc.args(["-m", "grpc_tools.protoc", "-I"]).arg(&proto);
    for plugin in ["go", "go-grpc"] {
        let program = plugins.join(format!("protoc-gen-{plugin}"));
        protoc.arg(format!("--plugin=protoc-gen-{plugin}={}", program.display()));
        protoc.arg(format!("--{plugin}_out={}", stubs.display()));
        protoc.arg(format!("--{plugin}_opt=paths=source_relative"));
        protoc.arg(format!("--{plugin}_opt=Mapi.proto=fanwire.example/interop/api/stubs"));
    }
    must(protoc.arg("api.proto"))?;
    let mut test = go(workspace, "go/api", "test")?;
    test.args(["-count=1", "-v", "./..."]).env("FANWIRE", server(workspace)?);
    Ok(Tally::of_go(&watch(&mut test)?))
}

/// The Helm chart with Helm's engine and the types of Kubernetes, whose modules take minutes to compile.
pub(super) fn chart(workspace: &Workspace) -> Result<Tally> {
    let modules = std::fs::read_to_string(interop(workspace).join("go/chart/go.mod"))?;
    if let Some(reason) = machine::go_too_old(&modules)? {
        return Ok(Tally::left_out(reason));
    }
    let mut test = go(workspace, "go/chart", "test")?;
    Ok(Tally::of_go(&watch(test.args(["-count=1", "-v", "./..."]))?))
}

/// The same commands to another implementation of the protocol, which needs a newer Go than Debian 12 has. At length with a seed of
/// its own.
pub(super) fn oracle(workspace: &Workspace) -> Result<Tally> {
    let modules = std::fs::read_to_string(interop(workspace).join("go/oracle/go.mod"))?;
    if let Some(reason) = machine::go_too_old(&modules)? {
        return Ok(Tally::left_out(reason));
    }
    let mut test = go(workspace, "go/oracle", "test")?;
    // They wait more than they work.
    test.args(["-count=1", "-parallel=16", "-timeout=60m", "-v"])
        .env("FANWIRE", server(workspace)?);
    if workspace.at_length {
        let seed = seed()?;
        say(&format!("ORACLE_SEED={seed}"));
        test.env("ORACLE_SEED", seed).env("ORACLE_LIVES", "10");
    }
    let without = machine::redis().err().map(|error| format!("what is played with Redis: {error}"));
    test.args(without.iter().map(|_| "-skip=WithRedis"));
    let tally = Tally::of_go(&watch(test.arg("./..."))?);
    Ok([Some(tally), without.map(Tally::left_out)].into_iter().flatten().sum())
}

/// The Go that is there, with the modules of go.sum and no others.
pub(super) fn go(workspace: &Workspace, folder: &str, verb: &str) -> Result<Command> {
    let mut go = Command::new(machine::go()?);
    go.args([verb, "-mod=readonly", "-buildvcs=false"])
        .current_dir(interop(workspace).join(folder));
    go.env("GOTOOLCHAIN", "local").env("CGO_ENABLED", "0");
    Ok(go)
}

/// Some of them start a Redis of their own.
pub(super) fn js(workspace: &Workspace) -> Result<Tally> {
    node_suite(workspace, "js")
}

pub(super) fn browser(workspace: &Workspace) -> Result<Tally> {
    node_suite(workspace, "browser")
}

pub(super) fn python(workspace: &Workspace) -> Result<Tally> {
    let mut suite = Command::new(machine::python(&environment(workspace))?);
    suite.args(["-B", "-m", "unittest", "discover", "--verbose"]);
    suite.current_dir(interop(workspace).join("python")).env("FANWIRE", server(workspace)?);
    suite.env("FANWIRE_DELTAS", example(workspace, "deltas"));
    suite.env("FANWIRE_SCRAPE", example(workspace, "scrape"));
    suite.env("FANWIRE_CLIENT", example(workspace, "compression"));
    let servers = echo_servers(workspace).into_iter().map(|(_, folder)| folder);
    suite.env("FANWIRE_WEBSOCKETS", std::env::join_paths(servers)?);
    suite.envs(AT_LENGTH.into_iter().filter(|_| workspace.at_length));
    Ok(Tally::of_unittest(&watch(&mut suite)?))
}

/// Plays the mixed suite to the stacks that were named; to those that need only what the other steps
/// install; or to all.
pub(super) fn stacks(workspace: &Workspace) -> Result<Tally> {
    let quick = ["ws", "undici", "websockets", "aiohttp", "chromium", "ctx", "mixed", "up"];
    let mut names: Vec<&str> = if !workspace.stacks.is_empty() {
        workspace.stacks.iter().map(String::as_str).collect()
    } else if workspace.at_length {
        STACKS.iter().map(|(stack, _)| *stack).collect()
    } else {
        quick.to_vec()
    };
    let without: Vec<String> = names.iter().filter_map(|name| lacking(workspace, name)).collect();
    names.retain(|name| lacking(workspace, name).is_none());
    let mut node = Command::new(machine::node()?);
    node.arg("mixed/run.js").args(names).current_dir(interop(workspace));
    node.env("FANWIRE", server(workspace)?).env("FANWIRE_GO_CLIENTS", go_clients(workspace));
    node.env("FANWIRE_PYTHON", environment(workspace).join("bin/python"));
    let played = Tally::of_node(&watch(&mut node)?);
    Ok(std::iter::once(played).chain(without.into_iter().map(Tally::left_out)).sum())
}

/// The reason why a stack of the mixed suite cannot run here; `None` when it can, and for a scenario.
fn lacking(workspace: &Workspace, stack: &str) -> Option<String> {
    let why = match stack {
        "chromium" => machine::chromium().err()?.to_string(),
        "firefox" => machine::firefox().err()?.to_string(),
        "websockets" | "aiohttp" if !environment(workspace).is_dir() => "no Python packages".into(),
        "coder" | "gws" | "gorilla" if !go_clients(workspace).is_dir() => "no Go clients".into(),
        _ => return None,
    };
    Some(format!("{stack}: {why}"))
}

pub(super) fn autobahn(workspace: &Workspace) -> Result<Tally> {
    let Some(python) = machine::python_2_7() else {
        return Ok(Tally::left_out("no Python 2.7 found, which the Autobahn TestSuite needs"));
    };
    let groups = if workspace.at_length { autobahn::FULL } else { autobahn::QUICK };
    let report = autobahn::run(workspace, &python, groups, None)?;
    Ok(Tally::counted(report.passed(), report.failed()))
}

pub(super) fn churn(workspace: &Workspace) -> Result<Tally> {
    bench(workspace, &["churn", "--all-cores", "--clients", "300", "--seconds", "5", "--stay", "1"])
}

pub(super) fn corpus(workspace: &Workspace) -> Result<Tally> {
    bench(workspace, &["corpus"])
}

/// Plays a scenario of `bench` against the server.
fn bench(workspace: &Workspace, scenario: &[&str]) -> Result<Tally> {
    let mut bench = Command::new(built(workspace, "debug/fanwire-bench")?);
    bench.args(scenario).arg("--server").arg(server(workspace)?);
    Ok(Tally::of_program(&watch(bench.current_dir(&workspace.root))?))
}

/// Runs the `*.test.js` files of a folder with Node's own test runner; a file that takes longer than its limit has failed.
fn node_suite(workspace: &Workspace, folder: &str) -> Result<Tally> {
    let mut node = Command::new(machine::node()?);
    node.args(["--test", "--test-reporter=spec"]);
    // They wait more than they work.
    let options = [("--test-timeout", FILE_MS_MAX), ("--test-concurrency", FILES_AT_ONCE)];
    for (option, value) in options.into_iter().filter(|(option, _)| machine::node_has(option)) {
        node.arg(format!("{option}={value}"));
    }
    let without = machine::redis().err().map(|error| format!("{folder}/redis*.test.js: {error}"));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(interop(workspace).join(folder))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".test.js") && !(without.is_some() && name.starts_with("redis")) {
            files.push(format!("{folder}/{name}"));
        }
    }
    files.sort();
    node.args(files).current_dir(interop(workspace)).env("FANWIRE", server(workspace)?);
    node.env("FANWIRE_DELTAS", example(workspace, "deltas"));
    node.env("FANWIRE_PYTHON", environment(workspace).join("bin/python"));
    node.envs(AT_LENGTH.into_iter().filter(|_| workspace.at_length));
    if folder == "browser" {
        node.env("CHROMIUM", machine::chromium()?);
        // The module with the admin page of Centrifugo; without it, its test is reported as skipped.
        let _ = machine::go().map(|go| ask(go, &["mod", "download", CENTRIFUGO]));
        node.env("FANWIRE_WORLD", built(workspace, "debug/world")?);
        return Ok(Tally::of_node(&watch(&mut node)?));
    }
    let tally = Tally::of_node(&watch(&mut node)?);
    Ok([Some(tally), without.map(Tally::left_out)].into_iter().flatten().sum())
}

/// The server that the suites start: built with the tests, or at length as it is packaged.
pub(super) fn server(workspace: &Workspace) -> Result<PathBuf> {
    if workspace.at_length {
        built(workspace, "dist/fanwire")
    } else {
        built(workspace, "debug/fanwire")
    }
}

/// A program in the target folder.
fn built(workspace: &Workspace, path: &str) -> Result<PathBuf> {
    let program = workspace.target.join(path);
    if !program.is_file() {
        bail!("{} is missing: cargo xtask test build dist", program.display());
    }
    Ok(program)
}

/// An example that suites start.
fn example(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.target.join("debug/examples").join(name)
}

pub(super) fn interop(workspace: &Workspace) -> PathBuf {
    workspace.root.join("tests/interop")
}

fn environment(workspace: &Workspace) -> PathBuf {
    workspace.target.join("interop/venv")
}

fn go_clients(workspace: &Workspace) -> PathBuf {
    workspace.target.join("interop/go")
}

/// Sizes of tests with `--all`.
const AT_LENGTH: [(&str, &str); 5] = [
    ("FANWIRE_COMBINATIONS", "all"),
    ("FANWIRE_ROLLOUT", "5000"),
    ("FANWIRE_RESUME_CLIENTS", "1000"),
    ("FANWIRE_RESUME_SECONDS", "60"),
    ("FANWIRE_MAP_KILLS", "20"),
];
const CENTRIFUGO: &str = "github.com/centrifugal/centrifugo/v6@v6.9.1";
/// The longest that a file of tests may take on a machine that is busy; the longest takes half a minute.
const FILE_MS_MAX: u32 = 600_000;
const FILES_AT_ONCE: u32 = 3;

/// How many lives `crates/node` plays against its models of a stream and of a map, with `--all`.
const MODELS_AT_LENGTH: [(&str, &str); 2] =
    [("FANWIRE_SEQUENCES", "100000"), ("FANWIRE_MAP_SEEDS", "300")];
