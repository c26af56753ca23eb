//! The program `fanwire-bench`: one subcommand per scenario.
//! In: a subcommand with its flags → out: its table, and exit code 1 when a bar or a check is missed.
//! Uses the library `fanwire_bench`.
//! Change here how scenarios are called; what they do lives in the module of their name.
#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use fanwire_bench::{
    areas, awake, bare, broadcast, churn, connects, corpus, fanout, handshakes, hot, idle, keys,
    names, presence, rate, refusals, room, stream,
};
use std::process::ExitCode;

/// Measures Fanwire as ratios against something measured in the same run, and checks it with real input.
#[derive(Parser)]
#[command(name = "fanwire-bench", version)]
struct Arguments {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Subcommand)]
enum Scenario {
    Fanout(fanout::Fanout),
    Idle(idle::Idle),
    Connects(connects::Connects),
    Handshakes(handshakes::Handshakes),
    Corpus(corpus::Corpus),
    Churn(churn::Churn),
    Presence(presence::Presence),
    Broadcast(broadcast::Broadcast),
    Rate(rate::Rate),
    Hot(hot::Hot),
    Refusals(refusals::Refusals),
    Stream(stream::Stream),
    Names(names::Names),
    Room(room::Room),
    Areas(areas::Areas),
    AreaServer(areas::server::AreaServer),
    RoomServer(room::server::RoomServer),
    Keys(keys::Keys),
    Bare(bare::Bare),
    Spin(awake::Spin),
}

fn main() -> anyhow::Result<ExitCode> {
    let passed = match Arguments::parse().scenario {
        Scenario::Fanout(fanout) => fanout.run()?,
        Scenario::Idle(idle) => idle.run()?,
        Scenario::Connects(connects) => connects.run()?,
        Scenario::Handshakes(handshakes) => handshakes.run()?,
        Scenario::Corpus(corpus) => corpus.run()?,
        Scenario::Churn(churn) => churn.run()?,
        Scenario::Presence(presence) => presence.run()?,
        Scenario::Broadcast(broadcast) => broadcast.run()?,
        Scenario::Rate(rate) => rate.run()?,
        Scenario::Hot(hot) => hot.run()?,
        Scenario::Refusals(refusals) => refusals.run()?,
        Scenario::Stream(stream) => stream.run()?,
        Scenario::Names(names) => names.run()?,
        Scenario::Room(room) => room.run()?,
        Scenario::Areas(areas) => areas.run()?,
        Scenario::AreaServer(server) => server.run().map(|()| true)?,
        Scenario::RoomServer(server) => server.run().map(|()| true)?,
        Scenario::Keys(keys) => keys.run()?,
        Scenario::Bare(bare) => bare.run().map(|()| true)?,
        Scenario::Spin(spin) => spin.run().map(|()| true)?,
    };
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
