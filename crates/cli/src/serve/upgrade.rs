//! The takeover of a running server by the program that is installed now.
//! In: requests at the private socket → out: a new process that serves, or an answer that says why this one goes on.
//! Uses `fanwire::Server`. Never: how a server is handed over.
//! Changed here: which program is started, and the words of the answers. The socket is `control`.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Command;

use fanwire::{HandOverError, HandedOver, MovableConnections, Server};

use super::control::{Control, Request};
#[cfg(target_os = "linux")]
use crate::service_manager;

/// The program of this process: its path as it was at the start, where another version may be now.
pub(super) struct Program(Option<PathBuf>);

impl Program {
    /// A name with a slash is the path; others were found in the `PATH`.
    pub(super) fn of_process() -> Self {
        let named =
            std::env::args_os().next().filter(|name| Path::new(name).components().count() > 1);
        let path = match named {
            Some(name) => std::path::absolute(name),
            None => std::env::current_exe(),
        };
        Self(path.ok())
    }

    fn command(&self) -> Result<Command, String> {
        if std::process::id() == 1 {
            return Err("this server is process 1 of its container, which ends with it: start a new container".to_owned());
        }
        let path =
            self.0.as_ref().ok_or("the path of this program is not known: restart the server")?;
        let mut command = Command::new(path);
        command.args(std::env::args_os().skip(1));
        Ok(command)
    }
}

/// Answers a request. Returns whether another process serves now.
pub(super) async fn answer(
    request: Request,
    server: &mut Server,
    program: &Program,
    control: &Control,
) -> bool {
    if request.is_check {
        let counts = server.count_movable().await.map(counts).map_err(|error| error.to_string());
        request.answer(counts).await;
        return false;
    }
    let command = match program.command() {
        Ok(command) => command,
        Err(reason) => {
            request.answer(Err(reason)).await;
            return false;
        }
    };
    tracing::info!("a new program is started, which takes over");
    match hand_over(server, command, control).await {
        Ok(HandedOver { connections, pid }) => {
            #[cfg(target_os = "linux")]
            service_manager::notify(&format!("MAINPID={pid}"));
            tracing::info!(connections, pid, "handed over to a new program; this one ends");
            let text = format!("process {pid} serves now, with {connections} connections");
            request.answer(Ok(text)).await;
            true
        }
        Err(error) => {
            tracing::error!(%error, "not handed over");
            request.answer(Err(error.to_string())).await;
            false
        }
    }
}

/// Refuses other requests while the server is handed over.
async fn hand_over(
    server: &mut Server,
    command: Command,
    control: &Control,
) -> Result<HandedOver, HandOverError> {
    let mut handing_over = pin!(server.hand_over(command));
    loop {
        tokio::select! {
            result = &mut handing_over => return result,
            other = control.next() => {
                other.answer(Err("an upgrade is running already".to_owned())).await;
            }
        }
    }
}

fn counts(counts: MovableConnections) -> String {
    let MovableConnections { movable, encrypted, others } = counts;
    format!(
        "{movable} connections would move; {} would be closed, and their clients reconnect:\n\
         {encrypted} with TLS in this process\n\
         {others} with a command that waits for an answer, or a subscription that stays",
        encrypted + others
    )
}
