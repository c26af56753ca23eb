//! The hooks of event proxies: which proxy is called for an event, with which message.
//! In: events from the node → out: pending answers; what no proxy decides is answered at once.
//! Uses the server's runtime. Never: waits on a shard.
//! Changed here: what a message contains, and when there is no call.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fanwire_broker::Answer;
use fanwire_node::hooks::{
    ClientContext, ClientReport, ConnectEvent, ConnectGrant, Hook, Hooks, MapEvent, MapGrant,
    PollEvent, PublishEvent, PublishGrant, RefreshEvent, RefreshGrant, Rejection, RpcEvent,
    SubscribeEvent, SubscribeGrant,
};
use fanwire_node::options::ProxyRoute;
use fanwire_node::shared_poll::PollAnswer;
use fanwire_protocol::proxy as pb;

use crate::proxy::Proxy;
use crate::{EventProxies, ProxiesByName, ProxyTable, answer, streams};

/// The decision about an event.
type PendingDecision<Grant> = Answer<Option<Grant>, Rejection>;

impl EventProxies {
    /// The functions that a node calls.
    pub fn hooks(&self) -> Hooks {
        let table = &self.0;
        let connect = table.connect.is_some();
        let has_streams = !table.streams_by_name.is_empty();
        let streams = Arc::clone(&table.streams);
        let report = move |report: ClientReport| streams.report(&report);
        let streams = Arc::clone(&table.streams);
        let stays = move |client: &str, channel: &str| streams.has(client, channel);
        let names = table.all().flat_map(|proxy| proxy.emulated_headers().iter().cloned());
        Hooks {
            connect: connect.then(|| table.hook(ProxyTable::connect)),
            refresh: table.refresh.is_some().then(|| table.hook(ProxyTable::refresh)),
            subscribe: (!table.subscribe.is_empty() || has_streams)
                .then(|| table.hook(ProxyTable::subscribe)),
            publish: (!table.publish.is_empty() || has_streams)
                .then(|| table.hook(ProxyTable::publish)),
            map_publish: table.hook_of(&table.map_publish, ProxyTable::map_publish),
            map_remove: table.hook_of(&table.map_remove, ProxyTable::map_remove),
            rpc: table.hook_of(&table.rpc, ProxyTable::rpc),
            sub_refresh: table.hook_of(&table.sub_refresh, ProxyTable::sub_refresh),
            shared_poll_refresh: table.hook_of(&table.shared_poll, ProxyTable::shared_poll_refresh),
            report: has_streams.then(|| Box::new(report) as _),
            stays: has_streams.then(|| Box::new(stays) as _),
            occupancy: None,
            emulated_headers: names.collect(),
        }
    }
}

/// Sets the fields with which every request begins.
macro_rules! request {
    ($kind:ident, $proxy:expr, $client:expr, $context:expr, { $($field:ident: $value:expr),* $(,)? }) => {
        pb::$kind {
            client: $client,
            transport: $context.transport.to_owned(),
            protocol: $context.protocol.to_owned(),
            encoding: if $proxy.binary_encoding { "binary" } else { "json" }.to_owned(),
            $($field: $value,)*
        }
    };
}

impl ProxyTable {
    fn hook<Event: 'static, Grant: 'static>(
        self: &Arc<Self>,
        decide: fn(&Self, Event, ProxyRoute) -> PendingDecision<Grant>,
    ) -> Hook<Event, Grant> {
        let table = Arc::clone(self);
        Hook::of_proxies(move |event, route| decide(&table, event, route))
    }

    /// The hook of a kind of event that has proxies.
    fn hook_of<Event: 'static, Grant: 'static>(
        self: &Arc<Self>,
        proxies: &ProxiesByName,
        decide: fn(&Self, Event, ProxyRoute) -> PendingDecision<Grant>,
    ) -> Option<Hook<Event, Grant>> {
        (!proxies.is_empty()).then(|| self.hook(decide))
    }

    /// The token of a client decides alone.
    fn connect(&self, event: ConnectEvent, _: ProxyRoute) -> PendingDecision<ConnectGrant> {
        let Some(proxy) = self.connect.clone().filter(|_| event.token.is_empty()) else {
            return Answer::now(Ok(None));
        };
        self.run(async move {
            let ConnectEvent { client, context, data, name, version, channels, .. } = event;
            let (data, b64data) = payload(&proxy, data);
            let request = request!(ConnectRequest, proxy, client, context, {
                data: data, b64data: b64data, name: name, version: version, channels: channels,
            });
            proxy.call(request, &context).await?.map(answer::connect).transpose()
        })
    }

    fn refresh(&self, event: RefreshEvent, _: ProxyRoute) -> PendingDecision<RefreshGrant> {
        let Some(proxy) = self.refresh.clone() else { return Answer::now(Ok(None)) };
        self.run(async move {
            let RefreshEvent { client, context, .. } = event;
            let request = request!(RefreshRequest, proxy, client.client, context, {
                user: client.user, meta: meta(&proxy, &context), labels: BTreeMap::clone(&context.labels),
            });
            let result = proxy.call(request, &context).await?;
            Ok(result.map(answer::refresh).transpose()?.flatten())
        })
    }

    fn sub_refresh(&self, event: RefreshEvent, route: ProxyRoute) -> PendingDecision<RefreshGrant> {
        let Some(proxy) = find(&self.sub_refresh, &route.proxy) else {
            return Answer::now(Ok(None));
        };
        self.run(async move {
            let RefreshEvent { client, context, channel, .. } = event;
            let request = request!(SubRefreshRequest, proxy, client.client, context, {
                user: client.user,
                channel: channel.as_deref().unwrap_or_default().to_owned(),
                meta: meta(&proxy, &context),
                labels: BTreeMap::clone(&context.labels),
            });
            let result = proxy.call(request, &context).await?;
            Ok(result.map(answer::sub_refresh).transpose()?.flatten())
        })
    }

    fn subscribe(
        &self,
        event: SubscribeEvent,
        route: ProxyRoute,
    ) -> PendingDecision<SubscribeGrant> {
        let proxies = if route.has_stream { &self.streams_by_name } else { &self.subscribe };
        let Some(proxy) = find(proxies, &route.proxy) else { return Answer::now(Ok(None)) };
        let streams = Arc::clone(&self.streams);
        let runtime = self.runtime.clone();
        self.run(async move {
            let SubscribeEvent { client, context, channel, data, .. } = event;
            let (data, b64data) = payload(&proxy, data);
            let request = request!(SubscribeRequest, proxy, client.client.clone(), context, {
                user: client.user.clone(),
                channel: channel.clone(),
                token: String::new(), // a subscribe with a token is decided by the token
                meta: meta(&proxy, &context),
                labels: BTreeMap::clone(&context.labels),
                data: data,
                b64data: b64data,
            });
            if !route.has_stream {
                let result = proxy.call(request, &context).await?.unwrap_or_default();
                return answer::subscribe(result).map(Some);
            }
            let (result, stream) =
                proxy.subscribe(request, &context, route.is_bidirectional).await?;
            let grant = answer::subscribe(result)?;
            streams.add(&client, &channel, stream, &runtime);
            Ok(Some(streams::without_positions(grant)))
        })
    }

    fn publish(&self, event: PublishEvent, route: ProxyRoute) -> PendingDecision<PublishGrant> {
        if route.has_stream {
            let sent = self.streams.publish(&event.client.client, &event.channel, event.data);
            return Answer::now(
                sent.map(|()| Some(PublishGrant { is_processed: true, ..PublishGrant::default() })),
            );
        }
        let Some(proxy) = find(&self.publish, &route.proxy) else { return Answer::now(Ok(None)) };
        self.run(async move {
            let PublishEvent { client, context, channel, data, .. } = event;
            let (data, b64data) = payload(&proxy, data);
            let request = request!(PublishRequest, proxy, client.client, context, {
                user: client.user,
                channel: channel,
                data: data,
                b64data: b64data,
                meta: meta(&proxy, &context),
                labels: BTreeMap::clone(&context.labels),
            });
            let result = proxy.call(request, &context).await?.unwrap_or_default();
            answer::publish(result).map(Some)
        })
    }

    fn map_publish(&self, event: MapEvent, route: ProxyRoute) -> PendingDecision<MapGrant> {
        let Some(proxy) = find(&self.map_publish, &route.proxy) else {
            return Answer::now(Ok(None));
        };
        self.run(async move {
            let PublishEvent { client, context, channel, data, .. } = event.command;
            let (data, b64data) = payload(&proxy, data);
            let request = request!(MapPublishRequest, proxy, client.client, context, {
                user: client.user,
                channel: channel,
                key: event.key,
                data: data,
                b64data: b64data,
                meta: meta(&proxy, &context),
                labels: BTreeMap::clone(&context.labels),
            });
            let result = proxy.call(request, &context).await?.unwrap_or_default();
            answer::map_publish(result).map(Some)
        })
    }

    fn map_remove(&self, event: MapEvent, route: ProxyRoute) -> PendingDecision<MapGrant> {
        let Some(proxy) = find(&self.map_remove, &route.proxy) else {
            return Answer::now(Ok(None));
        };
        self.run(async move {
            let PublishEvent { client, context, channel, .. } = event.command;
            let request = request!(MapRemoveRequest, proxy, client.client, context, {
                user: client.user,
                channel: channel,
                key: event.key,
                meta: meta(&proxy, &context),
                labels: BTreeMap::clone(&context.labels),
            });
            let result = proxy.call(request, &context).await?.unwrap_or_default();
            Ok(Some(answer::map_remove(result)))
        })
    }

    fn rpc(&self, event: RpcEvent, route: ProxyRoute) -> PendingDecision<Bytes> {
        let Some(proxy) = find(&self.rpc, &route.proxy) else { return Answer::now(Ok(None)) };
        self.run(async move {
            let RpcEvent { client, context, method, data, .. } = event;
            let (data, b64data) = payload(&proxy, data);
            let request = request!(RpcRequest, proxy, client.client, context, {
                user: client.user,
                method: method,
                data: data,
                b64data: b64data,
                meta: meta(&proxy, &context),
                labels: BTreeMap::clone(&context.labels),
            });
            let result = proxy.call(request, &context).await?.unwrap_or_default();
            answer::rpc(result).map(Some)
        })
    }

    fn shared_poll_refresh(
        &self,
        event: PollEvent,
        route: ProxyRoute,
    ) -> PendingDecision<PollAnswer> {
        let PollEvent { channel, keys } = event;
        let Some(proxy) = find(&self.shared_poll, &route.proxy) else {
            return Answer::now(Ok(None));
        };
        self.run(async move {
            let item = |(key, version): (Arc<str>, u64)| pb::SharedPollRefreshItem {
                key: key.as_ref().to_owned(),
                version,
            };
            let request = pb::SharedPollRefreshRequest {
                channel: channel.as_ref().to_owned(),
                items: keys.into_iter().map(item).collect(),
            };
            let result = proxy.call(request, &ClientContext::default()).await?;
            Ok(Some(answer::shared_poll_refresh(result.unwrap_or_default())))
        })
    }

    fn run<Grant: Send + 'static>(
        &self,
        call: impl Future<Output = Result<Option<Grant>, Rejection>> + Send + 'static,
    ) -> PendingDecision<Grant> {
        let (promise, answer) = Answer::later();
        self.runtime.spawn(async move { promise.keep(call.await) });
        answer
    }
}

fn find(proxies: &ProxiesByName, name: &Option<Arc<str>>) -> Option<Arc<Proxy>> {
    proxies.get(name.as_ref()?).cloned()
}

/// The data of a client for a request: JSON, or base64.
fn payload(proxy: &Proxy, data: Bytes) -> (Bytes, String) {
    if proxy.binary_encoding {
        (Bytes::new(), STANDARD.encode(data))
    } else {
        (data, String::new())
    }
}

fn meta(proxy: &Proxy, context: &ClientContext) -> Bytes {
    if proxy.includes_meta { context.meta.clone() } else { Bytes::new() }
}
