//! Tests of the rules: for each kind of observation the faults that are named.
//! In: observations that differ from right ones in one point → out: faults, and whether they are notes.
//! Uses plain values. Never: sockets, a clock.
//! A new rule gets rows here.

use super::*;
use crate::doctor::observation::End;

fn opened() -> Opened {
    Opened {
        reply_after: Some(Duration::from_millis(20)),
        reply: Reply::Connected,
        idle: Duration::from_secs(5),
        end: None,
        emulation: Some(204),
    }
}

fn right() -> Observations {
    let stream = || TransportResult::Opened(opened());
    Observations {
        certificate: Some(Certificate { fault: String::new(), days_left: Some(60) }),
        clock_ahead: Some(2),
        origin: Some(("https://app.example.com".into(), 101)),
        websocket: TransportResult::Opened(Opened { emulation: None, ..opened() }),
        http_stream: stream(),
        sse: stream(),
        deflate: Some(true),
        address: Some(seen("198.51.100.4", "10.0.0.9", "192.0.2.1")),
    }
}

fn seen(by_server: &str, local: &str, of_host: &str) -> SeenAddress {
    let address = |text: &str| text.parse().expect("an address");
    SeenAddress { by_server: address(by_server), local: address(local), of_host: address(of_host) }
}

fn check(change: impl FnOnce(&mut Observations), expected: &[(Fault, bool)]) {
    let mut seen = right();
    change(&mut seen);
    let found: Vec<_> = findings(&seen).iter().map(|one| (one.fault, one.is_note)).collect();
    assert_eq!(found, expected, "{seen:?}");
}

fn answered(status: u16) -> TransportResult {
    TransportResult::Refused(Response { status, ..Response::default() })
}

const PROBLEM: bool = false;
const NOTE: bool = true;

#[test]
fn a_right_server_has_no_findings() {
    check(|_| {}, &[]);
    check(|seen| (seen.certificate, seen.clock_ahead, seen.address) = (None, None, None), &[]);
}

#[test]
fn each_status_of_a_websocket_request_has_its_fault() {
    for (status, fault) in [
        (200, Fault::NotAServer),
        (301, Fault::Redirect),
        (308, Fault::Redirect),
        (400, Fault::UpgradeMissing),
        (403, Fault::Failed),
        (404, Fault::NotRouted),
        (426, Fault::UpgradeMissing),
        (500, Fault::Failed),
        (502, Fault::NoBackend),
        (504, Fault::NoBackend),
    ] {
        check(|seen| seen.websocket = answered(status), &[(fault, PROBLEM)]);
    }
}

#[test]
fn a_stream_that_is_off_is_a_note() {
    check(|seen| seen.sse = answered(404), &[(Fault::NotRouted, NOTE)]);
    check(|seen| seen.http_stream = answered(502), &[(Fault::NoBackend, PROBLEM)]);
    check(|seen| seen.sse = answered(200), &[(Fault::NotAServer, PROBLEM)]);
}

#[test]
fn a_stream_is_buffered_when_its_reply_comes_much_later_than_that_of_the_websocket() {
    let after = |millis: Option<u64>| {
        let reply = if millis.is_some() { Reply::Connected } else { Reply::Missing };
        let reply_after = millis.map(Duration::from_millis);
        TransportResult::Opened(Opened { reply_after, reply, ..opened() })
    };
    check(|seen| seen.sse = after(None), &[(Fault::Buffered, PROBLEM)]);
    check(|seen| seen.sse = after(Some(1_021)), &[(Fault::Buffered, PROBLEM)]);
    check(|seen| seen.sse = after(Some(1_020)), &[]);
    let slow = |seen: &mut Observations| {
        (seen.websocket, seen.sse) = (after(Some(800)), after(Some(1_700)));
    };
    check(slow, &[]);
    check(|seen| seen.websocket = after(None), &[(Fault::Failed, PROBLEM)]);
    let all = |seen: &mut Observations| {
        (seen.websocket, seen.sse) = (TransportResult::Failed("reset".into()), after(None));
    };
    check(all, &[(Fault::Failed, PROBLEM), (Fault::Failed, PROBLEM)]);
}

#[test]
fn an_end_without_a_code_of_the_server_is_a_cut() {
    let ended = |code, reply| {
        let end = Some(End { after: Duration::from_secs(1), code });
        TransportResult::Opened(Opened { end, reply, ..opened() })
    };
    let cut = [(Fault::IdleCut, PROBLEM)];
    check(|seen| seen.websocket = ended(None, Reply::Connected), &cut);
    check(|seen| seen.sse = ended(None, Reply::Connected), &cut);
    let shut_down = [(Fault::NotChecked, NOTE)];
    check(|seen| seen.websocket = ended(Some(3001), Reply::Connected), &shut_down);
    check(|seen| seen.sse = ended(None, Reply::Missing), &[(Fault::Failed, PROBLEM)]);
}

#[test]
fn the_reply_to_connect_may_be_a_refusal_or_foreign() {
    let replied = |reply| TransportResult::Opened(Opened { reply, ..opened() });
    let refused = Reply::Refused { code: 3500, text: "invalid token".into() };
    check(|seen| seen.websocket = replied(refused), &[(Fault::ConnectRefused, PROBLEM)]);
    let foreign = Reply::Foreign("<html>".into());
    check(|seen| seen.sse = replied(foreign), &[(Fault::NotAServer, PROBLEM)]);
}

#[test]
fn commands_of_streams_need_their_endpoint() {
    let posted = |status| TransportResult::Opened(Opened { emulation: Some(status), ..opened() });
    check(|seen| seen.sse = posted(404), &[(Fault::EmulationNotRouted, PROBLEM)]);
    check(|seen| seen.sse = posted(200), &[]);
}

#[test]
fn an_address_is_lost_when_that_of_a_proxy_is_seen_and_forged_when_the_clients_text_is() {
    for (by_server, local, of_host, expected) in [
        ("127.0.0.1", "127.0.0.1", "127.0.0.1", None),
        ("127.0.0.2", "127.0.0.1", "127.0.0.1", Some(Fault::AddressLost)),
        ("10.1.2.3", "192.168.1.5", "192.0.2.1", Some(Fault::AddressLost)),
        ("100.64.0.1", "192.168.1.5", "192.0.2.1", Some(Fault::AddressLost)),
        ("192.0.2.1", "192.168.1.5", "192.0.2.1", Some(Fault::AddressLost)),
        ("fd00::1", "2001:db8::5", "2001:db8::1", Some(Fault::AddressLost)),
        ("::ffff:10.1.2.3", "192.168.1.5", "192.0.2.1", Some(Fault::AddressLost)),
        ("203.0.113.7", "192.168.1.5", "192.0.2.1", Some(Fault::AddressForged)),
        ("198.51.100.4", "192.168.1.5", "192.0.2.1", None),
        ("2001:db8::5", "2001:db8::5", "2001:db8::1", None),
    ] {
        let expected: Vec<_> = expected.map(|fault| (fault, PROBLEM)).into_iter().collect();
        check(|all| all.address = Some(seen(by_server, local, of_host)), &expected);
    }
}

#[test]
fn certificates_clocks_origins_and_compression() {
    let certificate =
        |fault: &str, days| Some(Certificate { fault: fault.to_owned(), days_left: Some(days) });
    let refused = [(Fault::Certificate, PROBLEM)];
    check(|seen| seen.certificate = certificate("expired", -3), &refused);
    check(|seen| seen.certificate = certificate("", 13), &[(Fault::CertificateEnds, PROBLEM)]);
    check(|seen| seen.certificate = certificate("", 14), &[]);
    check(|seen| seen.clock_ahead = Some(11), &[(Fault::Clock, PROBLEM)]);
    check(|seen| seen.clock_ahead = Some(-11), &[(Fault::Clock, PROBLEM)]);
    check(|seen| seen.clock_ahead = Some(-10), &[]);
    let origin = |seen: &mut Observations| seen.origin = Some(("https://x".into(), 403));
    check(origin, &[(Fault::OriginRefused, PROBLEM)]);
    check(|seen| seen.deflate = Some(false), &[(Fault::DeflateStripped, PROBLEM)]);
}

#[test]
fn notes_come_after_problems() {
    let change = |seen: &mut Observations| {
        (seen.sse, seen.deflate) = (answered(404), Some(false));
    };
    check(change, &[(Fault::DeflateStripped, PROBLEM), (Fault::NotRouted, NOTE)]);
}
