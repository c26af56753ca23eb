//! A proxy that damages what a server sends: drops, doubles, swaps or changes one message.
//! In: an address and faults → out: another address.
//! Uses a thread for each direction of a connection. Never: what clients send is changed.
//! Another fault is added here.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread;

/// Fault of one publication.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    Drop,
    Double,
    /// Comes after the next one of its connection.
    Swap,
    Damage,
}

pub(super) struct Proxy;

impl Proxy {
    /// Passes on to `server`; the n-th publication of all connections gets the fault with the number n. The
    /// 1,000th is reported to `pushed`. Returns the proxy's address.
    pub(super) fn start(server: &str, faults: &[(u64, Fault)], pushed: Sender<()>) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let server = server.to_owned();
        let faults: Arc<[(u64, Fault)]> = faults.into();
        let count = Arc::new(AtomicU64::new(0));
        let pushed = Arc::new(Mutex::new(pushed));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(upstream) = TcpStream::connect(&server) else { return };
                let (mut from, mut to) =
                    (client.try_clone().expect("open"), upstream.try_clone().expect("open"));
                thread::spawn(move || std::io::copy(&mut from, &mut to));
                let (faults, count, pushed) = (faults.clone(), count.clone(), pushed.clone());
                let on_push = move || {
                    let number = count.fetch_add(1, Ordering::Relaxed) + 1;
                    if number == REPORTED {
                        // The test may not wait for it.
                        let _ = pushed.lock().expect("no panic inside").send(());
                    }
                    faults.iter().find(|(at, _)| *at == number).map(|(_, fault)| *fault)
                };
                thread::spawn(move || pass_on(upstream, client, on_push));
            }
        });
        address
    }
}

/// Passes the server's head on, then frames, until one side ends.
fn pass_on(
    mut from: TcpStream,
    mut to: TcpStream,
    on_push: impl Fn() -> Option<Fault>,
) -> Option<()> {
    let (mut input, mut is_open) = (Vec::new(), false);
    let mut swapped = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = from.read(&mut buffer).ok().filter(|count| *count > 0);
        let Some(count) = count else {
            let _ = to.shutdown(std::net::Shutdown::Write);
            return None;
        };
        input.extend_from_slice(&buffer[..count]);
        let mut output = Vec::new();
        if !is_open {
            let end = input.windows(4).position(|four| four == b"\r\n\r\n");
            let Some(end) = end else { continue };
            output.extend(input.drain(..end + 4));
            is_open = true;
        }
        while let Some(length) = frame_length(&input) {
            let mut frame: Vec<u8> = input.drain(..length).collect();
            let is_push = frame.windows(8).any(|eight| eight == b"{\"push\":");
            let fault = if is_push { on_push() } else { None };
            match fault {
                Some(Fault::Drop) => continue,
                Some(Fault::Double) => output.extend_from_slice(&frame),
                Some(Fault::Damage) => {
                    // A character of the payload, which stays JSON.
                    let at = frame.len() - 10;
                    frame[at] = if frame[at] == b'~' { b'_' } else { b'~' };
                }
                Some(Fault::Swap) => {
                    swapped = frame;
                    continue;
                }
                None => {}
            }
            output.extend_from_slice(&frame);
            output.append(&mut swapped);
        }
        to.write_all(&output).ok()?;
    }
}

/// Length of the first frame in bytes, if it is whole.
fn frame_length(bytes: &[u8]) -> Option<usize> {
    let (header, length) = match *bytes.get(1)? {
        126 => (4, usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]))),
        127 => return None,
        length => (2, usize::from(length)),
    };
    Some(header + length).filter(|length| *length <= bytes.len())
}

/// The publication that is reported.
const REPORTED: u64 = 1_000;
