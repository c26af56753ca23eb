//! `fanwire config`: the values with which a server would start here, or those of a running one, and where each comes from.
//! In: a file, the environment, `.env`, or an answer of the server API → out: a line for each key that is set, or for all.
//! Uses `fanwire_config`. Never: a check of the values, which `check-config` does; a secret.
//! Changed here: the form of a line; what is masked is decided in `fanwire_config`.

use std::fmt::Write as _;

use anyhow::Result;
use fanwire_config::{LoadedConfig, Source};
use serde_json::{Value, json};

use crate::api_client::ApiClient;
use crate::arguments::{ApiServer, ShowConfig};
use crate::local::with_remedy;
use crate::{document, environment};

pub(crate) fn run(arguments: &ShowConfig) -> Result<()> {
    let path = arguments.config.as_deref();
    if let Some(url) = &arguments.api {
        let trust = arguments.trust.clone();
        let config = arguments.config.clone();
        let server =
            ApiServer { url: Some(url.clone()), trust, key: arguments.key.clone(), config };
        let api = ApiClient::new(&server)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let request = json!({ "all": arguments.all });
        let answer = runtime.block_on(api.call("node_config", &request)).map_err(with_remedy)?;
        return document::print(&text(&answer));
    }
    let variables = environment::variables()?;
    let (loaded, _) = if arguments.is_centrifugo {
        LoadedConfig::load_closed(path, variables, &[])?
    } else {
        LoadedConfig::load(path, variables, &[])?
    };
    let rows = loaded
        .values_in_force()
        .into_iter()
        .filter(|row| arguments.all || row.source != Source::Default);
    let lines: String =
        rows.map(|row| format!("{}: {}  # {}\n", row.key, row.value, row.source)).collect();
    document::print(&lines)
}

/// The answer of a node: its values, then how its sources differ.
fn text(answer: &Value) -> String {
    let list = |key: &str| answer[key].as_array().map(Vec::as_slice).unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut text = String::new();
    for row in list("values") {
        let source = match word(&row["source"]) {
            source if source.is_empty() => Source::Default.to_string(),
            source => source,
        };
        // Writing to a String does not fail.
        let _ = writeln!(text, "{}: {}  # {source}", word(&row["key"]), word(&row["value"]));
    }
    let names = |key| list(key).iter().map(word).collect::<Vec<_>>().join(", ");
    let reload = names("needs_reload");
    let restart = names("needs_restart");
    let _ = write!(text, "\n# {} runs ", word(&answer["node"]));
    let _ = match (word(&answer["error"]).as_str(), &*reload, &*restart) {
        ("", "", "") => writeln!(text, "with what its file and its variables say."),
        ("", ..) => writeln!(text, "with other values than its file and its variables have now:"),
        (error, ..) => writeln!(text, "with these; what its file says now is refused: {error}"),
    };
    for (what, keys) in [("a reload (SIGHUP)", reload), ("a restart", restart)] {
        if !keys.is_empty() {
            let _ = writeln!(text, "#   after {what}: {keys}");
        }
    }
    text
}
