//! Tests of the file with the process id.
//! In: paths in a folder of the test → out: the content of the file, over time.
//! Uses the file system of the machine. Never: servers.
//! A way in which a file can be unusable is a row here.

use std::fs::{create_dir, read_to_string, remove_file, write};

use fanwire_testing::Folder;

use super::PidFile;

fn own_id() -> Option<String> {
    Some(format!("{}\n", std::process::id()))
}

#[test]
fn a_new_file_contains_the_id_until_the_end() {
    let folder = Folder::new("pid-new");
    let path = folder.file("pid");
    let mut file = PidFile::open(&path).expect("a folder of ours").expect("a path");
    assert_eq!(read_to_string(&path).ok(), own_id());
    file.write().expect("it was opened");
    assert_eq!(read_to_string(&path).ok(), own_id());
    drop(file);
    assert_eq!(read_to_string(&path).ok(), None);
}

#[test]
fn a_file_that_is_left_to_another_process_stays() {
    let folder = Folder::new("pid-left");
    let path = folder.file("pid");
    let mut file = PidFile::open(&path).expect("a folder of ours").expect("a path");
    file.leave();
    drop(file);
    assert_eq!(read_to_string(&path).ok(), own_id());
}

#[test]
fn an_existing_file_is_kept_by_a_start_that_fails() {
    let folder = Folder::new("pid-kept");
    let path = folder.file("pid");
    let other = "1234567890 of a server that runs\n";
    write(&path, other).expect("a folder of ours");
    drop(PidFile::open(&path).expect("a file of ours"));
    assert_eq!(read_to_string(&path).ok().as_deref(), Some(other));
}

#[test]
fn an_existing_file_is_overwritten_by_a_start_that_succeeds() {
    let folder = Folder::new("pid-anew");
    let path = folder.file("pid");
    write(&path, "1234567890 of a server that crashed\n").expect("a folder of ours");
    let mut file = PidFile::open(&path).expect("a file of ours").expect("a path");
    file.write().expect("it was opened");
    assert_eq!(read_to_string(&path).ok(), own_id());
    drop(file);
    assert_eq!(read_to_string(&path).ok(), None);
}

#[test]
fn a_file_that_the_next_server_has_written_is_kept() {
    let folder = Folder::new("pid-next");
    let path = folder.file("pid");
    let file = PidFile::open(&path).expect("a folder of ours");
    let next = "1234567890\n";
    write(&path, next).expect("a folder of ours");
    drop(file);
    assert_eq!(read_to_string(&path).ok().as_deref(), Some(next));
}

#[test]
fn a_file_that_the_previous_server_removes_is_written_again() {
    let folder = Folder::new("pid-last");
    let path = folder.file("pid");
    write(&path, "1234567890\n").expect("a folder of ours");
    let mut file = PidFile::open(&path).expect("a file of ours").expect("a path");
    remove_file(&path).expect("a folder of ours");
    file.write().expect("a folder of ours");
    assert_eq!(read_to_string(&path).ok(), own_id());
}

#[test]
fn an_unusable_path_is_named_with_the_remedy() {
    let folder = Folder::new("pid-wrong");
    create_dir(folder.file("folder")).expect("a folder of ours");
    for name in ["folder", "nowhere/pid"] {
        let path = folder.file(name);
        let error = PidFile::open(&path).err().expect("no place for a file");
        let text = format!("{error:#}");
        assert!(
            text.starts_with(&format!("pid_file = {path:?} cannot be written: use a")),
            "{text}"
        );
    }
}

/// A device that accepts all bytes.
#[test]
#[cfg(unix)]
fn a_device_is_written_to() {
    let mut file = PidFile::open("/dev/null").expect("it can be opened").expect("a path");
    file.write().expect("it takes everything");
    assert!(!file.is_ours);
}

/// A device that is always full.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_named() {
    let mut file = PidFile::open("/dev/full").expect("it can be opened").expect("a path");
    let error = file.write().expect_err("nothing fits");
    assert!(!file.is_ours && format!("{error:#}").contains("No space left"), "{error:#}");
}

#[test]
fn no_path_is_no_file() {
    assert!(PidFile::open("").is_ok_and(|file| file.is_none()));
}
