//! The options of the crates below, out of several sections of the configuration.
//! In: a `Config` → out: the options of the node, of the server API, of event proxies, of endpoints, of listeners with TLS.
//! Uses the sections. Never: checks or changes a value.
//! Changed here: which crate gets which key, where a section is not a crate's own.

use fanwire_api::ApiOptions;
use fanwire_edge::{ClientEndpoints, GrpcListenerOptions};
use fanwire_policy::options::{ClientOptions, Options};
use fanwire_proxy::Proxies;
use fanwire_tls::{ListenerSections, ServerTlsOptions, ServerTlsSection};

use super::Config;

impl Config {
    /// The options of the node.
    pub fn node_options(&self) -> Options {
        Options {
            name: self.node.name.clone(),
            info_metrics_aggregate_interval: self.node.info_metrics_aggregate_interval,
            client: ClientOptions {
                explains_disconnects: self.development,
                ..(&self.client).into()
            },
            channel: (&self.channel).into(),
            rpc: (&self.rpc).into(),
            user_status: self.user_status.clone(),
            shared_poll: self.shared_poll.clone(),
            recorder_memory_max: self.recorder.memory_max,
            debug_for: self.log.debug_for.clone(),
            ..Options::default()
        }
    }

    /// The options of the server API over HTTP, and of consumers.
    pub fn api_options(&self) -> ApiOptions {
        let http = &self.http_api;
        ApiOptions {
            key: http.key.clone(),
            previous_key: http.previous_key.clone(),
            previous_key_valid_until: http.previous_key_valid_until,
            keys: http.keys.clone(),
            insecure: http.insecure,
            error_mode: http.error_mode,
            handler_prefix: http.handler_prefix.clone(),
            body_bytes_max: http.max_request_body_size,
            is_traced: self.opentelemetry.api,
            is_consuming_traced: self.opentelemetry.consuming,
            config_reader: http.config_reader.clone(),
        }
    }

    /// The options of the server API over gRPC, which has the named keys of `http_api`, too.
    pub fn grpc_api_options(&self) -> ApiOptions {
        let grpc = &self.grpc_api;
        ApiOptions {
            key: grpc.key.clone(),
            insecure: grpc.key.is_empty() && self.http_api.keys.is_empty(),
            keys: self.http_api.keys.clone(),
            error_mode: grpc.error_mode,
            body_bytes_max: grpc.listener().message_bytes_max(),
            is_traced: self.opentelemetry.api,
            config_reader: self.http_api.config_reader.clone(),
            ..ApiOptions::default()
        }
    }

    /// The event proxies.
    pub fn event_proxies(&self) -> Proxies {
        let channel = &self.channel.proxy;
        Proxies {
            connect: self.client.proxy.connect.clone(),
            refresh: self.client.proxy.refresh.clone(),
            subscribe: channel.subscribe.clone(),
            publish: channel.publish.clone(),
            sub_refresh: channel.sub_refresh.clone(),
            subscribe_stream: channel.subscribe_stream.clone(),
            shared_poll_refresh: channel.shared_poll_refresh.clone(),
            map_publish: channel.map_publish.clone(),
            map_remove: channel.map_remove.clone(),
            rpc: self.rpc.proxy.clone(),
            named: self.proxies.clone(),
        }
    }

    /// The endpoints of clients.
    pub fn client_endpoints(&self) -> ClientEndpoints {
        let proxies = self.event_proxies();
        let headers = proxies.iter().flat_map(|(_, proxy)| &proxy.http_headers);
        ClientEndpoints {
            websocket: (&self.websocket).into(),
            http_stream: self.http_stream.clone(),
            sse: self.sse.clone(),
            emulation: self.emulation.clone(),
            uni_websocket: self.uni_websocket.clone(),
            uni_sse: self.uni_sse.clone(),
            uni_http_stream: self.uni_http_stream.clone(),
            uni_grpc: self.uni_grpc.clone(),
            user_id_http_header: self.client.user_id_http_header.clone(),
            proxied_headers: headers.map(|name| name.to_ascii_lowercase()).collect(),
        }
    }

    /// The sections of the listeners with TLS.
    pub fn tls_sections(&self) -> ListenerSections<'_> {
        ListenerSections {
            clients: self.http_server.client_tls(),
            internal: self.http_server.internal_tls(),
            grpc: self.grpc_tls(),
            has_internal_autocert: self.http_server.has_internal_autocert(),
        }
    }

    /// TLS of the listeners for gRPC: of the server API, and of unidirectional clients.
    pub fn grpc_tls(&self) -> [Option<ServerTlsSection<'_>>; 2] {
        let GrpcListenerOptions { enabled, tls, .. } = &self.uni_grpc;
        [
            section("grpc_api.tls", self.grpc_api.enabled, &self.grpc_api.tls),
            section("uni_grpc.tls", *enabled, tls),
        ]
    }

    /// Whether the demo page is served: where the admin page has its path, it is not.
    pub fn serves_demo(&self) -> bool {
        let path = |prefix: &str| prefix.trim_matches('/').to_owned();
        let is_taken = path(&self.admin.handler_prefix) == path(&self.demo.handler_prefix);
        self.demo.enabled && !(self.admin.enabled && is_taken)
    }
}

fn section<'a>(
    key: &'static str,
    is_listening: bool,
    tls: &'a ServerTlsOptions,
) -> Option<ServerTlsSection<'a>> {
    (is_listening && tls.enabled).then_some(ServerTlsSection { key, options: tls })
}
