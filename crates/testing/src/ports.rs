//! Ports for programs that need a number at their start: each test gets its own, also among processes that run side by side.
//! In: nothing → out: a port at which nothing listens, and that no other caller gets while this process lives.
//! May use sockets of the loopback; never a file, because the kernel frees sockets of a process that was killed.
//! Changed here: the range of the ports. `tests/interop/ports.js` and `go/ports` share the blocks with this file.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// A port of the loopback.
///
/// It lies below the ports of outgoing connections, so that it stays free while a server that has it is down. A program
/// that can listen at port 0 does that instead.
///
/// # Panics
/// When all blocks of ports are in use.
pub fn free_port() -> u16 {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        match taken.left.next() {
            Some(port) if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() => return port,
            Some(_) => {}
            None => taken.take_block(),
        }
    }
}

/// The blocks of this process.
struct Taken {
    /// The process that holds the UDP socket at the first port of a block owns the block. Tests use that port for nothing else.
    locks: Vec<UdpSocket>,
    /// Ports of the last block that were not returned yet.
    left: Range<u16>,
}

impl Taken {
    fn take_block(&mut self) {
        let start = std::process::id() as u16 % BLOCKS; // others begin elsewhere
        let mut firsts = (0..BLOCKS).map(|block| FIRST + (start + block) % BLOCKS * BLOCK_SIZE);
        let lock = |first| Some((first, UdpSocket::bind((Ipv4Addr::LOCALHOST, first)).ok()?));
        let (first, socket) = firsts.find_map(lock).expect("a block of ports is free");
        self.locks.push(socket);
        self.left = first..first + BLOCK_SIZE;
    }
}

static TAKEN: Mutex<Taken> = Mutex::new(Taken { locks: Vec::new(), left: 0..0 });

/// The ports from 10,000 to 32,767, where those of outgoing connections begin (ip_local_port_range).
const FIRST: u16 = 10_000;
const BLOCK_SIZE: u16 = 32;
const BLOCKS: u16 = (32_768 - FIRST) / BLOCK_SIZE;

#[cfg(test)]
mod tests;
