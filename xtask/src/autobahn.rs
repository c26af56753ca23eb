//! RFC 6455 and RFC 7692 against the Autobahn TestSuite (PyPI `autobahntestsuite`, which needs a Python 2.7).
//! In: a mode and perhaps the URL of an echo server → out: a summary on the terminal and whether no case failed.
//! May install the suite below `target/autobahn`; starts the echo example itself when no URL is given.
//! Changed here: which cases belong to a mode; how a report is read stands in `report`.

mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::Workspace;
use crate::command::{Server, linted_cargo, must, watch};
use crate::machine::{python, python_2_7};
use report::Report;

/// Runs a mode and prints its summary; `true` when no case failed.
///
/// # Errors
/// When no Python 2.7 is found, the suite cannot be installed or the echo server does not start.
pub(crate) fn main(mode: &str, url: Option<&str>) -> Result<bool> {
    let workspace = Workspace::find()?;
    let python = python_2_7().context("no Python 2.7 found (pyenv versions/2.7*, python2.7)")?;
    let groups = if mode == "quick" { QUICK } else { FULL };
    let report = run(&workspace, &python, groups, url)?;
    Ok(report.failed() == 0)
}

/// Runs groups of cases against `url`, or against the echo example, and prints the summary. Groups that need a flag of the
/// example are left out with a `url`.
///
/// # Errors
/// As [`main`], and when a run ends without a report.
pub(crate) fn run(
    workspace: &Workspace,
    python_2_7: &Path,
    groups: &[Group],
    url: Option<&str>,
) -> Result<Report> {
    let folder = workspace.target.join("autobahn");
    let wstest = install(&folder, python_2_7)?;
    let echo = url.is_none().then(|| build_echo(workspace)).transpose()?;
    let mut report = Report::default();
    for groups in groups.chunk_by(|one, next| one.flags == next.flags) {
        let flags = groups[0].flags;
        let (_server, url) = match (&echo, url) {
            (Some(echo), _) => {
                let (server, url) = start(echo, flags)?;
                (Some(server), url)
            }
            (None, Some(url)) if flags.is_empty() => (None, url.to_owned()),
            (None, _) => continue,
        };
        for group in groups {
            let out = folder.join("reports").join(group.name);
            println!("group {}: {}", group.name, group.cases.join(" "));
            report.add(&run_group(&wstest, group, &url, &out)?);
        }
    }
    println!("{report}");
    Ok(report)
}

/// Repeats that are run in one go.
pub(crate) struct Group {
    name: &'static str,
    cases: &'static [&'static str],
    without: &'static [&'static str],
    /// Flags of the echo example.
    flags: &'static [&'static str],
}

const fn group(name: &'static str, cases: &'static [&'static str]) -> Group {
    Group { name, cases, without: &[], flags: &[] }
}

/// Cases of permessage-deflate in which the messages of the suite refer to its earlier ones.
const fn takeover(name: &'static str, cases: &'static [&'static str]) -> Group {
    Group { name, cases, without: &[], flags: &["--client-takeover"] }
}

/// Framing, pings, reserved bits, opcodes, fragments, UTF-8 (without 6.4.*, whose cases wait for seconds), closing.
pub(crate) const QUICK: &[Group] = &[Group {
    name: "basics",
    cases: &["1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "10.*"],
    without: &["6.4.*"],
    flags: &[],
}];

pub(crate) const FULL: &[Group] = &[
    group("basics", QUICK[0].cases),
    group("limits", &["9.*"]),
    group("deflate-12-1", &["12.1.*"]),
    group("deflate-12-2", &["12.2.*"]),
    group("deflate-12-3", &["12.3.*"]),
    group("deflate-12-4", &["12.4.*"]),
    group("deflate-12-5", &["12.5.*"]),
    group("offers-13-1", &["13.1.*"]),
    group("offers-13-2", &["13.2.*"]),
    group("offers-13-3", &["13.3.*"]),
    group("offers-13-4", &["13.4.*"]),
    group("offers-13-5", &["13.5.*"]),
    group("offers-13-6", &["13.6.*"]),
    group("offers-13-7", &["13.7.*"]),
    takeover("takeover-12-1", &["12.1.*"]),
    takeover("takeover-12-2", &["12.2.*"]),
    takeover("takeover-12-3", &["12.3.*"]),
    takeover("takeover-12-4", &["12.4.*"]),
    takeover("takeover-12-5", &["12.5.*"]),
    takeover("takeover-13-1", &["13.1.*"]),
    takeover("takeover-13-2", &["13.2.*"]),
    takeover("takeover-13-3", &["13.3.*"]),
    takeover("takeover-13-4", &["13.4.*"]),
    takeover("takeover-13-5", &["13.5.*"]),
    takeover("takeover-13-6", &["13.6.*"]),
    takeover("takeover-13-7", &["13.7.*"]),
];

fn run_group(wstest: &Path, group: &Group, url: &str, out: &Path) -> Result<String> {
    let _ = fs::remove_dir_all(out);
    fs::create_dir_all(out)?;
    let settings = out.join("settings.json");
    fs::write(&settings, settings_json(group, url, out))?;
    let log = fs::File::create(out.join("wstest.log"))?;
    let mut wstest = Command::new(wstest);
    wstest.args(["-m", "fuzzingclient", "-s"]).arg(&settings);
    let status = wstest.stdout(log.try_clone()?).stderr(log).status()?;
    let index = out.join("index.json");
    fs::read_to_string(&index)
        .with_context(|| format!("wstest ended with {status} and without {}", index.display()))
}

fn settings_json(group: &Group, url: &str, out: &Path) -> String {
    let list = |cases: &[&str]| cases.iter().map(|case| format!("\"{case}\"")).collect::<Vec<_>>();
    format!(
        r#"{{"outdir":"{}","servers":[{{"agent":"fanwire","url":"{url}"}}],"cases":[{}],"exclude-cases":[{}],"exclude-agent-cases":{{}}}}"#,
        out.display(),
        list(group.cases).join(","),
        list(group.without).join(",")
    )
}

/// Installs the suite once; returns its `wstest` program.
fn install(folder: &Path, python_2_7: &Path) -> Result<PathBuf> {
    let wstest = folder.join("venv/bin/wstest");
    if wstest.is_file() {
        return Ok(wstest);
    }
    let pip = |python: &Path, package: &str| {
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]);
        must(&mut pip)
    };
    let tool = python(&folder.join("tool"))?;
    pip(&tool, VIRTUALENV)?;
    let mut virtualenv = Command::new(&tool);
    virtualenv.args(["-m", "virtualenv", "--quiet", "-p"]).arg(python_2_7);
    must(virtualenv.arg(folder.join("venv")))?;
    pip(&folder.join("venv/bin/python"), SUITE)?;
    Ok(wstest)
}

/// Builds the echo example with the tests: alone it would have other features, and its dependencies be built again.
fn build_echo(workspace: &Workspace) -> Result<PathBuf> {
    let mut build = linted_cargo(workspace);
    if !watch(build.args(["test", "--workspace", "--locked", "--no-run", "--quiet"]))?.success {
        bail!("the echo example does not build");
    }
    Ok(workspace.target.join("debug/examples/echo"))
}

/// Starts the echo example on a free port.
fn start(echo: &Path, flags: &[&str]) -> Result<(Server, String)> {
    Server::start(echo, &[&["127.0.0.1:0"], flags].concat(), |line| {
        let (_, address) = line.split_once("127.0.0.1:")?;
        let port: String = address.chars().take_while(char::is_ascii_digit).collect();
        Some(format!("ws://127.0.0.1:{port}"))
    })
}

/// The last virtualenv that makes environments of Python 2.7.
const VIRTUALENV: &str = "virtualenv==20.21.1";
const SUITE: &str = "autobahntestsuite==25.10.1";
