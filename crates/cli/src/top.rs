//! `fanwire top`: nodes, their load and the largest channels of running servers, in a terminal.
//! In: answers of the server API → out: one screen for each reading.
//! Uses `info`, `channels` and `hot_lists`, as any backend may. Never: more than these calls for a reading.
//! Changed here: the content of a screen.

use std::io::IsTerminal as _;
use std::process::Stdio;
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
    let mut last = None;
    loop {
        let note = match TopReading::of(api, &arguments.pattern).await {
            Ok(reading) => {
                last = Some(reading);
                String::new()
            }
            // A server that was there comes back.
            Err(error) if last.is_some() => printable(&format!("no answer: {error:#}"), 200),
            Err(error) => return Err(error),
        };
        if let Some(reading) = &last {
            let size = if is_live { ScreenSize::of_terminal() } else { ScreenSize::UNLIMITED };
            let clear = if is_live { "\x1b[H\x1b[J" } else { "" };
            document::print(&format!("{clear}{}{note}", screen(&api.authority, reading, size)))?;
        }
        if !is_live {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(arguments.interval)).await;
    }
}

/// Results of `info`, `channels` and `hot_lists`.
struct TopReading {
    info: Value,
    channels: Value,
    hot: Value,
    /// Why channels are not listed.
    unlisted: Option<String>,
}

impl TopReading {
    async fn of(api: &ApiClient, pattern: &str) -> Result<Self> {
        let info = api.ask("info").await?;
        let query = json!({ "pattern": pattern, "partial": true });
        let (channels, unlisted) = if total(&info, "num_channels") > CHANNELS_MAX as f64 {
            (Value::Null, Some(format!("more than {CHANNELS_MAX} channels are not listed")))
        } else {
            match api.call("channels", &query).await {
                Ok(channels) => (channels, None),
                Err(error) => (Value::Null, Some(format!("channels are not listed: {error:#}"))),
            }
        };
        // A key may lack the right, and a server of an older version the method.
        let hot =
            api.call("hot_lists", &json!({ "limit": HOT_SHOWN })).await.unwrap_or(Value::Null);
        Ok(Self { info, channels, hot, unlisted })
    }

    /// Names of the nodes that did not answer.
    fn missing(&self) -> Vec<String> {
        let all = [&self.channels, &self.hot].map(|result| result["missing"].as_array());
        let mut names: Vec<_> =
            all.into_iter().flatten().flatten().map(|name| text(name, 40)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Lines and columns that a screen may have.
#[derive(Clone, Copy)]
pub(crate) struct ScreenSize {
    rows: usize,
    pub(crate) columns: usize,
}

impl ScreenSize {
    pub(crate) const UNLIMITED: Self = Self { rows: usize::MAX, columns: usize::MAX };
    const USUAL: Self = Self { rows: 24, columns: 80 };

    /// As `stty` says; it needs no unsafe code and no library.
    pub(crate) fn of_terminal() -> Self {
        let stty = std::process::Command::new("stty").arg("size").stdin(Stdio::inherit()).output();
        let text = stty.map(|output| output.stdout).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let mut numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
        match (numbers.next(), numbers.next()) {
            (Some(rows @ 1..), Some(columns @ 1..)) => Self { rows, columns },
            _ => Self::USUAL,
        }
    }
}

/// A screen that fits: nodes first, then as many entries of each list as there is room for.
fn screen(authority: &str, reading: &TopReading, size: ScreenSize) -> String {
    let mut lines = node_lines(authority, reading, size);
    let lists = lists(reading);
    let is_limited = size.rows < usize::MAX;
    let left = size.rows.saturating_sub(lines.len() + 1);
    let entries =
        if is_limited { (left / lists.len().max(1)).saturating_sub(1).max(1) } else { usize::MAX };
    for (title, items) in lists {
        if !is_limited {
            lines.push(String::new());
        }
        lines.push(title);
        lines.extend(items.into_iter().take(entries));
    }
    // The last row is that of the cursor.
    lines.truncate(size.rows.saturating_sub(1));
    let cut = |line: String| line.chars().take(size.columns).collect::<String>() + "\n";
    lines.into_iter().map(cut).collect()
}

/// Sums, nodes with their load, and the names of nodes that did not answer.
fn node_lines(authority: &str, reading: &TopReading, size: ScreenSize) -> Vec<String> {
    let info = &reading.info;
    let nodes = info["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    let sum = |key| total(info, key);
    let sums = format!(
        "{authority}: {} nodes, {} clients, {} users at most, {} subscriptions",
        nodes.len(),
        sum("num_clients"),
        sum("num_users"),
        sum("num_subs"),
    );
    let heads = format!(
        "{:<18} {:>7} {:>8} {:>8} {:>9} {:>7} {:>6} {:>8}  VERSION",
        "NODE", "CLIENTS", "CHANNELS", "SUBS", "DELIVER/s", "CONN/s", "API/s", "UP s"
    );
    let mut lines = vec![sums, String::new(), heads];
    let shown = nodes.len().min((size.rows / 2).max(3));
    for node in &nodes[..shown] {
        lines.push(format!(
            "{:<18} {:>7.0} {:>8.0} {:>8.0} {:>9.0} {:>7.0} {:>6.0} {:>8.0}  {}",
            text(&node["name"], 18),
            number(node, "num_clients"),
            number(node, "num_channels"),
            number(node, "num_subs"),
            rate(node, "node_deliveries"),
            rate(node, "client_connections_accepted"),
            rate(node, "api_commands"),
            number(node, "uptime"),
            text(&node["version"], 14),
        ));
    }
    for node in nodes[..shown].iter().filter(|node| number(node, "leaving") > 0.0) {
        let name = text(&node["name"], 18);
        lines.push(format!("{name}: {} clients leave for other nodes", number(node, "leaving")));
    }
    if shown < nodes.len() {
        lines.push(format!("and {} nodes more", nodes.len() - shown));
    }
    let missing = reading.missing();
    if !missing.is_empty() {
        lines.push(format!("no answer from: {}", missing.join(", ")));
    }
    lines
}

/// Titles with their entries: hot lists that have some, and the largest channels.
fn lists(reading: &TopReading) -> Vec<(String, Vec<String>)> {
    let mut lists = Vec::new();
    for (list, title) in HOT_LISTS {
        let entry = |item: &Value| {
            let now = item["recent"].as_f64().unwrap_or_else(|| number(item, "value"));
            format!("{now:>12.0}  {} {}", text(&item["name"], 60), text(&item["user"], 40))
        };
        let items: Vec<_> = reading.hot[list].as_array().into_iter().flatten().map(entry).collect();
        if !items.is_empty() {
            lists.push((title.to_owned(), items));
        }
    }
    if let Some(cause) = &reading.unlisted {
        lists.push((printable(cause, 200), Vec::new()));
        return lists;
    }
    let channels = reading.channels["channels"].as_object().into_iter().flatten();
    let clients = |value: &Value| value["num_clients"].as_u64().unwrap_or(0);
    let mut largest: Vec<_> = channels.map(|(name, value)| (clients(value), name)).collect();
    largest.sort_unstable_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
    let shown = largest.into_iter().take(CHANNELS_SHOWN);
    let lines = shown.map(|(clients, name)| format!("{clients:>9}  {}", printable(name, 100)));
    lists.push((format!("{:>9}  CHANNEL", "CLIENTS"), lines.collect()));
    lists
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

/// Returns at most `width` characters of a name. None of them steers the terminal, because names come from clients.
pub(crate) fn printable(name: &str, width: usize) -> String {
    let shown = |one: char| if one.is_control() { '\u{fffd}' } else { one };
    name.chars().take(width).map(shown).collect()
}

/// Most channels that are asked for. With more, each answer would take megabytes.
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
    use serde_json::Map;

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
        let hot = json!({
            "publications": [{"name": "busy", "value": 7.0, "recent": 60.0}],
            "users": [{"name": "evil\u{1b}[2J", "value": 400.0}], "queues": [],
        });
        let reading = TopReading { info, channels, hot, unlisted: None };
        let shown = screen("127.0.0.1:8000", &reading, ScreenSize::UNLIMITED);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines[0],
            "127.0.0.1:8000: 1 nodes, 1200 clients, 700 users at most, 2400 subscriptions"
        );
        let node: Vec<&str> = lines[3].split_whitespace().collect();
        assert_eq!(
            node,
            ["fra-1", "1200", "3", "2400", "2000", "0", "11", "61", "0.1.0", "Fanwire"]
        );
        assert_eq!([lines[5], lines[6].trim()], ["PUBLICATIONS/s  CHANNEL", "60  busy"]);
        assert_eq!([lines[8], lines[9].trim()], ["CONNECTIONS  USER", "400  evil\u{fffd}[2J"]);
        let names: Vec<&str> =
            lines[12..].iter().map(|line| line.split_whitespace().last().unwrap_or("")).collect();
        assert_eq!(names, ["large", "evil\u{fffd}[2J", "small"]);
    }

    #[test]
    fn a_screen_of_80_columns_and_24_rows_has_its_nodes_and_something_of_each_list() {
        let node = |number: u32| json!({"name": format!("a-node-with-a-long-name-{number}"), "version": "0.1.0 Fanwire"});
        let items = |name: &str| {
            (0..5).map(|number| json!({"name": format!("{name}{number}-{}", "x".repeat(99)), "value": 9.0, "user": "u".repeat(60)})).collect::<Vec<_>>()
        };
        let hot: Map<String, Value> =
            HOT_LISTS.into_iter().map(|(list, _)| (list.to_owned(), items(list).into())).collect();
        let channels = json!({"channels": {"news": {"num_clients": 1}}, "missing": ["fra-2"]});
        for nodes in [1, 3, 40] {
            let info = json!({"nodes": (0..nodes).map(node).collect::<Vec<_>>()});
            let reading = TopReading {
                info,
                channels: channels.clone(),
                hot: hot.clone().into(),
                unlisted: None,
            };
            let shown = screen("127.0.0.1:8000", &reading, ScreenSize::USUAL);
            let lines: Vec<&str> = shown.lines().collect();
            assert!(lines.len() < 24, "{shown}");
            assert!(lines.iter().all(|line| line.chars().count() <= 80), "{shown}");
            let shown_nodes = lines.iter().filter(|line| line.starts_with("a-node")).count();
            assert_eq!(shown_nodes, (nodes as usize).min(12), "{shown}");
            assert_eq!(shown.contains("and 28 nodes more"), nodes == 40, "{shown}");
            assert!(shown.contains("no answer from: fra-2"), "{shown}");
            assert!(
                nodes == 40 || HOT_LISTS.iter().all(|(list, _)| shown.contains(list)),
                "{shown}"
            );
        }
    }

    #[test]
    fn a_screen_says_which_nodes_send_clients_away() {
        let info = json!({"nodes": [
            {"name": "fra-1", "num_clients": 9, "leaving": 5}, {"name": "fra-2", "num_clients": 1},
        ]});
        let reading = TopReading { info, channels: Value::Null, hot: Value::Null, unlisted: None };
        let lines = node_lines("a", &reading, ScreenSize::USUAL);
        assert_eq!(lines[5..], ["fra-1: 5 clients leave for other nodes"]);
    }

    #[test]
    fn a_screen_says_why_channels_are_not_listed() {
        let unlisted = Some("more than 100000 channels are not listed".to_owned());
        let reading = TopReading {
            info: json!({"nodes": []}),
            channels: Value::Null,
            hot: Value::Null,
            unlisted,
        };
        let shown = screen("a", &reading, ScreenSize::UNLIMITED);
        assert!(shown.ends_with("more than 100000 channels are not listed\n"), "{shown}");
    }
}
