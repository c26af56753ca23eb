//! Tests of logs that go to files: any log comes back as `connection_log` shows it.
//! In: connections with any events → out: the records that a file has.
//! Uses proptest and the recorder. Never: sessions; `tests/it/flight_log.rs` has them.
//! Changed here: tests of what is in a file. Its format is tested in `recorder`.

use proptest::prelude::*;

use fanwire_recorder::FlightRecorder;

use super::*;

const KINDS: [FlightEventKind; 4] = [
    FlightEventKind::Connect,
    FlightEventKind::Subscribe,
    FlightEventKind::Unrecovered,
    FlightEventKind::Stall,
];

fn read(file: &[u8]) -> (Vec<(String, ConnectionLogRecord)>, usize) {
    let mut logs = Vec::new();
    let damaged = read_closed_logs(file, |node, log| logs.push((node.to_owned(), log)));
    (logs, damaged)
}

type AnyEvent = (usize, u32, [u64; 2], String, String);

fn any_event() -> impl Strategy<Value = AnyEvent> {
    (0..KINDS.len(), any::<u32>(), any::<[u64; 2]>(), any::<String>(), any::<String>())
}

proptest! {
    #[test]
    fn any_log_comes_back_as_connection_log_shows_it(
        client in any::<u128>(),
        user in any::<String>(),
        node in any::<String>(),
        address in any::<Option<IpAddr>>(),
        events in prop::collection::vec(any_event(), 0..40),
    ) {
        let facts = ConnectionFacts { client, user: user.as_str().into(), address, transport: "sse" };
        let mut recorder = FlightRecorder::default();
        recorder.begin(0, facts, 7, usize::MAX);
        recorder.ping(0, 30, 8);
        for (at, (kind, code, numbers, text, detail)) in (9..).zip(&events) {
            let event = FlightEvent { kind: KINDS[*kind], code: *code, numbers: *numbers, text, detail };
            recorder.record(0, event, at);
        }
        let log = recorder.end(0, FlightEvent::new(FlightEventKind::Close, "bye"), 99);
        let log = log.expect("it has a log");
        let file = encode_closed(log, &node);
        let one = (node, ConnectionLogRecord::of(log));
        prop_assert_eq!(read(&file), (vec![one.clone()], 0));
        let after_a_torn_one = [&file[1..], &file].concat();
        prop_assert_eq!(read(&after_a_torn_one), (vec![one], file.len() - 1));
    }

    #[test]
    fn any_bytes_are_read(records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..9)) {
        let file: Vec<u8> = records.iter().flat_map(|record| log_file::encode(record)).collect();
        prop_assert_eq!(read(&file).1, 0);
        read(&file[file.len() / 3..]);
    }
}
