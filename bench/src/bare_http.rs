//! The bare HTTP server: hyper with constant answers, for HTTP/1.1 and for a call by gRPC over HTTP/2.
//! In: requests → out: the answer of a publish by JSON, or by gRPC with its trailers, whatever was asked.
//! Uses hyper on one thread. It is the limit that the server API is measured against, so nothing may be added to it.
//! Change nothing here that makes it slower; the other side of the measurement lives in `publish`.

use std::convert::Infallible;

use anyhow::Result;
use bytes::Bytes;
use clap::Args;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full, combinators::WithTrailers};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use std::future::{Ready, ready};
use tokio::net::TcpListener;

/// Run the bare HTTP server by itself (publish starts it for you).
#[derive(Args)]
pub struct BareHttp {
    /// Address to listen on; port 0 takes a free one, which is printed.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: std::net::SocketAddr,
}

impl BareHttp {
    /// Serves until it is killed.
    ///
    /// # Errors
    /// The address is not free.
    pub fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = TcpListener::bind(self.listen).await?;
            println!("{}", listener.local_addr()?);
            loop {
                let (socket, _) = listener.accept().await?;
                socket.set_nodelay(true)?;
                tokio::spawn(async {
                    let server = auto::Builder::new(TokioExecutor::new());
                    // The other side ends the connection.
                    drop(server.serve_connection(TokioIo::new(socket), service_fn(answer)).await);
                });
            }
        })
    }
}

type Trailers = Ready<Option<Result<HeaderMap, Infallible>>>;
type Answer = Response<WithTrailers<Full<Bytes>, Trailers>>;

async fn answer(request: Request<Incoming>) -> Result<Answer> {
    let is_grpc = request.headers().get("content-type").is_some_and(|kind| kind == GRPC);
    request.into_body().collect().await?;
    let (kind, body) = if is_grpc { (GRPC, GRPC_ANSWER) } else { (JSON, JSON_ANSWER) };
    let trailers = is_grpc.then(|| {
        Ok(HeaderMap::from_iter([("grpc-status".parse().expect("a name"), HeaderValue::from(0))]))
    });
    let body = Full::new(Bytes::from_static(body)).with_trailers(ready(trailers));
    Ok(Response::builder().header("content-type", kind).body(body)?)
}

const GRPC: &str = "application/grpc";
const JSON: &str = "application/json";

/// A response with an empty result, behind its prefix.
const GRPC_ANSWER: &[u8] = b"\0\0\0\0\x02\x12\0";
const JSON_ANSWER: &[u8] = br#"{"result":{}}"#;
