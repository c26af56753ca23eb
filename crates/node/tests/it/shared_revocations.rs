//! Blocks and revocations that several nodes share: they outlive nodes, and a node that missed changes reads the list.
//! In: calls of `Node` on one node, a store that is away, loses changes or entries → out: what clients of each node get.
//! Uses `world` once per node, a store in memory that answers at once. Never: Redis, whose tests are in `redis`.
//! Changed here: tests of the node with a store. The rules of versions have unit tests.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fanwire_broker::{
    Answer, BrokerError, Epoch, Position, RevocationChange, RevocationCursor, RevocationEvent,
    RevocationKind, RevocationListener, RevocationPage, RevocationStore,
};
use fanwire_node::{NodeParts, PeersError, save_peers, take_over_peers};
use fanwire_protocol::ErrorCode;

use crate::script::hello;
use crate::tokens::{connect, guarded};
use crate::world::World;

/// A list in memory, two entries a page.
#[derive(Default)]
struct List {
    contents: Mutex<(Position, Vec<RevocationChange>)>,
    listeners: Mutex<Vec<Arc<RevocationListener>>>,
    /// Calls fail.
    is_away: AtomicBool,
    /// Changes are stored and not sent.
    is_silent: AtomicBool,
}

impl List {
    fn tell(&self, event: &RevocationEvent) {
        let listeners = self.listeners.lock().expect("no panic inside").clone();
        listeners.iter().for_each(|listener| listener(event.clone()));
    }

    /// Starts again, empty.
    fn lose_entries(&self) {
        *self.contents.lock().expect("no panic inside") = Default::default();
        self.tell(&RevocationEvent::MayHaveGap);
    }
}

impl RevocationStore for List {
    fn listen(&self, listener: RevocationListener) {
        self.listeners.lock().expect("no panic inside").push(Arc::new(listener));
    }

    fn change(&self, change: &RevocationChange, _now: Instant) -> Answer<()> {
        if self.is_away.load(Relaxed) {
            return Answer::now(Err(BrokerError::Unavailable));
        }
        let position = {
            let (position, entries) = &mut *self.contents.lock().expect("no panic inside");
            let epoch =
                if position.epoch == Epoch::NONE { Epoch::random() } else { position.epoch };
            *position = Position { offset: position.offset + 1, epoch };
            entries.retain(|entry| entry.subject != change.subject);
            entries
                .extend(Some(change.clone()).filter(|it| it.kind != RevocationKind::UnblockUser));
            *position
        };
        if !self.is_silent.load(Relaxed) {
            self.tell(&RevocationEvent::Change(position, change.clone()));
        }
        Answer::now(Ok(()))
    }

    fn page(&self, from: RevocationCursor) -> Answer<RevocationPage> {
        if self.is_away.load(Relaxed) {
            return Answer::now(Err(BrokerError::Unavailable));
        }
        let (position, entries) = &*self.contents.lock().expect("no panic inside");
        let at = from.scan as usize;
        let next =
            (at + 2 < entries.len()).then_some(RevocationCursor { scan: from.scan + 2, ..from });
        let entries = entries.iter().skip(at).take(2).cloned().collect();
        Answer::now(Ok(RevocationPage { position: *position, entries, next }))
    }
}

fn node(list: &Arc<List>) -> World {
    let revocations: Option<Arc<dyn RevocationStore>> = Some(Arc::<List>::clone(list));
    World::with_parts(guarded(|_| {}), NodeParts { revocations, ..NodeParts::default() }, 2)
}

fn change(subject: &str) -> RevocationChange {
    RevocationChange { subject: subject.into(), ..RevocationChange::default() }
}

fn revoke(world: &World, kind: RevocationKind, subject: &str) -> Result<(), ErrorCode> {
    world
        .node
        .revocations()
        .revoke(kind, change(subject), world.now, world.node.unix(world.now))
        .expect("it is possible")
        .wait()
}

/// The code with which a connect with these claims fails; `None` if it succeeds.
fn refusal(world: &mut World, claims: &str) -> Option<u32> {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let name = format!("client{}", NUMBER.fetch_add(1, Relaxed));
    world.play(&format!("{name} opens"));
    world.say(&name, &connect(claims));
    let heard = world.heard(&name).expect("an answer");
    world.keeps_silent(&name);
    let code = heard
        .strip_prefix("x ")
        .or_else(|| heard.split_once(r#""code":"#).map(|(_, code)| code))?;
    let digits: String = code.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn connected(world: &mut World, name: &str, claims: &str) {
    world.open(name, hello(""));
    world.say(name, &connect(claims));
    assert!(world.heard(name).is_some_and(|heard| heard.contains(r#""connect":{"#)));
}

const ADA: &str = r#"{"sub":"ada","jti":"1"}"#;
const BOB: &str = r#"{"sub":"bob","jti":"2"}"#;

#[test]
fn a_block_reaches_every_node_and_those_that_start_later() {
    let list = Arc::default();
    let mut worlds = [node(&list), node(&list)];
    connected(&mut worlds[1], "eve", ADA);
    for user in ["ada", "x", "y", "z"] {
        assert_eq!(revoke(&worlds[0], RevocationKind::BlockUser, user), Ok(()));
    }
    worlds[1].settle();
    worlds[1].play("eve x 3507 permission denied");
    assert_eq!(revoke(&worlds[1], RevocationKind::RevokeToken, "2"), Ok(()));
    let [one, two] = worlds;
    for mut world in [one, two, node(&list)] {
        assert_eq!(refusal(&mut world, ADA), Some(3507));
        assert_eq!(refusal(&mut world, BOB), Some(109));
        let counts: Vec<_> = world.node.revocations().counts().collect();
        assert_eq!(counts, [("blocked", 4), ("revoked", 1), ("invalidated", 0)]);
    }
    let mut last = node(&list);
    assert_eq!(revoke(&node(&list), RevocationKind::UnblockUser, "ada"), Ok(()));
    assert_eq!(refusal(&mut last, ADA), None);
}

#[test]
fn nobody_is_let_in_before_the_list_has_been_read() {
    let list = Arc::new(List::default());
    list.is_away.store(true, Relaxed);
    let mut world = node(&list);
    let mut known = world.node.revocations().when_known();
    for _ in 0..2 {
        known = known.ready().expect_err("it has not been read");
        assert!(!world.node.revocations().are_known());
        assert_eq!(refusal(&mut world, BOB), Some(100));
        world.wait(Duration::from_secs(1));
        world.node.tick(world.now);
    }
    list.is_away.store(false, Relaxed);
    world.node.tick(world.now);
    assert_eq!(known.ready().expect("it has been read"), Ok(()));
    assert_eq!(world.node.revocations().when_known().wait(), Ok(()), "at once");
    assert_eq!(refusal(&mut world, BOB), None);
}

#[test]
fn without_the_store_checks_go_on_and_a_call_is_executed_here_and_fails() {
    let list = Arc::new(List::default());
    let mut worlds = [node(&list), node(&list)];
    assert_eq!(revoke(&worlds[0], RevocationKind::BlockUser, "ada"), Ok(()));
    list.is_away.store(true, Relaxed);
    assert_eq!(revoke(&worlds[0], RevocationKind::BlockUser, "bob"), Err(ErrorCode::INTERNAL));
    let codes = worlds.each_mut().map(|world| [ADA, BOB].map(|claims| refusal(world, claims)));
    assert_eq!(codes, [[Some(3507), Some(3507)], [Some(3507), None]]);
    list.is_away.store(false, Relaxed);
    assert_eq!(revoke(&worlds[0], RevocationKind::BlockUser, "bob"), Ok(()), "repeated");
    assert_eq!(refusal(&mut worlds[1], BOB), Some(3507));
}

#[test]
fn missed_changes_have_their_effect_when_the_list_is_read_again() {
    // Where the gap is noticed: a report of the store, or the next change.
    for cause in ["report", "change"] {
        let list = Arc::new(List::default());
        let mut world = node(&list);
        connected(&mut world, "ada", ADA);
        connected(&mut world, "bob", BOB);
        assert_eq!(revoke(&world, RevocationKind::BlockUser, "eve"), Ok(()));
        list.is_silent.store(true, Relaxed);
        for (kind, subject) in [
            (RevocationKind::BlockUser, "ada"),
            (RevocationKind::RevokeToken, "2"),
            (RevocationKind::UnblockUser, "eve"),
        ] {
            assert_eq!(
                list.change(&RevocationChange { kind, ..change(subject) }, world.now).wait(),
                Ok(())
            );
        }
        world.settle();
        world.play("ada receives nothing\n bob receives nothing");
        list.is_silent.store(false, Relaxed);
        match cause {
            "report" => list.tell(&RevocationEvent::MayHaveGap),
            _ => assert_eq!(list.change(&change("zoe"), world.now).wait(), Ok(())),
        }
        world.settle();
        world.settle();
        world.play("ada x 3507 permission denied\n bob x 3005 connection expired");
        assert_eq!(refusal(&mut world, r#"{"sub":"eve"}"#), None, "{cause}");
    }
}

/// The old program alone knows what was lost, so it goes on until the list has it again.
#[test]
fn a_new_program_takes_over_with_the_list_of_the_old_one_only() {
    let list = Arc::new(List::default());
    let mut old = node(&list);
    assert_eq!(revoke(&old, RevocationKind::BlockUser, "ada"), Ok(()));
    let take_over = |old: &World, new: &World| {
        let saved = save_peers(&old.node, old.now)?;
        Some(take_over_peers(&new.node, &saved, new.now))
    };
    assert_eq!(take_over(&old, &node(&list)), Some(Ok(())));

    *list.contents.lock().expect("no panic inside") = Default::default();
    let new = node(&list);
    assert_eq!(take_over(&old, &new), Some(Err(PeersError::OtherRevocations)), "not noticed yet");
    list.tell(&RevocationEvent::MayHaveGap);
    assert_eq!(take_over(&old, &new), None, "not stored again yet");
    for _ in 0..2 {
        old.wait(Duration::from_secs(1));
        old.node.tick(old.now);
    }
    let mut new = node(&list);
    assert_eq!(take_over(&old, &new), Some(Ok(())));
    assert_eq!(refusal(&mut new, ADA), Some(3507));
}

#[test]
fn a_node_stores_again_what_the_list_has_lost() {
    let list = Arc::new(List::default());
    let mut old = node(&list);
    assert_eq!(revoke(&old, RevocationKind::BlockUser, "ada"), Ok(()));
    assert_eq!(revoke(&old, RevocationKind::RevokeToken, "2"), Ok(()));
    list.lose_entries();
    let mut new = node(&list);
    connected(&mut new, "ada", ADA);
    assert_eq!([ADA, BOB].map(|claims| refusal(&mut old, claims)), [Some(3507), Some(109)]);
    let wait = |old: &mut World| {
        old.wait(Duration::from_secs(1));
        old.node.tick(old.now);
    };
    list.is_away.store(true, Relaxed);
    wait(&mut old);
    connected(&mut new, "bob", BOB);
    list.is_away.store(false, Relaxed);
    wait(&mut old);
    new.settle();
    new.play("ada x 3507 permission denied\n bob x 3005 connection expired");
    for world in [&mut old, &mut new, &mut node(&list)] {
        assert_eq!([ADA, BOB].map(|claims| refusal(world, claims)), [Some(3507), Some(109)]);
    }
    assert_eq!(revoke(&new, RevocationKind::UnblockUser, "ada"), Ok(()));
    wait(&mut old);
    assert_eq!([&mut old, &mut new].map(|world| refusal(world, ADA)), [None; 2]);
}
