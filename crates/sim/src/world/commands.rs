//! Calls of the server API: publications and commands of backends, on a host that runs.
//! In: jobs → out: calls of nodes; their results, and what follows from them.
//! Uses `Node` as the server API does. Never: checks what a command led to.
//! Changed here: how backends call, and when they call again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_broker::map::{MapPublish, MapRemoval};
use fanwire_broker::{Answer, PublishOptions, Renewal, RevocationChange, RevocationKind};
use fanwire_node::{ConnectionSelector, Node, SendAwayCommand, ServerSubscription};
use fanwire_protocol::{Disconnect, ErrorCode, Publication};

use super::World;
use crate::backend::{
    BACKEND_CODE, BackendCommand, CommandResult, GivenCommand, Job, ORDERED, Publishing,
};
use crate::client::{ClientState, unix_at};
use crate::truth::{data_of, key_of, number_of};

impl World {
    pub(super) fn work(&mut self, job: Job) {
        match job {
            Job::NextPublication => {
                if self.now < self.plan.busy {
                    let publishing = self.backend.next_publication(self.now);
                    publishing.into_iter().for_each(|publishing| self.publish(publishing));
                    let pause = self.backend.pause();
                    self.schedule_job(self.now + pause, Job::NextPublication);
                }
            }
            Job::Publish(publishing) => self.publish(publishing),
            Job::NextCommand => {
                if self.now < self.plan.busy {
                    let (kind, pause) = self.backend.next_command(unix_at(self.now));
                    self.give(kind);
                    self.schedule_job(self.now + pause, Job::NextCommand);
                }
            }
            Job::Give(kind) => self.give(kind),
            Job::Verify(command) => self.check(|checkers, world| checkers.verify(world, &command)),
        }
    }

    /// A host that answers calls now.
    fn host_to_call(&mut self) -> Option<usize> {
        let answers = |host: &usize| {
            let host = &self.hosts[*host];
            let is_there = host.process.as_ref().is_some_and(|it| !it.is_leaving);
            is_there && !host.is_frozen && !host.is_paused
        };
        let hosts: Vec<usize> = (0..self.hosts.len()).filter(answers).collect();
        if hosts.is_empty() { None } else { Some(*self.backend.random.pick(&hosts)) }
    }

    fn publish(&mut self, publishing: Publishing) {
        let chosen = self.host_to_call();
        let Some(host) = publishing.host.filter(|_| chosen.is_some()).or(chosen) else {
            return self.publish_later(publishing);
        };
        let now = self.instant();
        let Some(process) = &self.hosts[host].process else {
            return self.publish_later(publishing);
        };
        let idempotency_key = publishing.key.clone();
        let options = PublishOptions { idempotency_key, ..PublishOptions::default() };
        let publication = Publication {
            data: data_of(publishing.number, self.plan.tuning.has_deltas),
            tags: [("kind".to_owned(), publishing.kind.to_owned())].into(),
            ..Publication::default()
        };
        let channel = &publishing.channel;
        let number = publishing.number;
        self.story
            .tell(self.now, format_args!("backend publishes {number} to {channel} at h{host}"));
        let node = &process.node;
        let answer = if channel.starts_with("map:") {
            change_map(node, channel, publication, options, now)
        } else {
            node.channels().publish(channel, publication, options, now).map(|it| it.map(drop))
        };
        let results = Arc::clone(&self.results);
        answer.then(move |published| {
            let is_done = published.is_ok();
            results.lock().push(CommandResult::Published { publishing, is_done });
        });
        self.settle(host);
    }

    fn publish_later(&mut self, mut publishing: Publishing) {
        publishing.tries += 1;
        if !publishing.key.is_empty() && publishing.tries < TRIES_MAX {
            publishing.host = None;
            let pause = self.backend.random.between_ms(200, 1500);
            self.schedule_job(self.now + pause, Job::Publish(publishing));
        }
    }

    pub(super) fn give(&mut self, kind: BackendCommand) {
        let Some(host) = self.host_to_call() else {
            let again = self.now + Duration::from_secs(1);
            return self.schedule_job(again, Job::Give(kind));
        };
        self.story.tell(self.now, format_args!("backend commands {kind:?} at h{host}"));
        self.check(|checkers, world| checkers.command_given(&kind, world.now));
        let answer = self.call(host, &kind);
        let given_at = self.now;
        let results = Arc::clone(&self.results);
        answer.then(move |answer| {
            let is_done = answer.is_ok();
            let done_at = Duration::ZERO;
            let command = GivenCommand { kind, host, given_at, done_at, marker: None };
            results.lock().push(CommandResult::Commanded { command, is_done });
        });
        self.settle(host);
    }

    fn call(&self, host: usize, kind: &BackendCommand) -> Answer<(), ErrorCode> {
        let now = self.instant();
        let process = self.hosts[host].process.as_ref().expect("it runs");
        let node = &process.node;
        let of_user = |user: &String| ConnectionSelector {
            user: user.clone(),
            ..ConnectionSelector::default()
        };
        let revoke = |kind, change: RevocationChange| {
            // The wall clock of the host may be wrong; what never ends is possible at any time.
            let revoked = node.revocations().revoke(kind, change, now, node.unix(now));
            revoked.unwrap_or_else(|_| Answer::now(Err(ErrorCode::BAD_REQUEST)))
        };
        match kind {
            BackendCommand::Disconnect(user) => {
                let disconnect = Disconnect { code: BACKEND_CODE, reason: "backend".into() };
                node.connections().disconnect(of_user(user), disconnect)
            }
            BackendCommand::Unsubscribe { user, channel } => {
                node.connections().unsubscribe(of_user(user), Some(channel))
            }
            BackendCommand::Subscribe(user) => {
                let subscription =
                    ServerSubscription { channel: ORDERED.into(), ..ServerSubscription::default() };
                node.connections().subscribe(of_user(user), subscription, now)
            }
            BackendCommand::Expire(user) => {
                let renewal = Renewal { expire_at: Some(1), ..Renewal::default() };
                node.connections().refresh(of_user(user), renewal)
            }
            BackendCommand::Block(user) => revoke(
                RevocationKind::BlockUser,
                RevocationChange { subject: user.clone(), ..RevocationChange::default() },
            ),
            BackendCommand::Unblock(user) => revoke(
                RevocationKind::UnblockUser,
                RevocationChange { subject: user.clone(), ..RevocationChange::default() },
            ),
            BackendCommand::Invalidate { user, channel, issued_before } => revoke(
                RevocationKind::InvalidateTokens,
                RevocationChange {
                    subject: user.clone(),
                    channel: Some(channel.clone()),
                    issued_before: *issued_before,
                    ..RevocationChange::default()
                },
            ),
            BackendCommand::SendAway(one) => {
                let name = one.map_or_else(String::new, |host| format!("h{host}"));
                let percent = if one.is_some() { 100 } else { 0 };
                let command = SendAwayCommand { node: name, percent, rate: SEND_AWAY_RATE };
                node.connections().rebalancing().command(command)
            }
        }
    }

    /// What backends do about results of their calls.
    pub(super) fn report_results(&mut self) {
        let results = std::mem::take(&mut *self.results.lock());
        for result in results {
            match result {
                CommandResult::Published { publishing, is_done: false } => {
                    self.publish_later(publishing);
                }
                CommandResult::Published {
                    publishing: Publishing { channel, number, kind, .. },
                    ..
                } => {
                    let is_removal = channel.starts_with("map:") && kind == "a";
                    if !is_removal {
                        self.check(|checkers, world| checkers.answered(world, &channel, number));
                    }
                }
                CommandResult::Commanded { command, is_done } => self.commanded(command, is_done),
            }
        }
    }

    fn commanded(&mut self, mut command: GivenCommand, is_done: bool) {
        command.done_at = self.now;
        let kind = command.kind.clone();
        self.story.tell(self.now, format_args!("backend hears {kind:?}: {is_done}"));
        if !is_done {
            self.check(|checkers, world| checkers.command_failed(world, &command));
            let is_of_list = matches!(
                kind,
                BackendCommand::Block(_)
                    | BackendCommand::Unblock(_)
                    | BackendCommand::Invalidate { .. }
            );
            if is_of_list {
                let again = self.now + Duration::from_secs(1);
                self.schedule_job(again, Job::Give(kind));
            }
            return;
        }
        match &kind {
            BackendCommand::Subscribe(_) => {
                let mut publishing = self.backend.publication(ORDERED.to_owned());
                publishing.host = Some(command.host);
                command.marker = Some(publishing.number);
                self.schedule_job(self.now, Job::Publish(publishing));
            }
            BackendCommand::Block(user) => {
                let kind = BackendCommand::Unblock(user.clone());
                let longest = if self.plan.habits.insists { 90_000 } else { 30_000 };
                let after = self.backend.random.between_ms(5000, longest);
                let latest = self.plan.busy.max(self.now) + LAST_UNBLOCK;
                self.schedule_job(latest.min(self.now + after), Job::Give(kind));
            }
            BackendCommand::Unblock(user) => self.log_in_again(user),
            _ => {}
        }
        self.check(|checkers, _| checkers.command_done(&command));
        let time = match kind {
            BackendCommand::SendAway(_) => EFFECT_TIME * 2,
            _ => EFFECT_TIME,
        };
        self.schedule_job(self.now + time, Job::Verify(command));
    }

    /// Clients of a user that may connect again do so.
    fn log_in_again(&mut self, user: &str) {
        for client in 0..self.clients.len() {
            let known = &mut self.clients[client];
            if known.user == user
                && known.state == ClientState::Ended(Disconnect::PERMISSION_DENIED.code)
            {
                let actions = known.log_in_again();
                self.act(client, actions);
            }
        }
    }
}

/// Sets the key that belongs to a publication, or removes it if its tag says so.
fn change_map(
    node: &Node,
    channel: &str,
    mut publication: Publication,
    options: PublishOptions,
    now: Instant,
) -> Answer<(), ErrorCode> {
    let number = number_of(&publication).unwrap_or_default();
    publication.key = key_of(number);
    let idempotency_key = options.idempotency_key;
    if publication.tags.get("kind").is_some_and(|kind| kind == "a") {
        let removal = MapRemoval { publication, idempotency_key, ..MapRemoval::default() };
        return node.maps().remove(channel, removal, now).map(|it| it.map(drop));
    }
    let publish = MapPublish { publication, idempotency_key, ..MapPublish::default() };
    node.maps().publish(channel, publish, now).map(|it| it.map(drop))
}

/// The last blocks end within this time after the busy time, so that their users are back at the end.
const LAST_UNBLOCK: Duration = Duration::from_secs(15);
const TRIES_MAX: u32 = 30;
/// Clients that a host sends away in a second when a backend commands it: all of them before the command is verified.
const SEND_AWAY_RATE: u32 = 10;
/// A command that was answered has had its effect after this time, where nothing is slow.
const EFFECT_TIME: Duration = Duration::from_secs(5);
