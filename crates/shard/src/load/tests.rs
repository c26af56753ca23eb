//! Tests of the load of a shard, with simulated time.
//! In: turns, pauses between them, writes → out: how long a publication waits.
//! Pure.
//! Changed here: expectations of `shard::load`.

use super::*;

const DELAY: Duration = Duration::from_millis(1);

/// A shard whose turns take simulated time.
struct World {
    load: Load,
    now: Instant,
}

impl World {
    fn new(delay: Duration) -> Self {
        let now = Instant::now();
        Self { load: Load::new(delay, now), now }
    }

    fn turn(&mut self, pause: u64, have_waited: bool, busy: u64) {
        self.now += Duration::from_micros(pause);
        self.load.begin_turn(self.now, have_waited);
        let busy = Duration::from_micros(busy);
        self.load.end_turn(busy);
        self.now += busy;
    }

    /// Turns without waits for longer than a window.
    fn turns(&mut self, pause: u64, busy: u64) -> Duration {
        for _ in 0..100 {
            self.turn(pause, false, busy);
        }
        self.load.delay()
    }
}

#[test]
fn from_a_share_of_the_time_on_publications_wait() {
    let mut world = World::new(DELAY);
    assert_eq!(world.load.delay(), Duration::ZERO);
    assert_eq!(world.turns(3_000, 7_000), Duration::ZERO);
    assert_eq!(world.turns(2_000, 8_000), Duration::from_micros(800));
    assert_eq!(world.turns(3_000, 7_000), Duration::ZERO);
}

#[test]
fn a_wait_is_a_tenth_of_the_longest_turn_and_never_longer_than_the_option() {
    let mut world = World::new(DELAY);
    assert_eq!(world.turns(0, 900), Duration::ZERO, "nothing comes in so short a time");
    assert_eq!(world.turns(0, 1_000), Duration::from_micros(100));
    for _ in 0..40 {
        world.turn(0, false, 5_000);
        world.turn(0, false, 20);
    }
    assert_eq!(world.load.delay(), Duration::from_micros(500), "short turns in between");
    assert_eq!(world.turns(0, 30_000), DELAY);
    assert_eq!(world.turns(0, 900), Duration::ZERO, "the long turns are over");
}

#[test]
fn the_first_turn_after_a_pause_knows_that_the_load_has_ended() {
    let mut world = World::new(DELAY);
    assert_eq!(world.turns(0, 10_000), DELAY);
    world.now += Duration::from_secs(1);
    world.load.begin_turn(world.now, false);
    assert_eq!(world.load.delay(), Duration::ZERO);
}

#[test]
fn without_a_delay_no_publication_waits() {
    let mut world = World::new(Duration::ZERO);
    assert_eq!(world.turns(0, 10_000), Duration::ZERO);
}

#[test]
fn pauses_in_which_publications_wait_do_not_end_the_load() {
    let mut world = World::new(DELAY);
    world.turns(0, 10_000);
    for _ in 0..100 {
        world.turn(30_000, true, 10_000);
        world.load.count_waiting();
        world.load.count_waiting();
        world.load.end_wait(1);
    }
    assert_eq!(world.load.delay(), DELAY);
    assert_eq!(world.turns(30_000, 10_000), Duration::ZERO);
}

#[test]
fn waiting_in_vain_ends_and_is_tried_again() {
    let mut world = World::new(DELAY);
    world.turns(0, 10_000);
    for _ in 0..WAITS_JUDGED {
        assert_eq!(world.load.delay(), DELAY);
        world.load.count_waiting();
        world.load.end_wait(1);
    }
    let ended = world.now;
    while world.load.delay() == Duration::ZERO {
        world.turn(0, false, 10_000);
    }
    let pause = world.now - ended;
    assert!((RETRY_INTERVAL..RETRY_INTERVAL + WINDOW).contains(&pause), "{pause:?}");
}
