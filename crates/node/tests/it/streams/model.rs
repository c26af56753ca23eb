//! A naive channel: a list of publications, a position per subscriber, times in whole seconds.
//! In: steps → out: what publishers and readers are answered, what each client receives, as text.
//! Uses: nothing of the node; every rule is written down as docs/ says it (protocol §9, §10, server API §6).
//! Changed here: the model. It knows no watches, slabs or sweeps.

use super::steps::{Ask, EpochName, Publish, Step};

/// How the channel is configured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) size: usize,
    pub(super) ttl: u64,
    /// 0 = for ever.
    pub(super) meta_ttl: u64,
    /// 0 = unlimited.
    pub(super) limit: usize,
    pub(super) cache: bool,
    pub(super) auto: bool,
    /// Every subscription recovers, else those that ask.
    pub(super) forced: bool,
}

pub(super) struct Model {
    settings: Settings,
    now: u64,
    /// Streams so far; the living one is the last.
    epochs: usize,
    stream: Option<Stream>,
    results: Vec<(&'static str, u64, String)>,
    published: usize,
    queues: [Vec<Queued>; 2],
    clients: [Client; 3],
}

struct Stream {
    epoch: usize,
    top: u64,
    /// Offset and number.
    stored: Vec<(u64, usize)>,
    stored_until: u64,
    until: u64,
    version: u64,
    version_epoch: &'static str,
}

/// A publication in the inbox of a shard; without a place its offset is 0.
#[derive(Clone, Copy)]
struct Queued {
    epoch: usize,
    offset: u64,
    number: usize,
}

#[derive(Default)]
struct Client {
    subscription: Option<Subscription>,
    /// Memory of an SDK: offset and epoch.
    known: (u64, Option<usize>),
    heard: Vec<String>,
}

struct Subscription {
    /// Epoch and offset, if positioned.
    position: Option<(usize, u64)>,
}

pub(super) fn shard_of(who: usize) -> usize {
    who / 2
}

impl Model {
    pub(super) fn new(settings: Settings) -> Self {
        let queues = Default::default();
        let clients = Default::default();
        let now = 0;
        let epochs = 0;
        let published = 0;
        Self {
            settings,
            now,
            epochs,
            stream: None,
            results: Vec::new(),
            published,
            queues,
            clients,
        }
    }

    /// Returns the knowledge that a client can have of an epoch now.
    fn resolve(&self, claim: Option<(u64, EpochName)>) -> Option<(u64, EpochName)> {
        claim.map(|(offset, epoch)| match epoch {
            EpochName::Number(number) if number >= self.epochs => (offset, EpochName::Never),
            epoch => (offset, epoch),
        })
    }

    /// Does a step. The answer is that of a publisher or reader.
    pub(super) fn step(&mut self, step: &Step) -> String {
        match step {
            Step::Publish(publish) => return self.publish(publish),
            Step::Read { limit, since, reverse } => return self.read(*limit, *since, *reverse),
            Step::Remove => {
                if let Some(stream) = &mut self.stream {
                    stream.stored.clear();
                }
            }
            Step::Wait { seconds } => self.now += seconds,
            Step::Sweep => {}
            Step::Drain { shard } => {
                for queued in std::mem::take(&mut self.queues[*shard]) {
                    (0..3)
                        .filter(|who| shard_of(*who) == *shard)
                        .for_each(|who| self.arrive(who, queued));
                }
            }
            Step::Subscribe { who, ask } => self.subscribe(*who, *ask),
            Step::Unsubscribe { who } => {
                self.clients[*who].subscription = None;
                self.clients[*who].heard.push("unsubscribed".into());
            }
        }
        String::new()
    }

    pub(super) fn heard(&mut self, who: usize) -> Vec<String> {
        std::mem::take(&mut self.clients[who].heard)
    }

    /// Publications so far, which is the number of the next one.
    pub(super) fn published(&self) -> usize {
        self.published
    }

    /// Returns the position that an SDK would claim for a client now.
    pub(super) fn known(&self, who: usize) -> (u64, EpochName) {
        let (offset, epoch) = self.clients[who].known;
        (offset, epoch.map_or(EpochName::Empty, EpochName::Number))
    }

    /// The stream as it is now: made, expired, kept alive. One that was never published to is not forgotten.
    fn alive(&mut self) -> &mut Stream {
        let Settings { meta_ttl, .. } = self.settings;
        let now = self.now;
        if self.stream.as_ref().is_none_or(|stream| stream.top > 0 && stream.until <= now) {
            self.stream = Some(Stream {
                epoch: self.epochs,
                top: 0,
                stored: Vec::new(),
                stored_until: u64::MAX,
                until: u64::MAX,
                version: 0,
                version_epoch: "",
            });
            self.epochs += 1;
        }
        let stream = self.stream.as_mut().expect("just made");
        if stream.stored_until <= now {
            stream.stored.clear();
        }
        stream.until = if meta_ttl == 0 { u64::MAX } else { now + meta_ttl };
        stream
    }

    fn publish(&mut self, publish: &Publish) -> String {
        let now = self.now;
        let known = self.results.iter().find(|(key, at, _)| *key == publish.key && now - at < 300);
        if let Some((_, _, first)) = known.filter(|_| !publish.key.is_empty()) {
            return first.clone();
        }
        let number = self.published;
        let mut queued = Queued { epoch: 0, offset: 0, number };
        let mut answer = "nowhere".to_owned();
        if !publish.skip {
            let Settings { size, ttl, .. } = self.settings;
            let stream = self.alive();
            let comparable =
                publish.version_epoch.is_empty() || publish.version_epoch == stream.version_epoch;
            if publish.version > 0 && comparable && publish.version <= stream.version {
                return place(stream.epoch, stream.top);
            }
            if publish.version > 0 {
                (stream.version, stream.version_epoch) = (publish.version, publish.version_epoch);
            }
            stream.top += 1;
            stream.stored.push((stream.top, number));
            let surplus = stream.stored.len().saturating_sub(size);
            stream.stored.drain(..surplus);
            stream.stored_until = now + ttl;
            queued = Queued { epoch: stream.epoch, offset: stream.top, number };
            answer = place(stream.epoch, stream.top);
        }
        self.published += 1;
        for shard in 0..2 {
            if (0..3).any(|who| shard_of(who) == shard && self.clients[who].subscription.is_some())
            {
                self.queues[shard].push(queued);
            }
        }
        self.results.retain(|(key, ..)| *key != publish.key);
        self.results.push((publish.key, now, answer.clone()));
        answer
    }

    fn read(
        &mut self,
        limit: Option<usize>,
        since: Option<(u64, EpochName)>,
        reverse: bool,
    ) -> String {
        let since = self.resolve(since);
        if reverse && since.is_some_and(|(offset, _)| offset == 0) {
            return "error 107".into();
        }
        let stream = self.alive();
        if since.is_some_and(|(_, epoch)| !epoch.fits(stream.epoch)) {
            return "error 112".into();
        }
        let mut page: Vec<_> = stream.stored.clone();
        if let Some((offset, _)) = since {
            let is_beyond = reverse && offset > stream.top + 1;
            page.retain(
                |(own, _)| if reverse { *own < offset && !is_beyond } else { *own > offset },
            );
        }
        if reverse {
            page.reverse();
        }
        page.truncate(limit.unwrap_or(usize::MAX));
        format!("{} {page:?}", place(stream.epoch, stream.top))
    }

    /// The table of protocol §10, for one subscriber.
    fn arrive(&mut self, who: usize, queued: Queued) {
        let client = &mut self.clients[who];
        let Some(subscription) = &mut client.subscription else { return };
        if queued.offset > 0
            && let Some((epoch, offset)) = &mut subscription.position
        {
            if queued.epoch == *epoch && queued.offset <= *offset {
                return;
            }
            if queued.epoch != *epoch || queued.offset > *offset + 1 {
                client.subscription = None;
                return client.heard.push("ended 2500".into());
            }
            *offset = queued.offset;
        }
        if queued.offset > 0 {
            client.known.0 = queued.offset;
        }
        client.heard.push(format!("{} {}", queued.offset, queued.number));
    }

    fn subscribe(&mut self, who: usize, ask: Ask) {
        if self.clients[who].subscription.is_some() {
            return self.clients[who].heard.push("error 105".into());
        }
        let ask = Ask { claim: self.resolve(ask.claim), ..ask };
        let recoverable = self.settings.forced || ask.recoverable;
        if !recoverable && !ask.positioned {
            self.clients[who].subscription = Some(Subscription { position: None });
            return self.clients[who].heard.push("subscribed".into());
        }
        let automatic = self.settings.cache && self.settings.auto;
        let claim =
            ask.claim.or(automatic.then_some((0, EpochName::Empty))).filter(|_| recoverable);
        let settings = self.settings;
        let stream = self.alive();
        let missed = claim.and_then(|(offset, epoch)| recover(settings, stream, offset, epoch));
        if missed.is_none() && claim.is_some() && ask.only_recovered && !settings.cache {
            return self.clients[who].heard.push("error 112".into());
        }
        let epoch = stream.epoch;
        let top = stream.top;
        let offset = if missed.is_some() { claim.map_or(top, |claim| claim.0) } else { top };
        let recovering = ask.claim.is_some() || claim.is_some();
        let recovered = missed.is_some();
        let missed = missed.unwrap_or_default();
        let client = &mut self.clients[who];
        client.subscription = Some(Subscription { position: Some((epoch, top)) });
        client.known = (missed.last().map_or(offset, |last| last.0), Some(epoch));
        client.heard.push(format!(
            "subscribed {} recoverable {recoverable} recovering {recovering} recovered {recovered} {missed:?}",
            place(epoch, offset)
        ));
    }
}

/// Protocol §9, word by word.
fn recover(
    settings: Settings,
    stream: &Stream,
    offset: u64,
    epoch: EpochName,
) -> Option<Vec<(u64, usize)>> {
    let newest = stream.stored.last();
    if settings.cache {
        let same_epoch = epoch == EpochName::Number(stream.epoch);
        let same_position = offset > 0 && offset == stream.top && same_epoch;
        if same_position {
            return Some(Vec::new());
        }
        return newest.filter(|newest| newest.0 == stream.top).map(|newest| vec![*newest]);
    }
    let mut missed: Vec<_> =
        stream.stored.iter().copied().filter(|(own, _)| *own > offset).collect();
    if settings.limit > 0 {
        missed.truncate(settings.limit);
    }
    let recovered = match (missed.first(), missed.last()) {
        (Some(first), Some(last)) => first.0 == offset + 1 && last.0 == stream.top,
        _ => stream.top == offset,
    };
    (epoch.fits(stream.epoch) && recovered).then_some(missed)
}

pub(super) fn place(epoch: usize, offset: u64) -> String {
    format!("E{epoch}:{offset}")
}
