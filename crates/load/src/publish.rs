//! Sends publications when they are due, in the order of each channel.
//! In: channels and planned times → out: requests of the server API or commands of a client; answers are checked.
//! Uses the publishers of `generator`. Never: decides when a publication is due.
//! Another way to publish is added here and in `plan`.

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::VecDeque;
use std::time::Duration;

use crate::address::ServerAddress;
use crate::check::Checker;
use crate::generator::messages::Encoding;
use crate::generator::publisher::{Publisher, post};
use crate::generator::stream_publisher::StreamPublisher;
use crate::generator::{ConnectTarget, Generator, Profile, PublicationHandler};
use crate::plan::{ApiAddress, Plan, PublishMethod};

/// Publishes, on one or several connections.
pub(crate) struct Publishing {
    way: Way,
    /// Publications that wait, for each connection.
    queues: Vec<VecDeque<Due>>,
    channels: Vec<String>,
    is_binary: bool,
    is_latest: bool,
}

#[derive(Clone, Copy, Debug)]
struct Due {
    channel: u32,
    planned: u64,
}

enum Way {
    Requests { publisher: Publisher, api: ApiAddress, is_batch: bool },
    Stream(StreamPublisher),
    Client { generator: Box<Generator>, replies: Replies, encoding: Encoding },
}

impl Publishing {
    /// Connects; the sockets wake up `readers` where they can.
    ///
    /// # Errors
    /// No server listens, or it refuses the client.
    pub(crate) fn open(plan: &Plan, endpoint: &ConnectTarget, readers: &Generator) -> Result<Self> {
        let lanes = |connections: usize| connections.clamp(1, plan.channels as usize);
        let (way, queues) = match &plan.publish {
            PublishMethod::Api { api, connections } | PublishMethod::Batch { api, connections } => {
                let is_batch = matches!(plan.publish, PublishMethod::Batch { .. });
                let count = lanes(*connections);
                let publisher = Publisher::http(api.address.clone(), count, readers.registry())?;
                (Way::Requests { publisher, api: api.clone(), is_batch }, count)
            }
            PublishMethod::Stream { api } => {
                let host = &api.address.host;
                let path = format!("{}/stream", api.address.path.trim_end_matches('/'));
                (Way::Stream(StreamPublisher::open(api.address.clone(), host, &path, &api.key)?), 1)
            }
            PublishMethod::Client => {
                let mut generator = Box::new(Generator::new(true)?);
                generator.set_endpoint(endpoint.clone());
                let encoding = plan.encoding;
                let profile =
                    Profile { plain: false, encoding, compression: false, channels: Vec::new() };
                generator.open(plan.server.socket, 1, &profile).context("the publisher")?;
                let replies = Replies { encoding, missing: 0 };
                (Way::Client { generator, replies, encoding }, 1)
            }
        };
        Ok(Self {
            way,
            queues: vec![VecDeque::new(); queues],
            channels: plan.channel_names(),
            is_binary: plan.payloads.is_binary(),
            is_latest: plan.is_latest,
        })
    }

    /// A publication is due.
    pub(crate) fn push(&mut self, channel: u32, planned: u64) {
        let queue = channel as usize % self.queues.len();
        self.queues[queue].push_back(Due { channel, planned });
    }

    /// Sends what can be sent, and reads answers. Returns how many publications were sent.
    ///
    /// # Errors
    /// A bad answer, or a connection that has failed.
    pub(crate) fn turn(&mut self, checker: &mut Checker) -> Result<usize> {
        let form = RequestForm {
            channels: &self.channels,
            is_binary: self.is_binary,
            is_latest: self.is_latest,
        };
        let mut sent = 0;
        match &mut self.way {
            Way::Requests { publisher, api, is_batch } => {
                publisher.flush()?;
                publisher.receive()?;
                for (lane, queue) in self.queues.iter_mut().enumerate() {
                    if queue.is_empty() || !publisher.is_free(lane) {
                        continue;
                    }
                    let count = if *is_batch { queue.len().min(TOGETHER_MAX) } else { 1 };
                    let requests = queue.drain(..count).map(|due| form.request(due, checker));
                    publisher.publish_on(lane, &http_request(api, *is_batch, requests))?;
                    sent += count;
                }
            }
            Way::Stream(stream) => {
                stream.flush()?;
                stream.receive()?;
                let queue = &mut self.queues[0];
                let room = STREAM_UNANSWERED_MAX.saturating_sub(stream.missing());
                sent = queue.len().min(TOGETHER_MAX).min(room);
                if sent > 0 {
                    stream
                        .publish_all(queue.drain(..sent).map(|due| form.request(due, checker)))?;
                }
            }
            Way::Client { generator, replies, encoding } => {
                generator.turn(Some(Duration::ZERO), replies)?;
                while replies.missing < CLIENT_UNANSWERED_MAX
                    && let Some(due) = self.queues[0].pop_front()
                {
                    let data = checker.publish(due.channel, due.planned);
                    let channel = &self.channels[due.channel as usize];
                    generator.send(0, &encoding.publish_command(COMMAND_ID, channel, &data))?;
                    replies.missing += 1;
                    sent += 1;
                }
            }
        }
        Ok(sent)
    }

    /// Publications that were not sent yet.
    pub(crate) fn queued(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// Whether all were sent and answered.
    pub(crate) fn is_idle(&self) -> bool {
        let is_answered = match &self.way {
            Way::Requests { publisher, .. } => publisher.is_idle(),
            Way::Stream(stream) => stream.missing() == 0,
            Way::Client { replies, .. } => replies.missing == 0,
        };
        is_answered && self.queued() == 0
    }
}

struct RequestForm<'a> {
    channels: &'a [String],
    is_binary: bool,
    is_latest: bool,
}

impl RequestForm<'_> {
    /// The request of a publication, as JSON.
    fn request(&self, due: Due, checker: &mut Checker) -> String {
        let data = checker.publish(due.channel, due.planned);
        let channel = serde_json::Value::from(self.channels[due.channel as usize].as_str());
        let delivery = if self.is_latest { ",\"delivery\":\"latest\"" } else { "" };
        if self.is_binary {
            let data = STANDARD.encode(data);
            format!("{{\"channel\":{channel}{delivery},\"b64data\":\"{data}\"}}")
        } else {
            let data = String::from_utf8_lossy(&data);
            format!("{{\"channel\":{channel}{delivery},\"data\":{data}}}")
        }
    }
}

fn http_request(
    api: &ApiAddress,
    is_batch: bool,
    mut requests: impl Iterator<Item = String>,
) -> Vec<u8> {
    let ServerAddress { host, path, .. } = &api.address;
    let prefix = path.trim_end_matches('/');
    if !is_batch {
        let body = requests.next().unwrap_or_default();
        return post(host, &format!("{prefix}/publish"), &body, &api.key);
    }
    let commands: Vec<String> =
        requests.map(|request| format!("{{\"publish\":{request}}}")).collect();
    let body = format!("{{\"commands\":[{}]}}", commands.join(","));
    post(host, &format!("{prefix}/batch"), &body, &api.key)
}

/// Counts the replies to publish commands.
struct Replies {
    encoding: Encoding,
    missing: usize,
}

impl PublicationHandler for Replies {
    fn publication(&mut self, _subscriber: usize, message: &[u8]) -> Result<()> {
        let reply = self.encoding.reply_id(message).context("publishing")?;
        self.missing -= usize::from(reply.is_some());
        Ok(())
    }

    fn failed(&mut self, _subscriber: usize, error: anyhow::Error) -> Result<()> {
        bail!("the publisher: {:#}", error)
    }
}

/// Publications of one request or chunk.
const TOGETHER_MAX: usize = 500;
const STREAM_UNANSWERED_MAX: usize = 10_000;
/// Commands fit into the socket's buffer.
const CLIENT_UNANSWERED_MAX: usize = 64;
/// Replies come in the order of commands, so all have one id.
const COMMAND_ID: u32 = 9;
