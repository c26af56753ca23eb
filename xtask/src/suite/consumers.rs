//! The steps with message queues: a NATS server, built from Go modules, and the tests that start queues.
//! In: where the workspace and its target folder are → out: a program in the target folder; passed and failed tests.
//! May run Go, and the tests through `nextest`; without a queue's program its tests are skipped, with the reason.
//! Which version of NATS is used is changed in tests/interop/go/nats; a queue is a row of `QUEUES`.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::nextest;
use super::steps::{go, interop};
use super::tally::Tally;
use crate::command::{cargo, watch};
use crate::{Workspace, machine};

/// The NATS server, in the versions of go.sum.
pub(super) fn nats(workspace: &Workspace) -> Result<Tally> {
    let modules = std::fs::read_to_string(interop(workspace).join("go/nats/go.mod"))?;
    if let Some(reason) = machine::go_too_old(&modules)? {
        return Ok(Tally::left_out(reason));
    }
    let mut build = go(workspace, "go/nats", "build")?;
    build.arg("-o").arg(nats_server(workspace)).arg("github.com/nats-io/nats-server/v2");
    Ok(Tally::of_program(&watch(&mut build)?))
}

/// Each test starts queues of its own, and waits for them more than it works.
pub(super) fn tests(workspace: &Workspace) -> Result<Tally> {
    let lacking: Vec<(&str, String)> = QUEUES
        .iter()
        .filter_map(|queue| Some((queue.tests, (queue.find)(workspace).err()?.to_string())))
        .collect();
    let run = nextest::run(workspace, "consumers", |test| {
        test.env("FANWIRE_NATS_SERVER", nats_server(workspace));
        let lacked: Vec<String> =
            lacking.iter().map(|(module, _)| format!("not test(/^{module}/)")).collect();
        if !lacked.is_empty() {
            test.arg("-E").arg(lacked.join(" & "));
        }
    })?;
    let left_out =
        lacking.into_iter().map(|(module, why)| Tally::left_out(format!("{module} {why}")));
    Ok(std::iter::once(run).chain(left_out).sum())
}

/// librdkafka is built in C, which takes a minute, and has brokers for tests.
pub(super) fn kafka(workspace: &Workspace) -> Result<Tally> {
    let mut test = cargo(workspace);
    test.args(["test", "--locked", "--package=fanwire-consumers", "--features=kafka", "kafka"]);
    Ok(Tally::of_cargo(&watch(&mut test)?))
}

fn nats_server(workspace: &Workspace) -> PathBuf {
    workspace.target.join("interop/nats-server")
}

/// A module of tests with the program that it needs.
struct Queue {
    tests: &'static str,
    find: fn(&Workspace) -> Result<()>,
}

const QUEUES: [Queue; 4] = [
    Queue { tests: "pgbouncer::", find: |_| machine::pgbouncer().map(drop) },
    Queue { tests: "postgres::", find: |_| machine::postgres().map(drop) },
    Queue { tests: "redis_stream::", find: |_| machine::redis().map(drop) },
    Queue {
        tests: "jetstream::",
        find: |workspace| {
            let is_there = nats_server(workspace).is_file();
            is_there.then_some(()).context("no NATS server: cargo xtask test nats")
        },
    },
];
