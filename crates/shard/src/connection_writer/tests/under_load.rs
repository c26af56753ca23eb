//! Tests of publications that wait for others while their shard is busy.
//! In: turns of a busy shard with publications → out: the bytes their peer reads, and the number of writes.
//! Uses a `ConnectionWriter` on the test's own thread and simulated time; never a poller.
//! Changed here: expectations of `ShardSettings::write_delay_under_load`. When a shard is busy is tested in `load`.

use super::*;

const DELAY: Duration = Duration::from_millis(1);

/// A connection of a shard whose last window was busy.
fn busy() -> (ConnectionWriter, SlotKey, TcpStream) {
    let (mut out, key, peer) = connected();
    out.load = Load::new(DELAY, out.now);
    out.load.end_turn(Duration::from_secs(1));
    out.now += Duration::from_secs(1);
    out.load.begin_turn(out.now, false);
    out.let_publications_wait(true);
    out.is_last = true;
    (out, key, peer)
}

/// The end of a turn, this long after the one before.
fn turn(out: &mut ConnectionWriter, pause: Duration) {
    out.now += pause;
    out.advance();
    out.flush();
}

#[test]
fn publications_of_several_turns_leave_together_when_the_first_has_waited_long_enough() {
    let (mut out, key, mut peer) = busy();
    publish(&mut out, key, b"one");
    turn(&mut out, Duration::ZERO);
    publish(&mut out, key, b"two");
    turn(&mut out, DELAY / 2);
    assert_eq!(read(&mut peer), b"");
    assert_eq!(out.next_deadline(), Some(out.now + DELAY / 2));
    turn(&mut out, DELAY / 2);
    assert_eq!(read(&mut peer), b"\x81\x03one\x81\x03two");
    assert_eq!(out.counters.writes.value(), 1);
    assert_eq!(out.next_deadline(), None);
}

#[test]
fn replies_and_pings_leave_at_the_end_of_the_turn_and_take_what_waits_along() {
    let (mut out, key, mut peer) = busy();
    publish(&mut out, key, b"one");
    out.send(key, b"reply");
    turn(&mut out, Duration::ZERO);
    assert_eq!(read(&mut peer), b"\x81\x03one\x81\x05reply");
    publish(&mut out, key, b"two");
    out.ping(key);
    turn(&mut out, Duration::ZERO);
    assert_eq!(read(&mut peer), b"\x81\x03two\x89\x00");
}

#[test]
fn states_do_not_wait() {
    let (mut out, key, mut peer) = busy();
    out.let_publications_wait(false);
    publish(&mut out, key, b"state");
    assert_eq!(read(&mut peer), b"\x81\x05state");
    out.let_publications_wait(true);
    publish(&mut out, key, b"event");
    out.let_publications_wait(false);
    publish(&mut out, key, b"state");
    turn(&mut out, Duration::ZERO);
    assert_eq!(read(&mut peer), b"\x81\x05event\x81\x05state", "in their order");
}

#[test]
fn an_explicit_delay_wins() {
    let (mut out, key, mut peer) = busy();
    out.settings.write_delay = 9 * DELAY;
    publish(&mut out, key, b"one");
    turn(&mut out, 8 * DELAY);
    assert_eq!(read(&mut peer), b"");
    turn(&mut out, DELAY);
    assert_eq!(read(&mut peer), b"\x81\x03one");
}

#[test]
fn without_load_or_without_the_option_nothing_waits() {
    let (mut out, key, mut peer) = busy();
    out.load.begin_turn(out.now + Duration::from_secs(1), false);
    publish(&mut out, key, b"one");
    assert_eq!(read(&mut peer), b"\x81\x03one");
    let (mut out, key, mut peer) = busy();
    out.load = Load::new(Duration::ZERO, out.now);
    publish(&mut out, key, b"one");
    assert_eq!(read(&mut peer), b"\x81\x03one");
}
