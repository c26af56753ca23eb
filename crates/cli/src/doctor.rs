//! `fanwire doctor`: connects as clients do, through the proxies in between, and says what breaks and how to mend it.
//! In: an address and options → out: a report as text or JSON; exit codes 0, 1 and 2.
//! Uses `probe` to look and `rules` to judge. Never: changes anything at the server.
//! Changed here: the form of the report; docs/doctor.md explains the findings.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::arguments::Doctor;
use crate::document;
use observation::{Observations, Reply, TransportResult};
use rules::Finding;

mod observation;
mod probe;
mod remedies;
mod rules;
mod stream;

/// Prints errors itself: without observations the code is 2.
pub(crate) fn run(arguments: &Doctor) -> ExitCode {
    check(arguments).unwrap_or_else(|error| {
        // An error of stderr must not cause a panic.
        let _ = writeln!(std::io::stderr(), "fanwire: {error:#}");
        ExitCode::from(NOTHING_CHECKED)
    })
}

fn check(arguments: &Doctor) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let seen = runtime.block_on(probe::observe(arguments))?;
    let findings = rules::findings(&seen);
    document::print(&if arguments.json {
        format!("{:#}\n", as_json(&seen, &findings))
    } else {
        as_text(&seen, &findings)
    })?;
    let has_problem = findings.iter().any(|finding| !finding.is_note);
    Ok(if has_problem { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Writes a line for each check, then the findings. Equal remedies are written once.
fn as_text(seen: &Observations, findings: &[Finding]) -> String {
    let mut out = String::new();
    for (name, value) in facts(seen) {
        // Writing to a String does not fail.
        let _ = writeln!(out, "{name:<12} {value}");
    }
    if findings.is_empty() {
        out.push_str("\nnothing found\n");
    }
    for (index, finding) in findings.iter().enumerate() {
        let severity = if finding.is_note { "note" } else { "problem" };
        let _ = write!(out, "\n{severity}: {}\n", finding.text);
        let next = findings.get(index + 1);
        if next.is_none_or(|next| next.fault != finding.fault) {
            for (place, line) in finding.fault.remedies() {
                let _ = writeln!(out, "  {place:<13} {line}");
            }
        }
    }
    out
}

fn as_json(seen: &Observations, findings: &[Finding]) -> Value {
    let one = |finding: &Finding| {
        let remedies: Map<String, Value> = finding
            .fault
            .remedies()
            .iter()
            .map(|(place, line)| ((*place).to_owned(), json!(line)))
            .collect();
        let severity = if finding.is_note { "note" } else { "problem" };
        json!({
            "check": finding.fault.name(), "severity": severity, "text": finding.text,
            "remedies": remedies,
        })
    };
    let facts: Map<String, Value> =
        facts(seen).into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
    json!({ "seen": facts, "findings": findings.iter().map(one).collect::<Vec<_>>() })
}

/// Returns each check with its result, also where nothing is wrong; a check that could not be made says so.
fn facts(seen: &Observations) -> Vec<(&'static str, String)> {
    let mut facts: Vec<(&'static str, String)> =
        seen.transports().into_iter().map(|(name, outcome)| (name, shown(outcome))).collect();
    let not_checked = |why: &str| format!("not checked: {why}");
    let deflate = match seen.deflate {
        Some(true) => "permessage-deflate".to_owned(),
        Some(false) => "none".to_owned(),
        None => not_checked("there is no WebSocket"),
    };
    let certificate = match &seen.certificate {
        None => "no TLS".to_owned(),
        Some(one) if !one.fault.is_empty() => one.fault.clone(),
        Some(one) => one.days_left.map_or("right".into(), |days| format!("right, for {days} days")),
    };
    let address = match &seen.address {
        Some(seen) => format!("{}, here {}", seen.by_server, seen.local),
        None => not_checked("give --api, --key and a --token with a user"),
    };
    let origin = match &seen.origin {
        Some((origin, status)) => format!("{origin}: {status}"),
        None => not_checked("give --origin"),
    };
    let clock = match seen.clock_ahead {
        Some(ahead) => format!("{ahead:+} s"),
        None => not_checked("no response has a Date"),
    };
    let others = [
        ("compression", deflate),
        ("certificate", certificate),
        ("origin", origin),
        ("address", address),
        ("clock", clock),
    ];
    facts.extend(others);
    facts
}

fn shown(outcome: &TransportResult) -> String {
    match outcome {
        TransportResult::Failed(why) => why.clone(),
        TransportResult::Refused(response) => format!("status {}", response.status),
        TransportResult::Opened(opened) => {
            let first = opened.reply_after.map_or("no reply".to_owned(), |after| {
                format!("first reply after {} ms", after.as_millis())
            });
            match (&opened.reply, &opened.end) {
                (Reply::Connected, None) => {
                    format!("{first}, open after {} s without data", opened.idle.as_secs())
                }
                (_, Some(end)) => format!("{first}, ended {:.1} s later", end.after.as_secs_f64()),
                _ => first,
            }
        }
    }
}

const NOTHING_CHECKED: u8 = 2;
