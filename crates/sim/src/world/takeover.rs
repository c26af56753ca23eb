//! A new program goes on for a node, as `fanwire upgrade` lets it: sessions, the engine in memory, or what the node knows of others.
//! In: a host whose process reads nothing → out: another process with the same connections, or the old one, which goes on.
//! Uses what `fanwire` moves. Never: sockets, nor PUB/SUB of both programs at once: the new one subscribes when the old one has stopped.
//! Changed here: when a takeover fails, and what moves.

use std::sync::Arc;
use std::time::Instant;

use fanwire_broker::SnapshotClock;
use fanwire_node::{save_peers, take_over_peers};

use super::World;
use super::processes::new_process;
use crate::engine::ports::{EnginePort, EngineRequest};
use crate::host::{Process, Shard};
use crate::network::LinkId;

/// The new program is ready. The old one reads no more, and commands that wait for an answer have some time.
pub(super) fn prepare(world: &mut World, host: usize) {
    let process = world.hosts[host].process.as_ref();
    world.hosts[host].is_paused = process.is_some_and(|it| !it.is_leaving);
}

/// Connections that cannot move are closed, and everything else moves, unless the new program fails or the engine does not answer.
pub(super) fn take_over(world: &mut World, host: usize, fails: bool) {
    let is_prepared = std::mem::take(&mut world.hosts[host].is_paused);
    if !is_prepared || world.hosts[host].is_frozen {
        return;
    }
    world.hosts[host].taken_over_at = world.now;
    while close_unmovable(world, host) {}
    if can_hand_over(world, host) && !fails {
        move_to_new_process(world, host);
    }
    let now = world.instant();
    if let Some(process) = &world.hosts[host].process {
        process.node.introduce(now);
    }
    world.resume_host(host);
}

/// Closes connections that cannot move; then every shard executes what waits for it. Returns whether there is more to do, because of
/// clients that were slow to read the last messages, or of what a shard has executed.
fn close_unmovable(world: &mut World, host: usize) -> bool {
    let now = world.instant();
    let Some(process) = &mut world.hosts[host].process else { return false };
    let unmovable = process.unmovable();
    let mut sent = Vec::new();
    unmovable.into_iter().for_each(|it| sent.extend(process.send_away(it, now)));
    sent.extend(process.flush(now));
    world.send_to_clients(sent);
    world.settle(host);
    let Some(process) = &mut world.hosts[host].process else { return false };
    process.shards.iter().any(Shard::has_notices) || !process.unmovable().is_empty()
}

/// Whether the engine answers both programs in time.
fn can_hand_over(world: &World, host: usize) -> bool {
    let links = [LinkId::ToEngine(host), LinkId::FromEngine(host), LinkId::Feed(host)];
    let is_cut = links.into_iter().any(|link| world.network.is_cut(link));
    let process = world.hosts[host].process.as_ref();
    let is_whole = process.is_some_and(|it| it.port.is_none() || it.feed.is_whole());
    is_whole && !is_cut && world.now >= world.engine_up_at
}

fn move_to_new_process(world: &mut World, host: usize) {
    let now = world.instant();
    let Some(before) = world.hosts[host].process.as_ref() else { return };
    let uid = before.node.uid().to_owned();
    let mut process = new_process(world, host, Some(uid));
    answer_at_once(world, host, process.port.as_ref());
    let Some(mut before) = world.hosts[host].process.take() else { return };
    if !move_memory(&before, &process, now, world.unix_ms(host)) {
        world.story.tell(world.now, format_args!("the new program of h{host} refuses"));
        world.hosts[host].process = Some(before);
        return;
    }
    world.story.tell(world.now, format_args!("h{host} goes on in a new program"));
    let channels = before.node.channels().occupied();
    process.adopt(&mut before, now);
    process.node.channels().unsubscribe_vacant(&channels);
    let port = process.port.clone();
    world.hosts[host].process = Some(process);
    answer_at_once(world, host, port.as_ref());
    before.outstanding.into_values().for_each(|call| (call.give_up)());
    world.settle(host);
}

/// Executes the calls of a new program at the engine while the old one still serves: it subscribes, and reads the list of blocks.
fn answer_at_once(world: &mut World, host: usize, port: Option<&Arc<EnginePort>>) {
    world.engine.now = Some(world.instant());
    let origin = world.origin(host);
    let Some(port) = port else { return };
    loop {
        let requests = port.take_requests();
        if requests.is_empty() {
            break;
        }
        for request in requests {
            match request {
                EngineRequest::Call(call) | EngineRequest::CallBehind(_, call) => {
                    (call.run)(&mut world.engine)();
                }
                EngineRequest::Subscribe(_) => {}
                EngineRequest::Unsubscribe(_) => world.send_request(origin, request),
            }
        }
    }
    world.send_outgoing();
}

/// The stores of a process, or what it knows of other nodes. Returns false, and moves nothing, if one of both programs refuses.
fn move_memory(before: &Process, process: &Process, now: Instant, unix_ms: u64) -> bool {
    let node = &process.node;
    let Some((old, new)) = before.memory.as_ref().zip(process.memory.as_ref()) else {
        let peers = save_peers(&before.node, now);
        return peers.is_some_and(|peers| take_over_peers(node, &peers, now).is_ok());
    };
    let clock = SnapshotClock { now, unix_ms };
    let mut saved = Vec::new();
    let revocations = before.node.revocations().save(unix_ms / 1000);
    old.save(&revocations, clock, &mut saved).expect("a Vec grows");
    let restored = new.restore(&mut saved.as_slice(), clock).expect("it was just written");
    node.revocations().take_over(&restored, now);
    true
}
