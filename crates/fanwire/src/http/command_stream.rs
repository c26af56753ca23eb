//! The response body of `POST /api/stream`: answers to the commands of the request body, as they are done.
//! In: pieces of the request body → out: one piece of answers for each piece with complete lines, several if they are large.
//! Uses the API and the shards; reads the next piece only after hyper took the last answers, so that nothing piles up.
//! Changed here: when the request body is read, and when the response ends. Lines and answers live in `api::http::stream`.

use std::{
    collections::VecDeque,
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{HeaderValue, Request, Response, header::CONTENT_TYPE},
};
use fanwire_api::http::{Line, Lines};
use hyper::body::Frame;
use tokio::time::{Interval, interval};

use super::api_service::ApiService;

impl ApiService {
    /// Starts the answers to a long request, or refuses it.
    pub(super) fn stream<B>(
        self: &Arc<Self>,
        request: Request<B>,
        peer: SocketAddr,
    ) -> Response<Body>
    where
        B: HttpBody<Data = Bytes> + Unpin + Send + 'static,
    {
        if let Some(refused) = self.http_api.refuse_stream(&request, peer) {
            return refused.map(Body::from);
        }
        let body = CommandStream::new(Arc::clone(self), request.into_body());
        let mut response = Response::new(Body::new(body));
        let content_type = HeaderValue::from_static("application/x-ndjson");
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response
    }
}

/// The answers to the commands of a request body.
struct CommandStream<B> {
    api_service: Arc<ApiService>,
    body: B,
    lines: Lines,
    /// The answers to the last lines, while they are being made, and the lines that are left for the next piece.
    answers: Option<Pin<Box<dyn Future<Output = Answered> + Send>>>,
    left: VecDeque<Line>,
    has_ended: bool,
    /// Wakes an idle stream, so that it notices the stop of the server.
    stop_check: Interval,
}

/// Answers, and the lines that are not answered yet.
type Answered = (Vec<u8>, VecDeque<Line>);

impl<B> CommandStream<B> {
    fn new(api_service: Arc<ApiService>, body: B) -> Self {
        let lines = api_service.http_api.lines();
        let stop_check = interval(STOP_CHECK_INTERVAL);
        Self {
            api_service,
            body,
            lines,
            answers: None,
            left: VecDeque::new(),
            has_ended: false,
            stop_check,
        }
    }

    fn start(&mut self, lines: VecDeque<Line>) {
        if lines.is_empty() {
            return;
        }
        let api_service = Arc::clone(&self.api_service);
        self.answers = Some(Box::pin(async move {
            api_service.wait_for_shards().await;
            api_service.http_api.api().answer_lines(lines).await
        }));
    }
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for CommandStream<B> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        loop {
            if let Some(answers) = &mut this.answers {
                let (answers, left) = ready!(answers.as_mut().poll(context));
                (this.answers, this.left) = (None, left);
                return Poll::Ready(Some(Ok(Frame::data(answers.into()))));
            }
            if this.api_service.http_api.api().is_closing() {
                return Poll::Ready(None);
            }
            if !this.left.is_empty() {
                let left = std::mem::take(&mut this.left);
                this.start(left);
                continue;
            }
            if this.has_ended {
                return Poll::Ready(None);
            }
            match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(piece) = frame.into_data() {
                        let lines = this.lines.push(piece);
                        this.start(lines);
                    }
                }
                Poll::Ready(None) => {
                    this.has_ended = true;
                    let last = this.lines.end();
                    this.start(last.into_iter().collect());
                }
                // The connection was cut: the last line may not be whole, and no answer can be sent.
                Poll::Ready(Some(Err(_))) => this.has_ended = true,
                Poll::Pending => ready!(this.stop_check.poll_tick(context).map(drop)),
            }
        }
    }
}

/// An idle stream ends this long after the server began to stop, at most.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(250);
