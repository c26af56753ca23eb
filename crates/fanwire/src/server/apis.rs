//! The server API of a server, by its protocols, and the consumers, which execute its methods, too.
//! In: the configuration and the node → out: an API for each protocol, with the keys and rights of that protocol.
//! Uses `api` and `consumers`. Never: a request.
//! Changed here: which protocols there are, and what each may do.

use std::sync::Arc;

use fanwire_api::{Api, grpc::GrpcApi};
use fanwire_config::Config;
use fanwire_consumers::Consumers;
use fanwire_fanout::Shards;
use fanwire_node::Node;
use tokio::sync::watch;

use crate::{
    error::{ServerError, StartError},
    grpc::GrpcService,
};

/// The server API by its protocols.
pub(super) struct Apis {
    pub(super) http: Arc<Api>,
    pub(super) consuming: Option<Arc<Api>>,
    pub(super) grpc: Option<Arc<Api>>,
}

impl Apis {
    pub(super) fn new(config: &Config, node: &Arc<Node>, consuming: &Consuming) -> Self {
        let grpc =
            config.grpc_api.enabled.then(|| Api::new(node.clone(), config.grpc_api_options()));
        Self {
            http: Arc::new(Api::new(node.clone(), config.api_options())),
            consuming: consuming.api.clone(),
            grpc: grpc.map(Arc::new),
        }
    }

    /// The service of the listener for gRPC, if there is one.
    pub(super) fn grpc_service(
        &self,
        config: &Config,
        shards: &Arc<Shards>,
    ) -> Option<GrpcService> {
        let api = self.grpc.clone()?;
        Some(GrpcService::new(GrpcApi::new(api), shards.clone(), config.grpc_api.reflection))
    }

    /// All of them with the names of their protocols.
    pub(super) fn named(&self) -> Vec<(&'static str, Arc<Api>)> {
        let http = Some(("http", self.http.clone()));
        let consuming = self.consuming.clone().map(|api| ("consuming", api));
        let grpc = self.grpc.clone().map(|api| ("grpc", api));
        [http, consuming, grpc].into_iter().flatten().collect()
    }

    /// Replaces the keys of those that ask for keys.
    pub(super) fn set_keys(&self, config: &Config) {
        self.http.set_keys(&config.api_options());
        if let Some(grpc) = &self.grpc {
            grpc.set_keys(&config.grpc_api_options());
        }
    }

    /// Answers calls again.
    pub(super) fn reopen(&self) {
        self.named().iter().for_each(|(_, api)| api.set_closing(false));
    }

    /// Refuses further calls.
    pub(super) fn close(&self) {
        self.named().iter().for_each(|(_, api)| api.set_closing(true));
    }
}

/// The consumers, with an API that counts what they execute.
pub(super) struct Consuming {
    pub(super) consumers: Option<Arc<Consumers>>,
    api: Option<Arc<Api>>,
    /// The consumer that ended for good.
    pub(super) failure: watch::Receiver<Option<ServerError>>,
}

impl Consuming {
    /// Starts the consumers. One whose queue cannot be used ends the start.
    pub(super) async fn start(config: &Config, node: &Arc<Node>) -> Result<Self, StartError> {
        let (report_failure, failure) = watch::channel(None);
        let api = Arc::new(Api::new(node.clone(), config.api_options()));
        let consumers = Consumers::start(&config.consumers, &api, node.uid(), move |error| {
            tracing::error!(%error, "a consumer has ended for good");
            report_failure.send_replace(Some(ServerError::Consumer(Arc::new(error))));
        });
        let consumers = consumers.await.map_err(StartError::Consumer)?.map(Arc::new);
        let api = consumers.is_some().then_some(api);
        Ok(Self { consumers, api, failure })
    }
}
