//! The private socket of a server, at which `fanwire upgrade` asks for a takeover.
//! In: connections of this user or of root → out: requests; their answers.
//! Uses a Unix socket with mode 0600 and the peer's credentials. Never: a takeover, which `serve` runs.
//! Changed here: who may ask. Where the socket is, and the words on it, are in `upgrade`.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use fanwire_config::Config;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use crate::upgrade::{CHECK, OK, RUNTIME_DIRECTORY, UPGRADE, socket_path};

/// The socket, if the server has a place for it.
pub(super) struct Control {
    listener: Option<UnixListener>,
    path: PathBuf,
}

/// A request that waits for its answer.
pub(super) struct Request {
    pub(super) is_check: bool,
    peer: UnixStream,
}

impl Control {
    /// Listens. A socket of a program that has ended, or is about to, gives way. Without a place, or in a folder that cannot be written,
    /// the server cannot be asked.
    pub(super) fn listen(config: &Config) -> Self {
        let Some(path) = socket_path(&config.pid_file, std::env::var_os(RUNTIME_DIRECTORY)) else {
            return Self { listener: None, path: PathBuf::new() };
        };
        let listen = || {
            if let Err(error) = std::fs::remove_file(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(error);
            }
            let listener = UnixListener::bind(&path)?;
            std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            Ok(listener)
        };
        let listener = listen();
        if let Err(error) = &listener {
            tracing::warn!(?path, %error, "`fanwire upgrade` cannot ask this server");
        }
        Self { listener: listener.ok(), path }
    }

    /// Waits for the next request.
    pub(super) async fn next(&self) -> Request {
        let Some(listener) = &self.listener else { return std::future::pending().await };
        loop {
            match listener.accept().await {
                Ok((peer, _)) => {
                    if let Ok(Some(request)) = timeout(REQUEST_TIMEOUT, read(peer)).await {
                        return request;
                    }
                }
                // Without descriptors it is tried again.
                Err(_) => tokio::time::sleep(REQUEST_TIMEOUT).await,
            }
        }
    }

    /// Removes the socket of a server that stops. After a takeover it is that of the new program.
    pub(super) fn remove(self) {
        if self.listener.is_some() {
            let _missing = std::fs::remove_file(self.path);
        }
    }
}

/// `None` if the peer may not ask, or asks for something else.
async fn read(mut peer: UnixStream) -> Option<Request> {
    let uid = peer.peer_cred().ok()?.uid();
    if uid != 0 && uid != rustix::process::geteuid().as_raw() {
        return None;
    }
    let mut line = String::new();
    BufReader::new(&mut peer).read_line(&mut line).await.ok()?;
    let is_check = match line.as_str() {
        CHECK => true,
        UPGRADE => false,
        _ => return None,
    };
    Some(Request { is_check, peer })
}

impl Request {
    /// Answers with a text, or with the reason why nothing happens.
    pub(super) async fn answer(mut self, result: Result<String, String>) {
        let answer = match result {
            Ok(text) => format!("{OK}\n{text}\n"),
            Err(reason) => format!("refused\n{reason}\n"),
        };
        // Who asked may have ended.
        let _ = timeout(REQUEST_TIMEOUT, self.peer.write_all(answer.as_bytes())).await;
    }
}

const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
