//! Sends the spans of traces to a collector by OTLP over HTTP.
//! In: spans that the tracer of the process has queued, receipts of traced publications → out: requests, once a second.
//! Uses the HTTP client of `tls`. Never: delays what is traced; what the collector does not take is dropped and counted.
//! Changed here: intervals and sizes of requests. Messages are in `otlp`, variables in `options`.
#![forbid(unsafe_code)]

mod options;
mod otlp;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use fanwire_node::Node;
use fanwire_telemetry::{
    LogThrottle, Span, SpanKind, SpanValue, TracedDelivery, Tracer, record_traces, tracer,
};
use fanwire_tls::{HttpsClient, RequestLimits, Tls, TlsError, TlsOptions};
use http::{Request, StatusCode, header};
use http_body_util::Full;
use tokio::time::MissedTickBehavior;

use self::options::TraceOptions;

/// Sends spans until its task ends.
pub struct TraceExporter {
    node: Arc<Node>,
    options: TraceOptions,
    client: HttpsClient,
    log_throttle: LogThrottle,
}

impl TraceExporter {
    /// Records traces from now on, as the variables of the process say.
    ///
    /// # Errors
    /// The text names the variable that is wrong.
    pub fn start(node: &Arc<Node>) -> Result<Self, String> {
        let options = TraceOptions::of(|name| std::env::var(name).ok())?;
        let tls = TlsOptions {
            enabled: !options.certificate.is_empty(),
            server_ca_pem: options.certificate.clone(),
            ..TlsOptions::default()
        };
        let tls = Tls::new(&tls).map_err(|TlsError { fault, expected, .. }| {
            format!("OTEL_EXPORTER_OTLP_CERTIFICATE: {fault}, expected {expected}")
        })?;
        record_traces(options.sampler);
        let client = HttpsClient::new(tls, LIMITS);
        let log_throttle = LogThrottle::default();
        let mut exporter = Self { node: Arc::clone(node), options, client, log_throttle };
        let own =
            [("service.instance.id", node.uid()), ("service.version", env!("CARGO_PKG_VERSION"))]
                .map(|(name, value)| (name.to_owned(), value.to_owned()));
        exporter.options.resource.extend(own);
        Ok(exporter)
    }

    /// Sends what is queued, again and again.
    pub async fn run(self) {
        let Some(tracer) = tracer() else { return };
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let known = SystemTime::now() - DELIVERIES_KNOWN_AFTER;
            for delivery in tracer.take_deliveries(known) {
                self.deliver(tracer, delivery);
            }
            let mut spans = tracer.take(SPANS_OF_A_REQUEST);
            while !spans.is_empty() {
                if !self.send(tracer, spans).await {
                    break;
                }
                spans = tracer.take(SPANS_OF_A_REQUEST);
            }
        }
    }

    /// Makes the deliveries of a publication on this node a span.
    fn deliver(&self, tracer: &Tracer, delivery: TracedDelivery) {
        let TracedDelivery { receipt, channel, parent, start } = delivery;
        let counted = self.node.diagnostics().own_receipt(receipt, Instant::now());
        let span = Span::begin(|| "deliver".to_owned(), SpanKind::Internal, Some(parent), start);
        let Some(counted) = counted else { return };
        let Some(mut span) = span else { return };
        if !channel.is_empty() {
            span.set("centrifugo.channel", SpanValue::Text(channel));
        }
        let counts = [
            ("subscribers", counted.subscribers),
            ("at_once", counted.at_once),
            ("waited", counted.waited),
            ("replaced", counted.replaced),
            ("dropped", counted.dropped),
            ("late", counted.late),
        ];
        for (name, count) in counts {
            span.set(name, SpanValue::Number(count.into()));
        }
        let took = counted.all_us.or(counted.most_us).or(counted.half_us).unwrap_or_default();
        tracer.push(Span { end: start + Duration::from_micros(took), ..span });
    }

    /// Sends spans. Returns whether the collector took them.
    async fn send(&self, tracer: &Tracer, spans: Vec<Span>) -> bool {
        let count = spans.len();
        let body = otlp::export_request(&self.options.resource, spans);
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.options.endpoint.clone();
        *request.headers_mut() = self.options.headers.clone();
        let content_type = header::HeaderValue::from_static(PROTOBUF);
        request.headers_mut().insert(header::CONTENT_TYPE, content_type);
        let problem = match self.client.send(request).await {
            Err(error) => error.to_string(),
            Ok(answer) if answer.status() != StatusCode::OK => {
                format!("the answer is {}, expected 200", answer.status())
            }
            Ok(answer) => {
                let kind = answer.headers().get(header::CONTENT_TYPE);
                if kind.is_none_or(|kind| kind.as_bytes().starts_with(PROTOBUF.as_bytes())) {
                    return true;
                } else {
                    format!("the answer is {kind:?}, expected {PROTOBUF}: this is no collector")
                }
            }
        };
        tracer.count_dropped(count);
        if let Some(repeats) = self.log_throttle.record("traces", Instant::now()) {
            let endpoint = &self.options.endpoint;
            tracing::warn!(
                %endpoint, problem, spans = count,
                "spans are dropped: check OTEL_EXPORTER_OTLP_ENDPOINT and the collector{repeats}"
            );
        }
        false
    }
}

const PROTOBUF: &str = "application/x-protobuf";
const INTERVAL: Duration = Duration::from_secs(1);
/// A receipt has its counts by then.
const DELIVERIES_KNOWN_AFTER: Duration = Duration::from_millis(1500);
const SPANS_OF_A_REQUEST: usize = 512;
const LIMITS: RequestLimits =
    RequestLimits { timeout: Duration::from_secs(10), body_bytes_max: 64 << 10 };
