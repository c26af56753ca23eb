//! Tests of the files in `cache_dir`.
//! In: folders of the target folder → out: texts, modes of files, errors.
//! Uses folders of their own, removed at the end. Never: the content of a real account.
//! A rule about files is a test here.

use std::os::unix::fs::PermissionsExt;

use fanwire_testing::Folder;

use super::*;

const URL: &str = "https://acme-v02.api.letsencrypt.org/directory";

fn open(folder: &Folder, url: &str) -> Cache {
    Cache::open(folder.path(), url).expect("the folder for tests is writable")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn what_was_stored_is_there_after_a_restart() {
    let folder = Folder::new("restart");
    let cache = open(&folder, URL);
    assert_eq!(
        (cache.account().ok(), cache.certificate("a.example").ok()),
        (Some(None), Some(None))
    );
    cache.store_account("1").expect("writable");
    cache.store_certificate("a.example", "2").expect("writable");
    cache.store_certificate("a.example", "3").expect("writable");
    let cache = open(&folder, URL);
    assert_eq!(cache.account().expect("readable").as_deref(), Some("1"));
    assert_eq!(cache.certificate("a.example").expect("readable").as_deref(), Some("3"));
    cache.remove_account().expect("writable");
    assert_eq!(cache.account().expect("readable"), None);
}

#[test]
fn files_are_for_this_user_alone() {
    let folder = Folder::new("mode");
    let cache = open(&folder, URL);
    cache.store_account("1").expect("writable");
    cache.store_certificate("a.example", "2").expect("writable");
    let path = Path::new(folder.path()).join("acme-v02.api.letsencrypt.org-directory");
    assert_eq!(mode(&path), 0o700);
    let mut files: Vec<_> =
        fs::read_dir(&path).expect("a folder").map(|file| file.expect("a file").path()).collect();
    files.sort();
    assert_eq!(files, [path.join("a.example.pem"), path.join("account.json")]);
    assert!(files.iter().all(|file| mode(file) == 0o600));
}

#[test]
fn authorities_do_not_share_files() {
    let folder = Folder::new("authorities");
    open(&folder, URL).store_certificate("a.example", "real").expect("writable");
    let staging = open(&folder, "https://acme-staging-v02.api.letsencrypt.org/directory");
    assert_eq!(staging.certificate("a.example").expect("readable"), None);
    // A URL names one folder below, whatever is in it.
    for (url, name) in
        [("https://[::1]:14000/dir/../x", "---1--14000-dir-..-x"), ("https://../..", "-..")]
    {
        assert_eq!(folder_name(url), name);
    }
}

#[test]
fn a_file_that_a_crash_left_is_replaced() {
    let folder = Folder::new("crash");
    let cache = open(&folder, URL);
    let left = temporary(cache.folder.as_deref().expect("a folder"), "account.json");
    fs::write(&left, "half").expect("writable");
    cache.store_account("whole").expect("writable");
    assert_eq!(cache.account().expect("readable").as_deref(), Some("whole"));
    assert!(!left.exists());
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_at_once() {
    let folder = Folder::new("unwritable");
    let file = Path::new(folder.path()).join("file");
    fs::write(&file, "").expect("writable");
    assert!(Cache::open(file.to_str().expect("UTF-8"), URL).is_err());
}

#[test]
fn without_a_folder_nothing_is_kept() {
    let cache = Cache::open("", URL).expect("no folder");
    cache.store_account("1").expect("nothing to do");
    cache.store_certificate("a.example", "2").expect("nothing to do");
    cache.remove_account().expect("nothing to do");
    assert_eq!(
        (cache.account().ok(), cache.certificate("a.example").ok()),
        (Some(None), Some(None))
    );
}
