//! Hooks with async methods: the program around the server decides about connects, subscribes, publishes and rpc calls.
//! In: a hook for each kind of event → out: the functions of `fanwire_node::hooks`, with a time limit for each call.
//! Uses tasks of the server's runtime. Never: decides by itself, except that a hook that fails ends its connection.
//! Changed here: how hooks run, and what happens when they panic or take too long.

use std::{future::Future, sync::Arc, time::Duration};

use bytes::Bytes;
use fanwire_broker::Answer;
use fanwire_events::Events;
use fanwire_node::hooks::{
    ClientReport, ConnectEvent, ConnectGrant, Hook as NodeHook, Hooks as NodeHooks, MapEvent,
    MapGrant, PublishEvent, PublishGrant, RefreshEvent, RefreshGrant, Rejection, RpcEvent,
    SubscribeEvent, SubscribeGrant,
};
use fanwire_protocol::{ClientInfo, Disconnect};
use fanwire_proxy::EventProxies;
use tokio::{runtime::Handle as Runtime, time};

use crate::Rooms;

/// Decision of a hook. After `Ok(None)` the server continues as without the hook. [`Hooks`] has an example.
pub type Decision<Grant> = Result<Option<Grant>, Rejection>;

/// The end of the connection of a client whose connect had succeeded; for [`Hooks::disconnect`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisconnectEvent {
    pub client: ClientInfo,
    /// 3000 if the client closed the connection, or its network.
    pub disconnect: Disconnect,
}

/// A decision about one kind of event, with an async method. Every `Fn(Event) -> impl Future<Output = Answer>` is one, as in the
/// example of [`Hooks`].
///
/// Calls of one connection follow each other, calls of different connections run concurrently. A hook must not block its
/// thread, because it runs on the async runtime that accepts connections; `tokio::task::spawn_blocking` is for work that does.
pub trait Hook<Event, Answer>: Send + Sync + 'static {
    /// Decides. Dropped when its time limit has passed.
    fn call(&self, event: Event) -> impl Future<Output = Answer> + Send;
}

impl<Event, Answer, F, Decided> Hook<Event, Answer> for F
where
    F: Fn(Event) -> Decided + Send + Sync + 'static,
    Decided: Future<Output = Answer> + Send,
{
    fn call(&self, event: Event) -> impl Future<Output = Answer> + Send {
        self(event)
    }
}

/// The hooks of a server. Without any, tokens and the options of namespaces decide alone.
///
/// A hook that panics or exceeds its [time limit](Self::time_limit) ends its connection with 3004, and the client reconnects;
/// only after a refresh does the connection continue, and the hook is called again a minute later. Other connections are
/// not affected.
///
/// ```
/// use fanwire::{Builder, ConnectEvent, ConnectGrant, Disconnect, Hooks, Rejection, SubscribeEvent, config::Config};
///
/// let connect = |event: ConnectEvent| async move {
///     match event.token.strip_prefix("player-") {
///         Some(user) => Ok(Some(ConnectGrant { user: user.to_owned(), ..ConnectGrant::default() })),
///         None => Err(Rejection::from(Disconnect { code: 4501, reason: "unknown player".into() })),
///     }
/// };
/// let subscribe = |event: SubscribeEvent| async move {
///     let is_own = event.channel == format!("inventory-{}", event.client.user);
///     Ok(is_own.then(Default::default)) // otherwise the options of the namespace decide
/// };
/// let mut config = Config::default();
/// config.http_server.address = "127.0.0.1".to_owned();
/// config.http_server.port = 0; // any free port
/// let hooks = Hooks::new().connect(connect).subscribe(subscribe);
/// let server = Builder::new(config).hooks(hooks).start_embedded()?;
/// server.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Hooks {
    time_limit: Duration,
    /// Add one hook each, when the runtime and the time limit are known.
    additions: Vec<Addition>,
}

type Addition = Box<dyn FnOnce(&mut NodeHooks, Caller) + Send>;

/// Where hooks run, and how long.
#[derive(Clone)]
struct Caller {
    runtime: Runtime,
    time_limit: Duration,
}

impl Default for Hooks {
    fn default() -> Self {
        Self { time_limit: Duration::from_secs(1), additions: Vec::new() }
    }
}

impl Hooks {
    /// No hooks, and a time limit of one second.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long a call may take.
    pub fn time_limit(self, time_limit: Duration) -> Self {
        Self { time_limit, ..self }
    }

    /// Authenticates a connect that has no token, or one that no configured key can verify. Without a decision the client is
    /// anonymous where the options allow it, else it gets 3501.
    pub fn connect(self, hook: impl Hook<ConnectEvent, Decision<ConnectGrant>>) -> Self {
        self.with(|hooks, caller| hooks.connect = Some(caller.decide("connect", hook)))
    }

    /// Renews a connection whose expiry time has passed. With this hook clients do not refresh by token. Without a decision,
    /// or with an error, the connection ends with 3005.
    pub fn refresh(self, hook: impl Hook<RefreshEvent, Decision<RefreshGrant>>) -> Self {
        self.with(|hooks, caller| hooks.refresh = Some(caller.decide("refresh", hook)))
    }

    /// Decides about a subscribe without a token, to a channel that is neither private nor of listed users. Without a decision
    /// the permissions of the namespace apply.
    pub fn subscribe(self, hook: impl Hook<SubscribeEvent, Decision<SubscribeGrant>>) -> Self {
        self.with(|hooks, caller| hooks.subscribe = Some(caller.decide("subscribe", hook)))
    }

    /// Decides about a publish of a client. Without a decision the permissions of the namespace apply.
    pub fn publish(self, hook: impl Hook<PublishEvent, Decision<PublishGrant>>) -> Self {
        self.with(|hooks, caller| hooks.publish = Some(caller.decide("publish", hook)))
    }

    /// Decides about a publish of a client into a map. Without a decision the permissions of the namespace apply.
    pub fn map_publish(self, hook: impl Hook<MapEvent, Decision<MapGrant>>) -> Self {
        self.with(|hooks, caller| hooks.map_publish = Some(caller.decide("map_publish", hook)))
    }

    /// The same for the removal of a key from a map.
    pub fn map_remove(self, hook: impl Hook<MapEvent, Decision<MapGrant>>) -> Self {
        self.with(|hooks, caller| hooks.map_remove = Some(caller.decide("map_remove", hook)))
    }

    /// Answers an rpc call with data. Without a decision the client gets 104, method not found.
    pub fn rpc(self, hook: impl Hook<RpcEvent, Decision<Bytes>>) -> Self {
        self.with(|hooks, caller| hooks.rpc = Some(caller.decide("rpc", hook)))
    }

    /// Called after the connection of a connected client ended. It changes nothing; a failure is logged.
    pub fn disconnect(self, hook: impl Hook<DisconnectEvent, ()>) -> Self {
        self.with(|hooks, caller| hooks.report = Some(caller.report_ends(hook)))
    }

    fn with(mut self, addition: impl FnOnce(&mut NodeHooks, Caller) + Send + 'static) -> Self {
        self.additions.push(Box::new(addition));
        self
    }

    /// The functions that a node calls, for these hooks and for rooms; the hooks run on the current runtime.
    pub(crate) fn into_node_hooks(self, rooms: Option<&Rooms>) -> NodeHooks {
        let caller = Caller { runtime: Runtime::current(), time_limit: self.time_limit };
        let mut hooks = NodeHooks::default();
        for addition in self.additions {
            addition(&mut hooks, caller.clone());
        }
        rooms.iter().for_each(|rooms| rooms.extend(&mut hooks));
        hooks
    }
}

impl Caller {
    fn decide<Event: Send + 'static, Grant: Send + 'static>(
        self,
        name: &'static str,
        hook: impl Hook<Event, Decision<Grant>>,
    ) -> NodeHook<Event, Grant> {
        let hook = Arc::new(hook);
        NodeHook::new(move |event| {
            let (promise, answer) = Answer::later();
            let called = self.call(&hook, event);
            self.runtime.spawn(async move {
                let failed =
                    |cause| Err(Rejection::Failed(format!("the {name} hook {cause}").into()));
                promise.keep(called.await.unwrap_or_else(failed));
            });
            answer
        })
    }

    fn report_ends(
        self,
        hook: impl Hook<DisconnectEvent, ()>,
    ) -> Box<dyn Fn(ClientReport) + Send + Sync> {
        let hook = Arc::new(hook);
        Box::new(move |report| {
            let ClientReport::Disconnected { client, disconnect } = report else { return };
            let called = self.call(&hook, DisconnectEvent { client, disconnect });
            self.runtime.spawn(async move {
                if let Err(cause) = called.await {
                    tracing::warn!("the disconnect hook {cause}");
                }
            });
        })
    }

    /// Calls a hook in a task of its own, so that a panic ends that task alone, and the time limit holds for a hook that
    /// blocks its thread, too.
    ///
    /// # Errors
    /// Why there is no answer.
    fn call<Event: Send + 'static, Answered: Send + 'static, H: Hook<Event, Answered>>(
        &self,
        hook: &Arc<H>,
        event: Event,
    ) -> impl Future<Output = Result<Answered, String>> + Send + use<Event, Answered, H> {
        let hook = Arc::clone(hook);
        let time_limit = self.time_limit;
        let call = self.runtime.spawn(async move { hook.call(event).await });
        let abort = call.abort_handle();
        async move {
            match time::timeout(time_limit, call).await {
                Ok(Ok(answered)) => Ok(answered),
                Ok(Err(_)) => Err("panicked".to_owned()),
                Err(_) => {
                    abort.abort();
                    Err(format!("took longer than {time_limit:?}"))
                }
            }
        }
    }
}

/// The hooks of the program, then those of event proxies, which decide what the program does not, then those of events.
pub(crate) fn all_hooks(
    of_program: Hooks,
    rooms: Option<&Rooms>,
    proxies: Option<&EventProxies>,
    events: Option<&Events>,
) -> NodeHooks {
    let of_proxies = proxies.map(EventProxies::hooks).unwrap_or_default();
    let of_events = events.map(Events::hooks).unwrap_or_default();
    of_program.into_node_hooks(rooms).or(of_proxies).or(of_events)
}
