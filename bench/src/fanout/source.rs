//! The publishing side of `fanout`: requests one after the other, or a stream of commands over HTTP/1.1 or gRPC.
//! In: publications → out: bytes to the server; answers are checked and counted.
//! Uses the publishers of `load`, and h2 for gRPC on a runtime that runs while the generator turns.
//! Changed here: how publications reach the server; when one is due is decided in `round`.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use clap::ValueEnum;
use h2::SendStream;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Poll;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::Publication;
use crate::publish::grpc;
use crate::target::{API_KEY, Target};
use fanwire_load::generator::publisher::Publisher;
use fanwire_load::generator::stream_publisher::StreamPublisher;

/// How publications reach Fanwire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum By {
    /// `POST /api/publish` on connections that are kept.
    Http,
    /// One request to `POST /api/stream`.
    Stream,
    /// One stream of commands over gRPC.
    Grpc,
}

/// A way with its connection.
pub enum Source {
    /// Requests, and the control connection of the bare loop.
    Requests(Publisher),
    Stream(StreamPublisher),
    Grpc(GrpcStream),
}

impl Source {
    /// A stream of commands to Fanwire, whose HTTP side without TLS is at `address`. `None` for requests.
    ///
    /// # Errors
    /// The server does not listen.
    pub fn stream(by: By, target: &Target, address: SocketAddr) -> Result<Option<Self>> {
        Ok(match by {
            By::Http => None,
            By::Stream => {
                let stream = StreamPublisher::open(address, "localhost", "/api/stream", API_KEY)?;
                Some(Self::Stream(stream))
            }
            By::Grpc => Some(Self::Grpc(GrpcStream::open(target)?)),
        })
    }

    pub fn may_publish(&self) -> bool {
        if let Self::Requests(publisher) = self { publisher.has_free_lane() } else { true }
    }

    pub fn is_idle(&self) -> bool {
        match self {
            Self::Requests(publisher) => publisher.is_idle(),
            Self::Stream(stream) => stream.missing() == 0,
            Self::Grpc(stream) => stream.sent == stream.answered.load(Relaxed),
        }
    }

    /// # Errors
    /// A connection that has failed.
    pub fn publish(&mut self, publication: &Publication, is_trigger: bool) -> Result<()> {
        let Publication { request, trigger, body, command } = publication;
        match self {
            Self::Requests(publisher) => {
                publisher.publish(if is_trigger { trigger } else { request })
            }
            Self::Stream(stream) => stream.publish_all(std::iter::once(body.clone())),
            Self::Grpc(stream) => stream.publish(command),
        }
    }

    /// Reads the answers that are there, `has_event` if the poller reported the connection.
    ///
    /// # Errors
    /// An answer with an error, or the end of a connection.
    pub fn receive(&mut self, has_event: bool) -> Result<()> {
        match self {
            Self::Requests(publisher) if has_event => publisher.receive(),
            Self::Requests(_) => Ok(()),
            Self::Stream(stream) => {
                stream.flush()?;
                stream.receive()
            }
            Self::Grpc(stream) => stream.turn(),
        }
    }
}

/// One stream of commands over gRPC.
pub struct GrpcStream {
    runtime: Runtime,
    commands: SendStream<Bytes>,
    reading: JoinHandle<Result<()>>,
    sent: usize,
    answered: Arc<AtomicUsize>,
}

impl GrpcStream {
    fn open(target: &Target) -> Result<Self> {
        let (runtime, mut requests) = grpc::connect(target.grpc_address()?)?;
        let answered = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&answered);
        let (commands, reading) = runtime.block_on(async move {
            let request = grpc::request("fanwire.api.FanwireApi/CommandStream")?;
            let (response, commands) = requests.send_request(request, false)?;
            let reading = tokio::spawn(async move {
                let _connection = requests;
                let mut body = response.await?.into_body();
                // An empty result of publish.
                let reply = grpc::framed(&grpc::field(4, b""));
                let mut bytes = 0;
                while let Some(piece) = body.data().await {
                    let piece = piece?;
                    body.flow_control().release_capacity(piece.len())?;
                    bytes += piece.len();
                    counted.store(bytes / reply.len(), Relaxed);
                }
                Ok(())
            });
            anyhow::Ok((commands, reading))
        })?;
        Ok(Self { runtime, commands, reading, sent: 0, answered })
    }

    fn publish(&mut self, command: &Bytes) -> Result<()> {
        // What exceeds the window waits in h2.
        self.commands.send_data(command.clone(), false).context("publishing")?;
        self.sent += 1;
        self.turn()
    }

    /// Lets the connection send and receive.
    fn turn(&mut self) -> Result<()> {
        let mut is_first = true;
        self.runtime.block_on(poll_fn(|context| {
            context.waker().wake_by_ref();
            if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }
        }));
        ensure!(!self.reading.is_finished(), "the server ended the stream");
        Ok(())
    }
}
