//! What one listener serves: the server API first, which a router would cost as much as publishing, then everything else.
//! In: requests → out: answers.
//! Uses the api_service of the API and a router of axum; never knows a path itself.
//! Changed here: who gets a request. Paths live in `routes`, limits of connections in `listener`.

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

use super::{api_service::ApiService, exchange::TrackedBody, host};

/// What is served where connections come in.
pub struct RootService {
    /// The server API, where it is served to these.
    pub api_service: Option<Arc<ApiService>>,
    pub router: Router,
    /// Under no other name than those of this machine.
    pub only_here: bool,
}

/// An answer of the API, which is there, or one of a page.
pub(super) type Content = Either<Full<Bytes>, Body>;

impl RootService {
    /// Answers a request of `peer`.
    pub(super) async fn answer(
        &self,
        request: Request<TrackedBody<Incoming>>,
        peer: SocketAddr,
    ) -> Response<Content> {
        if let Err(refusal) = host::check(request.version(), request.headers(), self.only_here) {
            return refusal.into_response().map(Either::Right);
        }
        if let Some(api_service) = &self.api_service
            && let Some(place) = api_service.place(&request)
        {
            return api_service
                .answer(place, request)
                .await
                .map(|json| Either::Left(Full::new(json)));
        }
        // In a box, for calls of the API would have to carry its size around, too.
        Box::pin(self.route(request, peer)).await.map(Either::Right)
    }

    async fn route(
        &self,
        mut request: Request<TrackedBody<Incoming>>,
        peer: SocketAddr,
    ) -> Response<Body> {
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = self.router.clone().oneshot(request.map(Body::new)).await;
        answer.unwrap_or_else(|never| match never {})
    }
}
