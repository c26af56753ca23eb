//! One event proxy: calls of one backend within its limits, counted, and logged when they fail.
//! In: a request, facts about a connection → out: the backend's result, or the rejection that the client gets.
//! Uses `limiter` and `circuit` before a call, `http` or `grpc` for it, `answer` after it. Never: the kind of an event.
//! Changed here: the order of these steps, and what a failure means to a client.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::options::{ProxyOptions, StatusMeaning, StatusTransform};
use fanwire_node::hooks::{ClientContext, Rejection};
use fanwire_protocol::proxy as pb;
use fanwire_protocol::{ErrorCode, ProtocolError};
use fanwire_telemetry::{LogThrottle, Span, SpanKind, SpanValue, TraceContext, excerpt};
use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use tokio::time;

use crate::ProxyError;
use crate::answer;
use crate::backend::{CallFailure, HeaderRules};
use crate::circuit::{Circuit, Transition};
use crate::event::{EventKind, ProxyRequest, ProxyResponse};
use crate::grpc::GrpcBackend;
use crate::http::HttpBackend;
use crate::limiter::{LimitExceeded, Limiter};
use crate::stats::{Counters, FailureCause, ProxyStats};
use crate::streams::Granted;

pub(crate) struct Proxy {
    /// Its section in the configuration.
    key: Arc<str>,
    name: Arc<str>,
    timeout: Duration,
    pub(crate) binary_encoding: bool,
    pub(crate) includes_meta: bool,
    headers: HeaderRules,
    transforms: Vec<StatusTransform>,
    backend: Backend,
    limiter: Arc<Limiter>,
    circuit: Mutex<Circuit>,
    counters: Counters,
    log_throttle: LogThrottle,
}

enum Backend {
    Http(Box<HttpBackend>),
    Grpc(Box<GrpcBackend>),
}

impl Proxy {
    pub(crate) fn new(
        key: &str,
        name: &str,
        options: &ProxyOptions,
    ) -> Result<Arc<Self>, ProxyError> {
        let is_http = ["http://", "https://"].iter().any(|it| options.endpoint.starts_with(it));
        let (backend, fixed) = if is_http {
            (Backend::Http(Box::new(HttpBackend::new(key, options)?)), &options.http.static_headers)
        } else {
            let backend = GrpcBackend::new(key, options)?;
            (Backend::Grpc(Box::new(backend)), &options.grpc.static_metadata)
        };
        let headers = HeaderRules::new(fixed, &options.emulated_headers, &options.http_headers)
            .map_err(|header| ProxyError::Header { proxy: key.to_owned(), header })?;
        let headers = if is_http { headers } else { headers.for_grpc() };
        Ok(Arc::new(Self {
            key: key.into(),
            name: name.into(),
            timeout: options.timeout,
            binary_encoding: options.binary_encoding,
            includes_meta: options.include_connection_meta,
            headers,
            transforms: options.http.status_to_code_transforms.clone(),
            backend,
            limiter: Limiter::new(options.in_flight_max, options.queue_max),
            circuit: Mutex::default(),
            counters: Counters::default(),
            log_throttle: LogThrottle::default(),
        }))
    }

    /// Calls the backend.
    ///
    /// # Errors
    /// The backend's rejection; error 100 if it gives no answer.
    pub(crate) async fn call<R: ProxyRequest>(
        &self,
        request: R,
        context: &ClientContext,
    ) -> Result<Option<<R::Response as ProxyResponse>::Result>, Rejection> {
        let mut headers = self.headers.apply(context);
        let span = self.span(R::KIND, &mut headers);
        let sent = async {
            let mut pauses = PAUSES.into_iter();
            loop {
                let headers = headers.clone();
                let answer = match &self.backend {
                    Backend::Http(backend) => backend.call(&request, headers).await,
                    Backend::Grpc(backend) => backend.call(&request, headers, self.timeout).await,
                };
                match (answer, pauses.next()) {
                    (Err(CallFailure::Unprocessed), Some(pause)) => time::sleep(pause).await,
                    (answer, _) => return answer,
                }
            }
        };
        let answer = self.within_limits(R::KIND, sent).await;
        if let Some(mut span) = span {
            span.error = answer.as_ref().err().map(|rejection| format!("{rejection:?}"));
            span.finish(SystemTime::now());
        }
        answer::result(answer?)
    }

    /// The span of a call, which its headers name; it continues a trace that they name already.
    fn span(&self, kind: EventKind, headers: &mut HeaderMap) -> Option<Span> {
        let parent = headers
            .get(TRACEPARENT)
            .and_then(|value| value.to_str().ok())
            .and_then(TraceContext::parse);
        let name = || format!("proxy {}", kind.name());
        let mut span = Span::begin(name, SpanKind::Client, parent, SystemTime::now())?;
        span.set("proxy", SpanValue::Text(self.key.to_string()));
        if let Ok(value) = HeaderValue::from_str(&span.context.header()) {
            headers.insert(TRACEPARENT, value);
        }
        Some(span)
    }

    /// Opens the stream of a subscription.
    ///
    /// # Errors
    /// The backend's rejection; error 100 if its first answer does not come in time.
    pub(crate) async fn subscribe(
        &self,
        request: pb::SubscribeRequest,
        context: &ClientContext,
        is_bidirectional: bool,
    ) -> Result<(pb::SubscribeResult, Granted), Rejection> {
        let Backend::Grpc(backend) = &self.backend else {
            return Err(Rejection::Unavailable("a proxy of streams needs gRPC".into()));
        };
        let sent = backend.subscribe(&request, self.headers.apply(context), is_bidirectional);
        let (response, granted) = self.within_limits(EventKind::SubscribeStream, sent).await?;
        Ok((answer::result(response)?.unwrap_or_default(), granted))
    }

    /// Sends a call, and waits before if as many are in flight as may be. The time limit begins now; a call that could not
    /// begin in the first half of it is not sent, because its answer would come too late.
    ///
    /// # Errors
    /// The rejection of an event for which there is no answer.
    async fn within_limits<T>(
        &self,
        kind: EventKind,
        sent: impl Future<Output = Result<T, CallFailure>>,
    ) -> Result<T, Rejection> {
        let now = time::Instant::now();
        let deadline = now + self.timeout;
        let permit =
            self.limiter.acquire(now + self.timeout / 2).await.map_err(|error| match error {
                LimitExceeded::QueueFull => {
                    self.not_called(kind, FailureCause::QueueFull, QUEUE_FULL)
                }
                LimitExceeded::WaitedTooLong => {
                    self.not_called(kind, FailureCause::Waited, WAITED_TOO_LONG)
                }
            })?;
        if !self.circuit.lock().permits(Instant::now()) {
            return Err(self.not_called(kind, FailureCause::CircuitOpen, CIRCUIT_OPEN));
        }
        let started = Instant::now();
        self.counters.begin(kind);
        let answer = time::timeout_at(deadline, sent).await.unwrap_or(Err(CallFailure::Timeout));
        drop(permit);
        self.counters.end(kind, started.elapsed());
        self.note_outcome(&answer);
        answer.map_err(|failure| self.failed(kind, &failure))
    }

    /// Names in lower case that it takes from `headers` of the connect command.
    pub(crate) fn emulated_headers(&self) -> &[String] {
        self.headers.emulated()
    }

    pub(crate) fn stats(&self) -> ProxyStats {
        let (in_flight, waiting) = self.limiter.load();
        ProxyStats {
            key: Arc::clone(&self.key),
            name: Arc::clone(&self.name),
            protocol: match self.backend {
                Backend::Http(_) => "http",
                Backend::Grpc(_) => "grpc",
            },
            in_flight,
            waiting,
            circuit: self.circuit.lock().state(),
            calls: self.counters.read(),
        }
    }

    fn note_outcome<T>(&self, answer: &Result<T, CallFailure>) {
        let transition = match answer {
            // The backend was not called.
            Err(CallFailure::Payload) => {
                self.circuit.lock().not_called();
                return;
            }
            Err(failure) if failure.is_outage() && self.meaning(failure).is_none() => {
                self.circuit.lock().failed(Instant::now())
            }
            _ => self.circuit.lock().succeeded(),
        };
        let key = &self.key;
        match (transition, answer) {
            (Some(Transition::Opened), Err(cause)) => {
                tracing::error!(proxy = %key, %cause, "the backend of an event proxy is down: calls fail at once, and one tries from time to time");
            }
            (Some(Transition::Closed), _) => {
                tracing::info!(proxy = %key, "the backend of an event proxy answers again");
            }
            _ => {}
        }
    }

    /// Meaning of a status by the options, if they have a row for it.
    fn meaning(&self, failure: &CallFailure) -> Option<&StatusMeaning> {
        let CallFailure::Status(status) = failure else { return None };
        let row = self.transforms.iter().find(|row| row.status_code == *status)?;
        Some(&row.to)
    }

    /// The rejection for a call without an answer.
    fn failed(&self, kind: EventKind, failure: &CallFailure) -> Rejection {
        match self.meaning(failure) {
            Some(StatusMeaning::Error { code, message, temporary }) => {
                let code = *code;
                let message = message.clone();
                let temporary = *temporary;
                return Rejection::Error(ProtocolError { code, message, temporary });
            }
            Some(StatusMeaning::Disconnect { code, reason }) => {
                return answer::disconnect(u32::from(*code), reason.clone());
            }
            None => {}
        }
        let cause = match failure {
            CallFailure::Payload => FailureCause::Payload,
            CallFailure::Status(_) => FailureCause::Status,
            CallFailure::Unprocessed | CallFailure::Transport(_) => FailureCause::Transport,
            CallFailure::Timeout => FailureCause::Timeout,
            CallFailure::Answer(_) => FailureCause::Answer,
        };
        let text = format!("event proxy {}: {}", self.key, excerpt(&failure.to_string()));
        if cause == FailureCause::Payload {
            self.counters.failed(kind, cause);
            return Rejection::Error(ErrorCode::BAD_REQUEST.into());
        }
        self.not_called(kind, cause, &text)
    }

    fn not_called(&self, kind: EventKind, cause: FailureCause, text: &str) -> Rejection {
        self.counters.failed(kind, cause);
        let proxy = &self.key;
        let event = kind.name();
        let kind_of_line = format!("{event} {}", cause.name()); // texts of errors have no limit in number
        if let Some(repeats) = self.log_throttle.record(&kind_of_line, Instant::now()) {
            let consequence = match kind {
                EventKind::SharedPollRefresh => {
                    "these keys are polled again after refresh_interval"
                }
                _ => "clients get error 100",
            };
            tracing::warn!(%proxy, event, cause = text, "an event proxy has no decision, and {consequence}{repeats}");
        }
        Rejection::Unavailable(text.to_owned().into())
    }
}

/// Before a call is sent again that the backend did not process: it refused a stream, or closes in good order.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(5), Duration::from_millis(20), Duration::from_millis(80)];

const TRACEPARENT: &str = "traceparent";

const QUEUE_FULL: &str = "as many calls as queue_max of the proxy allows wait for the backend";
const WAITED_TOO_LONG: &str =
    "as many calls as in_flight_max of the proxy allows were in flight for half of its timeout";
const CIRCUIT_OPEN: &str = "the backend is down, and is tried from time to time only";
