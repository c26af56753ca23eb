//! Ten million connections on forty nodes: what each thing costs, and what happens to them.
//! In: nothing → out: settings with names.
//! Pure. Costs are those of docs/capacity.md and docs/scaling.md, where the command of each stands. Never: costs without a measurement.
//! Changed here: which scenarios docs/scaling.md shows.

use super::{Backoff, Costs, Outage, Setting};

/// A setting that is shown.
pub struct Scenario {
    /// Scenarios with the same picture are lines of one plot.
    pub picture: &'static str,
    pub name: &'static str,
    pub setting: Setting,
}

/// All that are shown, in their order.
pub fn all() -> Vec<Scenario> {
    let scenario = |picture, name, setting| Scenario { picture, name, setting };
    vec![
        scenario(ZONE, "1 Redis", zone_dies(1.0, COSTS)),
        scenario(ZONE, "4 Redis", zone_dies(4.0, COSTS)),
        scenario(ZONE, "16 Redis, presence", zone_dies(16.0, WITH_PRESENCE)),
        scenario(RETURN, "in ten minutes, 1 Redis", all_come(1.0, 600.0, COSTS)),
        scenario(
            RETURN,
            "in ten minutes, 16 Redis, presence",
            all_come(16.0, 600.0, WITH_PRESENCE),
        ),
        scenario(RETURN, "in ten seconds, 4 Redis", all_come(4.0, 10.0, COSTS)),
        scenario(RETURN, "the same, 1000 connects/s a node", limited(all_come(4.0, 10.0, COSTS))),
        scenario(CHANNEL, "1 publication/s", one_channel(1.0)),
        scenario(CHANNEL, "20 publications/s", one_channel(20.0)),
        scenario(CHANNEL, "40 publications/s", one_channel(40.0)),
    ]
}

/// A fourth of the nodes is gone for two minutes. Their clients miss pings: 25 s after the last one, and 10 s of patience.
fn zone_dies(redis_shards: f64, costs: Costs) -> Setting {
    let outage = Outage {
        at: 0.0,
        lasts: 120.0,
        noticed_from: 10.0,
        noticed_until: 35.0,
        detected_after: 10.0,
    };
    Setting { redis_shards, costs, outage: Some(outage), lasts: 100.0, ..calm() }
}

/// All clients connect, evenly within a time.
fn all_come(redis_shards: f64, within: f64, costs: Costs) -> Setting {
    Setting { redis_shards, costs, arrive_within: Some(within), lasts: 700.0, ..calm() }
}

/// Each publication is for a million clients.
fn one_channel(publications: f64) -> Setting {
    let costs = Costs { delivery: 8.8e-6, deliveries_of_client: 0.1, ..COSTS };
    Setting { publications, costs, lasts: 60.0, ..calm() }
}

fn limited(setting: Setting) -> Setting {
    Setting { rate_limit: 1000.0, ..setting }
}

/// Forty nodes of eight cores. Each client gets a publication in ten seconds.
fn calm() -> Setting {
    Setting {
        clients: 1e7,
        zones: 4,
        nodes_of_zone: 10.0,
        cores_of_node: 8.0,
        rate_limit: f64::INFINITY,
        redis_shards: 4.0,
        // The defaults of npm `centrifuge`: 0.5 to 20 s with full jitter.
        backoff: Backoff { least: 0.5, extra: 0.5, growth: 0.25, most: 20.0, round_trip: 0.1 },
        costs: COSTS,
        publications: 1000.0,
        arrive_within: None,
        outage: None,
        lasts: 300.0,
    }
}

pub const ZONE: &str = "zone";
pub const RETURN: &str = "return";
pub const CHANNEL: &str = "channel";

/// The upper ends of what was measured: `fanwire-bench connects` (90 µs), `fanout --channels` (17 µs), `idle` (0.9 µs), and
/// `redis-benchmark` with `publish.lua` (20 µs), which stands for every command. A connect reads a stream once.
const COSTS: Costs = Costs {
    connect: 90e-6,
    delivery: 17e-6,
    idle: 0.9e-6,
    command: 20e-6,
    commands_of_connect: 1.0,
    commands_of_second: 0.0,
    deliveries_of_client: 1e-4,
};
/// A connect is added and tells that it joined, and is renewed each 27 s.
const WITH_PRESENCE: Costs =
    Costs { commands_of_connect: 3.0, commands_of_second: 1.0 / 27.0, ..COSTS };
