//! RFC 6455 and RFC 7692 against the Autobahn TestSuite (PyPI `autobahntestsuite`, which needs a Python 2.7).
//! In: a mode and perhaps the URL of an echo server → out: a summary on the terminal and whether no case failed.
//! May install the suite below `target/autobahn`; starts the echo example itself when no URL is given.
//! Which cases belong to a mode is changed here; how a report is read stands in `report`.

mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::House;
use crate::command::{Server, must, watch};
use crate::machine::{python, python_2_7};
use report::Report;

/// Runs a mode and prints its summary; `true` when no case failed.
///
/// # Errors
/// When no Python 2.7 is found, the suite cannot be installed or the echo server does not start.
pub(crate) fn main(mode: &str, url: Option<&str>) -> Result<bool> {
    let house = House::find()?;
    let python = python_2_7().context("no Python 2.7 found (pyenv versions/2.7*, python2.7)")?;
    let groups = if mode == "quick" { QUICK } else { FULL };
    let report = run(&house, &python, groups, url)?;
    Ok(report.failed() == 0)
}

/// Runs groups of cases against `url`, or against the echo example, and prints the summary.
///
/// # Errors
/// As [`main`], and when a run ends without a report.
pub(crate) fn run(
    house: &House,
    python_2_7: &Path,
    groups: &[Group],
    url: Option<&str>,
) -> Result<Report> {
    let folder = house.target.join("autobahn");
    let wstest = install(&folder, python_2_7)?;
    let (_server, url) = match url {
        Some(url) => (None, url.to_owned()),
        None => {
            let (server, url) = echo(house)?;
            (Some(server), url)
        }
    };
    let mut report = Report::default();
    for group in groups {
        let out = folder.join("reports").join(group.name);
        println!("group {}: {}", group.name, group.cases.join(" "));
        report.add(&run_group(&wstest, group, &url, &out)?);
    }
    println!("{report}");
    Ok(report)
}

/// Repeats that are run in one go.
pub(crate) struct Group {
    name: &'static str,
    cases: &'static [&'static str],
    without: &'static [&'static str],
}

/// Framing, pings, reserved bits, opcodes, fragments, UTF-8 (without 6.4.*, whose cases wait for seconds), closing.
pub(crate) const QUICK: &[Group] = &[Group {
    name: "basics",
    cases: &["1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "10.*"],
    without: &["6.4.*"],
}];

pub(crate) const FULL: &[Group] = &[
    Group { name: "basics", cases: QUICK[0].cases, without: &[] },
    Group { name: "limits", cases: &["9.*"], without: &[] },
    Group { name: "deflate-12-1", cases: &["12.1.*"], without: &[] },
    Group { name: "deflate-12-2", cases: &["12.2.*"], without: &[] },
    Group { name: "deflate-12-3", cases: &["12.3.*"], without: &[] },
    Group { name: "deflate-12-4", cases: &["12.4.*"], without: &[] },
    Group { name: "deflate-12-5", cases: &["12.5.*"], without: &[] },
    Group { name: "offers-13-1", cases: &["13.1.*"], without: &[] },
    Group { name: "offers-13-2", cases: &["13.2.*"], without: &[] },
    Group { name: "offers-13-3", cases: &["13.3.*"], without: &[] },
    Group { name: "offers-13-4", cases: &["13.4.*"], without: &[] },
    Group { name: "offers-13-5", cases: &["13.5.*"], without: &[] },
    Group { name: "offers-13-6", cases: &["13.6.*"], without: &[] },
    Group { name: "offers-13-7", cases: &["13.7.*"], without: &[] },
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

/// Builds the echo example as the tests are built, and starts it on a free port.
fn echo(house: &House) -> Result<(Server, String)> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--workspace", "--locked", "--example", "echo"]);
    if !watch(build.current_dir(&house.root))?.success {
        bail!("the echo example does not build");
    }
    let program = house.target.join("debug/examples/echo");
    Server::start(&program, &["127.0.0.1:0"], |line| {
        let (_, address) = line.split_once("127.0.0.1:")?;
        let port: String = address.chars().take_while(char::is_ascii_digit).collect();
        Some(format!("ws://127.0.0.1:{port}"))
    })
}

/// The last virtualenv that makes environments of Python 2.7.
const VIRTUALENV: &str = "virtualenv==20.21.1";
const SUITE: &str = "autobahntestsuite==25.10.1";
