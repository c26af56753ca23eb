//! Tests of folders: they are empty, apart from each other, and gone after a test that ends or panics.
//! In: values that are dropped → out: what is left on the disk.
//! Uses `folder` alone.
//! Changed here: the ends of a test.

use std::panic::catch_unwind;

use super::*;

#[test]
fn a_folder_is_new_and_goes_with_its_value() {
    let first = Folder::new("same");
    let second = Folder::new("same");
    assert_ne!(first.path(), second.path());
    let file = first.write("file", "text");
    assert_eq!(std::fs::read_to_string(&file).ok().as_deref(), Some("text"));
    assert!(!Path::new(&second.file("file")).exists());
    let path = first.to_path_buf();
    drop(first);
    assert!(!path.exists());
}

#[test]
fn a_folder_goes_when_its_test_panics() {
    let folder = Folder::new("panic");
    let path = folder.to_path_buf();
    let ended = catch_unwind(move || {
        folder.write("file", "text");
        panic!("the test fails");
    });
    assert!(ended.is_err() && !path.exists());
}
