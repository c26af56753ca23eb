//! The program `fanwire-bench`: one subcommand per scenario.
//! In: a subcommand with its flags → out: its table, and exit code 1 when a bar or a check is missed.
//! Uses the library `fanwire_bench`.
//! Changed here: how scenarios are called; what they do lives in the module of their name.
#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use fanwire_bench::{
    areas, awake, bare, bare_http, broadcast, churn, connects, corpus, distance, fanout,
    handshakes, idle, plots, polls, proof, proxy, publish, restart, room, shed,
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
    Broadcast(broadcast::Broadcast),
    Proxy(proxy::Proxy),
    Publish(publish::Publish),
    Plots(plots::Plots),
    Polls(polls::Polls),
    Room(room::Room),
    Areas(areas::Areas),
    AreaServer(areas::server::AreaServer),
    Restart(restart::Restart),
    Shed(shed::Shed),
    Proof(proof::Proof),
    Distance(distance::Distance),
    RoomServer(room::server::RoomServer),
    Bare(bare::Bare),
    BareHttp(bare_http::BareHttp),
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
        Scenario::Broadcast(broadcast) => broadcast.run()?,
        Scenario::Proxy(proxy) => proxy.run()?,
        Scenario::Publish(publish) => publish.run()?,
        Scenario::Plots(plots) => plots.run()?,
        Scenario::Polls(polls) => polls.run()?,
        Scenario::Room(room) => room.run()?,
        Scenario::Areas(areas) => areas.run()?,
        Scenario::AreaServer(server) => server.run().map(|()| true)?,
        Scenario::Restart(restart) => restart.run()?,
        Scenario::Shed(shed) => shed.run()?,
        Scenario::Proof(proof) => proof.run()?,
        Scenario::Distance(distance) => distance.run()?,
        Scenario::RoomServer(server) => server.run().map(|()| true)?,
        Scenario::Bare(bare) => bare.run().map(|()| true)?,
        Scenario::BareHttp(bare) => bare.run().map(|()| true)?,
        Scenario::Spin(spin) => spin.run().map(|()| true)?,
    };
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
