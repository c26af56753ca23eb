//! Upgrades that fail: the server goes on in one process.
//! In: new programs that exit, hang or refuse, processes that are killed at any moment → out: one server, and clients that are not wrong.
//! Uses scripts in the place of the binary, and `kill`. Never: a fault of the machine.
//! Changed here: which faults there are. `FANWIRE_TAKEOVER_SEEDS=100` makes a hundred of the random ones.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use fanwire_testing::{pause, wait_for};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::with_redis;
use super::world::{PATIENCE, Server, World, number};
use crate::started::process::{Redis, no_redis};

/// Puts a script into the place of the program.
fn install(server: &Server, script: &str) {
    let path = server.program();
    std::fs::remove_file(&path).expect("it is there");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a writable folder");
    let executable = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(&path, executable).expect("it is there");
}

/// A script that writes its process into a file and becomes the binary.
fn install_named(server: &Server) {
    let folder = server.folder().path();
    install(
        server,
        &format!("echo $$ > {folder}/new; exec {} \"$@\"", env!("CARGO_BIN_EXE_fanwire")),
    );
}

fn new_pid(server: &Server) -> u32 {
    let path = format!("{}/new", server.folder().path());
    let read = || std::fs::read_to_string(&path).ok()?.trim().parse().ok();
    wait_for(|| read().ok_or("the new program was not started"), PATIENCE)
}

fn signal(name: &str, pid: u32) {
    // It may have ended.
    let _ = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).output();
}

#[test]
fn a_new_program_that_cannot_take_over_changes_nothing() {
    let mut world = World::start("broken", &[]);
    world.connect(12, 2);
    let pid = world.pid();
    let cases = [
        ("exit 3", "ended before it was ready (exit status: 3)"),
        ("echo nonsense >&0; exit 1", "the new program "),
        ("exec /nowhere/fanwire 2>/dev/null", "ended before it was ready"),
    ];
    for (script, expected) in cases {
        install(world.server(), script);
        let answer = world.while_publishing(|server| server.upgrade(&[]));
        assert!(answer.as_ref().is_err_and(|reason| reason.contains(expected)), "{answer:?}");
    }
    std::fs::remove_file(world.server().program()).expect("it is there");
    let answer = world.server().upgrade(&[]);
    assert!(answer.is_err_and(|reason| reason.contains("cannot be started")));
    symlink(env!("CARGO_BIN_EXE_fanwire"), world.server().program()).expect("a writable folder");
    world.server().change_config("shards: 2", "shards: two");
    let answer = world.server().upgrade(&[]);
    assert!(answer.as_ref().is_err_and(|reason| reason.contains("shards")), "{answer:?}");
    world
        .server()
        .change_config("shards: two", "shards: 2\ngrpc_api: {enabled: true, address: 192.0.2.1}");
    let answer = world.while_publishing(|server| server.upgrade(&[]));
    let expected = "the new program refuses: grpc_api.address";
    assert!(answer.as_ref().is_err_and(|reason| reason.contains(expected)), "{answer:?}");
    world.server().change_config("grpc_api: {enabled: true, address: 192.0.2.1}", "");
    let streams = "durable_streams: {enabled: true, namespace: answers}";
    let other_engine = "engine: {type: redis, redis: {address: \"127.0.0.1:1\"}}";
    world.server().change_config(streams, other_engine);
    let answer = world.while_publishing(|server| server.upgrade(&[]));
    let expected = "the new program refuses: engine.type has changed";
    assert!(answer.as_ref().is_err_and(|reason| reason.contains(expected)), "{answer:?}");
    assert_eq!(world.pid(), pid);
    world.check_everything_arrived();
    world.server().change_config(other_engine, streams);
    world.while_publishing(|server| server.upgrade(&[])).expect("nothing stands in the way");
    world.check_everything_arrived();
}

#[test]
fn a_second_upgrade_is_refused_while_one_runs() {
    let world = World::start("second", &[]);
    let server = world.server();
    let go = format!("{}/go", server.folder().path());
    install(
        server,
        &format!(
            "echo $$ > {}/new; while [ ! -e {go} ]; do sleep 0.01; done; exec {} \"$@\"",
            server.folder().path(),
            env!("CARGO_BIN_EXE_fanwire")
        ),
    );
    std::thread::scope(|scope| {
        let first = scope.spawn(|| server.upgrade(&[]));
        new_pid(server);
        let second = server.upgrade(&[]);
        assert!(second.is_err_and(|reason| reason.contains("an upgrade is running already")));
        std::fs::write(&go, "").expect("a writable folder");
        first.join().expect("no panic").expect("it is upgraded");
    });
}

#[test]
fn a_server_with_a_redis_cluster_is_not_handed_over() {
    let flags = [
        "--engine.type=redis",
        "--engine.redis.cluster_address=127.0.0.1:1",
        "--durable_streams.enabled=false",
    ];
    let world = World::start("cluster", &flags);
    for arguments in [&[][..], &["--check"]] {
        let answer = world.server().upgrade(arguments);
        assert!(answer.is_err_and(|reason| reason.contains("restart it; its clients recover")));
    }
}

#[test]
fn a_server_whose_redis_does_not_answer_goes_on() {
    let flags = [
        "--engine.type=redis",
        "--engine.redis.address=127.0.0.1:1",
        "--durable_streams.enabled=false",
    ];
    let world = World::start("no-redis", &flags);
    let pid = world.pid();
    let answer = world.server().upgrade(&[]);
    assert!(answer.as_ref().is_err_and(|reason| reason.contains("Redis")), "{answer:?}");
    assert_eq!(world.pid(), pid);
}

/// A fault at a random moment of an upgrade.
#[derive(Clone, Copy, Debug)]
enum Fault {
    KillOld,
    KillNew,
    /// The new program hangs until the old one gives up, or until it has everything.
    HangNew,
    /// The new program hangs for a random time.
    PauseNew,
}

const FAULTS: [Fault; 4] = [Fault::KillOld, Fault::KillNew, Fault::HangNew, Fault::PauseNew];

impl Fault {
    fn strike(self, old: u32, new: u32, chance: &mut StdRng) {
        match self {
            Self::KillOld => signal("KILL", old),
            Self::KillNew => signal("KILL", new),
            Self::HangNew => signal("STOP", new),
            Self::PauseNew => {
                signal("STOP", new);
                pause(Duration::from_millis(chance.random_range(0..2_000)));
                signal("CONT", new);
            }
        }
    }
}

#[test]
fn after_a_fault_at_any_moment_one_program_serves() {
    strike_at_random_moments(&[]);
}

#[test]
fn after_a_fault_at_any_moment_one_program_serves_with_redis() {
    let Some(redis) = Redis::start(&["--save", ""]) else { return no_redis("faults with Redis") };
    let flags = with_redis(&redis);
    strike_at_random_moments(&flags.iter().map(String::as_str).collect::<Vec<_>>());
}

fn strike_at_random_moments(flags: &[&str]) {
    let seeds = number("SEEDS", FAULTS.len()) as u64;
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..FAULTS.len() {
            scope.spawn(|| {
                let mut seed = next.fetch_add(1, SeqCst);
                while seed < seeds {
                    strike_during_an_upgrade(seed, flags);
                    seed = next.fetch_add(1, SeqCst);
                }
            });
        }
    });
}

fn strike_during_an_upgrade(seed: u64, options: &[&str]) {
    let mut chance = StdRng::seed_from_u64(seed);
    let fault = FAULTS[seed as usize % FAULTS.len()];
    let prefix = format!("--engine.redis.prefix=seed{seed}");
    let flags = [options, &[&prefix]].concat();
    let mut world = World::start(&format!("fault-{}-{seed}", flags.len()), &flags);
    world.connect(number("CLIENTS", 12), number("STREAMS", 2));
    let first = world.pid();
    let begun = Instant::now();
    world.server().upgrade(&[]).expect("nothing stands in the way");
    let usual = begun.elapsed();
    let old = wait_for(|| world.pid_other_than(&[first]), PATIENCE);
    world.publish_for(Duration::from_millis(50));
    install_named(world.server());
    let delay = usual.mul_f64(chance.random_range(0.0..1.0));
    let answer = world.while_publishing(|server| {
        std::thread::scope(|scope| {
            let upgrade = scope.spawn(|| server.upgrade(&[]));
            let new = new_pid(server);
            pause(delay);
            fault.strike(old, new, &mut chance);
            let answer = upgrade.join().expect("no panic");
            // It may be the one that serves.
            signal("CONT", new);
            answer
        })
    });
    println!("seed {seed}: {fault:?} after {delay:?} of {usual:?}: {answer:?}");
    match (fault, &answer) {
        (Fault::KillOld, _) => world.check_one_serves(old),
        (_, Err(_)) => {
            assert_eq!(world.pid(), old);
            // It served all the time.
            world.check_everything_arrived();
        }
        // It is a server that is killed.
        (Fault::KillNew, Ok(_)) => {}
        (_, Ok(_)) => world.check_everything_arrived(),
    }
}
