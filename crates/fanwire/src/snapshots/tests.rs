//! Tests of the files of snapshots: stops, crashes, files that cannot be used, two servers.
//! In: folders of the tests' own, publications → out: what the next start has.
//! Uses brokers without a server; a process that is killed is one whose parts are dropped without `finish`.
//! Changed here: what a start must survive. The content is tested in `broker`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use fanwire_broker::{
    Broker, Change, Deliver, DeliverOptions, Position, PublishOptions, Query, Retention,
};
use fanwire_node::protocol::{ClientInfo, Publication};
use fanwire_testing::Folder;

use super::*;

struct NoSubscribers;

impl Deliver for NoSubscribers {
    fn deliver(&self, _: &str, _: Publication, _: DeliverOptions) {}

    fn deliver_join_leave(&self, _: &str, _: Change, _: ClientInfo) {}
}

fn config(file: &std::path::Path) -> Config {
    let mut config = Config::default();
    config.engine.memory.snapshot_path = file.display().to_string();
    config
}

/// A process with a snapshot; `None` if it runs without one.
fn try_start(file: &std::path::Path) -> Option<Arc<Snapshots>> {
    let opened = Opened::open(&config(file), None).expect("the file has no other server")?;
    let made = Arc::<Mutex<Option<MadeBroker>>>::default();
    opened.factory(Arc::clone(&made))(Arc::new(NoSubscribers));
    made.lock().take().and_then(|made| made.snapshots)
}

fn start(file: &std::path::Path) -> Arc<Snapshots> {
    try_start(file).expect("the file can be used")
}

const RETENTION: Retention =
    Retention { size: 10, ttl: Duration::from_secs(600), meta_ttl: Duration::from_secs(3600) };

impl Snapshots {
    fn publish(&self, channel: &str) -> Position {
        let options = PublishOptions::default();
        let publication = Publication { data: b"{}"[..].into(), ..Publication::default() };
        let now = Instant::now();
        let published = self.broker.publish(channel, publication, &options, RETENTION, now);
        published.wait().expect("memory never fails")
    }

    fn top(&self, channel: &str) -> Position {
        let read = self.broker.history(channel, Query::default(), RETENTION, Instant::now());
        read.wait().expect("memory never fails").top
    }
}

#[test]
fn after_a_planned_stop_positions_go_on_and_the_file_is_private() {
    let folder = Folder::new("planned");
    let file = folder.join("state");
    let first = start(&file);
    let position = first.publish("news");
    let without_stream = first.top("quiet");
    first.finish(7);
    drop(first);
    let mode = fs::metadata(&file).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = start(&file);
    assert_eq!(second.connections_before(), 7);
    assert_eq!(second.top("news"), position);
    assert_eq!(second.top("quiet"), without_stream);
    assert_eq!(second.publish("news"), Position { offset: 2, ..position });
}

#[test]
fn after_a_crash_changed_channels_have_another_epoch_and_others_go_on() {
    let folder = Folder::new("crash");
    let file = folder.join("state");
    let first = start(&file);
    let names: Vec<String> = (0..200).map(|number| format!("news{number}")).collect();
    let positions: Vec<Position> = names.iter().map(|name| first.publish(name)).collect();
    first.save_if_changed();
    let changed = first.publish("news7");
    let without_stream = first.top("quiet");
    drop(first);
    // Also after a second crash, before the first snapshot of the second process.
    for _ in 0..2 {
        let next = start(&file);
        assert_ne!(next.top("news7").epoch, changed.epoch);
        assert_ne!(next.top("quiet").epoch, without_stream.epoch);
        let kept = names.iter().zip(&positions).filter(|(name, at)| next.top(name) == **at);
        assert!(kept.count() > 190, "one bucket of 4,096 is lost");
    }
}

#[test]
fn a_planned_snapshot_is_not_planned_any_more_once_a_process_has_gone_on_from_it() {
    let folder = Folder::new("used");
    let file = folder.join("state");
    let first = start(&file);
    first.publish("news");
    first.finish(7);
    drop(first);
    let second = start(&file);
    let lost = second.publish("news");
    let begun = second.publish("begun after the snapshot");
    drop(second);
    let third = start(&file);
    assert_eq!(third.connections_before(), 0, "after a crash");
    assert_ne!(third.top("news").epoch, lost.epoch);
    assert_ne!(third.top("begun after the snapshot").epoch, begun.epoch);
}

#[test]
fn a_change_after_the_last_snapshot_removes_it() {
    let folder = Folder::new("late");
    let file = folder.join("state");
    let first = start(&file);
    let position = first.publish("news");
    first.finish(7);
    assert!(file.exists());
    first.publish("news");
    assert!(!file.exists());
    drop(first);
    assert_ne!(start(&file).top("news").epoch, position.epoch);
}

#[test]
fn another_boot_of_the_machine_takes_nothing() {
    let folder = Folder::new("boot");
    let file = folder.join("state");
    let first = start(&file);
    let position = first.publish("news");
    first.save_if_changed();
    drop(first);
    for entry in fs::read_dir(&*folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.display().to_string().contains(".changes.") {
            let mut list = fs::read(&path).expect("readable");
            let id = list.iter().position(|byte| *byte == b'\n').expect("the end of a line") + 1;
            list[id] ^= 1;
            fs::write(&path, list).expect("writable");
        }
    }
    assert_ne!(start(&file).top("news").epoch, position.epoch);
}

#[test]
fn a_snapshot_without_its_list_of_changes_takes_nothing() {
    let folder = Folder::new("no-list");
    let file = folder.join("state");
    let first = start(&file);
    let position = first.publish("news");
    first.save_if_changed();
    first.publish("news");
    first.files.remove_changes_before(u64::MAX);
    drop(first);
    assert_ne!(start(&file).top("news").epoch, position.epoch);
}

#[test]
fn a_list_that_cannot_be_written_removes_the_snapshot() {
    let folder = Folder::new("broken-list");
    let file = folder.join("state");
    let first = start(&file);
    first.publish("news");
    first.save_if_changed();
    let unwritable = File::open(&file).expect("readable");
    let list = ChangeList::over(unwritable, &file);
    list.mark(fanwire_broker::Bucket { stripe: 1, number: 2 });
    assert!(list.is_broken() && !file.exists());
}

#[test]
fn a_file_that_cannot_be_used_is_kept_under_another_name() {
    let folder = Folder::new("spoiled");
    let file = folder.join("state");
    let first = start(&file);
    let position = first.publish("news");
    first.finish(7);
    drop(first);
    let whole = fs::read(&file).expect("readable");
    let newer = [&whole[..7], &[9], &whole[8..]].concat();
    for spoiled in [&whole[..whole.len() - 1], b"%PDF-1.7", b"", &newer] {
        fs::write(&file, spoiled).expect("writable");
        let next = start(&file);
        assert_ne!(next.top("news").epoch, position.epoch);
        assert_eq!(fs::read(folder.join("state.unusable")).expect("kept"), spoiled);
        assert!(!file.exists());
    }
}

#[test]
fn a_second_server_on_the_same_file_refuses_to_start() {
    let folder = Folder::new("second");
    let file = folder.join("state");
    let _first = start(&file);
    let error = Opened::open(&config(&file), None).err().expect("it is in use").to_string();
    assert!(error.contains("snapshot_path") && error.contains("another server"), "{error}");
}

#[test]
fn after_a_planned_stop_another_server_takes_the_file_at_once() {
    let folder = Folder::new("next");
    let file = folder.join("state");
    let first = start(&file);
    let position = first.publish("news");
    first.finish(7);
    let second = start(&file);
    assert_eq!(second.top("news"), position);
}

#[test]
fn a_stop_after_a_takeover_leaves_the_file_to_the_other_program() {
    let folder = Folder::new("taken");
    let file = folder.join("state");
    let first = start(&file);
    first.pause().end();
    first.finish(7);
    assert!(!file.exists());
    assert!(Opened::open(&config(&file), None).is_err(), "the lock stays");
}

#[test]
fn a_server_starts_without_a_folder() {
    let folder = Folder::new("missing");
    let file = folder.join("folder/state");
    assert!(try_start(&file).is_none());
}

#[test]
fn a_snapshot_that_cannot_be_written_leaves_the_one_before_it() {
    let folder = Folder::new("full");
    let file = folder.join("state");
    let first = start(&file);
    first.publish("news");
    first.save_if_changed();
    let before = fs::read(&file).expect("readable");
    fs::create_dir(folder.join("state.tmp")).expect("writable");
    first.publish("other");
    first.save_if_changed();
    assert_eq!(first.readings().failures, 1);
    assert_eq!(fs::read(&file).expect("readable"), before);
}
