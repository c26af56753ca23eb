//! Tells the service manager that the server is ready (sd_notify(3)).
//! In: the variable `NOTIFY_SOCKET` → out: a datagram.
//! Uses sockets of std. Never: fails; a manager that cannot be reached is logged.
//! Changed here: the message to the service manager. The unit is deploy/fanwire.service.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends the state, such as `READY=1`, if a service manager has started this process.
pub(crate) fn notify(state: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Err(error) = send(&name, state) {
        tracing::warn!("the service manager at {} cannot be notified: {error}", name.display());
    }
}

/// A name that begins with `@` is in the abstract namespace.
fn send(name: &OsStr, state: &str) -> io::Result<()> {
    let address = match name.as_bytes().split_first() {
        Some((b'@', rest)) => SocketAddr::from_abstract_name(rest)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}
