//! `fanwire upgrade`: asks a running server to let the program that is installed now go on with its connections.
//! In: a configuration or a process → out: the server's answer; an error if it serves as before.
//! Uses the private socket of the server. Never: starts the new program, which the server does.
//! Changed here: where the socket is. What the server does with a request is `serve::control`.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};

use crate::arguments::Upgrade;
use crate::environment;

pub(crate) fn run(arguments: &Upgrade) -> Result<()> {
    let config =
        fanwire_config::load(arguments.config.as_deref(), environment::variables()?, &[])?.0;
    let directory = match arguments.pid {
        Some(pid) => runtime_directory_of(pid)?,
        None => std::env::var_os(RUNTIME_DIRECTORY),
    };
    let path = socket_path(&config.pid_file, directory).ok_or_else(|| anyhow!(NO_PLACE))?;
    let mut server = UnixStream::connect(&path)
        .with_context(|| format!("no server of this user can be asked at {}", path.display()))?;
    let pid = rustix::net::sockopt::socket_peercred(&server)?.pid.as_raw_nonzero();
    if arguments.pid.is_some_and(|wanted| i32::try_from(wanted) != Ok(pid.get())) {
        bail!("the server at {} is process {pid}", path.display());
    }
    server.write_all(if arguments.check { CHECK } else { UPGRADE }.as_bytes())?;
    let mut answer = String::new();
    server.read_to_string(&mut answer)?;
    match answer.split_once('\n') {
        Some((OK, text)) => print(text),
        Some((_, reason)) => bail!("{}", reason.trim_end()),
        None => bail!("the server has ended without an answer; its log says more"),
    }
}

/// Where a server can be asked: next to its pid file, or in the folder that its service manager has made.
pub(crate) fn socket_path(pid_file: &str, runtime_directory: Option<OsString>) -> Option<PathBuf> {
    if !pid_file.is_empty() {
        return Some(format!("{pid_file}.sock").into());
    }
    // A unit may have several folders.
    let first = runtime_directory?.into_vec().split(|byte| *byte == b':').next()?.to_vec();
    let is_given = !first.is_empty();
    is_given.then(|| Path::new(&OsString::from_vec(first)).join("fanwire.sock"))
}

/// The variable of another process.
fn runtime_directory_of(pid: u32) -> Result<Option<OsString>> {
    let path = format!("/proc/{pid}/environ");
    let variables = std::fs::read(&path).with_context(|| format!("{path} cannot be read"))?;
    let prefix = format!("{RUNTIME_DIRECTORY}=");
    let value =
        variables.split(|byte| *byte == 0).find_map(|it| it.strip_prefix(prefix.as_bytes()));
    Ok(value.map(|value| OsString::from_vec(value.to_vec())))
}

fn print(text: &str) -> Result<()> {
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

/// The requests to the server, a line each, and the first line of a good answer.
pub(crate) const UPGRADE: &str = "upgrade\n";
pub(crate) const CHECK: &str = "check\n";
pub(crate) const OK: &str = "ok";

/// systemd.exec(5), RuntimeDirectory=
pub(crate) const RUNTIME_DIRECTORY: &str = "RUNTIME_DIRECTORY";

const NO_PLACE: &str = "it is not known where the server can be asked: set pid_file in its configuration, or run it in a unit with \
                        RuntimeDirectory=, and name one of both by --config or --pid";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_next_to_its_pid_file_or_in_its_runtime_directory() {
        let path =
            |pid_file, folder: Option<&str>| socket_path(pid_file, folder.map(OsString::from));
        assert_eq!(path("/run/f.pid", Some("/run/x")), Some("/run/f.pid.sock".into()));
        assert_eq!(path("", Some("/run/x")), Some("/run/x/fanwire.sock".into()));
        assert_eq!(path("", Some("/run/x:/run/y")), Some("/run/x/fanwire.sock".into()));
        assert_eq!(path("", Some("")), None);
        assert_eq!(path("", None), None);
    }
}
