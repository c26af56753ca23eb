//! Statuses of users: what the server API sets, what a client's rpc sets, and who was online when.
//! In: dialogues, calls of `Node`, ticks → out: statuses.
//! Uses: `world`, `script`. Never: the stores by themselves, which have a conformance suite.
//! Changed here: tests of statuses of one node. Several nodes share a store in `redis`.

use std::time::Duration;

use fanwire_node::{Options, UserStatus};

use crate::script::hello;
use crate::world::{UNIX, World, options};

fn enabled(change: impl FnOnce(&mut Options)) -> Options {
    options(|options| {
        options.user_status.enabled = true;
        change(options);
    })
}

fn of(world: &World, user: &str) -> UserStatus {
    let statuses = world.node.user_statuses(vec![user.to_owned()], world.now);
    statuses.wait().expect("memory").found.remove(0)
}

#[test]
fn an_rpc_of_a_client_makes_its_user_active_and_keeps_the_text() {
    let mut world = World::new(enabled(|_| {}));
    let users = ["42".to_owned(), "43".to_owned()];
    let updated = world.node.users().update_status(
        &users,
        Some("busy".to_owned()),
        world.node.unix(world.now),
    );
    assert_eq!(updated.wait(), Ok(()));
    world.now += Duration::from_secs(5);
    world.connected("ada", hello("as 42"));
    world.connected("eve", hello(""));
    world.play(
        r#"
        ada > {"id":2,"rpc":{"method":"update_user_status"}}
        ada < {"id":2,"rpc":{}}
        eve > {"id":2,"rpc":{"method":"update_user_status"}}
        eve < {"id":2,"error":{"code":103,"message":"permission denied"}}
    "#,
    );
    let status = |active, online| UserStatus { active, online, state: "busy".into() };
    assert_eq!(of(&world, "42"), status(UNIX + 5, UNIX + 5));
    assert_eq!(of(&world, "43"), status(UNIX, 0));
    assert_eq!(world.node.users().delete_status(&users).wait(), Ok(()));
    assert_eq!(of(&world, "43"), UserStatus::default());
}

#[test]
fn without_the_key_the_method_is_like_any_other() {
    let mut world = World::new(options(|_| {}));
    world.connected("ada", hello("as 42"));
    world.play(
        r#"
        ada > {"id":2,"rpc":{"method":"update_user_status"}}
        ada < {"id":2,"error":{"code":108,"message":"not available"}}
    "#,
    );
    (0..60).for_each(|second| world.node.tick(world.now + Duration::from_secs(second)));
    world.close("ada");
    assert_eq!(of(&world, "42"), UserStatus::default());
}

#[test]
fn every_user_is_recorded_as_online_within_the_interval_and_until_the_status_expires() {
    let interval = 10;
    let mut world = World::new(enabled(|options| {
        options.client.presence_update_interval = Duration::from_secs(interval);
        options.user_status.expire_interval = Duration::from_secs(100);
    }));
    let users: Vec<_> = (0..30).map(|number| format!("u{number}")).collect();
    for user in &users {
        world.connected(user, hello(&format!("as {user}")));
    }
    for _ in 0..interval {
        world.now += Duration::from_secs(1);
        world.node.tick(world.now);
    }
    users.iter().for_each(|user| world.close(user));
    for user in &users {
        let online = of(&world, user).online;
        assert!((UNIX + 1..=UNIX + interval).contains(&online), "{user}: {online}");
    }
    world.now += Duration::from_secs(100);
    assert!(users.iter().all(|user| of(&world, user) == UserStatus::default()));
}
