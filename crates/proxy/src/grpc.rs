//! Calls over gRPC: a unary method of `CentrifugoProxy` for each kind of event, and the streams of subscriptions.
//! In: a request message and headers → out: the response message, or why there is none.
//! Uses tonic's codec over the client of `tls`, HTTP/2 only. Never: what a response means.
//! Changed here: how a call looks on the wire.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::options::ProxyOptions;
use fanwire_protocol::proxy as pb;
use fanwire_tls::{Http2, HttpsClient, PoolOptions, RequestError, RequestLimits, Tls};
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Uri, uri::PathAndQuery};
use tokio::sync::mpsc;
use tonic::client::Grpc;
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataMap;
use tonic_prost::ProstCodec;

use crate::ProxyError;
use crate::backend::CallFailure;
use crate::event::ProxyRequest;
use crate::streams::{Granted, UPWARDS_MAX};

/// A backend that is called over gRPC.
#[derive(Debug)]
pub(crate) struct GrpcBackend {
    client: Grpc<Channel>,
    credentials: Option<(HeaderName, HeaderValue)>,
}

/// The connections to one backend. A call while there is none fails at once, if the backend refuses it.
#[derive(Clone, Debug)]
struct Channel(HttpsClient);

impl GrpcBackend {
    pub(crate) fn new(name: &str, options: &ProxyOptions) -> Result<Self, ProxyError> {
        let address = options.grpc_authority();
        let scheme = if options.grpc.tls.enabled { "https" } else { "http" };
        let endpoint = |_| ProxyError::Endpoint { proxy: name.to_owned() };
        let origin: Uri = format!("{scheme}://{address}").parse().map_err(endpoint)?;
        let tls = |source| ProxyError::Tls { proxy: name.to_owned(), source };
        let tls = Tls::new(&options.grpc.tls).map_err(tls)?;
        let limits = RequestLimits { timeout: options.timeout, body_bytes_max: ANSWER_BYTES_MAX };
        let pool = PoolOptions { http2: Http2::Only, ..super::POOL };
        let channel = Channel(HttpsClient::pooled(tls, limits, pool));
        let client = Grpc::with_origin(channel, origin)
            .max_decoding_message_size(ANSWER_BYTES_MAX)
            .accept_compressed(CompressionEncoding::Gzip);
        let client = if options.grpc.compression {
            client.send_compressed(CompressionEncoding::Gzip)
        } else {
            client
        };
        let credentials = credentials(name, options)?;
        Ok(Self { client, credentials })
    }

    pub(crate) async fn call<R: ProxyRequest>(
        &self,
        message: &R,
        headers: HeaderMap,
        timeout: Duration,
    ) -> Result<R::Response, CallFailure> {
        let mut request = self.request(message.clone(), headers);
        request.set_timeout(timeout);
        let mut client = self.client.clone();
        let codec = ProstCodec::<R, R::Response>::default();
        let answer = client.unary(request, PathAndQuery::from_static(R::PATH), codec).await;
        answer.map(tonic::Response::into_inner).map_err(failure)
    }

    /// Opens the stream of a subscription. Returns its first answer, and the stream of the others.
    pub(crate) async fn subscribe(
        &self,
        message: &pb::SubscribeRequest,
        headers: HeaderMap,
        is_bidirectional: bool,
    ) -> Result<(pb::SubscribeResponse, Granted), CallFailure> {
        let mut client = self.client.clone();
        let (response, upwards) = if is_bidirectional {
            let (upwards, sent) = mpsc::channel(UPWARDS_MAX);
            let request = self.request(upstream(message.clone(), sent), headers);
            let path = PathAndQuery::from_static(SUBSCRIBE_BIDIRECTIONAL);
            let codec = ProstCodec::default();
            (client.streaming(request, path, codec).await, Some(upwards))
        } else {
            let request = self.request(message.clone(), headers);
            let path = PathAndQuery::from_static(SUBSCRIBE_UNIDIRECTIONAL);
            (client.server_streaming(request, path, ProstCodec::default()).await, None)
        };
        let mut publications = response.map_err(failure)?.into_inner();
        let first: Option<pb::StreamSubscribeResponse> =
            publications.message().await.map_err(failure)?;
        let answer = first.and_then(|first| first.subscribe_response).ok_or_else(|| {
            CallFailure::Answer("the first message has no subscribe_response".to_owned())
        })?;
        Ok((answer, Granted { publications, upwards }))
    }

    fn request<M>(&self, message: M, mut headers: HeaderMap) -> tonic::Request<M> {
        if let Some((name, value)) = &self.credentials {
            headers.insert(name, value.clone());
        }
        let metadata = MetadataMap::from_headers(headers);
        tonic::Request::from_parts(metadata, Default::default(), message)
    }
}

/// The messages of a bidirectional stream: the request, then publications of the client.
fn upstream(
    request: pb::SubscribeRequest,
    publications: mpsc::Receiver<pb::Publication>,
) -> impl Stream<Item = pb::StreamSubscribeRequest> + Send {
    let first = pb::StreamSubscribeRequest {
        subscribe_request: Some(request),
        ..pb::StreamSubscribeRequest::default()
    };
    let later = stream::unfold(publications, |mut publications| async move {
        let publication = Some(publications.recv().await?);
        let message = pb::StreamSubscribeRequest { publication, ..Default::default() };
        Some((message, publications))
    });
    stream::once(async move { first }).chain(later)
}

fn failure(status: tonic::Status) -> CallFailure {
    let error = status.source().and_then(|error| error.downcast_ref::<RequestError>());
    if error.is_some_and(RequestError::is_unprocessed) {
        return CallFailure::Unprocessed;
    }
    CallFailure::Transport(format!("{:?}: {}", status.code(), status.message()))
}

fn credentials(
    proxy: &str,
    options: &ProxyOptions,
) -> Result<Option<(HeaderName, HeaderValue)>, ProxyError> {
    let key = &options.grpc.credentials_key;
    if key.is_empty() {
        return Ok(None);
    }
    let name = key.to_ascii_lowercase().parse().ok();
    let value = HeaderValue::from_str(&options.grpc.credentials_value).ok();
    let header = || ProxyError::Header { proxy: proxy.to_owned(), header: key.clone() };
    name.zip(value).map(Some).ok_or_else(header)
}

impl tower_service::Service<http::Request<tonic::body::Body>> for Channel {
    type Response = http::Response<hyper::body::Incoming>;
    type Error = RequestError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, RequestError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), RequestError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move { client.request(request).await })
    }
}

const SUBSCRIBE_UNIDIRECTIONAL: &str =
    "/centrifugal.centrifugo.proxy.CentrifugoProxy/SubscribeUnidirectional";
const SUBSCRIBE_BIDIRECTIONAL: &str =
    "/centrifugal.centrifugo.proxy.CentrifugoProxy/SubscribeBidirectional";

/// The longest answer.
const ANSWER_BYTES_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests;
