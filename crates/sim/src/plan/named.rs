//! Plans that are made by hand: an hour to measure, and examples that explain something (docs/simulation.md).
//! In: a name → out: a plan.
//! Pure. Never: chance other than that of the run.
//! Changed here: what an example shows. What seeds draw is in `plan.rs`.

use std::time::Duration;

use super::{Habits, SeedPlan, Tuning};
use crate::faults::{FaultKind, PlannedFault};

impl SeedPlan {
    /// An hour without faults, by which the speed of the simulation is measured: 3 hosts, 100 clients that connect again once in a
    /// minute, 10 publications a second to 10 subscribers each.
    pub fn of_hour() -> Self {
        Self {
            clients: 100,
            channels: 10,
            subscribed: 10,
            busy: Duration::from_secs(3600),
            publish_every_ms: 100,
            habits: Habits { reconnects: 14, ..Habits::default() },
            ..Self::calm()
        }
    }

    /// Many clients on four hosts with one fault, to compare clients one by one with clients as counts.
    pub fn of_crowd(clients: usize, fault: PlannedFault) -> Self {
        let calm = Self::calm();
        Self {
            hosts: 4,
            clients,
            channels: 25,
            subscribed: 1,
            busy: Self::CROWD_BUSY,
            publish_every_ms: 20,
            tuning: Tuning { presence_ttl: Duration::from_secs(15), ..calm.tuning },
            faults: vec![fault],
            ..calm
        }
    }

    pub const CROWD_BUSY: Duration = Duration::from_secs(100);
    /// Each second: a backend pauses 1 to 40 ms.
    pub const CROWD_PUBLICATIONS: f64 = 1000.0 / 20.5;

    /// An example, with its title.
    pub fn example(name: &str) -> Option<(&'static str, Self)> {
        let (title, faults) = match name {
            "recovery" => {
                let kind = FaultKind::CutClient { client: 2, to: true, from: true };
                let faults = vec![fault(6, 20, kind)];
                ("Recovery: the network of client c2 is gone for 20 s", faults)
            }
            "partition" => {
                let kind =
                    FaultKind::CutFromEngine { host: 1, calls: true, answers: true, feed: true };
                let faults = vec![fault(6, 15, kind)];
                ("Partition: node 1 does not reach the engine for 15 s", faults)
            }
            "deploy" => {
                let stop = |host: usize| {
                    let kind = FaultKind::Kill { host, is_silent: false };
                    fault(6 + 8 * host as u64, 2, kind)
                };
                ("Deploy: one node after the other is replaced", (0..3).map(stop).collect())
            }
            _ => return None,
        };
        Some((title, Self { faults, ..Self::calm() }))
    }

    /// Three hosts and eight clients to which nothing happens.
    fn calm() -> Self {
        Self {
            seed: 1,
            hosts: 3,
            shards: 1,
            clients: 8,
            channels: 1,
            subscribed: 100,
            busy: Duration::from_secs(36),
            publish_every_ms: 200,
            has_engine: true,
            habits: Habits::default(),
            tuning: Tuning::calm(),
            faults: Vec::new(),
        }
    }
}

impl Tuning {
    /// The options of a plan for which nothing is drawn.
    pub(super) fn calm() -> Self {
        Self {
            ping_interval: Duration::from_secs(9),
            pong_timeout: Duration::from_secs(3),
            position_check_delay: Duration::from_secs(40),
            position_max_time_lag: Duration::ZERO,
            presence_ttl: Duration::from_secs(60),
            history_size: 200,
            history_ttl: Duration::from_secs(300),
            history_meta_ttl: Duration::from_secs(3600),
            concurrency: 0,
            token_lifetime: 3600,
            subscription_lifetime: 0,
            has_subscribe_hook: false,
            tells_channels: false,
            queue_max: 1000,
            has_maps: false,
            has_deltas: false,
            batch_delay: Duration::ZERO,
            engine_delay_ms: 2,
            rebalance: None,
            snapshot_interval: None,
            unidirectional: 0,
        }
    }
}

fn fault(at: u64, lasts: u64, kind: FaultKind) -> PlannedFault {
    PlannedFault { at: Duration::from_secs(at), lasts: Duration::from_secs(lasts), kind }
}
