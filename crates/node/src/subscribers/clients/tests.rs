//! Tests of `clients`: who comes and goes before and after the first question is found, or is not.
//! In: sessions with ids of the test's own → out: their indices.
//! Uses: the table and bare sessions. Never: a hub; who is left out is tested in `tests/it/exclusion.rs`.
//! Changed here: tests of `subscribers/clients.rs`.

use std::time::{Duration, Instant};

use fanwire_protocol::Encoding;
use uuid::Uuid;

use super::*;
use crate::client_apps::ClientApps;
use crate::clock::Clock;
use crate::session::{CommandSource, ConnectionInfo, ConnectionKey, Phase};

fn session(index: u32, phase: Phase) -> Option<Session> {
    let encoding = Encoding::Json;
    let hello = ConnectionInfo {
        encoding,
        frame_ping: true,
        transport: "websocket",
        command_source: CommandSource::Connection,
        user: None,
        last_event_id: None,
        headers: Vec::new(),
    };
    let app = ClientApps::default().shared("websocket", "", "", Default::default());
    let now = Instant::now();
    let stale_at = Clock::new(now, 0).moment(now + Duration::from_secs(25));
    let key = ConnectionKey { index, generation: 1 };
    let mut session = Session::new(key, hello, app, false, "".into(), stale_at);
    session.id = Uuid::from_u128(u128::from(index));
    session.phase = phase;
    Some(session)
}

fn id(index: u32) -> ClientId {
    ClientId::from_bytes(u128::from(index).to_be_bytes())
}

#[test]
fn connected_clients_are_found_whenever_they_came() {
    let mut clients = Clients::default();
    let mut sessions: Vec<_> = (0..100).map(|index| session(index, Phase::Connected)).collect();
    sessions.push(session(100, Phase::Open));
    sessions.push(None);
    for index in 0..100 {
        assert_eq!(clients.find(id(index), &sessions), Some(index));
    }
    assert_eq!(clients.find(id(100), &sessions), None, "it waits for its connect");
    assert_eq!(clients.find(id(101), &sessions), None, "it is on another shard");
    for index in (0..100).step_by(2) {
        clients.remove(index, id(index));
        sessions[index as usize] = None;
    }
    for index in 102..1000 {
        sessions.push(session(index, Phase::Connected));
        clients.add(index, &sessions);
    }
    for index in (0..100).chain(102..1000) {
        let is_here = index >= 100 || index % 2 == 1;
        assert_eq!(clients.find(id(index), &sessions), is_here.then_some(index));
    }
}

#[test]
fn who_comes_and_goes_before_the_first_question_costs_nothing() {
    let mut clients = Clients::default();
    clients.add(0, &[session(0, Phase::Connected)]);
    clients.remove(0, id(0));
    assert!(clients.0.is_none());
}
