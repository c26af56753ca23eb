//! `fanwire top`: nodes, their load and the largest channels of running servers, in a terminal.
//! In: answers of the server API → out: one screen for each reading.
//! Uses `info`, `channels` and `hot_lists`, as any backend may. Never: more than these calls for a reading.
//! What a screen shows is changed here.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::api_client::ApiClient;
use crate::arguments::Top;
use crate::document;
use crate::local::with_remedy;

pub(crate) fn run(arguments: &Top) -> Result<()> {
    let api = ApiClient::new(&arguments.server)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(show(&api, arguments)).map_err(with_remedy)
}

async fn show(api: &ApiClient, arguments: &Top) -> Result<()> {
    let is_live = !arguments.once && std::io::stdout().is_terminal();
    loop {
        let nodes = api.ask("info").await?;
        let channels = match total(&nodes, "num_channels") > CHANNELS_MAX as f64 {
            true => Value::Null,
            false => api.call("channels", &json!({ "pattern": arguments.pattern })).await?,
        };
        // A key may lack the right, and a server of an older version the method.
        let hot =
            api.call("hot_lists", &json!({ "limit": HOT_SHOWN })).await.unwrap_or(Value::Null);
        let clear = if is_live { "\x1b[H\x1b[J" } else { "" };
        document::print(&format!("{clear}{}", screen(&api.authority, &nodes, &channels, &hot)))?;
        if !is_live {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(arguments.interval)).await;
    }
}

/// A screen of results of `info`, `channels` and `hot_lists`; null for more channels than are listed.
fn screen(authority: &str, info: &Value, channels: &Value, hot: &Value) -> String {
    let mut out = String::new();
    let nodes = info["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    let sum = |key| total(info, key);
    // Writing to a String does not fail.
    let _ = writeln!(
        out,
        "{authority}: {} nodes, {} clients, {} users at most, {} subscriptions\n",
        nodes.len(),
        sum("num_clients"),
        sum("num_users"),
        sum("num_subs"),
    );
    let _ = writeln!(
        out,
        "{:<20} {:>14} {:>8} {:>9} {:>9} {:>9} {:>12} {:>11} {:>9}",
        "NODE",
        "VERSION",
        "UP s",
        "CLIENTS",
        "CHANNELS",
        "SUBS",
        "DELIVERIES/s",
        "CONNECTS/s",
        "API/s"
    );
    for node in nodes {
        let _ = writeln!(
            out,
            "{:<20} {:>14} {:>8.0} {:>9.0} {:>9.0} {:>9.0} {:>12.0} {:>11.0} {:>9.0}",
            text(&node["name"], 20),
            text(&node["version"], 14),
            number(node, "uptime"),
            number(node, "num_clients"),
            number(node, "num_channels"),
            number(node, "num_subs"),
            rate(node, "node_deliveries"),
            rate(node, "client_connections_accepted"),
            rate(node, "api_commands"),
        );
    }
    for (list, title) in HOT_LISTS {
        let items = hot[list].as_array().map_or(&[][..], Vec::as_slice);
        if !items.is_empty() {
            let _ = writeln!(out, "\n{title}");
        }
        for item in items {
            let (value, name) = (number(item, "value"), text(&item["name"], 60));
            let _ = writeln!(out, "{value:>12.0}  {name} {}", text(&item["user"], 40));
        }
    }
    let _ = writeln!(out, "\n{:>9}  CHANNEL", "CLIENTS");
    let Some(channels) = channels["channels"].as_object() else {
        let _ = writeln!(out, "more than {CHANNELS_MAX} channels are not listed");
        return out;
    };
    let clients = |value: &Value| value["num_clients"].as_u64().unwrap_or(0);
    let mut largest: Vec<(u64, &str)> =
        channels.iter().map(|(name, value)| (clients(value), name.as_str())).collect();
    largest.sort_unstable_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
    for (clients, name) in largest.into_iter().take(CHANNELS_SHOWN) {
        let _ = writeln!(out, "{clients:>9}  {}", printable(name, 100));
    }
    out
}

fn total(info: &Value, key: &str) -> f64 {
    let nodes = info["nodes"].as_array().into_iter().flatten();
    nodes.fold(0.0, |sum, node| sum + number(node, key))
}

fn number(node: &Value, key: &str) -> f64 {
    node[key].as_f64().unwrap_or(0.0)
}

/// The growth of a counter per second, over all of its labels, in the interval for which the node has gathered it.
fn rate(node: &Value, counter: &str) -> f64 {
    let metrics = &node["metrics"];
    let interval = metrics["interval"].as_f64().filter(|seconds| *seconds > 0.0);
    let items = metrics["items"].as_object().into_iter().flatten();
    let ours = items.filter(|(name, _)| {
        name.strip_prefix(counter).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    });
    let grown = ours.filter_map(|(_, value)| value.as_f64()).fold(0.0, |sum, value| sum + value);
    interval.map_or(0.0, |seconds| grown / seconds)
}

fn text(value: &Value, width: usize) -> String {
    printable(value.as_str().unwrap_or(""), width)
}

/// At most `width` characters, none of which steers the terminal: names come from clients.
fn printable(name: &str, width: usize) -> String {
    let shown = |one: char| if one.is_control() { '\u{fffd}' } else { one };
    name.chars().take(width).map(shown).collect()
}

/// Of more channels than these each answer would take megabytes.
const CHANNELS_MAX: usize = 100_000;
const CHANNELS_SHOWN: usize = 20;
const HOT_SHOWN: usize = 5;

/// Lists of `hot_lists` with their titles.
const HOT_LISTS: [(&str, &str); 7] = [
    ("publications", "PUBLICATIONS/s  CHANNEL"),
    ("deliveries", "DELIVERIES/s  CHANNEL"),
    ("history", "HISTORY BYTES  CHANNEL"),
    ("namespaces", "HISTORY BYTES  NAMESPACE"),
    ("users", "CONNECTIONS  USER"),
    ("queues", "QUEUED BYTES  CLIENT, USER"),
    ("refusals", "REFUSALS  CLIENT, USER"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_has_nodes_with_rates_and_the_largest_channels() {
        let info = json!({"nodes": [{
            "name": "fra-1", "version": "0.1.0 Fanwire", "uptime": 61, "num_clients": 1200, "num_users": 700,
            "num_channels": 3, "num_subs": 2400,
            "metrics": {"interval": 60, "items": {
                "node_deliveries": 120_000, "node_deliveries_x": 60, "api_commands.method.publish": 600,
                "api_commands.method.info": 60,
            }},
        }]});
        let channels = json!({"channels": {
            "small": {"num_clients": 1}, "evil\u{1b}[2J": {"num_clients": 7}, "large": {"num_clients": 900},
        }});
        let hot = json!({"users": [{"name": "evil\u{1b}[2J", "value": 400.0}], "queues": []});
        let shown = screen("127.0.0.1:8000", &info, &channels, &hot);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines[0],
            "127.0.0.1:8000: 1 nodes, 1200 clients, 700 users at most, 2400 subscriptions"
        );
        let node: Vec<&str> = lines[3].split_whitespace().collect();
        assert_eq!(
            node,
            ["fra-1", "0.1.0", "Fanwire", "61", "1200", "3", "2400", "2000", "0", "11"]
        );
        assert_eq!(lines[5], "CONNECTIONS  USER");
        assert_eq!(lines[6].trim(), "400  evil\u{fffd}[2J");
        let names: Vec<&str> =
            lines[9..].iter().map(|line| line.split_whitespace().last().unwrap_or("")).collect();
        assert_eq!(names, ["large", "evil\u{fffd}[2J", "small"]);
    }

    #[test]
    fn too_many_channels_are_not_listed() {
        let shown = screen("a", &json!({"nodes": []}), &Value::Null, &Value::Null);
        assert!(shown.ends_with("more than 100000 channels are not listed\n"), "{shown}");
    }
}
