//! Connections live as they should: commands are answered, clients that behave are not turned away, tokens end, all come back.
//! In: codes, replies, a look once a second → out: a broken promise.
//! Uses the clients and the plan's faults. Never: timers of the product.
//! Changed here: which codes a client that behaves may see, and how long an answer may take.

use std::time::{Duration, Instant};

use super::{Checkers, DONE, had_engine_faults, had_faults, was_calm, was_feed_down};
use crate::backend::BACKEND_CODE;
use crate::client::{CALL_MILLIS, Claim, ClientState, Seen, SimulatedClient, SubscriptionState};
use crate::plan::CLOSED;
use crate::plan::EXPIRED_CLOSE_DELAY;
use crate::truth::TruthEntry;
use crate::world::World;

impl Checkers {
    pub(super) fn check_life(&mut self, world: &World, client: usize, seen: &Seen) {
        match seen {
            Seen::Disconnected { code, .. } => self.check_code(world, client, *code),
            Seen::Refused(code) if ![100, 109, 110, 3502, 3507].contains(code) => {
                self.broken_for(TURNED_AWAY, client, "connect", format!("error {code}"));
            }
            Seen::SubscribeFailed { channel, code: 100 }
                if was_calm(world, world.now) && !had_faults(world, client, world.now) =>
            {
                self.broken_for(DONE, client, channel, "error 100".to_owned());
            }
            Seen::Connected { channels, .. }
                if channels.iter().any(|channel| channel.contains(CLOSED)) =>
            {
                let text = "the hook of the backend refuses this channel".to_owned();
                self.broken_for("hooks decide", client, CLOSED, text);
            }
            // A stream that lost its end is no cause that can be seen afterwards.
            Seen::Unsubscribed { channel, code: 2500, at: Some(at) }
                if self.has_engine && world.ends_lost_at.is_zero() =>
            {
                let top = world.engine.top(channel).unwrap_or_default();
                let is_at_top = top.offset == at.offset && top.epoch.as_str() == at.epoch;
                if is_at_top && !had_engine_faults(world, world.now) {
                    let text = format!("ended at {at:?}, which is the top");
                    self.broken_for(CAUSE, client, channel, text);
                }
                if nothing_was_lost(world, client) && !was_too_late(world, at) {
                    let text = format!("ended at {at:?}, though nothing was lost");
                    self.broken_for(CAUSE, client, channel, text);
                }
            }
            Seen::Unsubscribed { channel, code: 2501, .. } => {
                let known = &world.clients[client];
                let accepted = known.subscriptions.get(channel).and_then(|it| it.accepted_until);
                let is_over = accepted.is_some_and(|end| is_over(world, client, end));
                if !is_over && !self.lists.may_be_invalid(&known.user, channel) {
                    let text = format!("its token ends at {accepted:?}");
                    self.broken_for(EARLY, client, channel, text);
                }
            }
            Seen::Published { channel, number, is_done: true, was_seen: false } => {
                let subscription = &world.clients[client].subscriptions[channel];
                let is_on = subscription.state == SubscriptionState::On;
                let comes_at_once = !self.has_engine && world.plan.tuning.batch_delay.is_zero();
                if comes_at_once && is_on && subscription.filter.is_empty() {
                    let text = format!("{number} is answered and has not come");
                    self.broken_for(OWN_FIRST, client, channel, text);
                }
            }
            Seen::Called { millis, waited, busy: true, .. } => {
                let is_slow = *millis == CALL_MILLIS[1];
                let is_good = !had_faults(world, client, world.now.saturating_sub(*waited))
                    && !was_feed_down(world, client);
                if self.concurrency > 1 && !is_slow && is_good && *waited > FAST_CALL {
                    let text = format!("a call of {millis} ms took {waited:?} behind a slow one");
                    self.broken_for("a slow call does not hold up a fast one", client, "rpc", text);
                }
            }
            Seen::Unasked(id) => {
                self.broken_for(ANSWERED, client, "command", format!("{id} is answered twice"));
            }
            Seen::Garbage => {
                self.broken_for(ANSWERED, client, "command", "garbage".to_owned());
            }
            _ => {}
        }
    }

    fn check_code(&mut self, world: &World, client: usize, code: u16) {
        let is_allowed = match code {
            // `moves.rs` looks at those who are sent away.
            0 | 3000 | 3001 | 3004 | 3010 | BACKEND_CODE => true,
            3005 => self.may_be_expired(world, client),
            3507 => self.may_be_blocked(world, client),
            3012 => may_pong_late(world, client),
            // The pages of a map wait behind calls, and have to be read within a time.
            3008 if world.clients[client].is_calling(world.now) => true,
            3008 | 3502 | 3013 => had_faults(world, client, world.now),
            _ => false,
        };
        if !is_allowed {
            self.broken_for(TURNED_AWAY, client, "connection", format!("code {code}"));
        }
    }

    /// Whether the token that the server accepted last is over by the clock of its host, or a backend may have ended its time.
    fn may_be_expired(&self, world: &World, client: usize) -> bool {
        let known = &world.clients[client];
        let is_commanded = self.commands.expired_at(&known.user);
        is_over(world, client, known.accepted_until)
            || is_commanded.is_some_and(|at| at + CLOCK_SLACK > world.now)
    }

    /// Commands are answered, and tokens end.
    pub(super) fn look_at_lives(&mut self, world: &World) {
        for client in &world.clients {
            self.note_absence(client, world.now);
            if client.state != ClientState::Connected {
                continue;
            }
            let is_good = || !had_faults(world, client.number, world.now);
            let oldest = client.pending.values().min_by_key(|pending| pending.sent_at);
            if let Some(oldest) = oldest
                && world.now.saturating_sub(oldest.sent_at) > ANSWER_MAX
                && is_good()
                && !had_engine_faults(world, world.now)
            {
                let text = format!("{oldest:?} is not answered");
                self.broken_for(ANSWERED, client.number, "command", text);
            }
            if is_good() {
                self.look_at_tokens(world, client);
            }
        }
    }

    /// Connections and subscriptions end with their tokens, by the clock of their host.
    fn look_at_tokens(&mut self, world: &World, client: &SimulatedClient) {
        let Some(host) = world.host_of(client.connection) else { return };
        let stepped_at = world.hosts[host].stepped_at;
        if world.now <= stepped_at + EXPIRY_SLACK && !stepped_at.is_zero() {
            return;
        }
        let unix = world.unix_ms(host) / 1000;
        let slack = EXPIRED_CLOSE_DELAY + EXPIRY_SLACK;
        let is_late = |end: u64| unix > end + slack.as_secs();
        if is_late(client.token.expire_at) {
            let text = format!("its token ended at {}, and it is {unix}", client.token.expire_at);
            self.broken_for("tokens end", client.number, "connection", text);
        }
        // What ends a subscription waits for the commands before it.
        if client.is_calling(world.now) {
            return;
        }
        for (channel, subscription) in &client.subscriptions {
            let is_on = subscription.state == SubscriptionState::On;
            if let Some(end) = subscription.accepted_until.filter(|end| is_on && is_late(*end)) {
                let text = format!("its token ended at {end}, and it is {unix}");
                self.broken_for("tokens end", client.number, channel, text);
            }
        }
    }

    /// Remembers since when a client has no connection, and which subscriptions it lacks.
    fn note_absence(&mut self, client: &SimulatedClient, now: Duration) {
        let absent = self.absent.entry(client.number).or_default();
        let mut note = |channel: &str, is_there: bool| {
            if !is_there {
                absent.entry(channel.to_owned()).or_insert(now);
            } else if !absent.is_empty() {
                absent.remove(channel);
            }
        };
        note("", matches!(client.state, ClientState::Connected | ClientState::Ended(_)));
        for (channel, subscription) in &client.subscriptions {
            let is_there =
                matches!(subscription.state, SubscriptionState::On | SubscriptionState::Off);
            note(channel, is_there || matches!(client.state, ClientState::Ended(_)));
        }
    }

    /// Everybody is back, and subscribed.
    pub(super) fn finish_lives(&mut self, world: &World) {
        for client in &world.clients {
            if matches!(client.state, ClientState::Ended(_)) {
                continue;
            }
            let is_away = |channel: &str| {
                let since = self.absent.get(&client.number).and_then(|it| it.get(channel));
                since.is_some_and(|since| *since + BACK_TIME < world.now)
            };
            if is_away("") {
                let text = format!("it is {:?}", client.state);
                return self.broken_for(BACK, client.number, "connection", text);
            }
            for (channel, subscription) in &client.subscriptions {
                if is_away(channel) {
                    let text = format!("the subscription is {:?}", subscription.state);
                    return self.broken_for(BACK, client.number, channel, text);
                }
            }
        }
    }

    /// When all have left, a node remembers no connection.
    pub(super) fn finish_memory(&mut self, world: &mut World, now: Instant) {
        for (number, host) in world.hosts.iter_mut().enumerate() {
            let Some(process) = &mut host.process else { continue };
            let connections: Vec<u64> = process.connections.keys().copied().collect();
            connections.into_iter().for_each(|connection| process.close(connection, now));
            drop(process.flush(now));
            let counts = process.node.counts();
            let left = [counts.connections, counts.users, counts.channels, counts.subscriptions];
            if left != [0; 4] {
                let text = format!("h{number} has {counts:?} after the last client left");
                self.broken("a node forgets who left", text, vec![format!("h{number}")]);
            }
        }
    }
}

/// Whether a token may be over by the clock of a client's host, which may have been set a moment ago.
fn is_over(world: &World, client: usize, end: u64) -> bool {
    let Some(host) = world.host_of(world.clients[client].connection) else { return true };
    let stepped_at = world.hosts[host].stepped_at;
    let was_set = !stepped_at.is_zero() && stepped_at + CLOCK_SLACK > world.now;
    was_set || world.unix_ms(host) / 1000 + 1 >= end + EXPIRED_CLOSE_DELAY.as_secs()
}

/// Whether the pong of a client may have come too late, because of its network or the shards of its host. A slow engine is no cause.
fn may_pong_late(world: &World, client: usize) -> bool {
    let host = world.host_of(world.clients[client].connection);
    let stalls_until = host.map_or(Duration::MAX, |host| world.hosts[host].stalls_until);
    world.client_faults_until[client] >= world.now || stalls_until >= world.now
}

/// Whether a publication after a position may have come later than `client.channel_position_max_time_lag`, or its time be wrong.
fn was_too_late(world: &World, at: &Claim) -> bool {
    let lag_max = world.plan.tuning.position_max_time_lag;
    if lag_max.is_zero() {
        return false;
    }
    let has_wrong_clock = world.hosts.iter().any(|host| !host.stepped_at.is_zero());
    let truth = world.engine.truth.lock();
    let next = (at.offset + 1..).map_while(|offset| truth.at(&at.epoch, offset));
    let is_late = |next: &TruthEntry| next.published_at + lag_max < world.instant();
    has_wrong_clock || next.clone().next().is_none() || next.into_iter().any(is_late)
}

/// Whether the host of a client has received everything that was published for a while.
fn nothing_was_lost(world: &World, client: usize) -> bool {
    let connection = world.clients[client].connection;
    let host = world.host_of(connection).map(|host| &world.hosts[host]);
    let is_whole = host.is_some_and(|host| host.losses_until < world.now);
    let is_open = host.and_then(|host| host.process.as_ref()).is_some_and(|it| it.feed.is_open);
    is_whole && is_open && !had_engine_faults(world, world.now)
}

const CAUSE: &str = "positions end for a cause";
const EARLY: &str = "tokens hold until they end";
const OWN_FIRST: &str = "own publications come before the reply";
const TURNED_AWAY: &str = "a client that behaves is not turned away";
const ANSWERED: &str = "every command is answered once";
const BACK: &str = "everybody comes back";
/// A call that takes 100 ms is answered within this time, though one of 9 s runs.
const FAST_CALL: Duration = Duration::from_secs(6);
/// A command waits for calls of 9 s before it, and for calls of the engine that take 4 s.
const ANSWER_MAX: Duration = Duration::from_secs(40);
/// A client is connected again within this time when nothing is broken.
const BACK_TIME: Duration = Duration::from_secs(15);
/// What a clock or a command did before does not end connections after this time.
const CLOCK_SLACK: Duration = Duration::from_secs(40);
const EXPIRY_SLACK: Duration = Duration::from_secs(5);
