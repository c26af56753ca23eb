//! The ports of a node to the model engine: each call becomes a request that the world carries there, or is executed at once in tests.
//! In: calls of a node → out: pending answers, requests in the order of the calls.
//! Uses the ports of `fanwire_broker`. Never: how late a request is, or whether it arrives.
//! Changed here: how a call becomes a request. What the engine does with it stands in `engine.rs` and its folder.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::{
    Answer, Broker, BrokerError, Bus, Change, Deliver, Position, Presence, PresencePage,
    PresenceStats, PublishOptions, Query, Retention, RevocationChange, RevocationCursor,
    RevocationEvent, RevocationListener, RevocationPage, RevocationStore, StreamSlice,
    SuppressedCounters, SuppressedCounts, Suppression,
};
use fanwire_protocol::{ClientInfo, Publication};
use parking_lot::Mutex;

use super::streams::Publish;
use super::{BLOCKS, Engine, FeedMessage};

/// A request of a host, in the order of its calls.
pub enum EngineRequest {
    Call(Call),
    /// A call that is sent when the feed follows a name.
    CallBehind(String, Call),
    Subscribe(String),
    Unsubscribe(String),
}

/// One call of the engine.
pub struct Call {
    /// Executes the call; what it returns sends the answer to the node.
    pub run: Run,
    /// Answers that the engine is not available.
    pub give_up: GiveUp,
}

/// The step of a call at the engine.
pub type Run = Box<dyn FnOnce(&mut Engine) -> Finish + Send>;

/// The last step of a call, at the node.
pub type Finish = Box<dyn FnOnce() + Send>;

/// Ends a call that is not answered; does nothing to one that is.
pub type GiveUp = Arc<dyn Fn() + Send + Sync>;

/// The ports of one node. The world carries the requests.
#[derive(Default)]
pub struct EnginePort {
    requests: Mutex<Vec<EngineRequest>>,
    /// While its connection is lost, calls fail at once.
    is_disconnected: Mutex<bool>,
    deliver: Mutex<Option<Arc<dyn Deliver>>>,
    listener: Mutex<Option<RevocationListener>>,
    suppressed: Arc<SuppressedCounters>,
    /// In tests of the model alone: calls are executed at once.
    at_once: Option<Mutex<Engine>>,
}

impl EnginePort {
    /// Ports to an engine of their own, which answers at once.
    #[cfg(test)]
    pub(super) fn answering_at_once(mut engine: Engine) -> Arc<Self> {
        engine.open_feed(0, 0, "");
        Arc::new(Self { at_once: Some(Mutex::new(engine)), ..Self::default() })
    }

    /// Sets the node that gets publications.
    pub fn deliver_to(&self, deliver: Arc<dyn Deliver>) {
        *self.deliver.lock() = Some(deliver);
    }

    pub fn set_connected(&self, is_connected: bool) {
        *self.is_disconnected.lock() = !is_connected;
    }

    /// What the node asked for since the last call.
    pub fn take_requests(&self) -> Vec<EngineRequest> {
        std::mem::take(&mut *self.requests.lock())
    }

    /// A message of PUB/SUB for the node.
    pub fn receive(&self, message: FeedMessage) {
        match message {
            FeedMessage::OfBlocks(event) => {
                if let Some(listener) = &*self.listener.lock() {
                    listener(event);
                }
            }
            FeedMessage::Confirmed { .. } | FeedMessage::OfNode(_) => {}
            FeedMessage::Publication(sent) => {
                if let Some(deliver) = self.deliver.lock().clone() {
                    let publication = sent.publication.clone();
                    deliver.deliver(&sent.channel, publication, sent.options.clone());
                }
            }
            FeedMessage::JoinLeave(sent) => {
                if let Some(deliver) = self.deliver.lock().clone() {
                    deliver.deliver_join_leave(&sent.channel, sent.change, sent.info.clone());
                }
            }
        }
    }

    /// The feed follows a name again; messages in between are lost.
    pub fn report_possible_gap(&self, name: &str) {
        if name == BLOCKS {
            self.receive(FeedMessage::OfBlocks(RevocationEvent::MayHaveGap));
        } else if let Some(deliver) = self.deliver.lock().clone() {
            deliver.report_possible_gap(name);
        }
    }

    fn call<T: Send + 'static>(
        &self,
        behind: Option<&str>,
        run: impl FnOnce(&mut Engine) -> T + Send + 'static,
    ) -> Answer<T> {
        if let Some(engine) = &self.at_once {
            return Answer::now(Ok(self.run_at_once(engine, run)));
        }
        if *self.is_disconnected.lock() {
            return Answer::now(Err(BrokerError::Unavailable));
        }
        let (promise, answer) = Answer::later();
        let promise = Arc::new(Mutex::new(Some(promise)));
        let kept = Arc::clone(&promise);
        let run = move |engine: &mut Engine| -> Finish {
            let result = run(engine);
            Box::new(move || {
                let promise = kept.lock().take();
                if let Some(promise) = promise {
                    promise.keep(Ok(result));
                } // else the call was given up before
            })
        };
        let give_up = Arc::new(move || drop(promise.lock().take()));
        let call = Call { run: Box::new(run), give_up };
        self.requests.lock().push(match behind {
            Some(name) => EngineRequest::CallBehind(name.to_owned(), call),
            None => EngineRequest::Call(call),
        });
        answer
    }

    fn run_at_once<T>(&self, engine: &Mutex<Engine>, run: impl FnOnce(&mut Engine) -> T) -> T {
        let mut engine = engine.lock(); // until all is delivered, which keeps the order of a channel
        let result = run(&mut engine);
        for outgoing in engine.take_outgoing() {
            self.receive(outgoing.message);
        }
        result
    }
}

impl Broker for EnginePort {
    fn publish(
        &self,
        channel: &str,
        publication: Publication,
        options: &PublishOptions,
        retention: Retention,
        now: Instant,
    ) -> Answer<Position> {
        let channel = channel.to_owned();
        let options = options.clone();
        let suppressed = Arc::clone(&self.suppressed);
        self.call(None, move |engine| {
            let receipt = options.receipt;
            let publish = Publish { channel, publication, options, retention };
            let published = engine.publish(publish, now);
            published.suppression.into_iter().for_each(|why| suppressed.add(why, receipt));
            published.position
        })
    }

    fn history(
        &self,
        channel: &str,
        query: Query,
        retention: Retention,
        now: Instant,
    ) -> Answer<StreamSlice> {
        let channel = channel.to_owned();
        self.call(None, move |engine| engine.read(&channel, query, retention, now))
    }

    fn follow(
        &self,
        channel: &str,
        query: Option<Query>,
        retention: Retention,
        now: Instant,
    ) -> Answer<StreamSlice> {
        let name = channel.to_owned();
        self.call(Some(channel), move |engine| {
            query.map_or_else(StreamSlice::default, |query| {
                engine.read(&name, query, retention, now)
            })
        })
    }

    fn publish_join_leave(&self, channel: &str, change: Change, info: ClientInfo) -> Answer<()> {
        let channel = channel.to_owned();
        self.call(None, move |engine| engine.send_join_leave(&channel, change, info))
    }

    fn remove_history(&self, channel: &str, now: Instant) -> Answer<()> {
        let channel = channel.to_owned();
        self.call(None, move |engine| engine.remove_history(&channel, now))
    }

    fn subscribe(&self, channel: &str) {
        match &self.at_once {
            Some(engine) => engine.lock().follow_name(0, 0, channel, Some(0)),
            None => self.requests.lock().push(EngineRequest::Subscribe(channel.to_owned())),
        }
    }

    fn unsubscribe(&self, channel: &str) {
        match &self.at_once {
            Some(engine) => engine.lock().follow_name(0, 0, channel, None),
            None => self.requests.lock().push(EngineRequest::Unsubscribe(channel.to_owned())),
        }
    }

    fn sweep(&self, _: Instant) {}

    fn history_bytes(&self) -> usize {
        0
    }

    fn suppressed(&self) -> SuppressedCounts {
        self.suppressed.counts()
    }

    fn suppressed_of(&self, receipt: u64) -> Vec<Suppression> {
        self.suppressed.of_receipt(receipt)
    }
}

impl Presence for EnginePort {
    fn add(&self, channel: &str, info: ClientInfo, ttl: Duration, now: Instant) -> Answer<()> {
        let channel = channel.to_owned();
        self.call(None, move |engine| engine.add_member(&channel, info, ttl, now))
    }

    fn remove(&self, channel: &str, client: &str) -> Answer<()> {
        let channel = channel.to_owned();
        let client = client.to_owned();
        self.call(None, move |engine| engine.remove_member(&channel, &client))
    }

    fn members(&self, channel: &str, now: Instant) -> Answer<Vec<Arc<ClientInfo>>> {
        let channel = channel.to_owned();
        self.call(None, move |engine| engine.members(&channel, now))
    }

    fn page(&self, channel: &str, cursor: u64, limit: usize, now: Instant) -> Answer<PresencePage> {
        let channel = channel.to_owned();
        self.call(None, move |engine| engine.member_page(&channel, cursor, limit, now))
    }

    fn stats(&self, channel: &str, now: Instant) -> Answer<PresenceStats> {
        let channel = channel.to_owned();
        self.call(None, move |engine| engine.member_stats(&channel, now))
    }

    fn sweep(&self, _: Instant) {}
}

impl Bus for EnginePort {
    fn send(&self, to: Option<&str>, message: Bytes) -> Answer<usize> {
        let to = to.map(str::to_owned);
        self.call(None, move |engine| engine.send_to_nodes(to.as_deref(), message))
    }
}

impl RevocationStore for EnginePort {
    fn listen(&self, listener: RevocationListener) {
        *self.listener.lock() = Some(listener);
        Broker::subscribe(self, BLOCKS);
    }

    fn change(&self, change: &RevocationChange, now: Instant) -> Answer<()> {
        let change = change.clone();
        self.call(None, move |engine| engine.change_block(&change, now))
    }

    fn restore(&self, change: &RevocationChange, now: Instant) -> Answer<()> {
        let change = change.clone();
        self.call(None, move |engine| engine.restore_block(&change, now))
    }

    fn page(&self, from: RevocationCursor) -> Answer<RevocationPage> {
        self.call(Some(BLOCKS), move |engine| engine.blocks.page(from))
    }
}
