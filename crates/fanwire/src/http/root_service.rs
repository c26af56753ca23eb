//! The service of one listener: calls of the server API bypass the router, which costs as much as a publish; other requests use it.
//! In: requests → out: responses.
//! Uses the API service and a router of axum; never reads a path itself.
//! Changed here: which service gets a request. Paths live in `routes`, limits of connections in `listener`.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::ConnectInfo,
    http::{Request, Response},
    response::IntoResponse,
};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use tower::util::ServiceExt;

use fanwire_edge::{Service, TrackedBody, host};
use fanwire_metrics::RequestCounts;

use super::api_service::{self, ApiService};

/// The service of one listener.
pub(crate) struct RootService {
    /// The server API, if this listener serves it.
    pub api_service: Option<Arc<ApiService>>,
    pub router: Router,
    /// Counts of requests, if they are counted.
    pub requests: Option<Arc<RequestCounts>>,
    /// Refuse a `Host` other than `localhost` and IP addresses.
    pub local_hosts_only: bool,
}

/// The body of a response: in one piece from the API, or of a page.
type Content = Either<Full<Bytes>, Body>;

impl RootService {
    /// The pages of `router` alone.
    pub(crate) fn pages(router: Router) -> Self {
        Self { api_service: None, router, requests: None, local_hosts_only: false }
    }
}

impl Service for RootService {
    type Body = Content;

    async fn answer(
        &self,
        request: Request<TrackedBody<Incoming>>,
        peer: SocketAddr,
    ) -> Response<Content> {
        let Some(requests) = &self.requests else { return self.route(request, peer).await };
        let method = request.method().clone();
        let handler = requests.handler(request.uri().path());
        // Boxed, so that a request that is not counted does not reserve its size twice.
        let response = Box::pin(self.route(request, peer)).await;
        requests.record(handler, &method, response.status().as_u16());
        response
    }

    fn late(&self) -> Response<Content> {
        api_service::late().map(|text| Either::Left(Full::new(text)))
    }
}

impl RootService {
    async fn route(
        &self,
        request: Request<TrackedBody<Incoming>>,
        peer: SocketAddr,
    ) -> Response<Content> {
        if let Err(refusal) =
            host::check(request.version(), request.headers(), self.local_hosts_only)
        {
            return refusal.into_response().map(Either::Right);
        }
        if let Some(api_service) = &self.api_service
            && api_service.is_stream(&request)
        {
            let request = request.map(TrackedBody::endless);
            return api_service.stream(request, peer).map(Either::Right);
        }
        if let Some(api_service) = &self.api_service
            && let Some(route) = api_service.route(&request)
        {
            return api_service
                .answer(route, request, peer)
                .await
                .map(|json| Either::Left(Full::new(json)));
        }
        // Boxed, so that the future of an API call does not reserve its size.
        Box::pin(self.route_page(request, peer)).await.map(Either::Right)
    }

    async fn route_page(
        &self,
        mut request: Request<TrackedBody<Incoming>>,
        peer: SocketAddr,
    ) -> Response<Body> {
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = self.router.clone().oneshot(request.map(Body::new)).await;
        answer.unwrap_or_else(|never| match never {})
    }
}
