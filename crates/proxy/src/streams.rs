//! Subscription streams: for each subscriber a gRPC stream of publications from its backend, one way or both.
//! In: subscribes with a stream proxy, reports of subscriptions → out: publications to one subscriber, ends of subscriptions.
//! Uses the node's calls for one client. Never: history, positions; the backend has them.
//! Changed here: the life of a stream. Its first answer grants the subscription like that of a subscribe proxy.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_auth::Overrides;
use fanwire_broker::ClientId;
use fanwire_cluster::ConnectionSelector;
use fanwire_node::Node;
use fanwire_node::hooks::{ClientReport, Rejection, SubscribeGrant};
use fanwire_protocol::proxy as pb;
use fanwire_protocol::{ClientInfo, ErrorCode, Publication, UnsubscribeCode};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tonic::Streaming;

/// The open streams of a server.
#[derive(Debug, Default)]
pub(crate) struct OpenStreams {
    node: OnceLock<Weak<Node>>,
    open: Mutex<HashMap<SubscriptionKey, OpenStream>>,
}

/// A subscription, as its client and its channel name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SubscriptionKey {
    /// Id of the client.
    client: String,
    channel: Arc<str>,
}

impl SubscriptionKey {
    fn new(client: &str, channel: impl Into<Arc<str>>) -> Self {
        Self { client: client.to_owned(), channel: channel.into() }
    }
}

#[derive(Debug)]
struct OpenStream {
    /// Sent when the subscription was made, so that no publication comes before its reply.
    subscribed: Option<oneshot::Sender<()>>,
    /// Publications of the client; `None` for a stream one way.
    upwards: Option<mpsc::Sender<pb::Publication>>,
    task: AbortHandle,
}

/// A stream whose first answer granted the subscription.
pub(crate) struct Granted {
    pub(crate) publications: Streaming<pb::StreamSubscribeResponse>,
    pub(crate) upwards: Option<mpsc::Sender<pb::Publication>>,
}

impl OpenStreams {
    /// Sets the node, once.
    pub(crate) fn attach(&self, node: &Arc<Node>) {
        let _ = self.node.set(Arc::downgrade(node));
    }

    /// Keeps a stream, whose publications go to the subscriber as soon as it is one.
    pub(crate) fn add(
        self: &Arc<Self>,
        client: &ClientInfo,
        channel: &str,
        stream: Granted,
        runtime: &Handle,
    ) {
        let (subscribed, is_subscribed) = oneshot::channel();
        let key = SubscriptionKey::new(&client.client, channel);
        let Granted { publications, upwards } = stream;
        let mut open = self.open.lock(); // the task must not end before it is in the table
        let forward =
            Arc::clone(self).forward(client.clone(), key.clone(), publications, is_subscribed);
        let task = runtime.spawn(forward).abort_handle();
        let stream = OpenStream { subscribed: Some(subscribed), upwards, task };
        if let Some(before) = open.insert(key, stream) {
            before.task.abort();
        }
    }

    /// Whether a subscription has a stream.
    pub(crate) fn has(&self, client: &str, channel: &str) -> bool {
        self.open.lock().contains_key(&SubscriptionKey::new(client, channel))
    }

    /// Sends a client's publication up its stream.
    ///
    /// # Errors
    /// 103 without a subscription, 108 for a stream one way, 111 when the backend takes them too slowly.
    pub(crate) fn publish(
        &self,
        client: &str,
        channel: &str,
        data: Bytes,
    ) -> Result<(), Rejection> {
        let open = self.open.lock();
        let error = |code: ErrorCode| Rejection::Error(code.into());
        let stream = open
            .get(&SubscriptionKey::new(client, channel))
            .ok_or_else(|| error(ErrorCode::PERMISSION_DENIED))?;
        let upwards = stream.upwards.as_ref().ok_or_else(|| error(ErrorCode::NOT_AVAILABLE))?;
        let publication = pb::Publication { data, ..pb::Publication::default() };
        upwards.try_send(publication).map_err(|_| error(ErrorCode::TOO_MANY_REQUESTS))
    }

    /// Begins and ends streams with their subscriptions.
    pub(crate) fn report(&self, report: &ClientReport) {
        match report {
            ClientReport::Subscribed { client, channel, .. } => {
                let mut open = self.open.lock();
                let key = SubscriptionKey::new(&client.client, channel.clone());
                if let Some(stream) = open.get_mut(&key) {
                    stream.subscribed.take().map(|subscribed| subscribed.send(()));
                }
            }
            ClientReport::Unsubscribed { client, channel } => {
                let key = SubscriptionKey::new(&client.client, channel.clone());
                let ended = self.open.lock().remove(&key);
                if let Some(ended) = ended {
                    ended.task.abort();
                }
            }
            ClientReport::Connected { .. }
            | ClientReport::ViewChanged { .. }
            | ClientReport::Disconnected { .. } => {}
        }
    }

    /// Forwards publications until one side ends.
    async fn forward(
        self: Arc<Self>,
        client: ClientInfo,
        key: SubscriptionKey,
        mut publications: Streaming<pb::StreamSubscribeResponse>,
        subscribed: oneshot::Receiver<()>,
    ) {
        let code = match timeout(SUBSCRIBED_WITHIN, subscribed).await {
            Ok(Ok(())) => self.forward_all(&key, &mut publications).await,
            // The subscription was refused, or the client went away before.
            _ => {
                self.open.lock().remove(&key);
                return;
            }
        };
        let target = ConnectionSelector {
            user: client.user,
            client: client.client,
            ..ConnectionSelector::default()
        };
        if let Some(node) = self.node.get().and_then(Weak::upgrade) {
            node.connections().end_subscription(target, Some(&key.channel), code);
        }
    }

    /// Returns why the subscription ends.
    async fn forward_all(
        &self,
        key: &SubscriptionKey,
        publications: &mut Streaming<pb::StreamSubscribeResponse>,
    ) -> UnsubscribeCode {
        let SubscriptionKey { client, channel } = key;
        loop {
            let publication = match publications.message().await {
                Ok(Some(message)) => message.publication,
                Ok(None) => return UnsubscribeCode::SERVER,
                Err(_) => return UnsubscribeCode::INSUFFICIENT_STATE,
            };
            let Some(node) = self.node.get().and_then(Weak::upgrade) else {
                return UnsubscribeCode::SERVER;
            };
            let (Some(pb::Publication { data, tags }), Some(client)) =
                (publication, ClientId::parse(client))
            else {
                continue; // an empty message keeps a stream open
            };
            while node.channels().is_congested() {
                sleep(CONGESTION_PAUSE).await;
            }
            let publication = Publication { data, tags, ..Publication::default() };
            if let Err(error) =
                node.channels().publish_to(client, channel, publication, None, Instant::now())
            {
                tracing::warn!(%channel, %error, "a backend sent a publication that its stream cannot have");
                return UnsubscribeCode::INSUFFICIENT_STATE;
            }
        }
    }
}

/// A subscription with a stream has no position, and cannot recover.
pub(crate) fn without_positions(grant: SubscribeGrant) -> SubscribeGrant {
    let overrides = Overrides {
        force_recovery: Some(false),
        force_positioning: Some(false),
        ..grant.overrides
    };
    SubscribeGrant { overrides, ..grant }
}

/// Limit for the node to make a granted subscription.
const SUBSCRIBED_WITHIN: Duration = Duration::from_secs(30);
const CONGESTION_PAUSE: Duration = Duration::from_millis(5);
/// Publications of one client that wait for its backend.
pub(crate) const UPWARDS_MAX: usize = 64;
