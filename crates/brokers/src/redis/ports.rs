//! The ports of broker, presence and bus, kept by the Redis engine.
//! In: calls of the node → out: answers that come later, from the task of a connection.
//! Uses: lines, feeds, commands. Never: blocks, waits.
//! Change here: which command answers which call. What is promised stands in `fanwire_broker`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::{
    Answer, Broker, BrokerError, Bus, Change, Position, Presence, PresenceStats, PublishOptions,
    Query, Retention, StreamSlice,
};
use fanwire_protocol::{ClientInfo, Publication};

use super::error::Failure;
use super::members::Place;
use super::store::Spot;
use super::wire::{Command, number};
use super::{Redis, members, stream};

impl Broker for Redis {
    fn publish(
        &self,
        channel: &str,
        publication: Publication,
        options: &PublishOptions,
        retention: Retention,
        _now: Instant,
    ) -> Answer<Position> {
        let (done, answer) = later();
        let command = stream::publish(&self.keys, channel, publication, options, retention);
        self.line(channel).send(command, |reply| done(reply.and_then(stream::published)));
        answer
    }

    fn history(
        &self,
        channel: &str,
        query: Query,
        retention: Retention,
        _now: Instant,
    ) -> Answer<StreamSlice> {
        if !retention.keeps_history() {
            return Answer::now(Ok(StreamSlice::default()));
        }
        let (done, answer) = later();
        self.page(channel, query, retention)(done);
        answer
    }

    fn follow(
        &self,
        channel: &str,
        query: Option<Query>,
        retention: Retention,
        _now: Instant,
    ) -> Answer<StreamSlice> {
        let (done, answer) = later();
        let query = query.filter(|_| retention.keeps_history());
        let read = query.map(|query| self.page(channel, query, retention));
        let (feed, name) = self.feed(channel);
        feed.when_heard(&name, move |heard| match (heard, read) {
            (Ok(witness), Some(read)) => read(move |stretch: Result<StreamSlice, Failure>| {
                // Else what came after that moment may have been lost, and whoever waits for this is not in doubt yet.
                done(if witness.is_sure() { stretch } else { Err(Failure::Unavailable) });
            }),
            (Ok(_), None) => done(Ok(StreamSlice::default())),
            (Err(failure), _) => done(Err(failure)),
        });
        answer
    }

    fn publish_join_leave(&self, channel: &str, change: Change, info: ClientInfo) -> Answer<()> {
        self.do_it(channel, stream::announce(&self.keys, channel, change, info))
    }

    fn remove_history(&self, channel: &str, _now: Instant) -> Answer<()> {
        self.do_it(channel, stream::remove(&self.keys, channel))
    }

    fn subscribe(&self, channel: &str) {
        let (feed, name) = self.feed(channel);
        feed.want(&name);
    }

    fn unsubscribe(&self, channel: &str) {
        let (feed, name) = self.feed(channel);
        feed.leave(&name);
    }

    /// Redis forgets by itself.
    fn sweep(&self, _now: Instant) {}

    fn history_bytes(&self) -> usize {
        0
    }
}

impl Presence for Redis {
    fn add(&self, channel: &str, info: ClientInfo, ttl: Duration, now: Instant) -> Answer<()> {
        let now_ms = self.ms(channel, now);
        self.change(channel, |place| members::add(place, &info, ttl, now_ms))
    }

    fn remove(&self, channel: &str, client: &str) -> Answer<()> {
        let now_ms = self.ms(channel, Instant::now());
        self.change(channel, |place| members::remove(place, client, now_ms))
    }

    fn members(&self, channel: &str, now: Instant) -> Answer<Vec<Arc<ClientInfo>>> {
        let (done, answer) = later();
        let (line, now_ms) = (self.line(channel).clone(), self.ms(channel, now));
        self.reads.members(line, channel, now_ms, done);
        answer
    }

    fn stats(&self, channel: &str, now: Instant) -> Answer<PresenceStats> {
        let (done, answer) = later();
        let (line, now_ms) = (self.line(channel).clone(), self.ms(channel, now));
        self.reads.count(line, channel, now_ms, done);
        answer
    }

    /// Redis forgets by itself, by its own time, which is asked for here.
    fn sweep(&self, _now: Instant) {
        self.keep_time();
    }
}

/// All nodes speak through the first Redis, or the first Cluster.
impl Bus for Redis {
    /// PUBLISH and SPUBLISH tell to how many connections they send. Each node has one for this name, in a Cluster to the master
    /// of its slot, which is the one that is asked.
    fn send(&self, to: Option<&str>, message: Bytes) -> Answer<usize> {
        let name = self.keys.of_node(to);
        let command = Command::of(&[self.keys.publish().as_bytes(), name.as_bytes(), &message]);
        let (done, answer) = later();
        let heard = |reply| number(reply).and_then(|count| count.try_into().ok());
        self.stores[0].line(Spot::of_nodes(&name)).send(command, move |reply| {
            done(reply.and_then(|reply| heard(reply).ok_or(Failure::Refused)));
        });
        answer
    }
}

impl Redis {
    /// A read of history that is begun when it is called.
    fn page<F>(&self, channel: &str, query: Query, retention: Retention) -> impl FnOnce(F) + use<F>
    where
        F: FnOnce(Result<StreamSlice, Failure>) + Send + 'static,
    {
        self.reads.page(self.line(channel).clone(), channel, query, retention)
    }

    /// A command whose reply says nothing but that it was done.
    fn do_it(&self, channel: &str, command: Command) -> Answer<()> {
        let (done, answer) = later();
        self.line(channel).send(command, |reply| done(reply.map(drop)));
        answer
    }

    /// The same of one that is made for the line on which it leaves.
    fn change(&self, channel: &str, command: impl FnOnce(Place<'_>) -> Command) -> Answer<()> {
        let (done, answer) = later();
        let line = self.line(channel);
        let command = command(Place::on(&line, &self.keys, channel));
        line.send(command, |reply| done(reply.map(drop)));
        answer
    }
}

/// An answer, and what keeps it. To callers all failures are one.
pub(super) fn later<T: Send + 'static>()
-> (impl FnOnce(Result<T, Failure>) + Send + 'static, Answer<T>) {
    let (promise, answer) = Answer::later();
    let done = |result: Result<T, Failure>| {
        promise.keep(result.map_err(|_| BrokerError::Unavailable));
    };
    (done, answer)
}
