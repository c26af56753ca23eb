//! The clients that a shard chooses when its node sends some away.
//! In: clients with and without positions, of different ages → out: who is chosen, in which order.
//! Uses: `world` with one shard. Never: closes, which are the shell's.
//! Changed here: promises about the choice. How many leave is tested in the crate `cluster`.

use std::time::Duration;

use fanwire_node::choose_departures;

use crate::history::with_history;
use crate::script::hello;
use crate::world::World;

const HOUR: Duration = Duration::from_secs(3600);

/// A world with the clients `plain`, which loses publications when it leaves, and `recovering`.
fn two_clients() -> World {
    let options = with_history(|open| open.allow_recovery = true);
    let mut world = World::with_shards(options, 1);
    for (name, wish) in [("plain", ""), ("recovering", r#","recoverable":true"#)] {
        world.connected(name, hello(""));
        world.say(name, &format!(r#"{{"id":2,"subscribe":{{"channel":"news"{wish}}}}}"#));
        let reply = world.heard(name).expect("a reply");
        assert_eq!(reply.contains("positioned"), name == "recovering", "{reply}");
    }
    world
}

impl World {
    /// The names of those that the shard chooses.
    fn departures(&mut self, wanted: usize, min_age: Duration) -> Vec<&'static str> {
        let keys = choose_departures(&mut self.shards[0].hub, wanted, min_age, self.now);
        let names = ["plain", "recovering", "young", "open"];
        let is_of = |name: &str, key| self.try_id(name).is_some() && self.key(name) == key;
        keys.into_iter().filter_map(|key| names.into_iter().find(|name| is_of(name, key))).collect()
    }
}

#[test]
fn clients_that_recover_everything_leave_first() {
    let mut world = two_clients();
    assert_eq!(world.departures(1, Duration::ZERO), ["recovering"]);
    assert_eq!(world.departures(2, Duration::ZERO), ["recovering", "plain"]);
    assert_eq!(world.departures(0, Duration::ZERO), [""; 0]);
}

#[test]
fn young_connections_and_those_without_a_session_stay() {
    let mut world = two_clients();
    world.wait(HOUR);
    world.connected("young", hello(""));
    world.open("open", hello(""));
    assert_eq!(world.departures(9, HOUR), ["recovering", "plain"]);
    assert_eq!(world.departures(9, HOUR + Duration::from_millis(1)), [""; 0]);
    world.wait(Duration::from_secs(1));
    assert_eq!(world.departures(9, Duration::from_secs(1)), ["recovering", "young", "plain"]);
}

#[test]
fn a_clock_that_went_back_keeps_nobody_whose_age_does_not_matter() {
    let mut world = two_clients();
    world.step_clock(-3600);
    assert_eq!(world.departures(9, Duration::ZERO), ["recovering", "plain"]);
    assert_eq!(world.departures(9, Duration::from_secs(1)), [""; 0]);
}

#[test]
fn the_next_call_goes_on_with_others_until_all_were_chosen_once() {
    let mut world = World::with_shards(crate::world::options(|_| {}), 1);
    for name in ["plain", "recovering", "young"] {
        world.connected(name, hello(""));
    }
    let chosen: Vec<_> = (0..4).flat_map(|_| world.departures(1, Duration::ZERO)).collect();
    assert_eq!(chosen, ["plain", "recovering", "young", "plain"]);
    world.close("recovering");
    let chosen: Vec<_> = (0..2).flat_map(|_| world.departures(1, Duration::ZERO)).collect();
    assert_eq!(chosen, ["young", "plain"]);
}
