//! What a fault breaks in the world, and what happens at its end.
//! In: faults of the plan when their time comes → out: changes of hosts, links and the engine.
//! Uses the world's parts. Never: checks anything.
//! Changed here: what each kind of fault does. The kinds are in `faults.rs` of the crate.

use std::time::Duration;

use super::carry::AFTER_LOSS;
use super::{DataLoss, World, snapshots, takeover};
use crate::client::unix_at;
use crate::engine::NODES;
use crate::faults::{FaultKind, PlannedFault};
use crate::network::LinkId;

/// A fault begins.
pub(super) fn begin(world: &mut World, number: usize) {
    let fault = world.plan.faults[number].clone();
    world.story.tell(world.now, format_args!("fault {number} begins: {:?}", fault.kind));
    match fault.kind {
        FaultKind::Kill { host, is_silent } => world.kill(host, is_silent),
        FaultKind::Replace { host } => leave(world, host),
        FaultKind::Restart { host, end } => snapshots::end_process(world, host, end),
        FaultKind::TakeOver { host, .. } => takeover::prepare(world, host),
        FaultKind::Pause { host } => world.hosts[host].is_frozen = true,
        FaultKind::ClockJump { host, seconds } => {
            world.hosts[host].clock_offset_ms += seconds * 1000;
            world.hosts[host].stepped_at = world.now;
        }
        FaultKind::CutFromEngine { host, calls, answers, feed } => {
            let links = engine_links(host, calls, answers, feed);
            links.into_iter().for_each(|link| world.network.cut(link));
        }
        FaultKind::FeedDown { hosts } => {
            for host in hosts {
                world.hosts[host].feed_may_open_at = world.now + fault.lasts;
                world.engine.close_feed(host);
                world.lose_feed(host);
            }
        }
        FaultKind::SlowFeed { host, by } => world.network.slow_down(LinkId::Feed(host), by),
        FaultKind::SlowEngine { host, by } => {
            world.network.slow_down(LinkId::FromEngine(host), by);
        }
        FaultKind::FailOver { lag } => {
            let until = world.now + fault.lasts;
            world.losses.push(DataLoss { at: world.now, lag, until });
            world.engine.fail_over(lag, world.instant());
            world.break_engine_connections(fault.lasts);
        }
        FaultKind::LoseAll => {
            let until = world.now + fault.lasts;
            world.losses.push(DataLoss { at: world.now, lag: Duration::ZERO, until });
            world.engine.lose_all();
            world.break_engine_connections(fault.lasts);
        }
        FaultKind::LoseEnds => {
            world.engine.lose_ends();
            world.ends_lost_at = world.now;
        }
        FaultKind::CutClient { client, to, from } => {
            let links = client_links(client, to, from);
            links.into_iter().for_each(|link| world.network.cut(link));
        }
        FaultKind::SlowShards { host, by } => world.hosts[host].turn_delay = by,
        FaultKind::MovedNames { host } => move_names(world, host),
        FaultKind::LostNames { host, own_connection } => {
            world.hosts[host].confirms_first = own_connection;
            lose_names(world, host);
        }
        FaultKind::Rush { percent, leaves } => rush(world, percent, leaves),
        FaultKind::Burst { channel } => {
            let jobs = world.backend.burst(channel, world.now, world.now + fault.lasts);
            jobs.into_iter().for_each(|(at, job)| world.schedule_job(at, job));
        }
        FaultKind::Quiet => be_quiet(world, world.now + fault.lasts),
        FaultKind::Commands { count } => (0..count).for_each(|_| give_any(world)),
    }
    note_faults(world, number);
}

/// It ends.
pub(super) fn end(world: &mut World, number: usize) {
    let fault = world.plan.faults[number].clone();
    world.story.tell(world.now, format_args!("fault {number} ends"));
    match fault.kind {
        FaultKind::Kill { host, .. } | FaultKind::Restart { host, .. } => world.start_host(host),
        FaultKind::Replace { host } => {
            world.kill(host, false);
            world.start_host(host);
        }
        FaultKind::TakeOver { host, fails } => takeover::take_over(world, host, fails),
        FaultKind::Pause { host } => world.resume_host(host),
        FaultKind::CutFromEngine { host, calls, answers, feed } => {
            world.mend_links(engine_links(host, calls, answers, feed));
        }
        FaultKind::SlowFeed { host, .. } => {
            world.network.slow_down(LinkId::Feed(host), Duration::ZERO);
        }
        FaultKind::SlowEngine { host, .. } => {
            world.network.slow_down(LinkId::FromEngine(host), Duration::ZERO);
        }
        FaultKind::CutClient { client, to, from } => {
            world.mend_links(client_links(client, to, from));
        }
        FaultKind::SlowShards { host, .. } => world.hosts[host].turn_delay = Duration::ZERO,
        FaultKind::ClockJump { host, seconds } => {
            world.hosts[host].clock_offset_ms -= seconds * 1000;
            world.hosts[host].stepped_at = world.now;
        }
        FaultKind::LostNames { host, .. } => follow_lost_names(world, host),
        FaultKind::LoseEnds => world.engine.truth.lock().forget_lost(),
        FaultKind::FeedDown { .. } | FaultKind::FailOver { .. } | FaultKind::LoseAll => {}
        FaultKind::MovedNames { .. }
        | FaultKind::Rush { .. }
        | FaultKind::Burst { .. }
        | FaultKind::Quiet
        | FaultKind::Commands { .. } => {}
    }
}

/// A process is about to end, and says so.
fn leave(world: &mut World, host: usize) {
    if let Some(process) = &mut world.hosts[host].process {
        process.is_leaving = true;
        process.node.cluster().leave();
        world.settle(host);
    }
}

/// The subscriptions of a host are made at another place of the engine. Nothing is lost, but the host cannot know that.
fn move_names(world: &mut World, host: usize) {
    let Some(process) = &world.hosts[host].process else { return };
    let Some(port) = &process.port else { return };
    let names = process.feed.confirmed_names();
    names.iter().filter(|name| *name != NODES).for_each(|name| port.report_possible_gap(name));
    world.settle(host);
}

/// The same, and what is published before they are made is lost.
fn lose_names(world: &mut World, host: usize) {
    let Some(process) = &mut world.hosts[host].process else { return };
    let generation = process.feed.generation;
    for name in process.feed.lose_names() {
        world.engine.follow_name(host, generation, &name, None);
    }
}

fn follow_lost_names(world: &mut World, host: usize) {
    let origin = world.origin(host);
    let Some(process) = &mut world.hosts[host].process else { return };
    for (name, number) in process.feed.follow_lost() {
        world.send_follow(origin, name, Some(number));
    }
    let losses_until = &mut world.hosts[host].losses_until;
    *losses_until = (world.now + AFTER_LOSS).max(*losses_until);
}

/// Some clients act at once.
fn rush(world: &mut World, percent: u64, leaves: bool) {
    for client in 0..world.clients.len() {
        let known = &mut world.clients[client];
        if known.random.percent(percent) {
            let actions = known.rush(leaves, world.now);
            world.act(client, actions);
        }
    }
}

/// Neither backends nor clients publish anything until a time.
fn be_quiet(world: &mut World, until: Duration) {
    world.backend.quiet_until = until;
    world.clients.iter_mut().for_each(|client| client.quiet_until = until);
}

/// A command of any kind.
fn give_any(world: &mut World) {
    let (kind, _) = world.backend.next_command(unix_at(world.now));
    world.give(kind);
}

/// Remembers until when a host or client may be late for a reason that no node can notice.
fn note_faults(world: &mut World, number: usize) {
    let PlannedFault { at, lasts, mut kind } = world.plan.faults[number].clone();
    let over = at + lasts + AFTER_TROUBLE;
    let extend = |until: &mut Duration| *until = over.max(*until);
    match kind {
        FaultKind::ClockJump { .. }
        | FaultKind::FeedDown { .. }
        | FaultKind::MovedNames { .. }
        | FaultKind::LoseEnds
        | FaultKind::TakeOver { .. } => {}
        FaultKind::CutClient { client, .. } => extend(&mut world.client_faults_until[client]),
        FaultKind::FailOver { .. } | FaultKind::LoseAll => extend(&mut world.engine_faults_until),
        _ => {
            let is_only_late = matches!(kind, FaultKind::SlowFeed { .. });
            let is_stall = matches!(kind, FaultKind::Pause { .. } | FaultKind::SlowShards { .. });
            let Some(host) = kind.host_mut() else { return };
            let host = &mut world.hosts[*host];
            extend(&mut host.silent_faults_until);
            if is_stall {
                extend(&mut host.stalls_until);
            }
            if !is_only_late {
                extend(&mut host.losses_until);
            }
        }
    }
}

fn engine_links(host: usize, calls: bool, answers: bool, feed: bool) -> Vec<LinkId> {
    chosen(&[
        (calls, LinkId::ToEngine(host)),
        (answers, LinkId::FromEngine(host)),
        (feed, LinkId::Feed(host)),
    ])
}

fn client_links(client: usize, to: bool, from: bool) -> Vec<LinkId> {
    chosen(&[(to, LinkId::ToClient(client)), (from, LinkId::ToHost(client))])
}

fn chosen(links: &[(bool, LinkId)]) -> Vec<LinkId> {
    links.iter().filter(|(is_chosen, _)| *is_chosen).map(|(_, link)| *link).collect()
}

/// After a fault everything may be late for this long.
const AFTER_TROUBLE: Duration = Duration::from_secs(15);
