//! Tests of the lists of connections by user.
//! In: connections added and removed in every order → out: the connections of each user.
//! Uses: nothing but the lists.
//! Whom an API call means is tested in `tests/it/api.rs`.

use super::*;

fn of(users: &Users, user: &str) -> Vec<u32> {
    users.of(user).collect()
}

#[test]
fn the_connections_of_a_user_are_found_newest_first() {
    let (ada, bob): (Arc<str>, Arc<str>) = ("ada".into(), "bob".into());
    let mut users = Users::default();
    for (user, index) in [(&ada, 3), (&bob, 0), (&ada, 1), (&ada, 9)] {
        users.add(user, index);
    }
    assert_eq!(of(&users, "ada"), [9, 1, 3]);
    assert_eq!(of(&users, "bob"), [0]);
    assert!(of(&users, "eve").is_empty());
}

#[test]
fn any_of_them_can_be_removed() {
    let ada: Arc<str> = "ada".into();
    for (removed, left) in [(0, [2, 1]), (1, [2, 0]), (2, [1, 0])] {
        let mut users = Users::default();
        (0..3).for_each(|index| users.add(&ada, index));
        users.remove("ada", removed);
        assert_eq!(of(&users, "ada"), left);
        users.add(&ada, removed);
        assert_eq!(of(&users, "ada"), [removed, left[0], left[1]]);
        (0..3).for_each(|index| users.remove("ada", index));
        assert!(users.heads.is_empty());
    }
}
