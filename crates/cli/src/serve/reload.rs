//! The reload of the configuration on SIGHUP.
//! In: file, environment and flags, read again → out: a server with the new values, and log lines that name their keys.
//! Uses `fanwire_config` and `fanwire::Server`. Never: signals, values in log lines.
//! Changed here: the log lines of a reload; which keys can change is decided in `fanwire_config`.

use anyhow::{Result, bail};
use fanwire::Server;
use fanwire_config::{ConfigError, LoadedConfig, Reload};

use super::log;
use crate::arguments::Serve;
use crate::logs::Logs;
use crate::{check, environment};

/// Reads the configuration again and applies what can change. With an error nothing changes.
pub(super) fn run(arguments: &Serve, loaded: &mut LoadedConfig, server: &Server, logs: &Logs) {
    match reload(arguments, loaded, server, logs) {
        Ok(Reload { loaded: reloaded, changed, needs_restart, findings, .. }) => {
            *loaded = reloaded;
            log(&findings);
            match changed.as_slice() {
                [] => tracing::info!("configuration reloaded, no value has changed"),
                changed => tracing::info!("configuration reloaded: {}", changed.join(", ")),
            }
            if !needs_restart.is_empty() {
                tracing::warn!("new values that need a restart: {}", needs_restart.join(", "));
            }
            if std::env::vars_os().any(|(name, _)| is_ours(&name.to_string_lossy())) {
                tracing::info!(
                    "variables of the process are as at its start; only files are read again"
                );
            }
        }
        Err(error) => {
            server.record_failed_reload();
            tracing::error!("the configuration was not reloaded, nothing has changed: {error:#}");
        }
    }
}

fn is_ours(variable: &str) -> bool {
    ["FANWIRE_", "CENTRIFUGO_"].iter().any(|prefix| variable.starts_with(prefix))
}

fn reload(
    arguments: &Serve,
    loaded: &LoadedConfig,
    server: &Server,
    logs: &Logs,
) -> Result<Reload> {
    let path = arguments.config.as_deref();
    let mut reload =
        loaded.reload(path, environment::variables()?, &arguments.keys.0).map_err(described)?;
    if let Some(error) = Server::check(&reload.written).into_iter().next() {
        bail!(error);
    }
    keep_generated_key(loaded, &mut reload);
    let config = &reload.loaded.config;
    server.reload(config)?;
    if config.log.level != loaded.config.log.level {
        logs.set_level(&config.log.level)?;
    }
    Ok(reload)
}

/// The key that `serve` generated at the start, which is not in the sources, stays valid until one is configured.
fn keep_generated_key(loaded: &LoadedConfig, reload: &mut Reload) {
    let is_generated = !reload.changed.iter().any(|key| key == "http_api.key");
    if is_generated {
        reload.loaded.config.http_api.key = loaded.config.http_api.key.clone();
    }
}

/// All findings in the words of `check-config`.
fn described(error: ConfigError) -> anyhow::Error {
    let ConfigError::Findings(findings) = error else { return error.into() };
    let mut lines = Vec::new();
    match check::print(&findings, &mut lines) {
        Ok(()) => anyhow::anyhow!("{}", String::from_utf8_lossy(&lines).trim_end().to_owned()),
        Err(error) => error.into(),
    }
}
