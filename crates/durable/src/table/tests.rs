//! Tests of the table of streams: its limit, and when a stream is looked at.
//! In: entries, times → out: entries that are due.
//! Uses the table alone. Never: the clock.
//! Changed here: how streams are found.

use std::sync::Arc;

use fanwire_broker::Position;

use super::{LOOKS_MAX, NotAdded, StreamEntry, StreamTable};
use crate::lifetime::StreamLifetime;
use crate::stream::{StreamConfig, StreamState};

fn entry(channel: &str) -> Arc<StreamEntry> {
    let lifetime = StreamLifetime::Unlimited;
    let config = StreamConfig { content_type: String::new(), lifetime, is_closed: false };
    StreamEntry::new(channel, StreamState::new(config, Position::default(), 0))
}

#[test]
fn a_table_has_one_stream_of_a_channel_and_a_limit() {
    let table = StreamTable::new(2);
    let [one, again, two, three] = ["1", "1", "2", "3"].map(entry);
    assert_eq!(table.add(&one, None, true), Ok(()));
    assert_eq!(table.add(&again, None, true), Err(NotAdded::Exists));
    assert_eq!(table.add(&two, None, true), Ok(()));
    assert_eq!(table.add(&three, None, true), Err(NotAdded::TableFull));
    table.remove(&again);
    assert!(Arc::ptr_eq(&table.find("1").expect("another one of its name was removed"), &one));
    table.remove(&one);
    assert!(table.find("1").is_none());
    assert_eq!(table.add(&three, None, true), Ok(()));
}

#[test]
fn a_stream_is_due_once_at_its_last_time() {
    let table = StreamTable::new(10);
    let [one, two] = ["1", "2"].map(entry);
    table.add(&one, Some(5), true).unwrap();
    table.add(&two, Some(5), true).unwrap();
    table.look_again(&two, Some(9));
    let due = |now_ms| {
        table.due(now_ms).iter().map(|entry| entry.channel.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(due(4), [""; 0]);
    assert_eq!(due(5), ["1"]);
    assert_eq!(due(5), [""; 0]);
    table.look_again(&one, Some(6));
    table.remove(&two);
    assert_eq!(due(20), ["1"], "what was removed is not looked at");
    assert!(table.rows.lock().looks.is_empty());
}

#[test]
fn many_due_streams_come_in_portions() {
    let table = StreamTable::new(2 * LOOKS_MAX);
    for number in 0..LOOKS_MAX + 1 {
        table.add(&entry(&number.to_string()), Some(1), true).unwrap();
    }
    assert_eq!(table.due(1).len(), LOOKS_MAX);
    assert_eq!(table.due(1).len(), 1);
}

#[test]
fn adopted_streams_leave_room_for_those_of_put() {
    let table = StreamTable::new(1);
    let [read, also_read, put, more] = ["1", "2", "3", "4"].map(entry);
    assert_eq!(table.add(&read, None, false), Ok(()));
    assert_eq!(table.add(&also_read, None, false), Ok(()));
    assert_eq!(table.add(&put, None, true), Ok(()));
    assert_eq!(table.put(&read), Err(NotAdded::TableFull), "a PUT of an adopted one counts");
    assert_eq!(table.put(&put), Ok(()), "it counts already");
    table.remove(&read);
    assert_eq!(table.add(&more, None, true), Err(NotAdded::TableFull));
    table.remove(&put);
    assert_eq!(table.put(&also_read), Ok(()));
    table.remove(&also_read);
    assert_eq!(table.add(&more, None, true), Ok(()));
}
