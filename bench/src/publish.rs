//! Scenario `publish`: the server's CPU per publication of a backend, by gRPC next to HTTP, one call each and in a stream.
//! In: numbers of publications → out: a table of medians; not passed above `--bar` or `--stream-bar`.
//! Uses `target` for the servers, `caller` for HTTP, h2 for gRPC; each way waits for its answers, on one connection or on new ones.
//! Changed here: what is compared; the messages are those of `crates/api/proto`, written by hand.

use anyhow::{Context, Result, ensure};
use bytes::{Bytes, BytesMut};
use clap::Args;
use h2::client::SendRequest;
use std::cmp::Ordering::Less;
use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use tokio::runtime::Runtime;

use crate::caller::Caller;
use crate::setup::Setup;
use crate::stats::{judge, median};
use crate::target::{API_KEY, Target};
use fanwire_load::generator::publisher::{answer_length, http_request};
use fanwire_load::machine::Meter;
use grpc::{field, framed, request};

pub mod grpc;

/// CPU of the server per publication, by gRPC next to HTTP, without subscribers.
#[derive(Args)]
pub struct Publish {
    /// Publications of each way in each round.
    #[arg(long, default_value_t = 50_000)]
    publications: usize,
    /// Publications of each round that come on a connection of their own.
    #[arg(long, default_value_t = 5_000)]
    connections: usize,
    /// Bytes of the data, which is JSON.
    #[arg(long, default_value_t = 100)]
    bytes: usize,
    /// Rounds of all ways.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Fail when a call by gRPC takes more than this times the CPU of a POST.
    #[arg(long)]
    bar: Option<f64>,
    /// Fail when a command of a stream takes more than this times the CPU of a POST.
    #[arg(long)]
    stream_bar: Option<f64>,
    #[command(flatten)]
    setup: Setup,
}

const NAMES: [&str; 7] =
    ["POST", "gRPC", "gRPC stream", "bare POST", "bare gRPC", "POST, new", "hyper, new"];

impl Publish {
    /// True when the bars are met or none was set.
    ///
    /// # Errors
    /// A server that does not start, or a publication that fails.
    pub fn run(self) -> Result<bool> {
        self.setup.pin_generator()?;
        let settings = serde_json::json!({
            "grpc_api": { "enabled": true, "address": "127.0.0.1", "port": 0, "key": API_KEY },
        });
        let core = self.setup.server_core;
        let target = Target::fanwire(&self.setup.binary()?, Some(core), settings)?;
        // A listener of its own for the API: no shard looks at its sockets first.
        let internal = free_port()?;
        let settings = serde_json::json!({ "http_server": { "internal_port": internal.port() } });
        let split = Target::fanwire(&self.setup.binary()?, Some(core), settings)?;
        let bare = Target::bare_http(core)?;
        let data = serde_json::to_string(&"x".repeat(self.bytes.saturating_sub(2)))?;
        let mut http = Http::open(target.address(), &data)?;
        let mut on_new = Http::open(target.address(), &data)?;
        let mut grpc = Grpc::open(target.grpc_address()?, &data)?;
        let mut bare_http = Http::open(bare.address(), &data)?;
        let mut bare_grpc = Grpc::open(bare.address(), &data)?;
        println!(
            "publish: {} publications of {} bytes per round, one connection; server on core {core}\n",
            self.publications,
            data.len()
        );
        println!("way            CPU µs each  publications/s");
        let mut samples: [Samples; NAMES.len()] = Default::default();
        for _ in 0..self.rounds {
            for (way, samples) in samples.iter_mut().enumerate() {
                let server = [&target, &target, &target, &bare, &bare, &target, &split][way];
                let meter = Meter::start(server.pid(), core)?;
                let count = if way < 5 { self.publications } else { self.connections };
                match way {
                    0 => http.publish(count)?,
                    1 => grpc.publish(count)?,
                    2 => grpc.stream(count)?,
                    3 => bare_http.publish(count)?,
                    4 => bare_grpc.publish(count)?,
                    5 => on_new.publish_on_new(target.address(), count)?,
                    _ => on_new.publish_on_new(internal, count)?,
                }
                let usage = meter.stop()?;
                let count = count as f64;
                samples.push((usage.cpu_seconds * 1e6 / count, count / usage.wall_seconds));
            }
        }
        print_medians(&samples);
        let ratio = |way: usize, other: usize| {
            let rounds = samples[way].iter().zip(&samples[other]);
            median(rounds.map(|((cpu, _), (other, _))| cpu / other))
        };
        let (passed, verdict) = judge(ratio(1, 0), Less, self.bar);
        println!(
            "\nratio of CPU, gRPC / POST: {:.3}{verdict}; of bare hyper: {:.3}",
            ratio(1, 0),
            ratio(4, 3)
        );
        let (stream_passed, verdict) = judge(ratio(2, 0), Less, self.stream_bar);
        println!("ratio of CPU, gRPC stream / POST: {:.3}{verdict}", ratio(2, 0));
        println!("ratio of CPU, new connection through a shard / to hyper: {:.3}", ratio(5, 6));
        Ok(passed && stream_passed)
    }
}

/// CPU in µs and publications per second of a round.
type Samples = Vec<(f64, f64)>;

fn print_medians(samples: &[Samples; NAMES.len()]) {
    for (name, samples) in NAMES.iter().zip(samples) {
        let cpu = median(samples.iter().map(|(cpu, _)| *cpu));
        let rate = median(samples.iter().map(|(_, rate)| *rate));
        println!("{name:<13}  {cpu:>11.2}  {rate:>14.0}");
    }
}

/// Connections that are kept alive, or opened for each publication.
pub(crate) struct Http {
    caller: Caller,
    request: Vec<u8>,
}

impl Http {
    pub(crate) fn open(address: SocketAddr, data: &str) -> Result<Self> {
        let body = format!("{{\"channel\":\"{CHANNEL}\",\"data\":{data}}}");
        let request = http_request("publish", &body, API_KEY);
        Ok(Self { caller: Caller::open(address)?, request })
    }

    pub(crate) fn publish(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            self.caller.send(&self.request)?;
            let answer = self.caller.take(answer_length)?;
            ensure!(answer.ends_with(b"{\"result\":{}}"), "{}", String::from_utf8_lossy(&answer));
        }
        Ok(())
    }

    /// Opens a connection for each publication.
    fn publish_on_new(&mut self, address: SocketAddr, count: usize) -> Result<()> {
        for _ in 0..count {
            self.caller = Caller::open(address)?;
            self.publish(1)?;
        }
        Ok(())
    }
}

/// An address that is free now.
fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// One connection of HTTP/2.
pub(crate) struct Grpc {
    runtime: Runtime,
    requests: SendRequest<Bytes>,
    /// A `PublishRequest`, and a `Command` with it, each behind its prefix.
    call: Bytes,
    command: Bytes,
}

impl Grpc {
    pub(crate) fn open(address: SocketAddr, data: &str) -> Result<Self> {
        let (runtime, requests) = grpc::connect(address)?;
        let request = [field(1, CHANNEL.as_bytes()), field(2, data.as_bytes())].concat();
        let command = framed(&field(4, &request));
        Ok(Self { runtime, requests, call: framed(&request), command })
    }

    pub(crate) fn publish(&mut self, count: usize) -> Result<()> {
        let Self { runtime, requests, call, .. } = self;
        runtime.block_on(async {
            for _ in 0..count {
                poll_fn(|context| requests.poll_ready(context)).await?;
                let (response, mut body) = requests.send_request(
                    request("centrifugal.centrifugo.api.CentrifugoApi/Publish")?,
                    false,
                )?;
                body.send_data(call.clone(), true)?;
                let mut body = response.await?.into_body();
                let mut message = BytesMut::new();
                while let Some(piece) = body.data().await {
                    let piece = piece?;
                    body.flow_control().release_capacity(piece.len())?;
                    message.extend_from_slice(&piece);
                }
                // An empty result: field 2 of no bytes.
                ensure!(message == framed(&field(2, b"")), "{message:x?}");
                let trailers = body.trailers().await?.context("no trailers")?;
                ensure!(
                    trailers.get("grpc-status").is_some_and(|status| status == "0"),
                    "{trailers:?}"
                );
            }
            Ok(())
        })
    }

    fn stream(&mut self, count: usize) -> Result<()> {
        let Self { runtime, requests, command, .. } = self;
        runtime.block_on(async {
            poll_fn(|context| requests.poll_ready(context)).await?;
            let (response, mut body) =
                requests.send_request(request("fanwire.api.FanwireApi/CommandStream")?, false)?;
            let command = command.clone();
            let sending = tokio::spawn(async move {
                for number in 1..=count {
                    body.reserve_capacity(command.len());
                    while body.capacity() < command.len() {
                        poll_fn(|context| body.poll_capacity(context))
                            .await
                            .context("the stream ended")??;
                    }
                    body.send_data(command.clone(), number == count)?;
                }
                anyhow::Ok(())
            });
            let mut body = response.await?.into_body();
            let mut received = 0;
            let reply = framed(&field(4, b"")).len();
            while let Some(piece) = body.data().await {
                let piece = piece?;
                body.flow_control().release_capacity(piece.len())?;
                received += piece.len();
            }
            sending.await??;
            ensure!(
                received == count * reply,
                "{received} bytes of replies, expected {count} times {reply}"
            );
            let trailers = body.trailers().await?.context("no trailers")?;
            ensure!(
                trailers.get("grpc-status").is_some_and(|status| status == "0"),
                "{trailers:?}"
            );
            Ok(())
        })
    }
}

const CHANNEL: &str = "news";
