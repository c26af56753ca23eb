//! Tests of the recorder of a shard.
//! In: connections with events, Unix times → out: asserted logs and bytes.
//! Uses: times as numbers. Never: a real clock.
//! Changed here: tests of which logs are kept. Stored events are tested in `ring/tests.rs`.

use super::*;

const START: u64 = 1_700_000_000_000;
const NO_BOUND: usize = usize::MAX;

fn facts(client: u128, user: &str) -> ConnectionFacts {
    let address = Some(IpAddr::from([10, 0, 0, 1]));
    ConnectionFacts { client, user: user.into(), address, transport: "websocket" }
}

const CLOSE: FlightEvent<'static> = FlightEvent {
    kind: FlightEventKind::Close,
    code: 3000,
    numbers: [0, 0],
    text: "connection closed",
    detail: "",
};

fn kinds(log: &FlightLog) -> Vec<FlightEventKind> {
    log.events().map(|stored| stored.event.kind).collect()
}

fn clients(recorder: &FlightRecorder, user: &str, now_ms: u64) -> Vec<u128> {
    recorder.find(Some(user), None, now_ms).map(|log| log.facts().client).collect()
}

#[test]
fn refused_connects_displace_only_each_other() {
    let mut recorder = FlightRecorder::default();
    recorder.begin(0, facts(1, "42"), 0, usize::MAX);
    for number in 1..=REFUSED_LOGS_MAX as u32 + 9 {
        recorder.begin_refused(number, facts(0, "43"), 1, usize::MAX);
        recorder.end(number, FlightEvent::new(FlightEventKind::Close, ""), 1);
    }
    assert_eq!(recorder.counts(), (1 + REFUSED_LOGS_MAX, 0));
    assert_eq!(recorder.find(Some("42"), None, 2).count(), 1);
    assert_eq!(recorder.refused_logs(2).count(), REFUSED_LOGS_MAX);
    assert_eq!(recorder.refused_logs(KEPT_MS + 1).count(), 0, "after an hour");
}

#[test]
fn a_log_is_kept_for_an_hour_after_the_end() {
    let mut recorder = FlightRecorder::default();
    recorder.begin(0, facts(1, "ann"), START, NO_BOUND);
    recorder.record(0, FlightEvent::new(FlightEventKind::Subscribe, "news"), START + 5);
    recorder.end(0, CLOSE, START + 10);
    recorder.record(0, FlightEvent::new(FlightEventKind::Subscribe, "late"), START + 11);
    // The index is used again by another connection.
    recorder.begin(0, facts(2, "bob"), START + 20, NO_BOUND);
    assert_eq!(clients(&recorder, "ann", START + 10 + KEPT_MS - 1), [1]);
    let log = recorder.find(None, Some(1), START + 30).next().expect("it is kept");
    assert_eq!(
        (log.times_ms(), kinds(log)),
        ((START, START + 10), vec![FlightEventKind::Subscribe, FlightEventKind::Close])
    );
    assert_eq!(clients(&recorder, "ann", START + 10 + KEPT_MS), [0_u128; 0]);
    recorder.begin(1, facts(3, "ann"), START + 10 + KEPT_MS, NO_BOUND);
    assert_eq!(recorder.counts(), (2, 0), "the log of client 1 is gone");
}

#[test]
fn the_newest_connections_have_the_memory() {
    let mut recorder = FlightRecorder::default();
    let bytes_max = 100 * 1024;
    for client in 0..1000 {
        recorder.begin(client, facts(client.into(), "ann"), START, bytes_max);
        for event in 0..40 {
            let channel = format!("channel-{event}");
            recorder.record(client, FlightEvent::new(FlightEventKind::Subscribe, &channel), START);
        }
        assert!(recorder.bytes() <= bytes_max + 1126);
    }
    let kept = clients(&recorder, "ann", START);
    assert!(kept.len() >= 90, "{} logs in {bytes_max} bytes", kept.len());
    assert!(kept.iter().copied().eq((1000 - kept.len() as u128..1000).rev()), "newest first");
    assert_eq!(recorder.counts(), (kept.len(), 1000 - kept.len() as u64));
    assert_eq!(recorder.open.len(), kept.len(), "an open connection without a log has no entry");
}

#[test]
fn a_log_that_is_kept_stays_whatever_the_memory() {
    let mut recorder = FlightRecorder::default();
    recorder.begin(0, facts(1, "ann"), START, 10 * 1024);
    recorder.keep(0, || facts(1, "ann"), START);
    recorder.keep(1, || facts(2, "bob"), START); // it had no log
    for connection in 10..1000 {
        recorder.begin(connection, facts(9, "cyd"), START, 10 * 1024);
    }
    assert_eq!(clients(&recorder, "ann", START), [1]);
    assert_eq!(clients(&recorder, "bob", START), [2]);
    for connection in 2000..3000 {
        recorder.keep(connection, || facts(3, "dan"), START);
    }
    assert_eq!(recorder.kept, KEPT_LOGS_MAX);
    recorder.end(0, CLOSE, START);
    recorder.begin(0, facts(4, "eve"), START + KEPT_MS, 10 * 1024);
    assert_eq!(recorder.kept, KEPT_LOGS_MAX - 1, "after an hour");
}

#[test]
fn many_ended_connections_leave_nothing_behind() {
    let mut recorder = FlightRecorder::default();
    for number in 0..100_000 {
        recorder.begin(0, facts(number, "ann"), START, 10 * 1024);
    }
    assert!(recorder.ended.len() < 2 * GONE_MIN && recorder.open.len() == 1);
    recorder.end(0, CLOSE, START);
    recorder.begin(0, facts(0, "bob"), START + KEPT_MS, 10 * 1024);
    assert_eq!((recorder.counts().0, recorder.ended.len()), (1, 0));
    assert_eq!(recorder.bytes(), LOG_BYTES + "bob".len());
}

#[test]
fn without_memory_nothing_is_recorded() {
    let mut recorder = FlightRecorder::default();
    recorder.begin(0, facts(1, "ann"), START, 0);
    recorder.record(0, FlightEvent::new(FlightEventKind::Subscribe, "news"), START);
    recorder.ping(0, 10, START);
    recorder.end(0, CLOSE, START);
    assert_eq!((recorder.bytes(), recorder.counts(), recorder.ended.len()), (0, (0, 0), 0));
    assert_eq!((recorder.open.capacity(), recorder.ended.capacity()), (0, 0));
}

#[test]
fn pings_are_stored_when_they_change() {
    let mut recorder = FlightRecorder::default();
    recorder.begin(0, facts(1, "ann"), START, NO_BOUND);
    for (number, ms) in [12, 15, 19, 90, 100, 150, 400, 30, 31].into_iter().enumerate() {
        recorder.ping(0, ms, START + number as u64);
    }
    let log = recorder.log(0).expect("it is open");
    let stored: Vec<u64> = log.events().map(|stored| stored.event.numbers[0]).collect();
    assert_eq!((stored, log.ping_ms()), (vec![12, 90, 400, 30], Some(31)));
}

#[test]
fn a_stall_is_one_event_with_its_time_and_the_longest_queue() {
    let mut recorder = FlightRecorder::default();
    recorder.begin(0, facts(1, "ann"), START, NO_BOUND);
    for (after_ms, queued) in [(100, 500), (200, 9000), (300, 4000), (400, 0), (500, 0)] {
        recorder.stall(0, queued, START + after_ms);
    }
    recorder.stall(0, 70, START + 600);
    assert_eq!(recorder.log(0).and_then(FlightLog::stall), Some((600, 70)));
    recorder.end(0, CLOSE, START + 1000);
    let log = recorder.find(Some("ann"), Some(1), START + 1000).next().expect("it is kept");
    let stalls: Vec<_> =
        log.events().map(|stored| (stored.after_ms, stored.event.numbers)).collect();
    assert_eq!(stalls, [(400, [300, 9000]), (1000, [400, 70]), (1000, [0, 0])]);
    assert_eq!(kinds(log).last(), Some(&FlightEventKind::Close));
}
