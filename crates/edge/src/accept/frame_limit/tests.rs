//! Tests of the limit on frames without content.
//! In: frames of every type, in one piece and byte by byte → out: an error of the next read, or none.
//! Uses pairs of streams in memory and a paused clock.
//! Floods of a whole server are tested in `fanwire/tests/it/http2.rs`.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;

fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
    let [_, high, middle, low] = (payload as u32).to_be_bytes();
    let mut frame = vec![high, middle, low, kind, flags, 0, 0, 0, 0];
    frame.resize(HEADER_BYTES + payload, 0xaa);
    frame
}

async fn connection() -> (FrameLimit<DuplexStream>, DuplexStream) {
    let (ours, theirs) = duplex(16 << 20);
    let mut limit = FrameLimit::new(ours);
    assert!(receive(&mut limit, PREFACE).is_ok());
    (limit, theirs)
}

fn receive(limit: &mut FrameLimit<DuplexStream>, bytes: &[u8]) -> Result<()> {
    bytes.chunks(4096).try_for_each(|bytes| limit.receive(bytes))
}

/// How many of a frame are taken at once.
async fn taken(frame: &[u8]) -> usize {
    let (mut limit, _peer) = connection().await;
    (0..30_000).take_while(|_| receive(&mut limit, frame).is_ok()).count()
}

#[tokio::test(start_paused = true)]
async fn frames_without_content_are_limited_and_requests_are_not() {
    for kind in [2, 3, 4, PING, 7, WINDOW_UPDATE, 10, 200, 255] {
        assert_eq!(taken(&frame(kind, 0, 8)).await, 10_000, "type {kind}");
    }
    assert_eq!(taken(&frame(DATA, 0, 0)).await, 10_000);
    assert_eq!(taken(&frame(255, 0, 16_384)).await, 10_000 / 65);
    for (kind, flags, payload) in
        [(DATA, 0, 1), (DATA, END_STREAM, 0), (HEADERS, 4, 20), (CONTINUATION, 4, 20)]
    {
        assert_eq!(taken(&frame(kind, flags, payload)).await, 30_000, "type {kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn headers_are_found_wherever_reads_end() {
    let bytes = [frame(DATA, 0, 300), frame(PING, 0, 8), frame(255, 0, 0)].concat();
    for length in 1..bytes.len() {
        let (mut limit, _peer) = connection().await;
        assert!(bytes.chunks(length).all(|bytes| limit.receive(bytes).is_ok()));
        assert_eq!(limit.allowance.frames, ALLOWANCE_MAX - 2, "reads of {length} bytes");
    }
}

#[tokio::test(start_paused = true)]
async fn time_and_responses_give_more() {
    let (mut limit, mut peer) = connection().await;
    let ping = frame(PING, 0, 8);
    assert!((0..10_000).all(|_| receive(&mut limit, &ping).is_ok()));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!((0..100).all(|_| receive(&mut limit, &ping).is_ok()));
    limit.write_all(&[frame(DATA, 0, 5), frame(PING, 1, 8)].concat()).await.expect("space");
    assert!((0..8).all(|_| receive(&mut limit, &frame(WINDOW_UPDATE, 0, 4)).is_ok()));
    peer.write_all(&ping).await.expect("space");
    let error = limit.read(&mut [0; 64]).await.expect_err("the allowance is spent");
    assert_eq!(error.to_string(), "too many frames without content");
}
