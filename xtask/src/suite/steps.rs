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
use crate::{House, autobahn, machine, tidy};

pub(super) fn fmt(house: &House) -> Result<Tally> {
    Ok(Tally::of_program(&watch(cargo(house).args(["fmt", "--all", "--check"]))?))
}

pub(super) fn clippy(house: &House) -> Result<Tally> {
    let mut clippy = cargo(house);
    clippy.args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]);
    Ok(Tally::of_program(&watch(&mut clippy)?))
}

pub(super) fn tidy(_house: &House) -> Result<Tally> {
    Ok(Tally::check(tidy::main()?))
}

/// The crates that ARCHITECTURE.md calls pure or without sockets: their tests need neither these nor other programs.
pub(super) fn pure(house: &House) -> Result<Tally> {
    let mut test = cargo(house);
    test.args(["test", "--locked", "--no-fail-fast"]);
    let page = std::fs::read_to_string(house.root.join("ARCHITECTURE.md"))?;
    for folder in tidy::pure_crates(&page) {
        test.arg("--package").arg(folder.replace("crates/", "fanwire-"));
    }
    Ok(Tally::of_cargo(&watch(&mut test)?))
}

/// All that `unit`, `redis` and the suites start is built in one go and in one profile; a finding of clippy is a failure.
pub(super) fn build(house: &House) -> Result<Tally> {
    Ok(Tally::of_program(&binaries::build(house)?))
}

/// The server as it is packaged, which the suites play to at length.
pub(super) fn dist(house: &House) -> Result<Tally> {
    let mut build = cargo(house);
    build.args(["build", "--profile=dist", "--locked", "--package=fanwire-cli"]);
    Ok(Tally::of_program(&watch(&mut build)?))
}

/// Everything but the tests with Redis, with message queues and with a certificate authority.
pub(super) fn unit(house: &House) -> Result<Tally> {
    nextest::run(house, "unit", |test| {
        test.envs(house.at_length.then_some((SEQUENCES, "100000")));
    })
}

/// The examples in the documentation.
pub(super) fn doc(house: &House) -> Result<Tally> {
    Ok(Tally::of_cargo(&watch(linted_cargo(house).args([
        "test",
        "--workspace",
        "--locked",
        "--doc",
    ]))?))
}

/// Each starts Redis processes of its own, and waits for them more than it works.
pub(super) fn redis(house: &House) -> Result<Tally> {
    nextest::run(house, "redis", |_| {})
}

/// Another seed each time, which is printed.
pub(super) fn soak(house: &House) -> Result<Tally> {
    let seed = seed()?;
    say(&format!("SOAK_SEED={seed}"));
    nextest::run(house, "soak", |test| {
        test.env("SOAK_SEED", &seed).env("SOAK_TROUBLES", "400");
    })
}

/// Tests of Sentinels and Clusters whose master goes, ten times.
pub(super) fn failures(house: &House) -> Result<Tally> {
    (0..10).map(|_| nextest::run(house, "failures", |_| {})).sum()
}

/// A number that is another one every second.
fn seed() -> Result<String> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    Ok(since.as_secs().to_string())
}

pub(super) fn npm(house: &House) -> Result<Tally> {
    let mut npm = Command::new(machine::npm()?);
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    Ok(Tally::of_program(&watch(npm.current_dir(interop(house)))?))
}

pub(super) fn pip(house: &House) -> Result<Tally> {
    let mut pip = Command::new(machine::python(&environment(house))?);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip.args(["--require-hashes", "--only-binary", ":all:", "-r"]);
    Ok(Tally::of_program(&watch(pip.arg(interop(house).join("python/requirements.txt")))?))
}

pub(super) fn chromium(_house: &House) -> Result<Tally> {
    say(&machine::chromium()?.display().to_string());
    Ok(Tally::check(true))
}

pub(super) fn firefox(_house: &House) -> Result<Tally> {
    say(&machine::firefox()?.display().to_string());
    Ok(Tally::check(true))
}

/// The Go clients of the mixed suite.
pub(super) fn go_clients_built(house: &House) -> Result<Tally> {
    let mut build = go(house, "go", "build")?;
    build.arg("-o").arg(go_clients(house).join("")).arg("./...");
    Ok(Tally::of_program(&watch(&mut build)?))
}

/// The Go SDK and API client; `-count=1` because a result of yesterday's server is none.
pub(super) fn go_sdk(house: &House) -> Result<Tally> {
    let mut test = go(house, "go/sdk", "test")?;
    test.args(["-count=1", "-v", "./..."]).env("FANWIRE", server(house)?);
    Ok(Tally::of_go(&watch(&mut test)?))
}

/// The same tests and those of deltas with a newer SDK, which needs a newer Go than Debian 12 has.
pub(super) fn go_sdk_next(house: &House) -> Result<Tally> {
    let modules = std::fs::read_to_string(interop(house).join("go/sdk/next.mod"))?;
    if let Some(reason) = machine::go_too_old(&modules)? {
        return Ok(Tally::left_out(reason));
    }
    let mut test = go(house, "go/sdk", "test")?;
    test.args(["-modfile=next.mod", "-tags=next", "-count=1", "-v", "./..."]);
    Ok(Tally::of_go(&watch(test.env("FANWIRE", server(house)?))?))
}

/// Stubs of the server API that Go's generators make, whose modules take a minute to compile.
pub(super) fn go_api(house: &House) -> Result<Tally> {
    let (proto, folder) = (house.root.join("crates/api/proto"), interop(house).join("go/api"));
    let (stubs, plugins) = (folder.join("stubs"), house.target.join("interop"));
    let mut build = go(house, "go/api", "build")?;
    build.arg("-o").arg(plugins.join("")).args([
        "google.golang.org/protobuf/cmd/protoc-gen-go",
        "google.golang.org/grpc/cmd/protoc-gen-go-grpc",
    ]);
    must(&mut build)?;
    std::fs::create_dir_all(&stubs)?;
    let mut protoc = Command::new(machine::python(&environment(house))?);
    protoc.args(["-m", "grpc_tools.protoc", "-I"]).arg(&proto);
    for plugin in ["go", "go-grpc"] {
        let program = plugins.join(format!("protoc-gen-{plugin}"));
        protoc.arg(format!("--plugin=protoc-gen-{plugin}={}", program.display()));
        protoc.arg(format!("--{plugin}_out={}", stubs.display()));
        protoc.arg(format!("--{plugin}_opt=paths=source_relative"));
        protoc.arg(format!("--{plugin}_opt=Mapi.proto=fanwire.example/interop/api/stubs"));
    }
    must(protoc.arg("api.proto"))?;
    let mut test = go(house, "go/api", "test")?;
    test.args(["-count=1", "-v", "./..."]).env("FANWIRE", server(house)?);
    Ok(Tally::of_go(&watch(&mut test)?))
}

/// The Helm chart with Helm's engine and the types of Kubernetes, whose modules take minutes to compile.
pub(super) fn chart(house: &House) -> Result<Tally> {
    let modules = std::fs::read_to_string(interop(house).join("go/chart/go.mod"))?;
    if let Some(reason) = machine::go_too_old(&modules)? {
        return Ok(Tally::left_out(reason));
    }
    let mut test = go(house, "go/chart", "test")?;
    Ok(Tally::of_go(&watch(test.args(["-count=1", "-v", "./..."]))?))
}

/// The same commands to another implementation of the protocol, which needs a newer Go than Debian 12 has. At length with a seed of
/// its own.
pub(super) fn oracle(house: &House) -> Result<Tally> {
    let modules = std::fs::read_to_string(interop(house).join("go/oracle/go.mod"))?;
    if let Some(reason) = machine::go_too_old(&modules)? {
        return Ok(Tally::left_out(reason));
    }
    let mut test = go(house, "go/oracle", "test")?;
    // They wait more than they work.
    test.args(["-count=1", "-parallel=16", "-timeout=60m", "-v"]).env("FANWIRE", server(house)?);
    if house.at_length {
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
pub(super) fn go(house: &House, folder: &str, verb: &str) -> Result<Command> {
    let mut go = Command::new(machine::go()?);
    go.args([verb, "-mod=readonly", "-buildvcs=false"]).current_dir(interop(house).join(folder));
    go.env("GOTOOLCHAIN", "local").env("CGO_ENABLED", "0");
    Ok(go)
}

/// Some of them start a Redis of their own.
pub(super) fn js(house: &House) -> Result<Tally> {
    node_suite(house, "js")
}

pub(super) fn browser(house: &House) -> Result<Tally> {
    node_suite(house, "browser")
}

pub(super) fn python(house: &House) -> Result<Tally> {
    let mut suite = Command::new(machine::python(&environment(house))?);
    suite.args(["-B", "-m", "unittest", "discover", "--verbose"]);
    suite.current_dir(interop(house).join("python")).env("FANWIRE", server(house)?);
    suite.env("FANWIRE_DELTAS", example(house, "deltas"));
    suite.env("FANWIRE_SCRAPE", example(house, "scrape"));
    Ok(Tally::of_unittest(&watch(&mut suite)?))
}

/// Plays the mixed suite to the stacks that were named; to those that need only what the other steps
/// install; or to all.
pub(super) fn stacks(house: &House) -> Result<Tally> {
    let quick = ["ws", "undici", "websockets", "aiohttp", "chromium", "ctx", "mixed", "up"];
    let mut names: Vec<&str> = match house.stacks.is_empty() {
        false => house.stacks.iter().map(String::as_str).collect(),
        true if house.at_length => STACKS.iter().map(|(stack, _)| *stack).collect(),
        true => quick.to_vec(),
    };
    let without: Vec<String> = names.iter().filter_map(|name| lacking(house, name)).collect();
    names.retain(|name| lacking(house, name).is_none());
    let mut node = Command::new(machine::node()?);
    node.arg("mixed/run.js").args(names).current_dir(interop(house));
    node.env("FANWIRE", server(house)?).env("FANWIRE_GO_CLIENTS", go_clients(house));
    node.env("FANWIRE_PYTHON", environment(house).join("bin/python"));
    let played = Tally::of_node(&watch(&mut node)?);
    Ok(std::iter::once(played).chain(without.into_iter().map(Tally::left_out)).sum())
}

/// Why a stack of the mixed suite cannot be played here; `None` when it can, and for a scenario.
fn lacking(house: &House, stack: &str) -> Option<String> {
    let why = match stack {
        "chromium" => machine::chromium().err()?.to_string(),
        "firefox" => machine::firefox().err()?.to_string(),
        "websockets" | "aiohttp" if !environment(house).is_dir() => "no Python packages".into(),
        "coder" | "gws" | "gorilla" if !go_clients(house).is_dir() => "no Go clients".into(),
        _ => return None,
    };
    Some(format!("{stack}: {why}"))
}

pub(super) fn autobahn(house: &House) -> Result<Tally> {
    let Some(python) = machine::python_2_7() else {
        return Ok(Tally::left_out("no Python 2.7 found, which the Autobahn TestSuite needs"));
    };
    let groups = if house.at_length { autobahn::FULL } else { autobahn::QUICK };
    let report = autobahn::run(house, &python, groups, None)?;
    Ok(Tally::counted(report.passed(), report.failed()))
}

pub(super) fn churn(house: &House) -> Result<Tally> {
    bench(house, &["churn", "--all-cores", "--clients", "300", "--seconds", "5", "--stay", "1"])
}

pub(super) fn corpus(house: &House) -> Result<Tally> {
    bench(house, &["corpus"])
}

/// Plays a scenario of `bench` against the server.
fn bench(house: &House, scenario: &[&str]) -> Result<Tally> {
    let mut bench = Command::new(built(house, "debug/fanwire-bench")?);
    bench.args(scenario).arg("--server").arg(server(house)?);
    Ok(Tally::of_program(&watch(bench.current_dir(&house.root))?))
}

/// Runs the `*.test.js` files of a folder with Node's own test runner; a file that takes longer than its limit has failed.
fn node_suite(house: &House, folder: &str) -> Result<Tally> {
    let mut node = Command::new(machine::node()?);
    node.args(["--test", "--test-reporter=spec"]);
    // They wait more than they work.
    let options = [("--test-timeout", FILE_MS_MAX), ("--test-concurrency", FILES_AT_ONCE)];
    for (option, value) in options.into_iter().filter(|(option, _)| machine::node_has(option)) {
        node.arg(format!("{option}={value}"));
    }
    let without = machine::redis().err().map(|error| format!("{folder}/redis*.test.js: {error}"));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(interop(house).join(folder))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".test.js") && !(without.is_some() && name.starts_with("redis")) {
            files.push(format!("{folder}/{name}"));
        }
    }
    files.sort();
    node.args(files).current_dir(interop(house)).env("FANWIRE", server(house)?);
    node.env("FANWIRE_DELTAS", example(house, "deltas"));
    node.env("FANWIRE_PYTHON", environment(house).join("bin/python"));
    node.envs(AT_LENGTH.into_iter().filter(|_| house.at_length));
    if folder == "browser" {
        node.env("CHROMIUM", machine::chromium()?);
        // The module with the admin page of Centrifugo; without it, its test is reported as skipped.
        let _ = machine::go().map(|go| ask(go, &["mod", "download", CENTRIFUGO]));
        node.env("FANWIRE_WORLD", built(house, "debug/world")?);
        return Ok(Tally::of_node(&watch(&mut node)?));
    }
    let tally = Tally::of_node(&watch(&mut node)?);
    Ok([Some(tally), without.map(Tally::left_out)].into_iter().flatten().sum())
}

/// The server that the suites start: built with the tests, or at length as it is packaged.
pub(super) fn server(house: &House) -> Result<PathBuf> {
    match house.at_length {
        true => built(house, "dist/fanwire"),
        false => built(house, "debug/fanwire"),
    }
}

/// A program in the target folder.
fn built(house: &House, path: &str) -> Result<PathBuf> {
    let program = house.target.join(path);
    if !program.is_file() {
        bail!("{} is missing: cargo xtask test build dist", program.display());
    }
    Ok(program)
}

/// An example that suites start.
fn example(house: &House, name: &str) -> PathBuf {
    house.target.join("debug/examples").join(name)
}

pub(super) fn interop(house: &House) -> PathBuf {
    house.root.join("tests/interop")
}

fn environment(house: &House) -> PathBuf {
    house.target.join("interop/venv")
}

fn go_clients(house: &House) -> PathBuf {
    house.target.join("interop/go")
}

/// Sizes of tests with `--all`.
const AT_LENGTH: [(&str, &str); 3] = [
    ("FANWIRE_ROLLOUT", "5000"),
    ("FANWIRE_RESUME_CLIENTS", "1000"),
    ("FANWIRE_RESUME_SECONDS", "60"),
];
/// The longest that a file of tests may take on a machine that is busy; the longest takes half a minute.
const CENTRIFUGO: &str = "github.com/centrifugal/centrifugo/v6@v6.9.1";
const FILE_MS_MAX: u32 = 600_000;
const FILES_AT_ONCE: u32 = 3;

/// How many sequences `crates/node` plays against its model of a stream.
const SEQUENCES: &str = "FANWIRE_SEQUENCES";
