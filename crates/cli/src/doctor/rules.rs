//! Rules of `fanwire doctor`: which observation is a fault, and which one.
//! In: observations → out: findings, the most urgent first.
//! Pure. Never: sockets, a clock; lines that mend a fault are in `remedies`.
//! Changed here: a rule or a limit.

use std::net::IpAddr;
use std::time::Duration;

use super::observation::{
    Certificate, Observations, Opened, Reply, Response, SeenAddress, TransportResult,
};

#[cfg(test)]
mod tests;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) fault: Fault,
    /// Whether it may be as intended; such a finding does not change the exit code.
    pub(crate) is_note: bool,
    pub(crate) text: String,
}

/// Kinds of faults; the order is that of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    Certificate,
    CertificateEnds,
    Redirect,
    NoBackend,
    NotRouted,
    NotAServer,
    Failed,
    UpgradeMissing,
    OriginRefused,
    ConnectRefused,
    Buffered,
    IdleCut,
    EmulationNotRouted,
    DeflateStripped,
    AddressLost,
    AddressForged,
    Clock,
    NotChecked,
}

/// Judges what was seen.
pub(crate) fn findings(seen: &Observations) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(seen.certificate.as_ref().and_then(certificate));
    if let Some((origin, status @ (401 | 403))) = &seen.origin {
        let text = format!("a page of {origin} is refused with {status}");
        findings.push(problem(Fault::OriginRefused, text));
    }
    let reference = opened(&seen.websocket).and_then(|opened| opened.reply_after);
    for (name, outcome) in seen.transports() {
        match outcome {
            TransportResult::Failed(why) => {
                findings.push(problem(Fault::Failed, format!("{name}: {why}")));
            }
            TransportResult::Refused(response) => findings.push(refused(name, response)),
            TransportResult::Opened(opened) => stream(name, opened, reference, &mut findings),
        }
    }
    if seen.deflate == Some(false) {
        let text = "permessage-deflate was offered and is not in the answer".to_owned();
        findings.push(problem(Fault::DeflateStripped, text));
    }
    findings.extend(seen.address.as_ref().and_then(address));
    if let Some(ahead) = seen.clock_ahead.filter(|ahead| ahead.abs() > CLOCK_SECONDS_MAX) {
        let direction = if ahead > 0 { "ahead of" } else { "behind" };
        let text = format!("the server's clock is {} s {direction} this machine's", ahead.abs());
        findings.push(problem(Fault::Clock, text));
    }
    findings.sort_by_key(|finding| (finding.is_note, finding.fault));
    findings
}

fn problem(fault: Fault, text: String) -> Finding {
    Finding { fault, is_note: false, text }
}

fn note(fault: Fault, text: String) -> Finding {
    Finding { fault, is_note: true, text }
}

fn opened(outcome: &TransportResult) -> Option<&Opened> {
    if let TransportResult::Opened(opened) = outcome { Some(opened) } else { None }
}

fn certificate(seen: &Certificate) -> Option<Finding> {
    if !seen.fault.is_empty() {
        let text = format!("the certificate is refused: {}", seen.fault);
        return Some(problem(Fault::Certificate, text));
    }
    let days = seen.days_left.filter(|days| *days < CERTIFICATE_DAYS_MIN)?;
    Some(problem(Fault::CertificateEnds, format!("the certificate ends in {days} days")))
}

/// Judges a response that begins no stream. HTTP streams and SSE are off by default.
fn refused(name: &str, response: &Response) -> Finding {
    let Response { status, server, location, text } = response;
    let is_websocket = name == "WebSocket";
    let by = if server.is_empty() { String::new() } else { format!(", by {server}") };
    let said = if text.is_empty() { String::new() } else { format!(": {text}") };
    let answer = format!("{name}: the answer is {status}{by}{said}");
    match status {
        301 | 302 | 303 | 307 | 308 => {
            problem(Fault::Redirect, format!("{name}: redirected to {location}"))
        }
        502..=504 => problem(Fault::NoBackend, answer),
        404 if !is_websocket => note(Fault::NotRouted, answer),
        404 => problem(Fault::NotRouted, answer),
        400 | 405 | 426 if is_websocket => problem(Fault::UpgradeMissing, answer),
        200 => problem(Fault::NotAServer, answer),
        _ => problem(Fault::Failed, answer),
    }
}

fn stream(name: &str, opened: &Opened, reference: Option<Duration>, findings: &mut Vec<Finding>) {
    let Opened { reply_after, reply, idle, end, emulation } = opened;
    let is_websocket = name == "WebSocket";
    let allowed = reference.unwrap_or_default() + BUFFERED_AFTER;
    match (reply_after, reference) {
        (None, Some(reference)) if end.is_none() && !is_websocket => {
            let reference = reference.as_millis();
            let text = format!("{name}: no reply to connect; by WebSocket it took {reference} ms");
            findings.push(problem(Fault::Buffered, text));
        }
        (Some(after), Some(reference)) if !is_websocket && *after > allowed => {
            let after = after.as_millis();
            let reference = reference.as_millis();
            let text = format!("{name}: the first reply took {after} ms, {reference} by WebSocket");
            findings.push(problem(Fault::Buffered, text));
        }
        (None, None) if end.is_none() => {
            findings.push(problem(Fault::Failed, format!("{name}: no reply to connect")));
        }
        _ => {}
    }
    match reply {
        Reply::Missing if end.is_some() => {
            findings
                .push(problem(Fault::Failed, format!("{name}: it ended before the first reply")));
        }
        Reply::Refused { code, text } => {
            let text = format!("{name}: connect is refused: {code} {text}");
            findings.push(problem(Fault::ConnectRefused, text));
        }
        Reply::Foreign(text) => {
            let text = format!("{name}: not a message of the client protocol: {text}");
            findings.push(problem(Fault::NotAServer, text));
        }
        Reply::Connected | Reply::Missing => {}
    }
    if let (Reply::Connected, Some(end)) = (reply, end) {
        let after = end.after.as_secs_f64();
        findings.push(match end.code {
            None => problem(Fault::IdleCut, format!("{name}: cut after {after:.1} s without data")),
            Some(code) => {
                let idle = idle.as_secs();
                let text = format!("{name}: the server ended it with {code} within {idle} s");
                note(Fault::NotChecked, text)
            }
        });
    }
    if let Some(status) = emulation.filter(|status| !(200..300).contains(status)) {
        let text = format!("{name}: commands cannot be sent: /emulation answers {status}");
        findings.push(problem(Fault::EmulationNotRouted, text));
    }
}

/// Judges the address of this client. A server that sees another public address may be right: that of a gateway here.
fn address(seen: &SeenAddress) -> Option<Finding> {
    let SeenAddress { by_server, local, of_host } = seen;
    if by_server == &FORGED {
        let text = format!("a client chose its own address by X-Forwarded-For: {FORGED}");
        return Some(problem(Fault::AddressForged, text));
    }
    let is_of_proxy = by_server == of_host || is_internal(*by_server);
    let text = || format!("the server sees {by_server}, which is a proxy, in place of {local}");
    (by_server != local && is_of_proxy).then(|| problem(Fault::AddressLost, text()))
}

/// Whether no client on the internet has such an address (RFC 1918, RFC 4193, RFC 6598).
fn is_internal(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            let is_shared = first == 100 && (64..128).contains(&second);
            v4.is_private() || v4.is_loopback() || v4.is_link_local() || is_shared
        }
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

/// The address that the probe claims to have (TEST-NET-3, RFC 5737).
pub(crate) const FORGED: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 7));

/// A reply that takes so much longer than that of the WebSocket was kept by a proxy.
const BUFFERED_AFTER: Duration = Duration::from_secs(1);
/// Tokens are made on one machine and checked on another one; libraries allow some seconds.
const CLOCK_SECONDS_MAX: i64 = 10;
/// ACME renews 30 days before the end.
const CERTIFICATE_DAYS_MIN: i64 = 14;
