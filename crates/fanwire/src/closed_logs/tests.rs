//! Tests of the files with logs: rotation, the bound, what happens when they cannot be written.
//! In: records, folders → out: asserted files.
//! Uses folders of the tests' own. Never: a server; `crates/cli/tests/it/log.rs` has one.
//! Changed here: tests of files. Their format is tested in `recorder`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use fanwire_testing::Folder;

use super::*;

const RECORD: [u8; 1000] = [7; 1000];
const FILE_MAX: u64 = 8 * 1024;
const DISK_MAX: u64 = 16 * FILE_MAX;

fn open(folder: &Path) -> LogFiles {
    LogFiles::open(folder.to_owned(), DISK_MAX).expect("the folder is usable")
}

fn content(folder: &Path, number: u32) -> Option<Vec<u8>> {
    fs::read(folder.join(log_file::name(number))).ok()
}

#[test]
fn the_oldest_file_makes_room_and_others_stay() {
    let place = Folder::new("rotation");
    let folder = place.join("logs");
    let mut files = open(&folder);
    fs::write(folder.join("notes.txt"), [0; 99_999]).expect("writable");
    for number in 0..200_u8 {
        files.append(&[number; 1000]).expect("there is room");
        let all = (0..99).filter_map(|file| content(&folder, file));
        let bytes: usize = all.map(|content| content.len()).sum();
        assert!(
            bytes as u64 <= DISK_MAX && bytes >= 1000 * usize::from(number.min(120)),
            "{bytes}"
        );
    }
    // Eight records are in a file.
    assert_eq!(content(&folder, 0).map(|newest| (newest[0], newest.len())), Some((192, 8000)));
    assert_eq!(content(&folder, 15).map(|oldest| oldest[0]), Some(72));
    assert_eq!(content(&folder, 16), None);
    let mode = |path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(folder.clone()), 0o700);
    assert_eq!(mode(folder.join(log_file::name(15))), 0o600);
    assert!(folder.join("notes.txt").exists());
}

#[test]
fn a_start_overwrites_nothing() {
    let place = Folder::new("starts");
    let folder = place.join("logs");
    for _ in 0..10 {
        open(&folder).append(&RECORD).expect("there is room");
    }
    let bytes = |number| content(&folder, number).map(|content| content.len());
    assert_eq!([bytes(0), bytes(1), bytes(2)], [Some(2000), Some(8000), None]);
}

#[test]
fn files_and_folders_that_were_removed_are_made_again() {
    let place = Folder::new("removed");
    let folder = place.join("logs");
    let mut files = open(&folder);
    files.append(&RECORD).expect("there is room");
    fs::remove_file(folder.join(log_file::name(0))).expect("it is there");
    files.append(&RECORD).expect("there is room");
    assert_eq!(content(&folder, 0).as_deref(), Some(&RECORD[..]));
    fs::remove_dir_all(&folder).expect("it is there");
    fs::write(&folder, "in the way").expect("writable");
    assert!(files.append(&RECORD).is_err() && files.append(&RECORD).is_err());
    fs::remove_file(&folder).expect("it is there");
    files.append(&RECORD).expect("writing goes on");
    assert_eq!(content(&folder, 0).as_deref(), Some(&RECORD[..]));
    let too_long = vec![0; FILE_MAX as usize + 1];
    let refused = files.append(&too_long).map_err(|error| error.kind());
    assert_eq!(refused, Err(ErrorKind::FileTooLarge));
}

#[test]
fn old_files_stay_while_no_new_one_can_be_made() {
    let place = Folder::new("no-new-file");
    let folder = place.join("logs");
    let mut files = open(&folder);
    for _ in 0..8 {
        files.append(&RECORD).expect("there is room");
    }
    files.rename().expect("they have other names now");
    for _ in 0..20 {
        files.rename().expect("they stay");
    }
    assert_eq!(content(&folder, 1).map(|content| content.len()), Some(8000));
    files.append(&RECORD).expect("writing goes on");
    assert_eq!(content(&folder, 0).as_deref(), Some(&RECORD[..]));
    assert_eq!(content(&folder, 1).map(|content| content.len()), Some(8000));
}

#[test]
fn logs_are_written_until_an_empty_one_and_others_are_counted() {
    let place = Folder::new("thread");
    let folder = place.join("logs");
    let files = open(&folder);
    let (queue, logs) = sync_channel(4);
    for log in [&b"first"[..], &vec![0; FILE_MAX as usize + 1], b"second", b""] {
        queue.try_send(log.to_vec()).expect("there is room");
    }
    let dropped = AtomicU64::new(7);
    write_all(&logs, files, &dropped);
    assert_eq!(content(&folder, 0).as_deref(), Some(&b"firstsecond"[..]));
    assert_eq!(dropped.into_inner(), 8);
}

#[tokio::test]
async fn the_thread_starts_with_a_path_alone() {
    let place = Folder::new("start");
    let folder = place.join("logs");
    let mut config = Config::default();
    assert!(ClosedLogWriter::start(&config).is_ok_and(|writer| writer.is_none()));
    config.recorder.path = folder.display().to_string();
    let writer = ClosedLogWriter::start(&config);
    let writer = writer.expect("the folder is usable").expect("a path is set");
    writer.stop().await;
    assert_eq!(content(&folder, 0), Some(Vec::new()));
}

#[test]
fn a_folder_that_cannot_be_used_is_an_error() {
    let place = Folder::new("a-file");
    let file = place.join("logs");
    fs::write(&file, "").expect("writable");
    assert!(LogFiles::open(file.clone(), DISK_MAX).is_err());
}
