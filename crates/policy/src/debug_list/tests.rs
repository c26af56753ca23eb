//! Tests of the list of users, channels and addresses whose events are logged.
//! In: changes, Unix seconds → out: asserted looks and subjects.
//! Uses: times as numbers. Never: a clock, sessions.
//! Changed here: tests of limits and ends. Lines are tested in `tests/it/debug_for.rs`.

use super::*;

fn command(users: &[&str], until: u64) -> DebugForCommand {
    let users = users.iter().map(|user| (*user).to_owned()).collect();
    DebugForCommand { users, until, ..DebugForCommand::default() }
}

#[test]
fn a_subject_is_listed_until_its_end() {
    let list = DebugList::default();
    assert!(!list.is_used() && !list.lists("42", "", None));
    assert!(list.apply(&command(&["42", ""], 1_000)));
    assert!(list.is_used() && list.lists("42", "news", None));
    assert!(!list.lists("43", "42", None) && !list.lists("", "", None));
    list.tick(999);
    assert!(list.lists("42", "", None));
    list.tick(1_000);
    assert!(!list.is_used() && !list.lists("42", "", None));
    list.apply(&command(&["42"], 2_000));
    list.apply(&command(&["42"], 0));
    assert!(!list.is_used(), "0 removes it");
}

#[test]
fn addresses_are_compared_as_addresses() {
    let addresses = vec!["::ffff:10.0.0.1".to_owned(), "no address".to_owned()];
    let list = DebugList::default();
    list.apply(&DebugForCommand { addresses, until: 5, ..DebugForCommand::default() });
    assert!(list.lists("", "", Some(IpAddr::from([10, 0, 0, 1]))));
    assert!(!list.lists("", "", Some(IpAddr::from([10, 0, 0, 2]))));
    assert_eq!(list.subjects().len(), 1);
}

#[test]
fn subjects_of_the_configuration_stay_until_it_changes() {
    let options = |channel: &str| DebugForOptions {
        channels: vec![channel.to_owned()],
        ..DebugForOptions::default()
    };
    let list = DebugList::of(&options("news"));
    list.apply(&command(&["42"], 1_000));
    let channels = vec!["news".to_owned()];
    list.apply(&DebugForCommand { channels, ..DebugForCommand::default() });
    list.tick(u64::MAX - 1);
    let subject = DebugSubject { kind: "channel", name: "news".to_owned(), end: None };
    assert_eq!(list.subjects(), [subject]);
    list.configure(&options("chat"));
    assert!(list.lists("", "chat", None) && !list.lists("", "news", None));
}

#[test]
fn a_full_list_takes_nothing_more() {
    let list = DebugList::default();
    let users: Vec<String> = (0..=SUBJECTS_MAX).map(|user| user.to_string()).collect();
    let all = DebugForCommand { users, until: 9, ..DebugForCommand::default() };
    assert!(!list.apply(&all) && !list.is_used());
    let most = DebugForCommand { users: all.users[1..].to_vec(), ..all };
    assert!(list.apply(&most));
    assert!(!list.apply(&command(&["one more"], 9)));
    assert!(list.apply(&command(&["5"], 0)), "a removal needs no room");
}
