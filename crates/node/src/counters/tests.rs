//! Tests of counters: each code and kind in its cell, everything else in the last one.
//! In: codes in and out of the tables → out: what the iterators say.
//! Uses: nothing but the counters.
//! What is counted when is tested where it happens.

use super::*;

#[test]
fn codes_and_kinds_are_counted_in_their_cells() {
    let counters = HubCounters::default();
    counters.count_command(CommandKind::Unknown);
    counters.count_error(108);
    counters.count_error(4_000);
    counters.count_disconnect(3501);
    counters.count_disconnect(4_000);
    let commands: Vec<_> = counters.commands().filter(|(_, n)| *n > 0).collect();
    assert_eq!(commands, [(CommandKind::Unknown, 1)]);
    let errors: Vec<_> = counters.errors().filter(|(_, n)| *n > 0).collect();
    assert_eq!(errors, [(Some(108), 1), (None, 1)]);
    let disconnects: Vec<_> = counters.disconnects().filter(|(_, n)| *n > 0).collect();
    assert_eq!(disconnects, [(Some(3501), 1), (None, 1)]);
}

#[test]
fn clients_are_counted_by_transport_and_sdk() {
    let counters = HubCounters::default();
    let labels = Default::default();
    let version = Box::from("1");
    let js = ClientApp { transport: "sse", name: "js".into(), version, labels };
    let foreign = ClientApp { transport: "carrier pigeon", name: "<b>".into(), ..js.clone() };
    [&js, &js, &foreign].iter().for_each(|app| counters.clients_like(app).add(1));
    let found: Vec<_> = counters.clients().filter(|(_, count)| *count > 0).collect();
    assert_eq!(found, [(["sse", "js"], 2), ([OTHER, OTHER], 1)]);
}

#[test]
fn a_kind_has_the_name_of_its_command() {
    let request = Request::SubRefresh(Default::default());
    assert_eq!(CommandKind::from(&request).name(), "sub_refresh");
    assert_eq!(CommandKind::from(&Request::Pong).name(), "pong");
}

#[test]
fn a_gauge_goes_up_and_down() {
    let gauge = Counter::default();
    gauge.add(3);
    gauge.subtract(1);
    assert_eq!(gauge.value(), 2);
}
