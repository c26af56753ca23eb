//! A client of the server API over gRPC: a connection of HTTP/2, and messages written by hand.
//! In: an address, paths, fields → out: a connection on a runtime of its own, requests, framed messages.
//! Uses h2; never a scenario.
//! Changed here: how messages are written; they are those of `crates/api/proto`.

use anyhow::Result;
use bytes::{BufMut as _, Bytes, BytesMut};
use h2::client::{self, SendRequest};
use http::Request;
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use crate::target::API_KEY;

/// Opens a connection, which lives as long as its runtime runs.
///
/// # Errors
/// No server listens.
pub fn connect(address: SocketAddr) -> Result<(Runtime, SendRequest<Bytes>)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let requests = runtime.block_on(async {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let (requests, connection) = client::Builder::new()
            .initial_window_size(1 << 20)
            .initial_connection_window_size(1 << 20)
            .handshake(socket)
            .await?;
        tokio::spawn(connection);
        anyhow::Ok(requests)
    })?;
    Ok((runtime, requests))
}

/// A call of this method.
///
/// # Errors
/// An impossible path.
pub fn request(path: &str) -> Result<Request<()>> {
    let builder = Request::post(format!("http://localhost/{path}"));
    let request = builder.header("content-type", "application/grpc").header("te", "trailers");
    Ok(request.header("authorization", format!("apikey {API_KEY}")).body(())?)
}

/// A field of bytes; its length is below 16,384.
pub fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    match bytes.len() {
        length @ ..0x80 => field.push(length as u8),
        length => field.extend([length as u8 | 0x80, (length >> 7) as u8]),
    }
    field.extend_from_slice(bytes);
    field
}

/// A message behind its prefix.
pub fn framed(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(message.len() as u32);
    framed.put_slice(message);
    framed.freeze()
}
