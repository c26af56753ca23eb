//! PUT, POST and DELETE.
//! In: requests of a channel → out: responses; content and state of streams.
//! Uses `storage`. A body is read before a lock is taken. Never: rules of streams.
//! Changed here: headers of these responses. What a request may do is decided in `stream`.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use fanwire_broker::Position;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HOST, LOCATION};
use http::request::Parts;
use http::uri::Authority;
use http_body_util::BodyExt as _;

use crate::content::ContentKind;
use crate::header::{NEXT_OFFSET, PRODUCER_EPOCH, PRODUCER_SEQ, STREAM_CLOSED};
use crate::response::{ErrorResponse, bad_request, finish, reply};
use crate::storage::now_ms;
use crate::stream::{AppendDecision, StreamState};
use crate::{DurableStreams, offset, request};

impl DurableStreams {
    /// Creates a stream, or finds the same one; then the body is ignored.
    pub(crate) async fn put(
        &self,
        channel: &str,
        head: &Parts,
        body: Body,
    ) -> Result<Response, ErrorResponse> {
        let config = request::config(&head.headers)?;
        let location = self.location(head);
        let body = self.body(body).await?;
        let payloads = ContentKind::of(&config.content_type).payloads(&body);
        loop {
            let existing = self.table.find(channel).is_some().then(|| {
                self.with_stream(channel, |entry, state| {
                    if let Some(own) = state.difference(&config) {
                        return Err(ErrorResponse::new(
                            409,
                            format!("the stream exists with {own}"),
                        ));
                    }
                    self.keep(entry, state)?;
                    self.put_response(200, state, channel, None)
                })
            });
            match existing {
                Some(Err(refusal)) if refusal.status == StatusCode::NOT_FOUND => {}
                Some(response) => return response,
                None => {}
            }
            let payloads = payloads.clone().map_err(|text| bad_request(&text))?;
            let created = self.create(channel, config.clone(), |_, state| {
                self.store(channel, payloads)?;
                self.put_response(201, state, channel, Some(&location))
            })?;
            if let Some(response) = created {
                return Ok(response);
            }
        }
    }

    /// Appends, closes, or both.
    pub(crate) async fn post(
        self: &Arc<Self>,
        channel: &str,
        head: &Parts,
        body: Body,
    ) -> Result<Response, ErrorResponse> {
        let body = self.body(body).await?;
        let append = request::append(&head.headers, body.is_empty())?;
        let content_type = append.content_type.as_deref();
        let payloads = content_type.map(|given| ContentKind::of(given).payloads(&body)).transpose();
        self.with_stream(channel, |entry, state| {
            let now_ms = now_ms();
            let producers_max = self.options.max_producers;
            let decision = state.decide(&append, producers_max, now_ms);
            let decision = match decision {
                Ok(decision) => decision,
                Err(refusal) => {
                    let tail = offset::format(self.tail(channel)?);
                    return Err(ErrorResponse::of_append(&refusal, &tail));
                }
            };
            let producer = append.producer.clone();
            let has_content = !body.is_empty();
            let mut status = 204;
            let mut seq = producer.as_ref().map(|producer| producer.seq);
            match decision {
                AppendDecision::Duplicate(highest) => seq = highest,
                AppendDecision::Store => {
                    let payloads = payloads.map_err(|text| bad_request(&text))?.unwrap_or_default();
                    if has_content && payloads.is_empty() {
                        return Err(bad_request("the array is empty"));
                    }
                    self.store(channel, payloads)?;
                    state.commit(append, producers_max, now_ms);
                    entry.changed.notify_waiters();
                    if producer.is_some() && has_content {
                        status = 200;
                    }
                }
            }
            let mut response =
                reply(status).header(NEXT_OFFSET, offset::format(self.tail(channel)?));
            if state.config().is_closed {
                response = response.header(STREAM_CLOSED, "true");
            }
            if let Some(producer) = producer {
                response = response.header(PRODUCER_EPOCH, producer.epoch);
                response = response.header(PRODUCER_SEQ, seq.unwrap_or(producer.seq));
            }
            Ok(finish(response, Body::empty()))
        })
    }

    pub(crate) fn delete(&self, channel: &str) -> Result<Response, ErrorResponse> {
        self.with_stream(channel, |entry, state| self.remove(entry, state))?;
        Ok(finish(reply(204), Body::empty()))
    }

    fn put_response(
        &self,
        status: u16,
        state: &StreamState,
        channel: &str,
        location: Option<&str>,
    ) -> Result<Response, ErrorResponse> {
        let tail: Position = self.tail(channel)?;
        let mut response = reply(status)
            .header(CONTENT_TYPE, &state.config().content_type)
            .header(NEXT_OFFSET, offset::format(tail));
        if state.config().is_closed {
            response = response.header(STREAM_CLOSED, "true");
        }
        if let Some(location) = location {
            response = response.header(LOCATION, location);
        }
        Ok(finish(response, Body::empty()))
    }

    /// The URL of a request: absolute on this machine alone. Elsewhere it is relative to the request (RFC 9110 §10.2.2), because
    /// the client chooses `Host`, and a proxy may have another scheme.
    fn location(&self, head: &Parts) -> String {
        let of_header = head.headers.get(HOST).and_then(|host| host.to_str().ok()?.parse().ok());
        let host: Option<Authority> = of_header.or_else(|| head.uri.authority().cloned());
        let is_here = |host: &Authority| {
            let name = host.host().trim_matches(['[', ']']);
            name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        };
        match host.filter(is_here) {
            Some(host) => format!("{}://{host}{}", self.connections.scheme, head.uri.path()),
            None => head.uri.path().to_owned(),
        }
    }

    /// The whole body of a request. The rest of one that is too large is read and dropped up to a limit, so that its sender
    /// reads the response.
    ///
    /// # Errors
    /// 413, and 400 for an incomplete one.
    async fn body(&self, mut body: Body) -> Result<Bytes, ErrorResponse> {
        let bytes_max = self.options.max_request_body_size;
        let mut whole = BytesMut::new();
        let mut dropped = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| bad_request("the body is incomplete"))?;
            let Ok(piece) = frame.into_data() else { continue };
            if dropped > 0 || whole.len() + piece.len() > bytes_max {
                dropped += whole.len() + piece.len();
                whole = BytesMut::new();
                if dropped > bytes_max.saturating_mul(DROPPED_FACTOR) {
                    break;
                }
                continue;
            }
            whole.extend_from_slice(&piece);
        }
        if dropped > 0 {
            let text = format!("durable_streams.max_request_body_size is {bytes_max} bytes");
            return Err(ErrorResponse::new(413, text).with(http::header::CONNECTION, "close"));
        }
        Ok(whole.freeze())
    }
}

/// A body that is too large is read up to this multiple of the limit.
const DROPPED_FACTOR: usize = 4;
