//! A narrow and long link between a client and a server: a proxy that sends bytes late, at a limited rate.
//! In: the address of a server, bits per second, a delay → out: an address to connect to.
//! Uses a thread for each direction of each connection. Never: loses or reorders bytes.
//! Changed here: the model of the link; which bytes pass it is up to the caller.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

/// A link that stands until the process ends.
pub(super) struct Link {
    address: SocketAddr,
}

impl Link {
    /// Each direction of each connection has this rate and this delay for itself.
    ///
    /// # Errors
    /// There is no free port.
    pub(super) fn start(server: SocketAddr, bits_per_second: f64, delay: Duration) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(upstream) = TcpStream::connect(server) else { return };
                // Ends with its connection; errors are the ends of connections.
                let _ = join(client, upstream, bits_per_second, delay);
            }
        });
        Ok(Self { address })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

fn join(client: TcpStream, server: TcpStream, bits_per_second: f64, delay: Duration) -> Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let directions = [(client.try_clone()?, server.try_clone()?), (server, client)];
    for (from, to) in directions {
        let pieces = channel();
        let schedule = Schedule { bits_per_second, delay, is_free_at: Instant::now() };
        thread::spawn(move || read(from, &pieces.0));
        thread::spawn(move || write(to, &pieces.1, schedule));
    }
    Ok(())
}

/// Bytes and the time of their arrival at the link.
type Piece = (Instant, Vec<u8>);

fn read(mut from: TcpStream, pieces: &Sender<Piece>) {
    let mut buffer = vec![0; PIECE_BYTES_MAX];
    while let Ok(length) = from.read(&mut buffer) {
        if length == 0 || pieces.send((Instant::now(), buffer[..length].to_vec())).is_err() {
            return;
        }
    }
}

fn write(mut to: TcpStream, pieces: &Receiver<Piece>, mut schedule: Schedule) {
    for (arrival, bytes) in pieces {
        let due = schedule.departure(arrival, bytes.len());
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// When bytes leave the link.
struct Schedule {
    bits_per_second: f64,
    delay: Duration,
    /// When the last bit so far has entered.
    is_free_at: Instant,
}

impl Schedule {
    /// Returns when the last bit of a piece is at the other end.
    fn departure(&mut self, arrival: Instant, bytes: usize) -> Instant {
        let needed = Duration::from_secs_f64(bytes as f64 * 8.0 / self.bits_per_second);
        self.is_free_at = self.is_free_at.max(arrival) + needed;
        self.is_free_at + self.delay
    }
}

/// About one segment of TCP: what a link sends at once.
const PIECE_BYTES_MAX: usize = 1_448;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_wait_for_those_before_them_and_for_the_delay() {
        let start = Instant::now();
        let delay = Duration::from_millis(50);
        let mut schedule = Schedule { bits_per_second: 1e6, delay, is_free_at: start };
        let millis = |number| start + Duration::from_millis(number);
        assert_eq!(schedule.departure(start, 1_250), millis(60), "10 ms of bits");
        assert_eq!(schedule.departure(millis(2), 1_250), millis(70), "behind the first");
        assert_eq!(schedule.departure(millis(500), 125), millis(551), "the link was free");
    }

    #[test]
    fn what_goes_in_comes_out_in_both_directions() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let server = listener.local_addr().expect("it is bound");
        let link = Link::start(server, 1e9, Duration::ZERO).expect("a free port");
        let mut client = TcpStream::connect(link.address()).expect("it listens");
        client.write_all(b"question").expect("it is open");
        let (mut peer, _) = listener.accept().expect("the link connects");
        let mut bytes = [0; 8];
        peer.read_exact(&mut bytes).expect("eight bytes");
        assert_eq!(&bytes, b"question");
        peer.write_all(b"answered").expect("it is open");
        client.read_exact(&mut bytes).expect("eight bytes");
        assert_eq!(&bytes, b"answered");
    }
}
