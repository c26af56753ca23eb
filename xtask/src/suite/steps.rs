//! The steps of `cargo xtask test`, one function each.
//! In: where the workspace and its target folder are → out: how many tests of the step passed and failed.
//! May run programs through `command`; what a step needs from the machine it asks `machine` for.
//! A step is a function here and a row of the table in `suite`; how results are counted is in `tally`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use super::machine;
use super::tally::Tally;
use crate::command::watch;
use crate::{House, autobahn, tidy};

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

/// Those of the Redis engine start a Redis of their own.
pub(super) fn unit(house: &House) -> Result<Tally> {
    println!("{}", machine::redis()?.display());
    let mut test = cargo(house);
    test.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    Ok(Tally::of_cargo(&watch(&mut test)?))
}

/// The same packages as `cargo run --release`, so that neither builds again what the other built; and the example whose
/// deltas the suites compare, as `unit` builds it.
pub(super) fn build(house: &House) -> Result<Tally> {
    let server = ["build", "--release", "--locked"].as_slice();
    let example = ["build", "--locked", "-p", "fanwire-protocol", "--example", "deltas"].as_slice();
    let built = [server, example].map(|words| watch(cargo(house).args(words)));
    built.into_iter().map(|outcome| Ok(Tally::of_program(&outcome?))).sum()
}

pub(super) fn npm(house: &House) -> Result<Tally> {
    machine::node()?;
    let mut npm = Command::new("npm");
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
    println!("{}", machine::chromium()?.display());
    Ok(Tally::check(true))
}

pub(super) fn firefox(_house: &House) -> Result<Tally> {
    println!("{}", machine::firefox()?.display());
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

/// Another implementation of the protocol beside ours, which needs a newer Go than Debian 12 has.
pub(super) fn oracle(house: &House) -> Result<Tally> {
    let modules = std::fs::read_to_string(interop(house).join("go/oracle/go.mod"))?;
    if let Some(reason) = machine::go_too_old(&modules)? {
        return Ok(Tally::left_out(reason));
    }
    println!("{}", machine::redis()?.display());
    let mut test = go(house, "go/oracle", "test")?;
    // They wait more than they work.
    test.args(["-count=1", "-parallel=8", "-v", "./..."]).env("FANWIRE", server(house)?);
    Ok(Tally::of_go(&watch(&mut test)?))
}

/// The Go that is there, with the modules of go.sum and no others.
fn go(house: &House, folder: &str, verb: &str) -> Result<Command> {
    let mut go = Command::new(machine::go()?);
    go.args([verb, "-mod=readonly", "-buildvcs=false"]).current_dir(interop(house).join(folder));
    go.env("GOTOOLCHAIN", "local").env("CGO_ENABLED", "0");
    Ok(go)
}

/// Some of them start a Redis of their own.
pub(super) fn js(house: &House) -> Result<Tally> {
    println!("{}", machine::redis()?.display());
    node_suite(house, "js")
}

pub(super) fn browser(house: &House) -> Result<Tally> {
    node_suite(house, "browser")
}

pub(super) fn python(house: &House) -> Result<Tally> {
    let mut suite = Command::new(machine::python(&environment(house))?);
    suite.args(["-B", "-m", "unittest", "discover", "--verbose"]);
    suite.current_dir(interop(house).join("python")).env("FANWIRE", server(house)?);
    suite.env("FANWIRE_DELTAS", deltas(house));
    Ok(Tally::of_unittest(&watch(&mut suite)?))
}

/// The stacks that need nothing beside what the other steps install.
pub(super) fn quick_mixed(house: &House) -> Result<Tally> {
    mixed(house, &["ws", "undici", "websockets", "aiohttp", "chromium", "ctx", "mixed"])
}

/// Runs the mixed suite with names of stacks and scenarios, none meaning all.
pub(super) fn mixed(house: &House, names: &[&str]) -> Result<Tally> {
    let mut node = Command::new("node");
    node.arg("mixed/run.js").args(names).current_dir(interop(house));
    node.env("FANWIRE", server(house)?).env("FANWIRE_GO_CLIENTS", go_clients(house));
    node.env("FANWIRE_PYTHON", environment(house).join("bin/python"));
    Ok(Tally::of_node(&watch(&mut node)?))
}

pub(super) fn autobahn(house: &House) -> Result<Tally> {
    let Some(python) = machine::python_2_7() else {
        return Ok(Tally::left_out("no Python 2.7 found, which the Autobahn TestSuite needs"));
    };
    let report = autobahn::run(house, &python, autobahn::QUICK, None)?;
    Ok(Tally::counted(report.passed(), report.failed()))
}

pub(super) fn churn(house: &House) -> Result<Tally> {
    bench(house, &["churn", "--all-cores", "--clients", "300", "--seconds", "5", "--stay", "1"])
}

pub(super) fn corpus(house: &House) -> Result<Tally> {
    bench(house, &["corpus"])
}

/// Plays a scenario of `bench` against the release server.
fn bench(house: &House, scenario: &[&str]) -> Result<Tally> {
    let mut bench = cargo(house);
    bench.args(["run", "--release", "--locked", "-p", "fanwire-bench", "--"]).args(scenario);
    Ok(Tally::of_program(&watch(bench.arg("--server").arg(server(house)?))?))
}

/// Runs the `*.test.js` files of a folder with Node's own test runner; a file that takes longer than its limit has failed.
fn node_suite(house: &House, folder: &str) -> Result<Tally> {
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=spec"]);
    if machine::node_has("--test-timeout") {
        node.arg(format!("--test-timeout={FILE_MS_MAX}"));
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(interop(house).join(folder))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".test.js") {
            files.push(format!("{folder}/{name}"));
        }
    }
    files.sort();
    node.args(files).current_dir(interop(house)).env("FANWIRE", server(house)?);
    node.env("FANWIRE_DELTAS", deltas(house));
    if folder == "browser" {
        node.env("CHROMIUM", machine::chromium()?);
    }
    Ok(Tally::of_node(&watch(&mut node)?))
}

/// The release binary that the suites start.
fn server(house: &House) -> Result<PathBuf> {
    let server = house.target.join("release/fanwire");
    if !server.is_file() {
        bail!("{} is missing: cargo xtask test build", server.display());
    }
    Ok(server)
}

/// The example that makes and applies deltas on a pipe.
fn deltas(house: &House) -> PathBuf {
    house.target.join("debug/examples/deltas")
}

fn cargo(house: &House) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(&house.root);
    cargo
}

fn interop(house: &House) -> PathBuf {
    house.root.join("tests/interop")
}

fn environment(house: &House) -> PathBuf {
    house.target.join("interop/venv")
}

fn go_clients(house: &House) -> PathBuf {
    house.target.join("interop/go")
}

/// The longest that a file of tests may take on a machine that is busy; the longest takes half a minute.
const FILE_MS_MAX: u32 = 600_000;
