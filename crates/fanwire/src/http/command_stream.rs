//! The response body of `POST /api/stream` and of its form over gRPC: answers to the commands of the request body, as they are done.
//! In: pieces of the request body → out: one piece of answers for those that arrived together, several if they are large.
//! Uses the API and the shards; reads the next piece only after hyper took the last answers, so that nothing piles up.
//! Changed here: when the request body is read, and when the response ends. Lines and answers live in `api::stream`, messages in
//! `api::grpc`.

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
    http::{HeaderMap, HeaderValue, Request, Response, header::CONTENT_TYPE},
};
use fanwire_api::{
    Api, KeyHolder, Line, Lines,
    grpc::{GrpcError, Messages},
};
use fanwire_edge::wait_for_shards;
use fanwire_fanout::Shards;
use fanwire_shard::wake_shards_after;
use hyper::body::Frame;
use tokio::{
    task::JoinSet,
    time::{Interval, interval},
};
use tonic::{Code, Status};

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
        let caller = match self.http_api.authorize_stream(&request, peer) {
            Ok(caller) => caller,
            Err(refused) => return (*refused).map(Body::from),
        };
        let executor =
            Executor { api: self.http_api.api().clone(), caller, shards: self.shards.clone() };
        let lines = Splitter::Lines(self.http_api.lines());
        let body = CommandStream::new(executor, request.into_body(), lines);
        let mut response = Response::new(Body::new(body));
        let content_type = HeaderValue::from_static("application/x-ndjson");
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response
    }
}

/// Executes the commands of one caller.
#[derive(Clone)]
pub(crate) struct Executor {
    pub(crate) api: Arc<Api>,
    pub(crate) caller: Arc<KeyHolder>,
    /// The commands wait while these have much to deliver.
    pub(crate) shards: Arc<Shards>,
}

/// The answers to the commands of a request body.
pub(crate) struct CommandStream<B> {
    executor: Executor,
    body: B,
    splitter: Splitter,
    /// The answers to the last lines, while they are being made, and the lines that are left for the next piece.
    answers: Option<Pin<Box<dyn Future<Output = Answered> + Send>>>,
    left: VecDeque<Line>,
    has_ended: bool,
    /// Wakes an idle stream, so that it notices the stop of the server.
    stop_check: Interval,
}

/// Answers, and the lines that are not answered yet. `None` if a command panicked.
type Answered = Option<(Vec<u8>, VecDeque<Line>)>;

impl<B> CommandStream<B> {
    pub(crate) fn new(executor: Executor, body: B, splitter: Splitter) -> Self {
        let stop_check = interval(STOP_CHECK_INTERVAL);
        Self {
            executor,
            body,
            splitter,
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
        let Executor { api, caller, shards } = self.executor.clone();
        self.answers = Some(Box::pin(async move {
            wait_for_shards(&shards).await;
            let (answers, left) = api.answer_short_lines(lines, &caller).await;
            if !answers.is_empty() || left.is_empty() {
                return Some((answers, left));
            }
            // The first command may take long, and this thread may be that of a shard. The task ends with this future.
            let mut task = JoinSet::new();
            task.spawn(async move { api.answer_lines(left, &caller).await });
            task.join_next().await?.ok()
        }));
    }
}

impl<B: HttpBody<Data = Bytes> + Unpin> CommandStream<B> {
    /// The commands that have arrived: further pieces join the first one as long as they wait already.
    fn gather(&mut self, context: &mut Context<'_>) -> VecDeque<Line> {
        let mut lines = VecDeque::new();
        let mut bytes = 0;
        while !self.has_ended && (bytes < GATHERED_BYTES_MAX || lines.is_empty()) {
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(piece) = frame.into_data() {
                        bytes += piece.len();
                        lines.extend(self.splitter.push(piece));
                        self.has_ended = self.splitter.has_failed();
                    }
                }
                Poll::Ready(None) => {
                    self.has_ended = true;
                    lines.extend(self.splitter.end());
                }
                // The connection was cut: the last line may not be whole, and no answer can be sent.
                Poll::Ready(Some(Err(_))) => self.has_ended = true,
                Poll::Pending => break,
            }
        }
        lines
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
                let polled = wake_shards_after(|| answers.as_mut().poll(context));
                let answered = ready!(polled);
                this.answers = None;
                let Some((answers, left)) = answered else {
                    this.has_ended = true;
                    continue;
                };
                this.left = left;
                return Poll::Ready(Some(Ok(Frame::data(answers.into()))));
            }
            if this.executor.api.is_closing() {
                return Poll::Ready(this.splitter.trailers(true).map(Ok));
            }
            if !this.left.is_empty() {
                let left = std::mem::take(&mut this.left);
                this.start(left);
                continue;
            }
            if this.has_ended {
                return Poll::Ready(this.splitter.trailers(false).map(Ok));
            }
            let gathered = this.gather(context);
            match gathered.is_empty() {
                true if !this.has_ended => {
                    ready!(this.stop_check.poll_tick(context).map(drop));
                }
                _ => this.start(gathered),
            }
        }
    }
}

/// Bytes of pieces above which no further piece joins them.
const GATHERED_BYTES_MAX: usize = 64 << 10;

/// How a body is split into commands.
pub(crate) enum Splitter {
    Lines(Lines),
    Messages(Messages),
    /// The response has ended.
    Ended,
}

impl Splitter {
    fn push(&mut self, piece: Bytes) -> VecDeque<Line> {
        match self {
            Self::Lines(lines) => lines.push(piece),
            Self::Messages(messages) => messages.push(piece),
            Self::Ended => VecDeque::new(),
        }
    }

    fn end(&mut self) -> Option<Line> {
        match self {
            Self::Lines(lines) => return lines.end(),
            Self::Messages(messages) => messages.end(),
            Self::Ended => {}
        }
        None
    }

    fn has_failed(&self) -> bool {
        matches!(self, Self::Messages(messages) if messages.failure().is_some())
    }

    /// The status of a gRPC stream, once; nothing for lines.
    fn trailers(&mut self, is_closing: bool) -> Option<Frame<Bytes>> {
        let Self::Messages(messages) = std::mem::replace(self, Self::Ended) else { return None };
        let status = match messages.failure() {
            Some(failure) => to_status(failure.clone()),
            None if is_closing => Status::unavailable("the server stops"),
            None => Status::ok(""),
        };
        let mut trailers = HeaderMap::new();
        // Fails for texts that no header can have; ours can.
        let _ = status.add_header(&mut trailers);
        Some(Frame::trailers(trailers))
    }
}

/// The status of a call in the form of tonic.
pub(crate) fn to_status(GrpcError { code, message, details }: GrpcError) -> Status {
    Status::with_details(Code::from_i32(code.into()), message, details.into())
}

/// An idle stream ends this long after the server began to stop, at most.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(250);
