//! Clients as counts: none is lost, and limits hold.
//! In: settings → out: steps.
//! Uses: the scenarios that are shown. Never: clients one by one; `fanwire-sim --agreement` compares with them.
//! Changed here: tests of the counts.

use super::scenarios::all;
use super::{STEP, longest_queue, run};

#[test]
fn every_client_is_connected_at_the_end() {
    for scenario in all() {
        let steps = run(&scenario.setting);
        let connected = steps.last().map_or(0.0, |step| step.connected);
        let lost = (scenario.setting.clients - connected).abs();
        assert!(lost < 1.0, "{}: {lost} clients are lost", scenario.name);
    }
}

#[test]
fn nodes_accept_no_more_than_their_limit() {
    for scenario in all() {
        let setting = &scenario.setting;
        let limit = setting.rate_limit * setting.nodes_of_zone * setting.zones as f64;
        let most = run(setting).iter().map(|step| step.connects / STEP).fold(0.0, f64::max);
        assert!(most <= limit * 1.000_001, "{}: {most} a second", scenario.name);
    }
}

#[test]
fn a_queue_is_longest_when_as_much_arrives_as_is_done() {
    assert_eq!(longest_queue(&[30.0, 30.0, 10.0, 5.0], 100.0), 40.0);
}
