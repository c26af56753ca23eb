//! Clients as counts next to clients one by one: the same outage of a host in both modes.
//! In: numbers of clients → out: a table of the quantities of both modes, and whether they agree.
//! Uses the simulated world, which has neither costs nor limits of speed. Never: a cost of a bench.
//! Changed here: what is compared, and how costs in commands are counted.

use std::time::Duration;

use super::{Backoff, Costs, Outage, STEP, Setting, Step, longest_queue, run};
use crate::faults::{FaultKind, PlannedFault};
use crate::plan::SeedPlan;
use crate::traffic::TrafficCounts;
use crate::world::World;

/// Compares both modes with so many clients. Costs in commands and deliveries come from a run with a tenth of them.
pub fn compare(clients: usize) -> Result<String, String> {
    let few = play(clients / 10)?;
    let costs = costs(&few, clients / 10);
    let many = play(clients)?;
    let steps = run(&setting(clients, costs));
    let of_classes = |value: fn(&Step) -> f64| steps.iter().map(value).collect::<Vec<f64>>();
    let connects = of_classes(|step| step.connects);
    let deliveries = of_classes(|step| step.deliveries);
    let commands = of_classes(|step| step.commands);
    // A second is the finest time for which chance is small.
    let again = seconds(OUTAGE_AT)..connects.len();
    let slow = clients as f64 / 20.0;
    let queue = |arrivals: &[f64]| longest_queue(&arrivals[again.clone()], slow);
    let rows = [
        ("connects", sum(&many.connects), sum(&connects)),
        ("connects per second, at most", peak(&many.connects), peak(&connects)),
        ("deliveries", sum(&many.deliveries), sum(&deliveries)),
        ("engine commands", sum(&many.commands), sum(&commands)),
        ("longest queue of connects", queue(&many.connects), queue(&connects)),
    ];
    let mut table = format!("{clients} clients | one by one | as counts | difference\n");
    let mut worst = 0.0_f64;
    for (name, one_by_one, as_counts) in rows {
        let difference = (as_counts / one_by_one - 1.0) * 100.0;
        worst = worst.max(difference.abs());
        table += &format!("{name} | {one_by_one:.0} | {as_counts:.0} | {difference:+.1} %\n");
    }
    if worst <= 5.0 { Ok(table) } else { Err(format!("{table}more than 5 % apart")) }
}

fn play(clients: usize) -> Result<TrafficCounts, String> {
    let verdict = World::new(SeedPlan::of_crowd(clients, outage_of_host()), false).run();
    match verdict.violation {
        None => Ok(verdict.traffic),
        Some(violation) => Err(format!("{}: {}", violation.promise, violation.text)),
    }
}

fn outage_of_host() -> PlannedFault {
    PlannedFault {
        at: Duration::from_secs_f64(OUTAGE_AT),
        lasts: Duration::from_secs_f64(OUTAGE_LASTS),
        kind: FaultKind::Kill { host: 0, is_silent: false },
    }
}

/// Counts from a run one by one: connects, and a quiet time.
fn costs(traffic: &TrafficCounts, clients: usize) -> Costs {
    let quiet = seconds(QUIET_FROM)..seconds(OUTAGE_AT);
    let length = OUTAGE_AT - QUIET_FROM;
    let published = SeedPlan::CROWD_PUBLICATIONS * length;
    let in_quiet = sum(&traffic.commands[quiet.clone()]) - published;
    let commands_of_second = in_quiet / length / clients as f64;
    let at_start = sum(&traffic.commands[..seconds(RENEWED_FROM)]);
    let of_connects = at_start - SeedPlan::CROWD_PUBLICATIONS * RENEWED_FROM;
    Costs {
        connect: f64::MIN_POSITIVE,
        delivery: 0.0,
        idle: 0.0,
        command: f64::MIN_POSITIVE,
        commands_of_connect: of_connects / clients as f64,
        commands_of_second,
        deliveries_of_client: sum(&traffic.deliveries[quiet]) / published / clients as f64,
    }
}

/// The world as a setting: hosts are zones, and nothing has to wait.
fn setting(clients: usize, costs: Costs) -> Setting {
    Setting {
        clients: clients as f64,
        zones: 4,
        nodes_of_zone: 1.0,
        cores_of_node: 1.0,
        rate_limit: f64::INFINITY,
        redis_shards: 1.0,
        // `SimulatedClient::come_back`; links take 5 to 60 ms in each direction.
        backoff: Backoff { least: 0.05, extra: 0.0, growth: 0.2, most: 5.0, round_trip: 0.065 },
        costs,
        publications: SeedPlan::CROWD_PUBLICATIONS,
        arrive_within: Some(ARRIVE_WITHIN),
        outage: Some(Outage {
            at: OUTAGE_AT,
            lasts: OUTAGE_LASTS,
            noticed_from: 0.0,
            noticed_until: 0.05,
            detected_after: OUTAGE_LASTS,
        }),
        lasts: SeedPlan::CROWD_BUSY.as_secs_f64(),
    }
}

fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

/// The largest sum of a second, after the first connects.
fn peak(values: &[f64]) -> f64 {
    let later = &values[seconds(OUTAGE_AT)..];
    later.windows(seconds(1.0)).map(sum).fold(0.0, f64::max)
}

fn seconds(seconds: f64) -> usize {
    (seconds / STEP).round() as usize
}

const ARRIVE_WITHIN: f64 = 3.0;
/// Presence is renewed from then on.
const RENEWED_FROM: f64 = 4.5;
const QUIET_FROM: f64 = 10.0;
const OUTAGE_AT: f64 = 50.0;
const OUTAGE_LASTS: f64 = 5.0;
